"""Records: events with their envelopes, and drafts, which are records before the log took them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

import msgspec
from msgspec.structs import force_setattr

from .codec import decode_body
from .events import Event, Forgotten, Role, Unknown

__all__ = ("ENGINE", "ENVIRONMENT", "RECORDING", "REVIEW", "TRACE", "Draft", "Record", "Redact")

TRACE = "trace"
"""Name of the stream that holds the acts of the actors."""

RECORDING = "record"
"""Name of the stream in which a recorder reports lost events (``RecordsLost``)."""

REVIEW = "review"
"""Name of the stream that holds the tags, comments and ratings of reviewers."""

ENGINE = "engine"
"""Name of the actor for the engine's own events: openings, nudges, limits. Its role is environment."""

ENVIRONMENT = "environment"
"""Name of the actor that resolves actions."""


@final
class Draft(msgspec.Struct, frozen=True):
    """An event with the part of its envelope that the writer decides.

    Attributes:
        event: the fact.
        actor: who; for a measurement, the scorer's name.
        role: the actor's role.
        time: seconds, UTC epoch or virtual, as the session's clock has it.
        id: the caller's id, unique in the session; makes the append idempotent. None costs nothing.
        cause: ``stream/version`` of the record that this one answers.
        seen: trace version that the actor's view had reached when it decided.
    """

    event: Event | Unknown
    actor: str
    role: Role
    time: float
    id: str | None = None
    cause: str | None = None
    seen: int | None = None


Redact: TypeAlias = Callable[[Draft], Draft]
"""Removes the parts of a draft that must not be written."""


@final
class Record(msgspec.Struct, frozen=True, eq=False, gc=False):  # holds no cycles
    """An event as the log holds it: its envelope, and its body in JSON, decoded when asked for.

    Attributes:
        position: global order in the log, from 1; grows in commit order. 0 while it is only staged.
        session: session id.
        stream: ``trace`` or a scorer's stream.
        version: order in the stream, from 1, without gaps.
        kind: name of the event's type.
        schema: schema number of the body as it was written.
        time: seconds (UTC epoch, or virtual from 0: ``SessionOpened.clock`` says which).
        actor: who.
        role: the actor's role.
        cause: ``stream/version`` that it answers.
        seen: trace version that the actor had seen when it decided.
        caller_id: the caller's id, if it gave one.
        body: JSON of the event; None once it was forgotten.
    """

    position: int
    session: str
    stream: str
    version: int
    kind: str
    schema: int
    time: float
    actor: str
    role: Role
    cause: str | None
    seen: int | None
    caller_id: str | None
    body: bytes | None
    _event: Event | Unknown | Forgotten | None = None

    @property
    def id(self) -> str:
        """The caller's id, else ``session/stream/version``."""
        return self.caller_id or f"{self.session}/{self.stream}/{self.version}"

    @property
    def event(self) -> Event | Unknown | Forgotten:
        """The decoded event; ``Unknown`` or ``Forgotten`` if there is nothing to decode.

        Raises:
            CodecError: the body is damaged.
        """
        event = self._event
        if event is None:
            event = decode_body(self.kind, self.schema, self.body)
            force_setattr(self, "_event", event)
        return event

    def _content(self) -> tuple[object, ...]:
        return (
            self.position,
            self.session,
            self.stream,
            self.version,
            self.kind,
            self.schema,
            self.time,
            self.actor,
            self.role,
            self.cause,
            self.seen,
            self.caller_id,
            self.body,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        return hash((self.session, self.stream, self.version))
