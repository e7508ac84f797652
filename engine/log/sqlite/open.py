"""Opens the two connections of a SQLite log, each in a thread of its own."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

import aiosqlite
import anyio

from ...errors import NotALog
from ...logger import get_logger
from ..integrity.verify import lost
from .commit import Committer
from .file import Settings, newer, translate
from .file import connect as connect_file
from .identity import identity_of
from .mark import HeadMark, Mark, mark_path, read_mark
from .presence import FilePresence
from .reader import Reader
from .thread import connect

__all__ = ("Opened", "open_file")


class Opened(NamedTuple):
    """An open file.

    Attributes:
        writing: the connection that writes.
        connection: the same, for what is run in its thread.
        committer: commits on it.
        reading: the connection that reads.
        reader: reads on it.
        mark: says beside the file how far the log has come.
        damage: why nothing may be written to it; empty where it may.
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
        mark = read_mark(settings.path)  # first: others go on writing, and the mark follows the log
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
    """Why nothing may be written to a log whose end is missing; empty where it is whole."""
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
