"""Derived rows in a table of the log's file.

The table is made when the first row is kept, so older layouts work unchanged and older programs can
still write. A trigger on ``forgotten`` deletes a session's rows in the transaction that forgets it. It
also works if an older program forgets the session: that program then compacts the file as usual.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ..contract import Derived
from ..derived import derived_checksum, derived_problem
from ..ranked import Dialect, RowNumbers, Rows
from ..summary import FORGOTTEN
from .file import check_layout, unsynced

__all__ = (
    "AT_ONCE",
    "DIALECT",
    "JOINED",
    "drop",
    "find_keys",
    "is_there",
    "keep",
    "outdated",
    "problems",
    "read_numbers",
    "read_rows",
    "restore_table",
)

AT_ONCE: Final = 512
"""Rows in one transaction, and in one read."""

_numbers: Final = msgspec.json.Decoder(tuple[float | None, ...]).decode

_MAKE: Final = (
    """
CREATE TABLE IF NOT EXISTS derived (
    session INTEGER NOT NULL,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    position INTEGER NOT NULL,
    numbers TEXT NOT NULL,
    payload BLOB NOT NULL,
    crc INTEGER NOT NULL,
    PRIMARY KEY (session, kind)
) STRICT""",
    """
CREATE TRIGGER IF NOT EXISTS derived_forgets AFTER INSERT ON forgotten
BEGIN DELETE FROM derived WHERE session = NEW.session; END""",
)
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE name IN ('derived', 'derived_forgets')"
_KEEP: Final = f"""
INSERT INTO derived
SELECT key, :kind, :version, :position, :numbers, :payload, :crc FROM sessions
WHERE session = :session AND state <> '{FORGOTTEN}' AND position >= :position
ON CONFLICT (session, kind) DO UPDATE SET
    version = excluded.version, position = excluded.position, numbers = excluded.numbers,
    payload = excluded.payload, crc = excluded.crc
