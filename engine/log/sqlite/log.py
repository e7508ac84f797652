"""The log in a SQLite file: group commit by one writer task, concurrent readers, several processes.

There are two connections, each with its own thread: one writes, one reads. An acknowledged append
is on the disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar, final

import aiosqlite
import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from ...errors import LogUnavailable, NewerLog, NotALog
from ...logger import get_logger
from ...records import Redact
from ..contract import Derived, VacuumResult, Verification
from ..integrity.verify import lost
from ..process import keep_in_forks
from ..publisher import Publisher
from ..searched import SessionText
from ..stored import StoredLog
from .commit import Committer
from .derived import drop, keep
from .file import Settings, newer, translate
from .file import connect as connect_file
from .identity import identity_of
from .leases import SqliteLeases
from .maintenance import verify
from .mark import HeadMark, Mark, mark_path, read_mark
from .presence import FilePresence
from .reader import Reader
from .tail import LogReader, Tail
from .texts import drop_texts, keep_texts
from .thread import connect
from .writer import Writer

__all__ = (
    "Opened",
    "SqliteFile",
    "open_file",
    "sqlite_log",
)


class Opened(NamedTuple):
    """An open file.

    Attributes:
        writing: the connection that writes.
        connection: the same, for what is run in its thread.
        committer: commits on it.
        reading: the connection that reads.
        reader: reads on it.
        mark: the head mark, which notes how far the log has come.
        damage: why the log may not be written; empty if it may.
        presence: whether the file is still there, for the thread that writes.
        head: last position in the log.
        newer: whether a newer Duolog wrote it.
    """

    writing: aiosqlite.Connection
    connection: sqlite3.Connection
    committer: Committer
    reading: aiosqlite.Connection
    reader: Reader
    mark: HeadMark
    damage: str
    presence: FilePresence
    head: int
    newer: bool


async def open_file(settings: Settings, *, create: bool) -> Opened:
    """Opens a log's file.

    Raises:
        LogNotFound: there is none, and it is not to be created.
        NotALog: it is something else, or damaged.
        LogUnavailable: it cannot be opened.
    """
    connections: list[sqlite3.Connection] = []
    committers: list[Committer] = []
    presences: list[FilePresence] = []
    damages: list[str] = []
    head_mark = HeadMark(settings.path, synced=settings.durability == "full")
    readers: list[tuple[Reader, int, bool]] = []

    def connect_writer() -> sqlite3.Connection:
        mark = read_mark(settings.path)  # first: others keep writing, and the mark follows the log
        connection = connect_file(settings, "rwc" if create else "rw")
        try:
            damages.append(_damage(connection, settings, mark))
            head_mark.keep = bool(damages[0])
            presences.append(FilePresence(settings.path))
        except BaseException:
            connection.close()
            raise
        connections.append(connection)
        committers.append(Committer(connection, settings.path, presences[0], head_mark))
        return connection

    def connect_reader() -> sqlite3.Connection:
        connection = connect_file(settings, "ro")
        try:
            reader = Reader(connection)
            readers.append((reader, reader.head(), newer(connection)))
        except sqlite3.Error as error:
            connection.close()
            raise translate(error, settings.path) from error
        return connection

    writing = await connect(connect_writer)
    try:
        reading = await connect(connect_reader)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await writing.close()
        raise
    reader, head, is_newer = readers[0]
    return Opened(
        writing,
        connections[0],
        committers[0],
        reading,
        reader,
        head_mark,
        damages[0],
        presences[0],
        head,
        is_newer,
    )


def _damage(connection: sqlite3.Connection, settings: Settings, mark: Mark | None) -> str:
    """The reason not to write to a log: its end is missing or damaged. Empty if there is none."""
    try:
        if newer(connection) or mark is None:
            return ""
        identity, head = identity_of(connection), Reader(connection).head()
    except NotALog as error:
        return f"{settings.path}: {error}; restore it from a backup"
    except sqlite3.Error as error:
        raise translate(error, settings.path) from error
    if identity is None or identity.log != mark.log or mark.position <= head:
        return ""
    what = f"{settings.path}: {lost(head, mark.position, synced=mark.synced)}"
    if mark.synced:
        return (
            f"{what}. It can be read; restore a backup, or remove {mark_path(settings.path)} to go "
            "on without them"
        )
    get_logger("log").warning("the end of a log is missing", path=str(settings.path), lost=what)
    return ""


T = TypeVar("T")


def sqlite_log(
    settings: Settings, *, create: bool = True, redact: Redact | None = None
) -> StoredLog[SqliteFile]:
    """The log in a SQLite file, not open yet."""
    return StoredLog(SqliteFile(settings), create=create, redact=redact)


@final
class SqliteFile:
    """A log's file; see ``duolog.engine.log.stored.Backend``.

    Args:
        settings: which file, and how.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        path = str(settings.path)
        for special, quoted in (("%", "%25"), ("?", "%3F")):
            path = path.replace(special, quoted)
        self._url = f"sqlite:///{path}"
        self.writable = True

    @property
    def url(self) -> str:
        """URL of the log."""
        return self._url

    async def open(self, *, create: bool) -> None:
        """Opens the file, by two connections."""
        self._opened = opened = await open_file(self._settings, create=create)
        self.writable = not (opened.newer or opened.damage)
        self.committer = opened.committer
        keep_in_forks(opened.writing, opened.reading)

    def start(self, tasks: TaskGroup) -> None:
        """Makes reader, writer and publisher."""
        opened = self._opened
        self.reader = LogReader(opened.reading, opened.reader, self.url)
        name = f"follower of {self.url}"
        self._tail = Tail(self._settings, opened.presence, self.reader, tasks, name)
        self.publisher = Publisher(self.reader.fetch, opened.head, self._tail.begin)
        self.writer = Writer(opened.writing, opened.committer.commit, self.publisher, self.url)

    async def close(self) -> None:
        """Closes the file."""
        await self._tail.stop()
        await self.reader.close()
        await self._opened.writing.close()
        await anyio.to_thread.run_sync(self._opened.mark.close)

    def check_writable(self) -> None:
        """Raises NotALog or NewerLog if the log can only be read."""
        if self._opened.damage:
            raise NotALog(self._opened.damage)
        if self._opened.newer:
            raise NewerLog(
                f"{self.url} was written by a newer Duolog: it can be read, and not written"
            )

    async def forget(self, sessions: Sequence[str]) -> list[str]:
        """Erases sessions and their forks; see ``Store.forget``."""
        return await self._change(
            partial(self.committer.forget, sessions, self.url), so="nothing was erased"
        )

    async def compact_forgotten(self) -> str:
        """Rewrites the file; returns the reason if it could not."""
        try:
            return "" if (await self.vacuum()).finished else "another process holds the log"
        except LogUnavailable as error:  # the erasure remains in force
            return str(error)

    async def vacuum(self) -> VacuumResult:
        """Gives unused room back, and finishes erasures; see ``Store.vacuum``."""
        return await self._change(
            partial(self.committer.compact, self._settings.path), so="no room was given back"
        )

    async def verify(self) -> Verification:
        """Looks at every record; see ``Store.verify``."""
        return await verify(self._settings, self.url)

    def leases(self) -> SqliteLeases:
        """The leases on work in this log."""
        return SqliteLeases(self._opened.connection, self.writer, self.url)

    async def keep_derived(self, rows: Sequence[Derived]) -> int:
        """Keeps rows; see ``EventLog.keep_derived``."""
        return await self._change(partial(keep, self._opened.connection, rows, self.url))

    async def drop_derived(self) -> None:
        """Drops all kept rows; see ``EventLog.drop_derived``."""
        await self._change(partial(drop, self._opened.connection, self.url))
        await self._change(partial(drop_texts, self._opened.connection, self.url))

    async def keep_texts(self, texts: Sequence[SessionText]) -> int:
        """Keeps texts; see ``Searchable.keep_texts``."""
        return await self._change(partial(keep_texts, self._opened.connection, texts, self.url))

    async def _change(self, work: Callable[[], T], so: str = "nothing was written") -> T:
        try:
            return await self.writer.call(work)
        except sqlite3.Error as error:
            raise translate(error, self.url, so=so) from error
