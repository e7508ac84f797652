"""The parts of events: JSON, roles, participants, token counts, and the base of all events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import msgspec

__all__ = (
    "JSON",
    "CloseReason",
    "Event",
    "Forgotten",
    "Origin",
    "Participant",
    "Role",
    "ScorerRef",
    "Tokens",
    "Unknown",
)

if TYPE_CHECKING:
    JSON: TypeAlias = Mapping[str, "JSON"] | Sequence["JSON"] | str | int | float | bool | None
else:  # msgspec decodes plain JSON under Any, and cannot build a decoder for a recursive alias
    JSON = Any

Role = Literal["human", "agent", "environment", "scorer"]
"""An actor's role in its session."""

CloseReason = Literal[
    "finished", "abandoned", "ended", "limit", "tolerance", "stalled", "failed", "cancelled"
]
"""Why a session was closed.

- ``finished``: a participant was satisfied, or done.
- ``abandoned``: a participant gave up.
- ``ended``: the session is over for an unknown reason.
- ``limit``: one of the ``Limits`` was reached.
- ``tolerance``: a judge's ratings reached the tolerance at which the human is stopped.
- ``stalled``: all participants waited for each other.
- ``failed``: an actor raised.
- ``cancelled``: the session was cancelled from outside.
"""


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    gc=False,
    tag_field="kind",
    tag=True,
):
    """The base of all events: a JSON tag ``kind`` and a schema number.

    The garbage collector can skip events, since JSON has no cycles.

    Attributes:
        traceparent: the W3C trace context of the request in which it was recorded, if there was one.
    """

    schema: ClassVar[int] = 1

    traceparent: str | None = None


class Participant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A participant, with its policy and model, so that a result shows who played.

    Attributes:
        name: unique in the session; the ``actor`` of its records.
        role: human or agent (or environment).
        policy: decides for it, e.g. ``two-stage`` or ``proactive``; None for a real person.
        model: the model behind the policy, if any.
        persona: the persona of a simulated user.
        prompt: digest of the prompts in use, if any.
    """

    name: str
    role: Role
    policy: str | None = None
    model: str | None = None
    persona: str | None = None
    prompt: str | None = None


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a forked session: its id, and the last trace version that both share."""

    session: str
    version: int


class Tokens(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Token classes of one model call, raw as the provider counts them; None where unknown.

    ``reasoning`` is a part of ``completion``, and ``cached`` of ``prompt``, unless the provider
    counts cached tokens separately (Anthropic does; ``cache_creation`` are then those that
    were written to the cache).
    """

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    cache_creation: int | None = None


class ScorerRef(msgspec.Struct, frozen=True, kw_only=True):
    """Which scorer measured: name, version and the digest of its configuration."""

    name: str
    version: str
    config: str


class Unknown(msgspec.Struct, frozen=True):
    """An event of a kind, or of a newer schema, that this version does not know: kept byte for
    byte, skipped by folds.
    """

    kind: str
    schema: int
    body: bytes


class Forgotten(msgspec.Struct, frozen=True):
    """Takes the place of an erased event."""

    kind: str
