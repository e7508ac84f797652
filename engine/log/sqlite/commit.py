"""Group commit: many appends become one transaction, in the thread of the writing connection.

What is known of sessions is cached between groups. Another process may have written meanwhile;
SQLite's ``data_version``, looked at inside the transaction, shows it, and then all is read afresh.
So expected versions, positions and summaries are always those of the file, and cost no SELECT
as long as one process writes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import final
from zlib import crc32

import msgspec

from ...errors import (
    InvalidInput,
    LogError,
)
from ...records import Record
from ...rounds import RoundCount
from ..admission import advances, check_admitted
from ..append import Append, originals
from ..contract import Advance, VacuumResult
from ..integrity.checksum import envelope_checksum
from ..summary import FORGOTTEN, SessionState, StreamState
from .bulk import INSERT, SUMMARIZE, write_in_bulk
from .chain import Chain, is_chained
from .file import begin, check_layout, commit, contradicts
from .identity import identity_of, row_checksum, upgrade
from .maintenance import compact, forget
from .mark import HeadMark
from .presence import FilePresence
from .reader import EVENT, Reader
from .writer import Committed

__all__ = ("Committer",)

_SESSIONS = 20_000  # cached; a few hundred bytes each
_FOREIGN = 4096  # records by other processes that are read along with a group

_COLUMNS = (
    "key, task, instance, labels, origin, state, events, version, rounds, acted, utility, opened, "
    "last, position"
)
_LOAD = f"SELECT {_COLUMNS} FROM sessions WHERE session = ?"
_STREAMS = """
SELECT stream, key, (SELECT max(version) FROM events WHERE events.stream = streams.key)
FROM streams WHERE session = ?"""
_OPENED = (
    "UPDATE sessions SET task = ?, instance = ?, labels = ?, origin = ?, opened = ? WHERE key = ?"
)
_IDS = 64  # looked up by one statement
_BY_IDS = {
    width: f"SELECT {EVENT} FROM events WHERE session = ? AND id IN ({', '.join('?' * width)})"
    for width in (1, _IDS)
}


@final
class Committer:
    """Commits groups of appends on one connection; all methods run in its thread.

    Args:
        connection: to write on.
        where: the log, for messages.
        presence: says whether the file is still there.
        mark: says beside it how far the log has come.
    """

    def __init__(
        self, connection: sqlite3.Connection, where: object, presence: FilePresence, mark: HeadMark
    ) -> None:
        self._connection = connection
        self._where = where
        self._presence = presence
        self._mark = mark
        self._reader = Reader(connection)
        self._data_version = -1
        self._position = 0
        self._handed = 0  # last position given to the loop, which may not know of it yet
        self._cache: dict[str, SessionState] = {}
        self._log = ""
        self._last_crc = 0  # of the last record's envelope
        self._rows: list[object] = []
        self._records: list[Record] = []
        self._touched: dict[SessionState, None] = {}
        self._opened: list[tuple[object, ...]] = []
        self._ids: dict[tuple[str, str], Record] = {}
        self._chain = Chain(connection) if is_chained(connection) else None

    def commit(
        self,
        group: Sequence[Append],
        known: int | None,
        wanted: Callable[[], bool] | None = None,
    ) -> Committed:
        """Commits a group, and leaves each append's outcome in it.

        An append in conflict fails alone. Where SQLite itself refuses a value, the group is rolled
        back, and its appends are committed one by one, so that only the bad one fails.

        Args:
            group: the appends.
            known: position up to which this process has seen all records; None where nobody
                follows the log.
            wanted: asked while another process holds the log, whether to go on waiting; it may
                take appends out of the group.

        Raises:
            LogGone: the file is not there any more.
            NewerLog: a newer Duolog has taken the log over.
            OutcomeUnknown: the disk failed in the middle of it.
            sqlite3.Error: the group could not be committed, or the file is damaged; nothing of it was
                written.
        """
        try:
            return self._commit(group, known, wanted)
        except (
            sqlite3.IntegrityError,
            sqlite3.InterfaceError,
            sqlite3.DataError,
            sqlite3.ProgrammingError,
            OverflowError,
            UnicodeError,
        ) as error:
            if isinstance(error, sqlite3.IntegrityError) and contradicts(error):
                raise
            if len(group) == 1:
                append = group[0]
                append.outcome = InvalidInput(
                    f"an event of session {append.session!r} cannot be stored: {error}"
                )
                return Committed([], [])
        records: list[Record] = []
        foreign: list[Record] = []
        for append in group:
            done = self.commit((append,), known)
            foreign += done.foreign
            records += done.records
            if known is not None and done.records:
                known = done.records[-1].position
        return Committed(records, foreign)

    def _commit(
        self, group: Sequence[Append], known: int | None, wanted: Callable[[], bool] | None
    ) -> Committed:
        connection = self._connection
        self._presence.check_now_and_then()
        begin(connection, wanted)
        try:
            self._refresh()
            start = self._position
            for append in group:
                try:
                    append.outcome = self._take(append)
                except LogError as error:
                    # Its traceback leads to this frame, and back to the append.
                    append.outcome = error.with_traceback(None)
            if self._rows:
                write_in_bulk(connection, INSERT, self._rows)
                write_in_bulk(connection, SUMMARIZE, self._summaries())
                if self._chain is not None:
                    self._chain.write()
                if self._opened:
                    connection.executemany(_OPENED, self._opened)
            foreign = self._foreign(known, start)
            self._handed = self._position
            commit(connection, self._where)
            self._presence.check()
            if self._records:
                self._mark.write(self._log, self._position, self._last_crc)
        except BaseException:
            self.reset()
            for append in group:
                append.outcome = None
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        finally:
            records, self._records = self._records, []
            self._rows.clear()
            self._touched.clear()
            self._opened.clear()
            self._ids.clear()
        if len(self._cache) > _SESSIONS:
            for session in list(self._cache)[: len(self._cache) - _SESSIONS]:
                del self._cache[session]
        return Committed(records, foreign)

    def _summaries(self) -> list[object]:
        values: list[object] = []
        for state in self._touched:
            values += (
                state.key,
                state.state,
                state.events,
                state.version,
                state.counted.number,
                state.counted.acted,
                state.utility,
                state.last,
                state.position,
            )
        return values

    def _refresh(self) -> None:
        """Drops what is known where another connection has written since."""
        (data_version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if data_version != self._data_version:
            check_layout(self._connection, self._where)
            identity = identity_of(self._connection) or upgrade(self._connection)
            self._log = identity.log
            self._data_version = data_version
            self._cache.clear()
            self._position = self._reader.head()

    def forget(self, session: str, where: str) -> list[str]:
        """Erases a session and its forks; see ``maintenance.forget``."""
        self._presence.check()
        try:
            return forget(self._connection, session, where)
        finally:
            self.reset()

    def compact(self, path: Path) -> VacuumResult:
        """Rewrites the file without unused room; see ``maintenance.compact``."""
        self._presence.check()
        check_layout(self._connection, self._where)
        return compact(self._connection, path)

    def reset(self) -> None:
        """Has everything read afresh: a transaction failed, or this connection wrote otherwise."""
        self._cache.clear()
        self._data_version = -1
        if self._chain is not None:
            self._chain.drop()

    def _foreign(self, known: int | None, start: int) -> list[Record]:
        if known is None:
            return []
        known = max(known, self._handed)
        if not 0 < start - known <= _FOREIGN:
            return []
        return self._reader.all_after(known, start, _FOREIGN)[0]

    def _take(self, append: Append) -> list[Record]:
        session, stream, envelopes = append.session, append.stream, append.envelopes
        state = self._cache.get(session) or self._load(session)
        if append.ids:
            there = originals(append, self._by_ids(state, append.ids))
            if there is not None:
                self._move(append.checkpoint, redelivered=True)
                return there
        entry = self._admit(append, state)
        if not envelopes:
            return []
        if entry is None:
            entry = self._new_stream(state, stream)
        key, version = entry.key, entry.version
        session_key, position = state.key, self._position
        rows = self._rows
        records = []
        # Each field by its name: splicing the envelope in takes twice as long.
        for kind, schema, time, actor, role, cause, seen, own, body, event in envelopes:
            position += 1
            version += 1
            crc = envelope_checksum(
                (
                    position,
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
                )
            )
            rows += (
                position,
                session_key,
                key,
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
                crc if body is None else crc32(body, crc),
            )
            records.append(
                Record(
                    position,
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
                    event,
                )
            )
        self._position, self._last_crc = position, crc
        entry.version = version
        self._records += records
        self._touched[state] = None
        if state.advance(append, position):
            self._remember_opening(state)
        if self._chain is not None:
            self._chain.add(state, entry, records)
        if append.ids:
            self._ids.update(((session, r.caller_id), r) for r in records if r.caller_id)
        return records

    def _admit(self, append: Append, state: SessionState) -> StreamState | None:
        """The stream that an append goes to, None where it is new; moves its checkpoint.

        Raises:
            SessionClosedError, VersionConflict, CheckpointConflict: it is not admitted.
        """
        entry = state.streams.get(append.stream)
        check_admitted(append, state, 0 if entry is None else entry.version)
        if append.checkpoint is not None:
            self._move(append.checkpoint)
        return entry

    def _remember_opening(self, state: SessionState) -> None:
        labels = msgspec.json.encode(state.group).decode()
        opening = (state.task, state.instance, labels, state.origin, state.opened, state.key)
        self._opened.append(opening)
        if state.state == FORGOTTEN:  # restored from a log that had forgotten it
            self._connection.execute("INSERT OR IGNORE INTO forgotten VALUES (?, 1)", (state.key,))

    def _load(self, session: str) -> SessionState:
        state = SessionState(session)
        row = self._connection.execute(_LOAD, (session,)).fetchone()
        if row is None:
            return state
        (
            state.key,
            state.task,
            state.instance,
            labels,
            state.origin,
            state.state,
            state.events,
            state.version,
            rounds,
            acted,
            state.utility,
            state.opened,
            state.last,
            state.position,
        ) = row
        state.group = msgspec.json.decode(labels, type=dict[str, str])
        state.counted = RoundCount(rounds, acted)
        for stream, key, version in self._connection.execute(_STREAMS, (state.key,)):
            state.streams[stream] = StreamState(key, version or 0)
        if self._chain is not None:
            self._chain.load(state)
        self._cache[session] = state
        return state

    def _new_stream(self, state: SessionState, stream: str) -> StreamState:
        execute = self._connection.execute
        if not state.key:
            cursor = execute("INSERT INTO sessions (session) VALUES (?)", (state.session,))
            state.key = cursor.lastrowid or 0
            self._cache[state.session] = state
            if self._chain is not None:
                self._chain.begin(state)
        cursor = execute("INSERT INTO streams (session, stream) VALUES (?, ?)", (state.key, stream))
        entry = state.streams[stream] = StreamState(cursor.lastrowid or 0, 0)
        return entry

    def _by_ids(self, state: SessionState, ids: Sequence[str]) -> list[Record | None]:
        """For each of the callers' ids the record that has it: of this group, or in the file."""
        found = [self._ids.get((state.session, caller_id)) for caller_id in ids]
        if not state.key:
            return found
        wanted = {ids[place]: place for place, record in enumerate(found) if record is None}
        names = list(wanted)
        for at in range(0, len(names), _IDS):
            some = names[at : at + _IDS]
            width = 1 if len(some) == 1 else _IDS
            some += some[-1:] * (width - len(some))
            for row in self._connection.execute(_BY_IDS[width], (state.key, *some)):
                record = self._reader.record(row)
                if record.caller_id is not None:
                    found[wanted[record.caller_id]] = record
        return found

    def _move(self, advance: Advance | None, *, redelivered: bool = False) -> None:
        if advance is None:
            return
        consumer, version = advance.consumer, advance.version
        actual = self._reader.checkpoint(consumer, version)
        if not advances(advance, actual, redelivered=redelivered):
            return
        self._connection.execute(
            "INSERT INTO checkpoints VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET position = excluded.position, crc = excluded.crc",
            (
                consumer,
                version,
                advance.position,
                row_checksum(consumer, version, advance.position),
            ),
        )
