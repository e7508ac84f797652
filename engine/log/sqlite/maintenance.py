"""Maintenance of a SQLite log.

It erases and compacts in the thread of the writing connection. It verifies on a separate
connection, as of one moment, while others keep writing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import aiosqlite
import anyio

from ...errors import NotALog, SessionNotFound
from ...records import Record
from ..contract import VacuumResult, Verification
from ..integrity.checksum import checksum_of
from ..integrity.verify import Link, Verifier
from ..summary import FORGOTTEN
from .derived import restore_table
from .file import SLICE, Settings, begin, check_layout, commit, translate
from .file import connect as connect_file
from .identity import Identity, identity_of, is_chained, upgrade
from .mark import Mark, read_mark
from .reader import Reader
from .texts import optimize, restore_texts
from .thread import connect, run_in_thread

__all__ = (
    "compact",
    "forget",
    "verify",
)


class _Opened(NamedTuple):
    reader: Reader
    chained: bool
    identity: Identity | None
    mark: Mark | None
    head: int
    wrong: str


async def verify(settings: Settings, url: str) -> Verification:
    """Looks at every record, at the list of sessions, and at the file itself.

    Raises:
        LogError: the file cannot be read at all.
    """
    opened: list[_Opened] = []

    def open_file() -> sqlite3.Connection:
        mark = read_mark(settings.path)  # first: others keep writing, and the mark follows the log
        connection = connect_file(settings, "ro")
        try:
            connection.execute("BEGIN")  # all reads are of this moment
            reader = Reader(connection)
            identity, wrong = None, ""
            try:
                identity = identity_of(connection)
            except NotALog as error:
                wrong = str(error)
            chained = is_chained(connection)
            opened.append(_Opened(reader, chained, identity, mark, reader.head(), wrong))
        except BaseException:
            connection.close()
            raise
        return connection

    try:
        connection = await connect(open_file)
        try:
            [(reader, chained, identity, mark, head, wrong)] = opened
            verifier = Verifier(chained=chained, since=None if identity is None else identity.since)
            if mark is not None and identity is not None and mark.log == identity.log:
                verifier.expect(mark.position, mark.crc, synced=mark.synced)
            if wrong:
                verifier.complain(wrong)
            for what in await run_in_thread(connection, reader.damage):
                verifier.complain(what)
            try:
                await _records(connection, reader, head, verifier)
                await _sessions(connection, reader, verifier)
                if identity is not None:
                    for what in await run_in_thread(connection, reader.misplaced):
                        verifier.complain(what)
            except (sqlite3.DatabaseError, NotALog) as error:
                verifier.complain(f"the rest cannot be read: {error}")
            return verifier.result(uncompacted=await run_in_thread(connection, reader.uncompacted))
        finally:
            with anyio.CancelScope(shield=True):
                await connection.close()
    except sqlite3.Error as error:
        raise translate(error, url, reading=True) from error


async def _records(
    connection: aiosqlite.Connection,
    reader: Reader,
    head: int,
    verifier: Verifier,
) -> None:
    after = 0
    last = False
    while not last:
        batch, last = await run_in_thread(connection, _batch, reader, verifier, after, head)
        for record, link, crc in batch:
            verifier.feed(record, link, crc)
        if batch:
            after = batch[-1][0].position
    if after < head:
        verifier.complain(f"the records from position {after + 1} to {head} cannot be read")


async def _sessions(connection: aiosqlite.Connection, reader: Reader, verifier: Verifier) -> None:
    key = 0
    while True:
        summaries, key = await run_in_thread(connection, reader.sessions, key)
        if not summaries:
            return
        for summary in summaries:
            verifier.check_session(summary)


def _batch(
    reader: Reader, verifier: Verifier, after: int, upto: int
) -> tuple[list[tuple[Record, Link | None, int | None]], bool]:
    records, last = reader.all_after(after, upto, strict=False)
    links: dict[int, Link] = {}
    crcs: dict[int, int | None] = {}
    if records and verifier.chained:
        links = reader.links(after, records[-1].position)
    if records and verifier.since is not None:
        crcs = reader.checksums(after, records[-1].position)
    return [(r, links.get(r.position), crcs.get(r.position)) for r in records], last


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


def forget(connection: sqlite3.Connection, sessions: Sequence[str], where: str) -> list[str]:
    """Erases sessions and their forks, in one transaction; returns all ids.

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
        found: dict[int, str] = {}
        for session in sessions:
            family = execute(_FAMILY, (session,)).fetchall()
            if not family:
                raise SessionNotFound(session, where)
            found.update(family)
        if identity_of(connection) is None:
            upgrade(connection)
        reader = Reader(connection)
        keys = [(key,) for key in found]
        many = connection.executemany
        restore_table(connection)  # its trigger drops what folds keep of the sessions
        restore_texts(connection)  # likewise
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
    return list(found.values())


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
        finished = (
            _merged(connection)
            and _empty_wal(connection)
            and _vacuum(connection)
            and _empty_wal(connection)
        )
        if finished:
            execute("UPDATE forgotten SET compacted = 1 WHERE NOT compacted")
            _empty_wal(connection)
    finally:
        execute(f"PRAGMA busy_timeout = {SLICE}")
    return VacuumResult(before=before, after=_size(path), finished=finished)


def _empty_wal(connection: sqlite3.Connection) -> bool:
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def _merged(connection: sqlite3.Connection) -> bool:
    """Whether the index of texts was merged; another process may hold it up."""
    try:
        optimize(connection)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            return False
        raise
    return True


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
