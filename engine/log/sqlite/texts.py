"""Searchable texts of sessions in a full-text index (FTS5) of the log's file.

The tables are made when the first text is kept. A trigger on ``forgotten`` deletes a session's texts in the
transaction that forgets it. The index keeps deleted words in its segments until they are merged, so
``optimize`` merges them before the file is compacted.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec

from ..searched import Phrases, SessionText
from ..summary import FORGOTTEN
from .file import check_layout, unsynced

__all__ = (
    "drop_texts",
    "found_texts",
    "keep_texts",
    "optimize",
    "restore_texts",
    "search_texts",
    "unread_texts",
)

_MAKE: Final = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5(text, tokenize = 'unicode61 remove_diacritics 0')",
    """
CREATE TABLE IF NOT EXISTS texts_of (
    text INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    version INTEGER NOT NULL,
    position INTEGER NOT NULL
) STRICT""",
    "CREATE INDEX IF NOT EXISTS texts_of_session ON texts_of (session)",
    """
CREATE TRIGGER IF NOT EXISTS texts_forget AFTER INSERT ON forgotten
BEGIN
    DELETE FROM texts WHERE rowid IN (SELECT text FROM texts_of WHERE session = NEW.session);
    DELETE FROM texts_of WHERE session = NEW.session;
END""",
)
_THERE: Final = "SELECT count(*) FROM sqlite_master WHERE name IN ('texts', 'texts_of')"
_KEY: Final = f"""
SELECT key FROM sessions WHERE session = ? AND state <> '{FORGOTTEN}' AND position >= ?"""
_UNREAD: Final = f"""
SELECT s.session FROM sessions s WHERE s.state <> '{FORGOTTEN}' AND NOT EXISTS (
    SELECT 1 FROM texts_of o WHERE o.session = s.key AND o.version = ? AND o.position >= s.position
) ORDER BY s.key"""
_SEARCH: Final = """
SELECT DISTINCT s.session, s.key FROM texts t JOIN texts_of o ON o.text = t.rowid
JOIN sessions s ON s.key = o.session WHERE texts MATCH ? AND o.version = ? ORDER BY s.key"""
_FOUND: Final = """
SELECT s.session, t.text FROM texts t JOIN texts_of o ON o.text = t.rowid
JOIN sessions s ON s.key = o.session
WHERE texts MATCH ? AND o.version = ? AND s.session IN (SELECT value FROM json_each(?))
ORDER BY s.key, o.text"""


def unread_texts(connection: sqlite3.Connection, version: int) -> list[str]:
    """The sessions without a current text; see ``Searchable.unread_texts``."""
    if not _are_there(connection):
        found = connection.execute(
            f"SELECT session FROM sessions WHERE state <> '{FORGOTTEN}' ORDER BY key"
        )
    else:
        found = connection.execute(_UNREAD, (version,))
    return [session for (session,) in found]


def keep_texts(connection: sqlite3.Connection, texts: Sequence[SessionText], where: object) -> int:
    """Keeps texts, and returns how many were kept; see ``Searchable.keep_texts``.

    Raises:
        NewerLog: a newer Duolog has taken the log over.
        OutcomeUnknown: the disk failed meanwhile.
        sqlite3.Error: none was kept; this SQLite may lack FTS5.
    """
    kept = 0
    with unsynced(connection, where):
        check_layout(connection, where)
        _make(connection)
        for one in texts:
            found = connection.execute(_KEY, (one.session, one.position)).fetchone()
            if found is None:
                continue
            _delete(connection, found[0])
            for part in one.parts or ("",):
                cursor = connection.execute("INSERT INTO texts (text) VALUES (?)", (part,))
                connection.execute(
                    "INSERT INTO texts_of VALUES (?, ?, ?, ?)",
                    (cursor.lastrowid, found[0], one.version, one.position),
                )
            kept += 1
    return kept


def search_texts(connection: sqlite3.Connection, phrases: Phrases, version: int) -> list[str]:
    """The sessions in which all phrases occur; see ``Searchable.search_texts``."""
    if not _are_there(connection):
        return []
    found = connection.execute(_SEARCH, (_match(phrases), version))
    return [session for session, _ in found]


def found_texts(
    connection: sqlite3.Connection, phrases: Phrases, version: int, sessions: Sequence[str]
) -> list[tuple[str, str]]:
    """The parts of some sessions in which all phrases occur; see ``Searchable.found_texts``."""
    if not _are_there(connection):
        return []
    names = msgspec.json.encode(sessions).decode()
    return connection.execute(_FOUND, (_match(phrases), version, names)).fetchall()


def drop_texts(connection: sqlite3.Connection, where: object) -> None:
    """Drops all texts. Raises as ``keep_texts``."""
    if _are_there(connection):
        with unsynced(connection, where):
            check_layout(connection, where)
            connection.execute("DELETE FROM texts")
            connection.execute("DELETE FROM texts_of")


def restore_texts(connection: sqlite3.Connection) -> None:
    """Makes the tables and the trigger whole again, within a transaction, if there are any."""
    if connection.execute(_THERE).fetchone()[0]:
        _make(connection)


def optimize(connection: sqlite3.Connection) -> None:
    """Merges the index, so that no deleted word is left in it."""
    if _are_there(connection):
        connection.execute("INSERT INTO texts (texts) VALUES ('optimize')")


def _are_there(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute(_THERE).fetchone()[0] == 2)


def _make(connection: sqlite3.Connection) -> None:
    for statement in _MAKE:
        connection.execute(statement)


def _delete(connection: sqlite3.Connection, key: int) -> None:
    connection.execute(
        "DELETE FROM texts WHERE rowid IN (SELECT text FROM texts_of WHERE session = ?)", (key,)
    )
    connection.execute("DELETE FROM texts_of WHERE session = ?", (key,))


def _match(phrases: Phrases) -> str:
    """The search as FTS5 writes it: words of letters and digits only, so nothing in them is syntax."""
    return " ".join(f'"{" ".join(words)}" *' for words in phrases)
