"""Keeps the hash chain in the tables of a SQLite log."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import final

from ...records import Record
from ..integrity.hash_chain import START, link, mac, new_salt
from ..summary import SessionState, StreamState

__all__ = ("Chain", "is_chained")

_LAST = """
SELECT chain.hash FROM events JOIN chain ON chain.position = events.position
WHERE events.stream = ? AND events.version = ?"""


def is_chained(connection: sqlite3.Connection) -> bool:
    """Whether a log keeps a chain."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'chain'").fetchone()
    return found is not None


@final
class Chain:
    """Extends the chain along with a group of appends, in the writing thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._links: list[tuple[int, bytes, bytes]] = []

    def begin(self, state: SessionState) -> None:
        """Gives a new session its salt."""
        state.salt = new_salt()
        self._connection.execute("INSERT INTO salts VALUES (?, ?)", (state.key, state.salt))

    def load(self, state: SessionState) -> None:
        """Looks up a session's salt; a forgotten one has none."""
        row = self._connection.execute(
            "SELECT salt FROM salts WHERE session = ?", (state.key,)
        ).fetchone()
        state.salt = row[0] if row is not None else None

    def add(self, state: SessionState, stream: StreamState, records: Sequence[Record]) -> None:
        """Chains records that were appended to a stream."""
        before = stream.hash or self._last(stream.key, records[0].version - 1)
        for record in records:
            body_mac = mac(state.salt, record.body)
            before = link(before, record, body_mac)
            self._links.append((record.position, body_mac, before))
        stream.hash = before

    def _last(self, stream: int, version: int) -> bytes:
        row = self._connection.execute(_LAST, (stream, version)).fetchone()
        return row[0] if row is not None else START

    def write(self) -> None:
        """Writes the links of the group."""
        self._connection.executemany("INSERT INTO chain VALUES (?, ?, ?)", self._links)
        self._links.clear()

    def drop(self) -> None:
        """Drops the links of a group that failed."""
        self._links.clear()
