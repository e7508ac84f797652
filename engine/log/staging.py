"""Appends of one session that its own actors and scorers are handed before they are written.

A session on a virtual clock can be executed again, so it need not wait for the disk at each event. Its
records are staged in the order of delivery and written in that order: after some number of events, after
some wall time, and whenever something is about to happen that executing it again would not undo.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol, TypeGuard, final, runtime_checkable

import anyio

from ..errors import LogClosed
from ..logger import get_logger
from ..records import TRACE, Draft, Record
from .append import Append
from .contract import EventLog

__all__ = ("SessionAppends", "Staging")

EVENTS: Final = 64
"""Staged events from which they are written."""

WALL: Final = 0.1
"""Seconds of wall time after which what is staged is written."""

_FEW: Final = 4
"""Events in ``WALL`` seconds below which staging costs more than it saves: the machine is busy with many
sessions, or an actor works outside of the kernel. The next ``EVENTS`` are then written at once."""

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

    async def write_in_order(self, appends: Sequence[Append]) -> int:
        """Writes appends of one session as one group; what follows a refused one is refused too.

        Returns:
            The last position.

        Raises:
            LogError: the first refusal, or why nothing was written.
        """
        ...


@final
class SessionAppends:
    """What one run of a session appends, and reads back.

    Args:
        log: where it goes.
        session: session id.
        staged: whether records may be staged: the session can be executed again. Has no effect if the
            log does not offer ``Staging``.

    Attributes:
        position: the position of the last record that was staged and is written now.
    """

    def __init__(self, log: EventLog, session: str, *, staged: bool) -> None:
        self._log = log
        self._session = session
        self._staging = log if staged and _offers_staging(log) else None
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._due = asyncio.Event()
        self._staged: list[Append] = []
        self._events = 0
        self._slow = 0  # events to write at once, since few were staged in time
        self._versions: dict[str, int] = {}  # of streams, as far as this run has written them
        self._ids: set[str] = set()
        self._writing = asyncio.Lock()
        self._failure: Exception | None = None
        self.position = 0

    @property
    def stages(self) -> bool:
        """Whether records may be staged; the caller then calls ``flush`` whenever it is ``due``."""
        return self._staging is not None

    async def due(self) -> None:
        """Waits until something has been staged for as long as it may be."""
        await self._due.wait()
        self._due.clear()
        if 0 < self._events < _FEW:  # not if they have been written meanwhile
            self._slow = EVENTS

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
        if self._staging is None:
            return await self._log.append(
                session, drafts, stream=stream, expected_version=expected_version
            )
        self._check()
        if self._slow > 0 or expected_version is None or self._staging.followed:
            self._slow = max(0, self._slow - len(drafts))
            return await self._write_now(drafts, stream, expected_version)
        append = self._staging.stage(
            session, drafts, stream=stream, expected_version=expected_version
        )
        known = self._versions.get(stream, expected_version)
        if append.late or known != expected_version or not self._ids.isdisjoint(append.ids):
            return await self._write_now(drafts, stream, expected_version)
        records = _records(append, expected_version)
        if stream != TRACE and len(append.ids) == len(records):
            append.expected = None  # an equal measurement of another process is welcome
        if self._staged:
            append.after = self._staged[-1]
        self._staged.append(append)
        self._versions[stream] = expected_version + len(records)
        self._ids.update(append.ids)
        self._events += len(records)
        if self._events >= EVENTS or any(record.kind in _AT_ONCE for record in records):
            await self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(WALL, self._due.set)
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
        if self._staged or self._writing.locked():
            with anyio.CancelScope(shield=True):
                async with self._writing:
                    await self._write_staged()
        self._check()

    async def leave(self) -> None:
        """Ends a run that has failed: writes what was staged before, unless that is why it failed.

        If that fails too, the program's own log says so: the run ends with its first error.
        """
        async with self._writing:
            known = self._failure
            await self._write_staged()
        if self._failure is not known:
            get_logger("log").warning(
                "the last records of a failed run were not written",
                session=self._session,
                error=str(self._failure),
            )

    def close(self) -> None:
        """Stops the timer. After a cancellation, staged records are not written: the session
        repeats them when it is resumed, and another process may have begun to do so.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _write_staged(self) -> None:
        self.close()
        appends, self._staged, self._events = self._staged, [], 0
        if self._staging is None or self._failure is not None or not appends:
            return
        try:
            self.position = await self._staging.write_in_order(appends)
        except Exception as error:  # noqa: BLE001 (raised again for each who asks)
            self._failure = error.with_traceback(None)
        except BaseException:
            self._failure = LogClosed(f"a write of session {self._session!r} was cancelled")
            raise

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
        if self._failure is not None:
            raise self._failure.with_traceback(None)


def _offers_staging(log: EventLog) -> TypeGuard[Staging]:
    """Whether a log itself does; one that passes on to another what it does not know itself does not,
    since its own ``append`` is to see every append.
    """
    return hasattr(type(log), "write_in_order") and isinstance(log, Staging)


def _records(append: Append, version: int) -> list[Record]:
    """The records of an append as long as they are staged: without a position."""
    return [
        Record(0, append.session, append.stream, at, *envelope)
        for at, envelope in enumerate(append.envelopes, version + 1)
    ]