WHERE derived.version <> excluded.version OR derived.position <= excluded.position"""
_ROWS: Final = """
SELECT d.session, s.session, d.kind, d.version, d.position, d.payload, d.numbers, d.crc, s.state,
s.position FROM derived d LEFT JOIN sessions s ON s.key = d.session"""
_AFTER: Final = f"""{_ROWS}
WHERE d.session > ? AND d.kind = ? AND d.version = ? ORDER BY d.session LIMIT {AT_ONCE}"""
_SOME: Final = f"""{_ROWS}
WHERE d.session IN (SELECT value FROM json_each(?)) AND d.kind = ? AND d.version = ?
ORDER BY d.session"""
_KEYS: Final = """
SELECT key FROM sessions WHERE session IN (SELECT value FROM json_each(?)) ORDER BY key"""

JOINED: Final = """
LEFT JOIN derived d ON d.session = s.key AND d.kind = :kind AND d.version = :version"""
"""Joins the rows of a kind to summaries ``s``."""

DIALECT: Final = Dialect(
    behind="d.position IS NULL OR d.position < s.position OR NOT json_valid(d.numbers)",
    number="CASE WHEN json_valid(d.numbers) THEN json_extract(d.numbers, '$[{}]') END",
    label="CASE WHEN json_valid(s.labels) THEN json_extract(s.labels, '$.\"{}\"') END",
    others="{} GLOB '*[^ -~]*'",
    part="instr({}, {}) > 0",
    lower="lower({})",
)
_NUMBERS: Final = """
SELECT s.session, d.position, d.numbers FROM json_each(:sessions) c JOIN sessions s ON s.session = c.value
JOIN derived d ON d.session = s.key AND d.kind = :kind AND d.version = :version
WHERE json_valid(d.numbers)"""
_OUTDATED: Final = f"""
SELECT s.session FROM sessions s {JOINED}
WHERE s.state <> '{FORGOTTEN}' AND ({DIALECT.behind}) ORDER BY s.key"""


def keep(connection: sqlite3.Connection, rows: Sequence[Derived], where: object) -> int:
    """Keeps rows, and returns how many were kept; see ``EventLog.keep_derived``.

    Raises:
        NewerLog: a newer Duolog has taken the log over.
        OutcomeUnknown: the disk failed meanwhile.
        sqlite3.Error: not all rows were kept.
    """
    kept = 0
    for at in range(0, len(rows), AT_ONCE):
        with unsynced(connection, where):
            check_layout(connection, where)
            _make(connection)
            values = map(_values, rows[at : at + AT_ONCE])
            kept += connection.executemany(_KEEP, values).rowcount
    return kept


def drop(connection: sqlite3.Connection, where: object) -> None:
    """Drops all rows. The table stays, since its trigger needs it. Raises as ``keep``."""
    with unsynced(connection, where):
        check_layout(connection, where)
        if is_there(connection):
            _make(connection)
            connection.execute("DELETE FROM derived")


def restore_table(connection: sqlite3.Connection) -> None:
    """Makes table and trigger whole again, within a transaction, if one of them was dropped by hand."""
    if is_there(connection):
        _make(connection)


def find_keys(connection: sqlite3.Connection, sessions: Sequence[str]) -> list[int]:
    """The keys of those sessions that the log has, in order of their first records."""
    names = msgspec.json.encode(sessions).decode()
    return [key for (key,) in connection.execute(_KEYS, (names,))]


def read_rows(
    connection: sqlite3.Connection, kind: str, version: int, after: int | Sequence[int]
) -> tuple[list[Derived], int]:
    """The rows of some sessions by their keys, or a batch after a key; and the last key, or 0."""
    if not is_there(connection):
        return [], 0
    if isinstance(after, int):
        found = connection.execute(_AFTER, (after, kind, version)).fetchall()
    else:
        chosen = msgspec.json.encode(after).decode()
        found = connection.execute(_SOME, (chosen, kind, version)).fetchall()
    rows = [row for row, wrong in map(_checked, found) if row is not None and not wrong]
    return rows, found[-1][0] if found else 0


def read_numbers(
    connection: sqlite3.Connection, rows: Rows, sessions: Sequence[str]
) -> list[RowNumbers]:
    """The numbers of the rows of some sessions; see ``Ranked.numbers``."""
    if not is_there(connection):
        return []
    chosen = {**rows._asdict(), "sessions": msgspec.json.encode(sessions).decode()}
    found = connection.execute(_NUMBERS, chosen)
    return [RowNumbers(session, at, _numbers(numbers)) for session, at, numbers in found]


def outdated(connection: sqlite3.Connection, kind: str, version: int) -> list[str]:
    """The sessions without a current row; see ``Ranked.outdated``."""
    if not is_there(connection):
        found = connection.execute(
            f"SELECT session FROM sessions WHERE state <> '{FORGOTTEN}' ORDER BY key"
        )
    else:
        found = connection.execute(_OUTDATED, {"kind": kind, "version": version})
    return [session for (session,) in found]


def problems(connection: sqlite3.Connection) -> list[str]:
    """The problems of all rows."""
    if not is_there(connection):
        return []
    return [wrong for _, wrong in map(_checked, connection.execute(_ROWS)) if wrong]


def is_there(connection: sqlite3.Connection) -> bool:
    """Whether the table has been made."""
    return connection.execute(_THERE).fetchone() is not None


def _make(connection: sqlite3.Connection) -> None:
    for statement in _MAKE:
        connection.execute(statement)


def _values(row: Derived) -> dict[str, object]:
    return {
        "session": row.session,
        "kind": row.kind,
        "version": row.version,
        "position": row.position,
        "numbers": msgspec.json.encode(row.numbers).decode(),
        "payload": row.payload,
        "crc": derived_checksum(row),
    }


def _checked(found: tuple[Any, ...]) -> tuple[Derived | None, str]:
    """The row, and its problem, if it has one."""
    key, session, kind, version, position, payload, numbers, crc, state, last = found
    try:
        row = Derived(
            session=session or f"key {key}",
            kind=kind,
            version=version,
            position=position,
            payload=payload,
            numbers=_numbers(numbers),
        )
        return row, derived_problem(row, crc, state, last)
    except (msgspec.MsgspecError, TypeError) as error:
        return None, f"a derived row holds what was never written: {error}"
