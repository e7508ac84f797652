"""The log in a SQLite file: group commit by one writer task, readers beside it, several processes.

Two connections, each with a thread of its own: one writes, one reads. Appends wait in a bounded
queue; the writing thread takes what has gathered, commits it as one transaction, and hands the
outcomes back to the event loop. An acknowledged append is on the disk.
"""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Self, final

import anyio
import anyio.to_thread

from ...errors import (
    DuologError,
    InvalidInput,
    LogClosed,
    LogUnavailable,
    NewerLog,
    NotALog,
)
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
from ..process import OwnProcess, keep_in_forks
from ..publisher import Publisher
from ..restoring import restorations
from ..subscriptions import BufferedSubscription, BufferedTap
from .file import Settings, translate
from .leases import SqliteLeases
from .open import open_file
from .tail import LogReader, Tail
from .verify import verify
from .writer import Writer

__all__ = ("SqliteLog",)


@final
class SqliteLog:
    """An append-only log in a SQLite file; see ``duolog.engine.log.contract.EventLog``.

    Enter and leave it in the same task: its writer task lives in a task group of its own.

    Args:
        settings: which file, and how.
        create: create the file where there is none.
        redact: takes out of each draft what must not be written.
    """

    def __init__(
        self, settings: Settings, *, create: bool = True, redact: Redact | None = None
    ) -> None:
        self._settings = settings
        self._create = create
        self._redact = redact
        self._state = "new"
        self._newer = self._read_only = False
        self._damage = ""
        self._process = OwnProcess()
        self._line = AppendLine()

    @property
    def url(self) -> str:
        """Where this log is."""
        path = str(self._settings.path)
        for special, quoted in (("%", "%25"), ("?", "%3F")):
            path = path.replace(special, quoted)
        return f"sqlite:///{path}"

    # --- opening and closing ----------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise LogClosed("a log is entered once; open another with open_log")
        self._process = OwnProcess()
        opened = await open_file(self._settings, create=self._create)
        self._newer = opened.newer
        self._damage = opened.damage
        self._read_only = opened.newer or bool(opened.damage)
        self._mark = opened.mark
        self._committer = opened.committer
        self._write_connection = opened.writing
        self._connection = opened.connection
        keep_in_forks(opened.writing, opened.reading)
        self._log_reader = LogReader(opened.reading, opened.reader, self.url)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        name = f"follower of {self.url}"
        self._tail = Tail(self._settings, opened.presence, self._log_reader, self._tasks, name)
        self._publisher = Publisher(self._log_reader.fetch, opened.head, self._tail.begin)
        self._writer = Writer(opened.writing, opened.committer.commit, self._publisher, self.url)
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
                await self._tail.stop()
                await self._log_reader.close()
                await self._write_connection.close()
                await anyio.to_thread.run_sync(self._mark.close)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
        if self._process.forked:
            return  # its tasks wait for threads that are not there
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
        if self._damage:
            raise NotALog(self._damage)
        if self._newer:
            raise NewerLog(
                f"{self.url} was written by a newer Duolog: it can be read, and not written"
            )

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
        if self._state != "open" or self._read_only or self._process.forked:
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
        try:
            sessions = await self._writer.call(self._committer.forget, session, self.url)
        except sqlite3.Error as error:
            raise translate(error, self.url, so="nothing was erased") from error
        self._publisher.erase(frozenset(sessions))
        for cache in caches:
            await cache.forget(sessions)
        held_up = ""
        try:
            if not (await self.vacuum()).finished:
                held_up = "another process holds the log"
        except LogUnavailable as error:  # what is erased stays erased
            held_up = str(error)
        return ForgetResult(
            sessions=tuple(sessions),
            compacted=not held_up,
            caches=tuple(cache.name for cache in caches),
            held_up=held_up,
        )

    async def vacuum(self) -> VacuumResult:
        """Gives unused room back, and finishes erasures; see ``Store.vacuum``."""
        self._check_writable()
        try:
            return await self._writer.call(self._committer.compact, self._settings.path)
        except sqlite3.Error as error:
            raise translate(error, self.url, so="no room was given back") from error

    async def verify(self) -> Verification:
        """Looks at every record; see ``Store.verify``."""
        self._check_open()
        return await verify(self._settings, self.url)

    def leases(self) -> Leases:
        """Who works on what in this log; see ``duolog.engine.log.leases``."""
        self._check_writable()
        return SqliteLeases(self._connection, self._writer, self.url)

    # --- reading ----------------------------------------------------------------------------------

    def read(
        self, session: str, *, stream: str = TRACE, after_version: int = 0
    ) -> AsyncIterator[Record]:
        """The records of one stream, as of now; see ``EventLog.read``."""
        self._check_open()
        if after_version < 0:
            raise InvalidInput(f"after_version must not be negative, not {after_version}")
        return self._log_reader.stream(session, stream, after_version)

    def read_all(
        self, *, session: str | None = None, after_position: int = 0
    ) -> AsyncIterator[Record]:
        """The records of all streams, as of now; see ``EventLog.read_all``."""
        self._check_open()
        if after_position < 0:
            raise InvalidInput(f"after_position must not be negative, not {after_position}")
        return self._log_reader.everything(session, after_position)

    async def scan(self, consume: Callable[[Sequence[Record]], object]) -> None:
        """Hands all records to a function, in the reading thread; see ``EventLog.scan``."""
        self._check_open()
        await self._log_reader.scan(consume)

    async def parts(self, count: int) -> Sequence[Part]:
        """The log as of now in parts; see ``Divisible.parts``."""
        self._check_open()
        return await self._log_reader.parts(count)

    async def scan_part(self, part: Part, consume: Callable[[Sequence[Record]], object]) -> None:
        """Hands the records of a part to a function; see ``Divisible.scan_part``."""
        self._check_open()
        await self._log_reader.scan_part(part, consume)

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
        return await self._log_reader.checkpoint(consumer, consumer_version)

    def sessions(self) -> AsyncIterator[SessionSummary]:
        """All sessions in order of their first record; see ``EventLog.sessions``."""
        self._check_open()
        return self._log_reader.sessions()

    async def summary(self, session: str) -> SessionSummary:
        """One session's summary; see ``EventLog.summary``."""
        self._check_open()
        return await self._log_reader.summary(session)

    def statistics(self) -> LogStatistics:
        """How the log stands in this process."""
        self._check_open()
        return self._publisher.statistics(
            waiting=self._writer.waiting, groups=self._writer.groups, events=self._writer.events
        )
