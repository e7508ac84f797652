"""Receipts: each verb returns one at once; it gives the record once the event is written."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from itertools import islice
from typing import TypeAlias, final

import anyio

from ..engine.errors import DuologError, InvalidInput, NotRecorded
from ..engine.records import Record
from ..engine.session.state import TraceState
from ..engine.text import suggestion
from .jsonable import shown

__all__ = ("Awaited", "Receipt", "Ref", "check_ref", "version_of")

_NEAR = 100  # ids, the latest ones, among which a misspelled one is looked for


@final
class Receipt:
    """The receipt of an event that was handed over to be recorded.

    Pass it to any verb that refers to another event (the action that is resolved, the snapshot that
    an edit was made from), even before the event is written.

    Attributes:
        session: session id.
        id: the caller's id of the event; None if the caller gave none.
        record: the record, once it is written; None if there was nothing to write.
        error: why it will never be recorded, or was refused; None otherwise.
        settled: whether its fate is known.
    """

    __slots__ = ("_event", "_hurry", "at", "error", "id", "ident", "record", "session", "settled")

    def __init__(self, session: str, id: str | None = None) -> None:
        self.session = session
        self.id = id
        self.ident: str | None = None  # under which the log will have it, if it waits on the disk
        self.at: int | None = None  # trace version that it has or, while it is being written, gets
        self.record: Record | None = None
        self.error: DuologError | None = None
        self.settled = False
        self._event: anyio.Event | None = None
        self._hurry: Callable[[], None] | None = None

    @property
    def version(self) -> int | None:
        """Trace version of the record; None while it is not written."""
        return self.record.version if self.record is not None else None

    def settle(self, record: Record | None, error: DuologError | None = None) -> None:
        """Notes the record of the event, or why there is none."""
        self.record = record
        self.error = error
        self.at = record.version if record is not None else None
        self.settled = True
        self._hurry = None
        if self._event is not None:
            self._event.set()

    def awaited_by(self, hurry: Callable[[], None]) -> None:
        """Sets a function to call as soon as a caller waits for the record."""
        self._hurry = hurry

    async def written(self) -> Record | None:
        """Waits until the event is durable; returns its record, or None if nothing was written.

        Raises:
            NotRecorded: it was dropped, or the log was closed before it could be written.
            StaleBase: it is a snapshot that was made from an outdated one.
            SessionClosedError: the session was closed before.
            DuplicateConflict: another event has the caller's id.
            InvalidInput: the event that it refers to does not exist.
            PluginFailed: the redaction hook raised.
            LogError: the log cannot be written.
        """
        if not self.settled:
            if self._event is None:
                self._event = anyio.Event()
            if self._hurry is not None:
                self._hurry()
            await self._event.wait()
        if self.error is not None:
            raise self.error
        return self.record

    def __repr__(self) -> str:
        state = repr(self.error) if self.error else self.version if self.settled else "waiting"
        return f"<Receipt {self.session!r}: {state}>"


Awaited: TypeAlias = Coroutine[object, object, Receipt]
"""The result of a verb in asynchronous code: await it for the receipt."""

Ref: TypeAlias = Receipt | Record | int | str
"""An event of the same session: its receipt, its record, its trace version, or the caller's id."""


def check_ref(ref: object, session: str) -> None:
    """Refuses a value that cannot refer to an event of a session, before it is handed over.

    Raises:
        InvalidInput: the value is not a reference, or refers to an event of another session.
    """
    if isinstance(ref, (Receipt, Record)):
        if ref.session != session:
            raise InvalidInput(
                f"expected an event of session {session!r}, got one of session {ref.session!r}"
            )
    elif not (isinstance(ref, str) and ref or type(ref) is int):
        raise InvalidInput(
            "refer to an event by its receipt, its record, its trace version or the id= that you "
            f"gave it, not by {shown(ref)}"
        )


def version_of(ref: Ref, state: TraceState) -> int:
    """The trace version of an event that is written, or is being written.

    Args:
        ref: the reference, checked by ``check_ref``.
        state: the trace of the session, up to the event that refers.

    Raises:
        InvalidInput: the session has no such event.
        NotRecorded: the event was never recorded.
    """
    session = state.session
    if isinstance(ref, str):
        version = state.ids.get(ref)
        if version is None:
            near = list(islice(reversed(state.ids), _NEAR))
            hint = suggestion(ref, near) if near else "; no event of it has an id"
            raise InvalidInput(f"session {session!r} lacks an event with the id {ref!r}{hint}")
        return version
    if isinstance(ref, Receipt):
        if ref.at is None:
            raise NotRecorded(session, "the event that it refers to was not recorded")
        return ref.at
    version = ref if isinstance(ref, int) else ref.version
    if not 1 <= version <= state.version:
        raise InvalidInput(
            f"session {session!r} lacks an event with the trace version {version}: it has "
            f"{state.version} events"
        )
    return version
