"""The log in a PostgreSQL database: group commit by one writer task, readers beside it, many machines.

One connection writes, up to four read, and one listens where there are subscriptions. Appends wait in a
bounded queue; the writer takes what has gathered and commits it as one transaction.
"""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Self, final

import anyio

from ...errors import DuologError, InvalidInput, LogClosed
from ...records import TRACE, Draft, Record
from ..append import Redact, prepare
from ..append_line import AppendLine
from ..append_writer import restore_by, write_by
from ..contract import (
    Advance,
    Cache,
    ForgetResult,
    LogStatistics,
    SessionSummary,
    VacuumResult,
    Verification,
)
from ..leases import Leases
from ..parts import Part
from ..process import OwnProcess
from ..publisher import Publisher
from ..restoring import restorations
from ..subscriptions import BufferedSubscription, BufferedTap
from .commit import Committer
from .connection import check_layout, open_schema
from .leases import PostgresLeases
from .maintenance import forget, vacuum, verify
from .reader import Reader
from .settings import Settings
from .tables import LAYOUT
from .tail import Tail
from .writer import Writer

__all__ = ("PostgresLog",)

_COPIES = (
    "the server's files may hold copies until the log is vacuumed; so may its archive of the "
    "write-ahead log, its replicas and its backups, which are yours to expire"
)


