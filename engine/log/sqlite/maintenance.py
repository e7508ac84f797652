"""Care for a SQLite log, in the thread of its writing connection: erasing, compacting."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from ...errors import SessionNotFound
from ..contract import VacuumResult
from ..integrity.checksum import checksum_of
from ..summary import FORGOTTEN
from .chain import is_chained
from .file import SLICE, begin, check_layout, commit
from .identity import identity_of, upgrade
from .reader import Reader

__all__ = ("compact", "forget")

_WAIT = 1000  # milliseconds that compacting waits for other processes

_STREAMS = "SELECT key FROM streams WHERE session = ?"
_ERASE = "UPDATE events SET body = NULL, crc = ? WHERE position = ? AND body IS NOT NULL"
_FAMILY = """
WITH RECURSIVE family (key, session) AS (
    SELECT key, session FROM sessions WHERE session = ?
    UNION
    SELECT fork.key, fork.session FROM sessions fork JOIN family ON fork.origin = family.session
)
SELECT key, session FROM family ORDER BY key"""


def forget(connection: sqlite3.Connection, session: str, where: str) -> list[str]:
    """Erases a session and its forks, in one transaction; gives their ids.

    Freed room in the file is overwritten with zeros; older copies may linger in the write-ahead
    log and in unused pages until ``compact``.

    Raises:
        NewerLog: a newer Duolog has taken the log over.
        SessionNotFound: there is no such session.
        OutcomeUnknown: the disk failed: it may be erased, or not.
        sqlite3.Error: nothing was erased.
    """
    execute = connection.execute
    execute("PRAGMA secure_delete = ON")
    begin(connection)
    try:
        check_layout(connection, where)  # the tables may hold more now than is erased here
        family = execute(_FAMILY, (session,)).fetchall()
        if not family:
            raise SessionNotFound(session, where)
        if identity_of(connection) is None:
            upgrade(connection)
        reader = Reader(connection)
        keys = [(key,) for key, _ in family]
        many = connection.executemany
        many("INSERT OR REPLACE INTO forgotten VALUES (?, 0)", keys)
        for key in keys:
            for (stream,) in execute(_STREAMS, key).fetchall():
                many(_ERASE, _erasures(reader, stream))
        many(
            "UPDATE sessions SET task = '', instance = '', labels = '{}', utility = NULL, "
            f"state = '{FORGOTTEN}' WHERE key = ?",
            keys,
        )
        if is_chained(connection):
            many("DELETE FROM salts WHERE session = ?", keys)
        commit(connection, where)
    except BaseException:
        if connection.in_transaction:
            execute("ROLLBACK")
        raise
    return [name for _, name in family]


def _erasures(reader: Reader, stream: int) -> Iterator[tuple[int, int]]:
    """For each record of a stream: its checksum without a body, and its position."""
    end, after = reader.end_of(stream), 0
    while after < end:
        batch = reader.stream(stream, after, end)
        after = batch[-1].version
        for record in batch:
            yield checksum_of(record, erased=True), record.position


def compact(connection: sqlite3.Connection, path: Path) -> VacuumResult:
    """Rewrites the file without unused room, and empties the write-ahead log.

    Readers in other processes can hold it up; it then says that it is not finished.

    Raises:
        sqlite3.Error: there is no room to rewrite the file; it is as it was.
    """
    execute = connection.execute
    before = _size(path)
    execute(f"PRAGMA busy_timeout = {_WAIT}")
    try:
        execute("PRAGMA secure_delete = ON")
        finished = _empty_wal(connection) and _vacuum(connection) and _empty_wal(connection)
        if finished:
            execute("UPDATE forgotten SET compacted = 1 WHERE NOT compacted")
            _empty_wal(connection)
    finally:
        execute(f"PRAGMA busy_timeout = {SLICE}")
    return VacuumResult(before=before, after=_size(path), finished=finished)


def _empty_wal(connection: sqlite3.Connection) -> bool:
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _vacuum(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("VACUUM")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            return False
        raise
    return True


def _size(path: Path) -> int:
    size = 0
    for name in (path, path.with_name(path.name + "-wal")):
        try:
            size += name.stat().st_size
        except FileNotFoundError:  # a log without a write-ahead log, for the moment
            continue
    return size
