"""The part of a session's records that each role may see; every route and stream asks here.

- An operator sees all of it.
- A viewer sees no private part of an opening and no later profile, no notes, no replies of models,
  and no details of a simulated user's faults: each of these may contain the knowledge of a single
  actor.
- A participant sees what the session shows to the actor that they are, and no measurement.

Hidden records keep their place: the record stays, and its contents are withheld.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, final

from msgspec.structs import replace

from ....engine import codec
from ....engine.errors import CodecError
from ....engine.events import (
    DraftDropped,
    Event,
    Forgotten,
    ModelCalled,
    NoteTaken,
    ProfileChanged,
    SessionOpened,
    SimulatorFlagged,
    Unknown,
)
from ....engine.records import Record
from ....engine.session.view import Visibility
from .identity import Identity

__all__ = ("WITHHELD", "Disclosure")

WITHHELD: Final = "(withheld)"
"""Replaces a text that is not for all roles."""

_PRIVATE: Final = frozenset(
    {
        "DraftDropped",
        "ModelCalled",
        "NoteTaken",
        "ProfileChanged",
        "SessionOpened",
        "SimulatorFlagged",
    }
)


@final
class Disclosure:
    """Shows the records of one session to a user, as far as they may see them.

    Takes all records of all streams, in order of position: a participant's view depends on earlier
    records.

    Args:
        identity: the identity of the user.
    """

    def __init__(self, identity: Identity) -> None:
        self._role = identity.role
        self._session = identity.session
        self._visibility = Visibility(identity.actor) if identity.role == "participant" else None

    def see(self, record: Record) -> Record | None:
        """The record as they may see it; None if they may not know of it."""
        if self._visibility is not None:
            return self._visibility.see(record) if record.session == self._session else None
        if self._role == "operator" or record.kind not in _PRIVATE:
            return record
        return _withheld(record)


def _withheld(record: Record) -> Record:
    """A record without its private parts."""
    event: object = None
    with suppress(CodecError):  # a damaged one is withheld like an unknown one
        event = record.event
    kept: Event | None = None
    if isinstance(event, SessionOpened):
        kept = replace(event, private={})
    elif isinstance(event, NoteTaken):
        kept = replace(event, text=WITHHELD)
    elif isinstance(event, DraftDropped):
        kept = replace(event, text=WITHHELD if event.text else "", actions=())
    elif isinstance(event, ProfileChanged):
        kept = replace(event, profile=None, reason=WITHHELD if event.reason else "")
    elif isinstance(event, ModelCalled):
        kept = replace(event, reply=None, error=WITHHELD if event.error else None)
    elif isinstance(event, SimulatorFlagged):
        kept = replace(event, detail=WITHHELD if event.detail else "")
    elif isinstance(event, Forgotten):
        return record
    if kept is not None:
        return replace(record, body=codec.encode_body(kept), _event=kept)
    # It is damaged, or of a kind or schema that this version does not know: any part may be private.
    unknown = Unknown(record.kind, record.schema, b"{}")
    return replace(record, body=b"{}", _event=unknown)