@final
class PostgresLog:
    """An append-only log in a PostgreSQL database; see ``duolog.engine.log.contract.EventLog``.

    Enter and leave it in the same task: its tasks live in a task group of its own.

    Args:
        settings: which log, and how.
        create: make the schema where there is none.
        redact: takes out of each draft what must not be written.
    """

    def __init__(
        self, settings: Settings, *, create: bool = True, redact: Redact | None = None
    ) -> None:
        self._settings = settings
        self._create = create
        self._redact = redact
        self._state = "new"
        self._process = OwnProcess()
        self._line = AppendLine()

    @property
    def url(self) -> str:
        """Where this log is, without a password."""
        return self._settings.url

    # --- opening and closing ----------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise LogClosed("a log is entered once; open another with open_log")
        self._process = OwnProcess()
        self._identity = await open_schema(self._settings, create=self._create)
        self._writable = self._identity.layout == LAYOUT
        self._reader = Reader(self._settings)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tail = Tail(self._settings, self._reader, self._tasks)
        self._publisher = Publisher(self._reader.fetch, self._identity.position, self._tail.begin)
        self._tail.publisher = self._publisher
        self._writer = Writer(self._settings, Committer(self._settings), self._tail.take)
        self._state = "open"
        self._tasks.start_soon(self._writer.run, name=f"writer of {self.url}")
        return self

    async def aclose(self) -> None:
        """Commits what waits, and closes. Idempotent."""
        if self._state in ("new", "closed") or self._process.forked:
            self._state = "closed"  # in a fork, for the fork: the log is its parent's
            return
        self._state = "closing"
        with anyio.CancelScope(shield=True):
            await self._line.drain()
            await self._writer.close()
            if self._state == "closing":  # else: closed by somebody else meanwhile
                self._state = "closed"
                self._publisher.close()
                self._tail.stop()
                await self._reader.close()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
        if self._process.forked:
            return
        # The body's own exception is nothing to the task group, which would wrap it in a group.
        await self._tasks.__aexit__(None, None, None)

    def __del__(self) -> None:
        if self._state in ("open", "closing") and not self._process.forked:
            warnings.warn(
                f"{self.url} was never closed", ResourceWarning, stacklevel=1, source=self
            )

    def _check_open(self) -> None:
        if self._process.forked:
            self._process.check(self.url)
        if self._state == "open":
            return
        if self._state == "new":
            raise LogClosed("open the log with 'async with' before using it")
        raise LogClosed(f"{self.url} is closed")

    def _check_writable(self) -> None:
        self._check_open()
        check_layout(self._identity, self.url)

    # --- writing ----------------------------------------------------------------------------------

    async def append(
        self,
        session: str,
        drafts: Sequence[Draft],
        *,
        stream: str = TRACE,
        expected_version: int | None = None,
        checkpoint: Advance | None = None,
    ) -> list[Record]:
        """Appends all drafts or none, durably; see ``EventLog.append``."""
        if self._state != "open" or not self._writable or self._process.forked:
            self._check_writable()
        append = prepare(session, drafts, stream, expected_version, checkpoint, self._redact)
        return await write_by(self._writer, self._line, append)

    async def restore(self, records: Sequence[Record]) -> list[Record | DuologError]:
        """Takes records as another log held them; see ``Store.restore``."""
        self._check_writable()
        return await restore_by(self._writer, await restorations(records, self._redact))

    # --- maintenance ------------------------------------------------------------------------------

    async def forget(self, session: str, *, caches: Sequence[Cache] = ()) -> ForgetResult:
        """Erases a session and its forks; see ``Store.forget``."""
        self._check_writable()
        sessions = await self._writer.call(
            lambda connection: forget(connection, self._settings, session)
        )
        self._publisher.erase(frozenset(sessions))
        for cache in caches:
            await cache.forget(sessions)
        return ForgetResult(
            sessions=tuple(sessions),
            compacted=False,
            caches=tuple(cache.name for cache in caches),
            held_up=_COPIES,
        )

    async def vacuum(self) -> VacuumResult:
        """Gives unused room back, and finishes erasures; see ``Store.vacuum``."""
        self._check_writable()
        return await self._reader.call(lambda connection: vacuum(connection, self._settings))

    async def verify(self) -> Verification:
        """Looks at every record; see ``Store.verify``."""
        self._check_open()
        return await self._reader.call(
            lambda connection: verify(connection, self._settings, self._reader, self._identity)
        )

    def leases(self) -> Leases:
        """Who works on what in this log; see ``duolog.engine.log.leases``."""
        self._check_writable()
        return PostgresLeases(self._reader, self._settings.schema)

    # --- reading ----------------------------------------------------------------------------------

    def read(
        self, session: str, *, stream: str = TRACE, after_version: int = 0
    ) -> AsyncIterator[Record]:
        """The records of one stream, as of now; see ``EventLog.read``."""
        self._check_open()
        if after_version < 0:
            raise InvalidInput(f"after_version must not be negative, not {after_version}")
        return self._reader.stream(session, stream, after_version)

    def read_all(
        self, *, session: str | None = None, after_position: int = 0
    ) -> AsyncIterator[Record]:
        """The records of all streams, as of now; see ``EventLog.read_all``."""
        self._check_open()
        if after_position < 0:
            raise InvalidInput(f"after_position must not be negative, not {after_position}")
        return self._reader.everything(session, after_position)

    async def scan(self, consume: Callable[[Sequence[Record]], object]) -> None:
        """Hands all records to a function, in a worker thread; see ``EventLog.scan``."""
        self._check_open()
        await self._reader.scan(consume)

    async def parts(self, count: int) -> Sequence[Part]:
        """The log as of now in parts; see ``Divisible.parts``."""
        self._check_open()
        return await self._reader.parts(count)

    async def scan_part(self, part: Part, consume: Callable[[Sequence[Record]], object]) -> None:
        """Hands the records of a part to a function; see ``Divisible.scan_part``."""
        self._check_open()
        await self._reader.scan_part(part, consume)

    def subscribe(
        self, *, session: str | None = None, after_position: int = 0
    ) -> BufferedSubscription:
        """A lossless subscription; see ``EventLog.subscribe``."""
        self._check_open()
        return self._publisher.subscribe(session, after_position)

    def tap(self, *, session: str | None = None, buffer: int = 1024) -> BufferedTap:
        """A lossy live tap; see ``EventLog.tap``."""
        self._check_open()
        return self._publisher.tap(session, buffer)

    async def checkpoint(self, consumer: str, consumer_version: str) -> int:
        """Position that a consumer has reached; see ``EventLog.checkpoint``."""
        self._check_open()
        return await self._reader.checkpoint(consumer, consumer_version)

    def sessions(self) -> AsyncIterator[SessionSummary]:
        """All sessions in order of their first record; see ``EventLog.sessions``."""
        self._check_open()
        return self._reader.sessions()

    async def summary(self, session: str) -> SessionSummary:
        """One session's summary; see ``EventLog.summary``."""
        self._check_open()
        return await self._reader.summary(session)

    def statistics(self) -> LogStatistics:
        """How the log stands in this process."""
        self._check_open()
        return self._publisher.statistics(
            waiting=self._writer.waiting, groups=self._writer.groups, events=self._writer.events
        )
