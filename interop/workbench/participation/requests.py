"""The requests of a participant's page: each is one action, with its own id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from ....engine.events import JSON
from ....engine.session.decisions import Ending

__all__ = (
    "Accepted",
    "Answered",
    "Did",
    "Effort",
    "Judged",
    "Merging",
    "Rated",
    "Said",
    "Stopped",
    "Submitted",
    "Took",
    "decode_accepted",
    "decode_act",
    "decode_effort",
    "decode_merging",
)


class _Act(msgspec.Struct, frozen=True, kw_only=True, tag_field="act", forbid_unknown_fields=True):
    """The common fields: session, actor, and an id that makes repeated requests harmless."""

    session: str
    actor: str
    id: str

    def __post_init__(self) -> None:
        if not 8 <= len(self.id) <= 64:
            raise ValueError("an id has 8 to 64 characters")


class Said(_Act, frozen=True, kw_only=True, tag="say"):
    """They said something."""

    text: str


class Submitted(_Act, frozen=True, kw_only=True, tag="submit"):
    """They put up a version of the output, made from the one at version ``base``."""

    content: str
    base: int | None = None


class Answered(_Act, frozen=True, kw_only=True, tag="approve"):
    """They gave or denied an approval."""

    asked: int
    approved: bool
    comment: str = ""


class Rated(_Act, frozen=True, kw_only=True, tag="rate"):
    """They rated the progress of the agent's latest round."""

    rating: int
    explanation: str = ""


class Judged(_Act, frozen=True, kw_only=True, tag="judge"):
    """They accepted, changed or undid edits of the output's version ``of``: which share they kept."""

    of: int
    kept: float


class Took(_Act, frozen=True, kw_only=True, tag="do"):
    """They took a task action."""

    name: str
    arguments: Mapping[str, JSON] = {}


class Stopped(_Act, frozen=True, kw_only=True, tag="stop"):
    """They ended the session: satisfied with its output, or given up."""

    reason: Ending
    detail: str = ""


Did: TypeAlias = Said | Submitted | Answered | Judged | Rated | Took | Stopped
"""Anything that they may do."""


class Merging(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Merges their text, made from version ``base``, with the current output."""

    session: str
    actor: str
    base: int | None
    mine: str


class Accepted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Asks in which places the output differs from the text that they have accepted."""

    session: str
    actor: str
    text: str


class Effort(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The effort that their page observed since the last report, with their consent.

    Attributes:
        session: session id.
        actor: who they are there.
        reading: seconds in which they looked at the page and did nothing else.
        typing: seconds in which they typed.
        idle: seconds in which they were away, or did nothing for long.
        inserted: characters that they put into the output or a message.
        deleted: characters that they took out.
    """

    session: str
    actor: str
    reading: float = 0.0
    typing: float = 0.0
    idle: float = 0.0
    inserted: int = 0
    deleted: int = 0


decode_accepted = msgspec.json.Decoder(Accepted).decode
decode_act = msgspec.json.Decoder(Did).decode
decode_merging = msgspec.json.Decoder(Merging).decode
decode_effort = msgspec.json.Decoder(Effort).decode
