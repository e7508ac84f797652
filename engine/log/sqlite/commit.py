"""Group commit: many appends become one transaction, in the thread of the writing connection.

Each group is one transaction. It looks up the sessions and ids that the group needs, decides the
group (``decide``) and writes the result, so an append in conflict fails alone. Session state is
cached between groups until another writer changes the file, which ``PRAGMA data_version`` shows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple, final

from ...errors import InvalidInput, NotALog
from ...records import TRACE, Record
from ..append import Append
from ..contract import VacuumResult
from ..decide import Decided, Known, decide
from ..integrity.checksum import checksum_of
from ..summary import (
    FORGOTTEN,
    STATE,
    SessionState,
    StreamState,
    progress_of,
    state_of,
    state_row,
)
from .file import begin, check_layout, commit, contradicts
from .identity import identity_of, is_chained, row_checksum, upgrade
from .maintenance import compact, forget
from .mark import HeadMark
from .presence import FilePresence
from .reader import EVENT, Reader
from .writer import Committed

__all__ = ("Committer",)

_FOREIGN: Final = 4096  # records by other processes that are read along with a group
_IDS: Final = 64  # looked up by one statement

_LOAD: Final = f"SELECT {STATE} FROM sessions WHERE session = ?"
_STREAMS: Final = """
SELECT stream, key, (SELECT max(version) FROM events WHERE events.stream = streams.key)
FROM streams WHERE session = ?"""
_SALT: Final = "SELECT salt FROM salts WHERE session = ?"
_HASH: Final = """
SELECT chain.hash FROM events JOIN chain ON chain.position = events.position
WHERE events.stream = ? AND events.version = ?"""
_BY_IDS: Final = {
    width: f"SELECT {EVENT} FROM events WHERE session = ? AND id IN ({', '.join('?' * width)})"
    for width in (1, _IDS)
}
_MOVE: Final = """
INSERT INTO checkpoints VALUES (?, ?, ?, ?)
ON CONFLICT DO UPDATE SET position = excluded.position, crc = excluded.crc"""


class _Bulk(NamedTuple):
    """A statement over many rows: a step in SQLite for many costs less than a step for each, and the
    interpreter is free for the event loop meanwhile.

    Attributes:
        columns: values in a row.
        statements: the statement for some numbers of rows, the largest first.
    """

    columns: int
    statements: Mapping[int, str]


def _bulk(into: str, columns: str, after: str = "") -> _Bulk:
    count = columns.count(",") + 1
    row = f"({', '.join('?' * count)})"
    return _Bulk(
        count,
        {
            width: f"INSERT OR ROLLBACK INTO {into} ({columns}) VALUES {', '.join([row] * width)} {after}"
            for width in (64, 32, 16, 8, 4, 2, 1)
        },
    )


def _updates(columns: str) -> str:
    names = [name.strip() for name in columns.split(",")]
    return "ON CONFLICT (key) DO UPDATE SET " + ", ".join(f"{n} = excluded.{n}" for n in names)


_PROGRESS: Final = "events, version, last, position"
_INSERT: Final = _bulk("events", f"{EVENT}, crc, session")
_ADVANCE: Final = _bulk("sessions", f"key, {_PROGRESS}, session", _updates(_PROGRESS))
_CHANGE: Final = _bulk("sessions", STATE, _updates(STATE.removeprefix("key, ")))


@final
class Committer:
    """Commits groups of appends on one connection; all methods run in its thread.

    Args:
        connection: to write on.
        where: the log, for messages.
        presence: says whether the file is still there.
        mark: the head mark, which notes how far the log has come.
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
        self._handed = 0  # last position given to the loop, which may not know of it yet
        self._log = ""
        self._known = Known(where)
        self._known.chained = is_chained(connection)

    def commit(
        self,
        group: Sequence[Append],
        known: int | None,
        wanted: Callable[[], bool] | None = None,
    ) -> Committed:
        """Commits a group, and leaves each append's outcome in it.

        An append in conflict fails alone. If SQLite itself refuses a value, the group is rolled
        back, and its appends are committed one by one, so that only the bad one fails.

        Args:
            group: the appends.
            known: position up to which this process has seen all records; None if nothing follows
                the log.
            wanted: asked while another process holds the log whether to keep waiting; it may take
                appends out of the group.

        Raises:
            LogGone: the file is not there any more.
            NewerLog: a newer Duolog has taken the log over.
            NotALog: the file is damaged.
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
            start = self._known.position
            self._look_up(group)
            decided = decide(self._known, group)
            self._write(decided)
            foreign = self._foreign(known, start)
            self._handed = self._known.position
            commit(connection, self._where)
            self._presence.check()
            if decided.records:
                last = decided.records[-1]
                self._mark.write(self._log, last.position, checksum_of(last, erased=True))
        except BaseException:
            self.reset()
            for append in group:
                append.outcome = None
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        finally:
            self._known.forget_questions()
        self._known.evict()
        return Committed(decided.records, foreign)

    def _refresh(self) -> None:
        """Drops what is known where another connection has written since."""
        (data_version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if data_version != self._data_version:
            check_layout(self._connection, self._where)
            identity = identity_of(self._connection) or upgrade(self._connection)
            self._log = identity.log
            self._data_version = data_version
            self._known.sessions.clear()
            self._known.position = self._reader.head()

    def forget(self, sessions: Sequence[str], where: str) -> list[str]:
        """Erases sessions and their forks; see ``maintenance.forget``."""
        self._presence.check()
        try:
            return forget(self._connection, sessions, where)
        finally:
            self.reset()

    def compact(self, path: Path) -> VacuumResult:
        """Rewrites the file without unused room; see ``maintenance.compact``."""
        self._presence.check()
        check_layout(self._connection, self._where)
        return compact(self._connection, path)

    def reset(self) -> None:
        """Discards what is known, so that it is read again: a transaction failed, or this connection wrote otherwise."""
        self._known.sessions.clear()
        self._data_version = -1

    def _foreign(self, known: int | None, start: int) -> list[Record]:
        if known is None:
            return []
        known = max(known, self._handed)
        if not 0 < start - known <= _FOREIGN:
            return []
        return self._reader.all_after(known, start, _FOREIGN)[0]

    # --- looking up -------------------------------------------------------------------------------

    def _look_up(self, group: Sequence[Append]) -> None:
        """Reads what a group asks about: sessions, ids, consumers."""
        known = self._known
        for append in group:
            state = known.sessions.get(append.session) or self._load(append.session)
            if state is not None:
                if append.ids:
                    self._look_up_ids(state, append.ids)
                entry = state.streams.get(append.stream) if known.chained else None
                if entry is not None and entry.hash is None:
                    row = self._connection.execute(_HASH, (entry.key, entry.version)).fetchone()
                    entry.hash = row and row[0]
            if (move := append.checkpoint) is not None:
                key = (move.consumer, move.version)
                known.consumers[key] = self._reader.checkpoint(*key)

    def _load(self, session: str) -> SessionState | None:
        execute = self._connection.execute
        row = execute(_LOAD, (session,)).fetchone()
        if row is None:
            return None
        state = state_of(row)
        for stream, key, version in execute(_STREAMS, (state.key,)):
            state.streams[stream] = StreamState(key, version or 0)
        trace = state.streams.get(TRACE)
        if state.version != (0 if trace is None else trace.version):
            raise NotALog(
                f"{self._where}: the file is damaged (the list says that session {session!r} has "
                f"{state.version} records, and its trace has others); restore it from a backup"
            )
        if self._known.chained:
            row = execute(_SALT, (state.key,)).fetchone()
            state.salt = row and row[0]  # a forgotten session has none
        self._known.sessions[session] = state
        return state

    def _look_up_ids(self, state: SessionState, ids: Sequence[str]) -> None:
        for at in range(0, len(ids), _IDS):
            some = ids[at : at + _IDS]
            width = 1 if len(some) == 1 else _IDS
            filled = (*some, *[some[-1]] * (width - len(some)))
            for row in self._connection.execute(_BY_IDS[width], (state.key, *filled)):
                record = self._reader.record(row)
                self._known.ids[state.session, record.caller_id or ""] = record

    # --- writing ----------------------------------------------------------------------------------

    def _write(self, decided: Decided) -> None:
        many = self._connection.executemany
        if decided.moved:
            many(_MOVE, [(*key, to, row_checksum(*key, to)) for key, to in decided.moved.items()])
        if not decided.rows:
            return
        changed = [state for state, about in decided.touched.items() if about]
        advanced = [state for state, about in decided.touched.items() if not about]
        self._write_in_bulk(_INSERT, decided.rows)
        self._write_in_bulk(_CHANGE, map(state_row, changed))
        self._write_in_bulk(_ADVANCE, [(*progress_of(state), "") for state in advanced])
        many("INSERT INTO streams (key, session, stream) VALUES (?, ?, ?)", decided.streams)
        if self._known.chained:
            many("INSERT INTO salts VALUES (?, ?)", [(s.key, s.salt) for s in decided.begun])
            many("INSERT INTO chain VALUES (?, ?, ?)", decided.links)
        # Restored from a log that had forgotten it.
        forgotten = [(state.key,) for state in changed if state.state == FORGOTTEN]
        many("INSERT OR IGNORE INTO forgotten VALUES (?, 1)", forgotten)

    def _write_in_bulk(self, bulk: _Bulk, rows: Iterable[Sequence[object]]) -> None:
        values = list(chain.from_iterable(rows))
        at, end = 0, len(values)
        for width, statement in bulk.statements.items():
            step = width * bulk.columns
            while end - at >= step:
                self._connection.execute(statement, values[at : at + step])
                at += step
