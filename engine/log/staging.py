"""Appends of sessions whose own actors and scorers are handed them before they are written.

A session on a virtual clock can be executed again, so it need not wait for the disk at each event. Its
records are staged in the order of delivery and written in that order: after some number of events, after
some wall time, and whenever something is about to happen that executing it again would not undo. All
that the sessions of this process have staged for the log is then written as one group.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, Protocol, TypeGuard, final, runtime_checkable

import anyio

from ..errors import LogClosed
from ..logger import get_logger
from ..records import TRACE, Draft, Record, Redact
from .append import Append
from .contract import EventLog

__all__ = ("Redacting", "SessionAppends", "Stage", "Staging")

EVENTS: Final = 64
"""Staged events of a session from which they are written."""

WALL: Final = 0.1
"""Seconds of wall time after which what is staged is written."""

_AT_ONCE: Final = frozenset({"ModelCalled", "SessionClosed"})
"""Kinds that are written before their append returns: a reply was paid for, and a close is final."""


@runtime_checkable
class Staging(Protocol):
    """A log that can check appends first and write them later, in order."""

    @property
    def followed(self) -> bool:
        """Whether anybody in this process subscribes to the log or taps it."""
        ...

    def stage(
        self, session: str, drafts: Sequence[Draft], *, stream: str, expected_version: int
    ) -> Append:
        """An append, checked, redacted and encoded. Raises what ``EventLog.append`` says of drafts."""
        ...

    @property
    def unwritten(self) -> Stage:
        """What the sessions of this process have staged; it calls ``write_staged``."""
        ...

    def write_staged(self, appends: Sequence[Append]) -> None:
        """Begins to write appends in this order, as one group. Each is settled when its outcome is known;
        what follows a refused one (``Append.after``) is refused too.

        Raises:
            LogError: the log takes nothing any more.
        """
        ...


@runtime_checkable
class Redacting(Protocol):
    """A log that says what it redacts."""

    @property
    def redact(self) -> Redact | None:
        """The hook that redacts each draft; None if there is none."""
        ...


@final
class Stage:
    """What all sessions of this process have staged for one log.

    Args:
        write: begins to write appends; see ``Staging.write_staged``.
    """

    def __init__(self, write: Callable[[Sequence[Append]], None]) -> None:
        self._write = write
        self._sessions: dict[SessionAppends, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, appends: SessionAppends) -> None:
        """Notes that a session has staged something; it is written in time."""
        self._sessions[appends] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WALL, self.write)

    def remove(self, appends: SessionAppends) -> None:
        """Forgets what a session has staged."""
        self._sessions.pop(appends, None)
        if not self._sessions:
            self._stop()

    def write(self) -> None:
        """Begins to write all that is staged."""
        self._stop()
        sessions, self._sessions = self._sessions, {}
        group = [append for session in sessions for append in session.take()]
        try:
            self._write(group)
        except Exception as error:  # noqa: BLE001 (raised again for each session that asks)
            for append in group:
                append.outcome = append.outcome or error.with_traceback(None)
                append.settle()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@final
class SessionAppends:
    """What one run of a session appends, and reads back.

    Args:
        log: where it goes.
        session: session id.
        staged: whether records may be staged: the session can be executed again. Has no effect if the
            log does not offer ``Staging``.

    Attributes:
        staging: the log, if records may be staged.
        redaction: the hook that the log applies to staged drafts, if it tells which.
        position: the position of the last record that was staged and is written now.
    """

    def __init__(self, log: EventLog, session: str, *, staged: bool) -> None:
        self._log = log
        self._session = session
        self.staging = log if staged and _offers_staging(log) else None
        self.redaction = log.redact if self.staging and isinstance(log, Redacting) else None
        self._staged: list[Append] = []
        self._writing: deque[Append] = deque()  # not known to be settled, in order
        self._events = 0
        self._versions: dict[str, int] = {}  # of streams, as far as this run has written them
        self._ids: set[str] = set()
        self._failure: Exception | None = None
        self.position = 0

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        stream: str = TRACE,
        expected_version: int | None = None,
    ) -> list[Record]:
        """Appends drafts; their records have a position only if they were written at once.

        Raises:
            LogError: as ``EventLog.append``; what was staged before may be refused now, too.
        """
        staging = self.staging
        if staging is None:
            return await self._log.append(
                session, drafts, stream=stream, expected_version=expected_version
            )
        self._check()
        if expected_version is None or staging.followed:
            return await self._write_now(drafts, stream, expected_version)
        append = staging.stage(session, drafts, stream=stream, expected_version=expected_version)
        known = self._versions.get(stream, expected_version)
        if append.late or known != expected_version or not self._ids.isdisjoint(append.ids):
            return await self._write_now(drafts, stream, expected_version)
        records = _records(append, expected_version)
        if stream != TRACE and len(append.ids) == len(records):
            append.expected = None  # an equal measurement of another process is welcome
        if self._staged:
            append.after = self._staged[-1]
        else:
            append.after = self._writing[-1] if self._writing else None
            staging.unwritten.add(self)
        self._staged.append(append)
        self._versions[stream] = expected_version + len(records)
        self._ids.update(append.ids)
        self._events += len(records)
        if self._events >= EVENTS or any(record.kind in _AT_ONCE for record in records):
            await self.flush()
        return records

    async def read(
        self, session: str, *, stream: str = TRACE, after_version: int = 0
    ) -> AsyncIterator[Record]:
        """The records of one stream, those that were staged included. Raises LogError."""
        await self.flush()
        async for record in self._log.read(session, stream=stream, after_version=after_version):
            yield record

    async def flush(self) -> None:
        """Writes what is staged, even if the caller is cancelled meanwhile.

        Raises:
            LogError: it was refused; then nothing more is taken.
        """
        self._begin_to_write()
        await self._wait()
        self._check()

    async def leave(self) -> None:
        """Ends a run that has failed: writes what was staged before, unless that is why it failed.

        If that fails too, the program's own log says so: the run ends with its first error.
        """
        known = self._failure
        if known is None:
            self._begin_to_write()
        await self._wait()
        if self._failure is not known:
            get_logger("log").warning(
                "the last records of a failed run were not written",
                session=self._session,
                error=str(self._failure),
            )

    async def close(self) -> None:
        """Waits for what is being written, even if the caller is cancelled, and drops what is staged.

        After a cancellation, staged records are not written: the session repeats them when it is
        resumed, and another process may have begun to do so.
        """
        if self._staged and self.staging is not None:
            self.staging.unwritten.remove(self)
            self._staged = []
        await self._wait()

    def take(self) -> list[Append]:
        """Gives away what is staged, to be written."""
        appends, self._staged, self._events = self._staged, [], 0
        self._writing += appends
        return appends

    def _begin_to_write(self) -> None:
        if self._staged and self.staging is not None:
            self.staging.unwritten.write()

    async def _wait(self) -> None:
        """Waits until all that is being written is settled."""
        if self._writing:
            with anyio.CancelScope(shield=True):
                await self._writing[-1].wait()
        self._look()

    def _look(self) -> None:
        """Notes the outcomes that have come since."""
        writing = self._writing
        while writing and writing[0].settled:
            append = writing.popleft()
            append.after = None
            outcome = append.outcome
            if isinstance(outcome, list):
                self.position = max(self.position, outcome[-1].position)
            elif self._failure is None:
                self._failure = outcome or LogClosed("the append was withdrawn")

    async def _write_now(
        self, drafts: Sequence[Draft], stream: str, expected: int | None
    ) -> list[Record]:
        await self.flush()
        records = await self._log.append(
            self._session, drafts, stream=stream, expected_version=expected
        )
        if records:
            self._versions[stream] = max(self._versions.get(stream, 0), records[-1].version)
        return records

    def _check(self) -> None:
        """Raises the error again for which staged records could not be written."""
        if self._writing:
            self._look()
        if self._failure is not None:
            raise self._failure.with_traceback(None)


def _offers_staging(log: EventLog) -> TypeGuard[Staging]:
    """Whether a log itself does; one that passes on to another what it does not know itself does not,
    since its own ``append`` is to see every append.
    """
    return hasattr(type(log), "write_staged") and isinstance(log, Staging)


def _records(append: Append, version: int) -> list[Record]:
    """The records of an append as long as they are staged: without a position."""
    return [
        Record(0, append.session, append.stream, at, *envelope)
        for at, envelope in enumerate(append.envelopes, version + 1)
    ]
