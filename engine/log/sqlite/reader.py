"""Reads the SQLite file, a batch at a time, in the thread of a connection.

Each batch is one short read transaction that begins at the end of the last one. So a reader holds
neither memory nor a lock between batches, and a long read does not block writers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, NamedTuple, final

import msgspec

from ...codec import GAVE_UP
from ...errors import NotALog, SessionNotFound
from ...records import TRACE, Record
from ..contract import SessionSummary
from ..integrity.verify import Link
from ..parts import Part, divided
from ..ranked import (
    LABEL,
    NUMBERS,
    ROW,
    TEXTS,
    Arranged,
    Arrangement,
    SessionGroup,
    first_keys,
    groups_in,
    label_in,
    meeting,
)
from ..summary import summary_of
from .derived import DIALECT, JOINED, is_there, problems
from .identity import identity_of, row_checksum

__all__ = ("BATCH", "EVENT", "Reader", "StreamEnd")

BATCH = 512
"""Records in a batch."""

_LINES = 2048  # summaries in a batch: they are small
_STRETCH = 8192  # records that a scan hands over in one go; other readers wait for it
_AT_ONCE = 64  # records that it has in memory meanwhile: few, so that they stay in the caches

EVENT = "position, stream, version, kind, schema, time, actor, role, cause, seen, id, body"
"""The columns of a record, as ``Reader.record`` takes them."""

_NAMES = 50_000  # cached names of streams, so that queries can do without a join
_NAME = """
SELECT s.session, t.stream FROM streams t JOIN sessions s ON s.key = t.session WHERE t.key = ?"""
_ALL = f"""
SELECT {EVENT} FROM events WHERE position > ? AND position <= ? ORDER BY position LIMIT ?"""
_PART = f"""
SELECT {EVENT} FROM events WHERE position > ? AND position <= ? AND session BETWEEN ? AND ?
ORDER BY position LIMIT ?"""
_COUNTS = "SELECT key, events, position FROM sessions ORDER BY key"
_BEGAN = """
SELECT min(e.position) FROM streams t JOIN events e ON e.stream = t.key AND e.version = 1
WHERE t.session = ?"""
_STREAM = f"""
SELECT {EVENT} FROM events WHERE stream = ? AND version > ? AND version <= ?
ORDER BY version LIMIT ?"""
_KEY = """
SELECT t.key FROM streams t JOIN sessions s ON s.key = t.session
WHERE s.session = ? AND t.stream = ?"""
_KEYS = "SELECT t.key FROM streams t JOIN sessions s ON s.key = t.session WHERE s.session = ?"
_BEFORE = """
SELECT version FROM events WHERE stream = ? AND position <= ? ORDER BY version DESC LIMIT 1"""
_POSITIONS = """
SELECT position, version FROM events WHERE stream = ? AND version > ? ORDER BY version LIMIT ?"""
_CHOSEN = f"""
SELECT {EVENT} FROM events WHERE position IN (SELECT value FROM json_each(?)) ORDER BY position"""
_DETAIL = "CASE WHEN json_valid({0}) THEN json_extract({0}, '$.detail') END".format(
    "CAST(body AS TEXT)"
)
# The list of sessions was folded when the events were written: see the upcaster of SessionClosed.
# A log that was begun in today's layout contains only sessions folded since.
_OLDER_STATE = f"""CASE WHEN state = 'finished' AND (
    SELECT schema = 1 AND {_DETAIL} = '{GAVE_UP}' FROM events
    WHERE stream = (SELECT key FROM streams WHERE session = s.key AND stream = '{TRACE}')
    AND kind = 'SessionClosed' ORDER BY version DESC LIMIT 1
) THEN 'abandoned' ELSE state END"""
_SUMMARIES = """
SELECT key, session, task, instance, labels, %s AS state, events, version, opened, last, position
FROM sessions s"""
_NAMED = """
SELECT s.session, s.%s FROM json_each(?) chosen JOIN (%s) s ON s.key = chosen.value
ORDER BY chosen.key"""
_GROUPS = """
SELECT task, state, labels, count(*), max(position) FROM (%s) GROUP BY task, state, labels"""

_CHECKSUMS = "SELECT position, crc FROM events WHERE position > ? AND position <= ?"
_MISPLACED = """
SELECT e.position FROM events e LEFT JOIN streams t ON t.key = e.stream
WHERE t.session IS NOT e.session LIMIT 10"""

# SQLite's own check compares keys, and not what it takes from an index to find a row.
_INDEXES = (
    ("events", "events_in_stream", "total(position), total(stream), total(version)", ""),
    ("events", "events_by_id", "total(position), total(session)", "WHERE id IS NOT NULL"),
    ("streams", "sqlite_autoindex_streams_1", "total(key), total(session)", ""),
    ("sessions", "sqlite_autoindex_sessions_1", "total(key)", ""),
)

_LINKS = """
SELECT c.position, c.mac, c.hash, s.salt
FROM chain c JOIN events e ON e.position = c.position LEFT JOIN salts s ON s.session = e.session
WHERE c.position > ? AND c.position <= ?"""


class StreamEnd(NamedTuple):
    """A stream's key, 0 if there is none, and its version."""

    key: int
    version: int


@final
class Reader:
    """Reads on one connection; all methods run in its thread.

    Attributes:
        connection: to read on.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._names: dict[int, tuple[str, str]] = {}
        self._summaries: str | None = None

    def head(self) -> int:
        """Last position in the log."""
        (position,) = self.connection.execute("SELECT max(position) FROM events").fetchone()
        return int(position or 0)

    def data_version(self) -> int:
        """A number that changes when another connection has written."""
        (version,) = self.connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def record(self, row: tuple[Any, ...]) -> Record:
        """The record in a row of ``EVENT``."""
        return self._records([row])[0]

    def _records(self, rows: Sequence[tuple[Any, ...]]) -> list[Record]:
        names = self._names
        records = []
        # Each field by its name: unpacking a part of a row and splicing it in takes twice as long.
        for at, key, version, kind, schema, time, actor, role, cause, seen, own, body in rows:
            session, stream = names.get(key) or self._name(key)
            records.append(
                Record(
                    at,
                    session,
                    stream,
                    version,
                    kind,
                    schema,
                    time,
                    actor,
                    role,
                    cause,
                    seen,
                    own,
                    body,
                )
            )
        return records

    def _name(self, key: int) -> tuple[str, str]:
        if len(self._names) >= _NAMES:
            self._names.clear()
        row = self.connection.execute(_NAME, (key,)).fetchone()
        if row is None:
            raise NotALog(f"the log is damaged: stream {key} belongs to no session")
        session, stream = row
        name = self._names[key] = (session, stream)
        return name

    def stream_end(self, session: str, stream: str) -> StreamEnd:
        """A stream's key and last version."""
        row = self.connection.execute(_KEY, (session, stream)).fetchone()
        if row is None:
            return StreamEnd(0, 0)
        return StreamEnd(row[0], self.end_of(row[0]))

    def end_of(self, stream: int) -> int:
        """The version of a stream, by its key."""
        (version,) = self.connection.execute(
            "SELECT max(version) FROM events WHERE stream = ?", (stream,)
        ).fetchone()
        return int(version or 0)

    def stream(self, key: int, after: int, upto: int) -> list[Record]:
        """A batch of one stream, by version."""
        rows = self.connection.execute(_STREAM, (key, after, upto, BATCH)).fetchall()
        if len(rows) != min(BATCH, upto - after):
            raise _gap(f"versions after {after}")
        return self._records(rows)

    def all_after(
        self, after: int, upto: int, limit: int = BATCH, *, strict: bool = True
    ) -> tuple[list[Record], bool]:
        """A batch of all streams, by position, and whether it is the last one.

        Raises:
            NotALog: positions are missing, unless not ``strict``.
        """
        rows = self.connection.execute(_ALL, (after, upto, limit)).fetchall()
        if strict and len(rows) != min(limit, upto - after):
            raise _gap(f"positions after {after}")
        return self._records(rows), len(rows) < limit or rows[-1][0] >= upto

    def scan(self, consume: Callable[[Sequence[Record]], object], after: int, upto: int) -> int:
        """Passes a stretch of all streams to a function, some at a time; returns its end position.

        Raises:
            NotALog: positions are missing; the function gets no records behind them.
        """
        with closing(self.connection.execute(_ALL, (after, upto, _STRETCH))) as found:
            end = min(after + _STRETCH, upto)
            while after < end:
                rows = found.fetchmany(_AT_ONCE)
                if not rows or rows[-1][0] != after + len(rows):
                    raise _gap(f"positions after {after}")
                consume(self._records(rows))
                after = rows[-1][0]
        return after

    def parts(self, count: int) -> list[Part]:
        """The log as of now in parts; see ``Divisible.parts``."""
        found = divided(self.connection.execute(_COUNTS).fetchall(), count)
        return [msgspec.structs.replace(part, after=self._before(part.first)) for part in found]

    def _before(self, session: int) -> int:
        """The position before the first record of a session, by its key."""
        (began,) = self.connection.execute(_BEGAN, (session,)).fetchone()
        return int(began or 1) - 1

    def scan_part(
        self, part: Part, consume: Callable[[Sequence[Record]], object], after: int
    ) -> tuple[int, int]:
        """Passes a stretch of a part to a function, some records at a time.

        Returns the position at which the stretch ends, and the number of its records.
        """
        values = (after, part.upto, part.first, part.last, _STRETCH)
        count = 0
        with closing(self.connection.execute(_PART, values)) as found:
            while rows := found.fetchmany(_AT_ONCE):
                consume(self._records(rows))
                after = rows[-1][0]
                count += len(rows)
        return after, count

    def of_session(self, session: str, after: int, upto: int) -> tuple[list[Record], bool]:
        """A batch of all streams of one session, by position, and whether it is the last one.

        Positions grow with versions in each stream, so the index of versions finds them.
        """
        execute = self.connection.execute
        found: list[int] = []
        for (key,) in execute(_KEYS, (session,)).fetchall():
            row = execute(_BEFORE, (key, after)).fetchone()
            version = row[0] if row is not None else 0
            for position, _ in execute(_POSITIONS, (key, version, BATCH)):
                if position <= upto:
                    found.append(position)
        found.sort()
        chosen = found[:BATCH]
        rows = execute(_CHOSEN, (msgspec.json.encode(chosen).decode(),)).fetchall()
        return self._records(rows), len(found) < BATCH

    def links(self, after: int, upto: int) -> dict[int, Link]:
        """The links of the hash chain for the records in a range of positions."""
        rows = self.connection.execute(_LINKS, (after, upto)).fetchall()
        return {position: Link(*rest) for position, *rest in rows}

    def checksums(self, after: int, upto: int) -> dict[int, int | None]:
        """The checksums of the records in a range of positions."""
        return dict(self.connection.execute(_CHECKSUMS, (after, upto)).fetchall())

    def uncompacted(self) -> int:
        """Sessions that were erased, and of which the file may still hold copies."""
        (count,) = self.connection.execute(
            "SELECT count(*) FROM forgotten WHERE NOT compacted"
        ).fetchone()
        return int(count)

    def damage(self) -> list[str]:
        """What SQLite itself finds wrong with the file: its pages, its indexes."""
        rows = self.connection.execute("PRAGMA integrity_check(10)").fetchall()
        return [f"SQLite: {what}" for (what,) in rows if what != "ok"]

    def misplaced(self) -> list[str]:
        """Problems around the records: misfiled records, indexes, checkpoints and derived rows."""
        execute = self.connection.execute
        found = [
            f"the record at position {position} is filed under another session than its stream"
            for (position,) in execute(_MISPLACED).fetchall()
        ]
        for table, index, values, where in _INDEXES:
            sums = [
                execute(f"SELECT count(*), {values} FROM {table} {how} {where}").fetchone()
                for how in (f"INDEXED BY {index}", "NOT INDEXED")
            ]
            if sums[0] != sums[1]:
                found.append(f"the index {index} holds other values than its table")
        found += problems(self.connection)
        return found + [
            f"the checkpoint of consumer {row[0]!r} is not what was written"
            for *row, crc in execute("SELECT consumer, version, position, crc FROM checkpoints")
            if crc is not None and crc != row_checksum(*row)
        ]

    def checkpoint(self, consumer: str, version: str) -> int:
        """Position that a consumer has reached."""
        row = self.connection.execute(
            "SELECT position FROM checkpoints WHERE consumer = ? AND version = ?",
            (consumer, version),
        ).fetchone()
        return row[0] if row is not None else 0

    def sessions(self, after: int) -> tuple[list[SessionSummary], int]:
        """A batch of summaries after a key, and the last key; empty at the end."""
        query = f"{self._listing()} WHERE key > ? ORDER BY key LIMIT ?"
        rows = self.connection.execute(query, (after, _LINES)).fetchall()
        return [summary_of(row) for row in rows], rows[-1][0] if rows else after

    def summary(self, session: str, where: str) -> SessionSummary:
        """One session's summary.

        Raises:
            SessionNotFound: there is no such session.
        """
        query = f"{self._listing()} WHERE session = ?"
        row = self.connection.execute(query, (session,)).fetchone()
        if row is None:
            raise SessionNotFound(session, where)
        return summary_of(row)

    def arranged(self, wanted: Arrangement) -> list[Arranged]:
        """Sessions by a property of their summaries or rows; see ``Ranked.arranged``."""
        execute = self.connection.execute
        by, rows = wanted.by, wanted.rows
        kept = wanted.needs_rows and is_there(self.connection)
        source = f"({self._listing()}) s {JOINED if kept else ''}"
        chosen = meeting(wanted.conditions, DIALECT, rows=kept)
        source += f" WHERE {chosen}" if chosen else ""
        values = {} if rows is None else rows._asdict()
        turn = "DESC" if wanted.descending else "ASC"
        labelled = by.startswith(LABEL)
        if labelled or by in TEXTS:
            column = "labels" if labelled else by
            found = execute(f"SELECT s.key, s.{column} FROM {source} ORDER BY s.key", values)
            text_of = label_in(by.removeprefix(LABEL)) if labelled else None
            keys = first_keys(found, text_of, descending=wanted.descending, limit=wanted.upto)
            named = execute(
                _NAMED % (column, self._listing()),
                (msgspec.json.encode(keys[wanted.offset :]).decode(),),
            )
            return [
                Arranged(session, (text if text_of is None else text_of(text)) or None)
                for session, text in named
            ]
        if by.startswith(ROW):
            number = DIALECT.number.format(int(by.removeprefix(ROW))) if kept else "NULL"
            order = f"number {turn} NULLS LAST, key"
            query = f"SELECT s.session, s.key, {number} AS number FROM {source}"
        else:
            order = f"number {turn}, key" if by else "key"
            number = NUMBERS[by] if by else "NULL"
            query = f"SELECT s.session, s.key, {number} AS number FROM {source}"
        limit = -1 if wanted.limit is None else wanted.limit
        part = {**values, "limit": limit, "offset": wanted.offset}
        ordered = (
            f"SELECT session, number FROM ({query}) ORDER BY {order} LIMIT :limit OFFSET :offset"
        )
        return [Arranged(*row) for row in execute(ordered, part)]

    def groups(self) -> list[SessionGroup]:
        """All sessions, counted by task, state and labels; see ``Ranked.groups``."""
        return groups_in(self.connection.execute(_GROUPS % self._listing()))

    def summaries(self, sessions: Sequence[str]) -> list[SessionSummary]:
        """The summaries of some sessions, in the order in which they are named."""
        query = f"{self._listing()} WHERE session IN (SELECT value FROM json_each(?))"
        names = msgspec.json.encode(sessions).decode()
        found = {row[1]: summary_of(row) for row in self.connection.execute(query, (names,))}
        return [found[session] for session in sessions if session in found]

    def _listing(self) -> str:
        """The query for summaries; for logs begun in an older layout, it reads how each closed."""
        if self._summaries is None:
            try:
                identity = identity_of(self.connection)
            except NotALog:  # it is damaged, and ``verify`` says so
                identity = None
            begun = identity is not None and identity.since == 1
            self._summaries = _SUMMARIES % ("state" if begun else _OLDER_STATE)
        return self._summaries


def _gap(where: str) -> NotALog:
    return NotALog(f"the log is damaged: {where} are missing; verify it, or restore a backup")
