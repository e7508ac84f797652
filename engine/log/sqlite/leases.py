"""Leases in a table of the log's file, by the clock of the machine that all its processes share."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar, final

from .file import translate, unsynced
from .writer import Writer

__all__ = ("SqliteLeases",)

T = TypeVar("T")

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS leases (
    name TEXT PRIMARY KEY, holder TEXT NOT NULL, claimed REAL NOT NULL, seconds REAL NOT NULL
) STRICT, WITHOUT ROWID"""

# The clock may be set back: a claim from the future is none.
_CLAIM: Final = """
INSERT INTO leases VALUES (:name, :holder, :now, :seconds) ON CONFLICT (name) DO UPDATE
SET holder = excluded.holder, claimed = excluded.claimed, seconds = excluded.seconds
WHERE holder = excluded.holder OR claimed + leases.seconds <= :now OR claimed > :now
RETURNING name"""

_RELEASE: Final = "DELETE FROM leases WHERE name = ? AND holder = ?"
_LIVE: Final = """
SELECT name, holder FROM leases
WHERE claimed + seconds > :now AND claimed <= :now AND substr(name, 1, length(:prefix)) = :prefix"""
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE name = 'leases'"


@final
class SqliteLeases:
    """See ``duolog.engine.log.leases.Leases``. The table is made with the first claim, so that older
    logs need no upgrade.

    Args:
        connection: that writes, in the writer's thread.
        writer: runs what is to be done there.
        url: the URL of the log.
    """

    def __init__(self, connection: sqlite3.Connection, writer: Writer, url: str) -> None:
        self._connection = connection
        self._writer = writer
        self._url = url

    async def claim(self, names: Sequence[str], holder: str, seconds: float) -> frozenset[str]:
        """Takes what is free, and renews what is held; see ``Leases.claim``."""

        def claim() -> frozenset[str]:
            self._connection.execute(_TABLE)
            given = {"holder": holder, "seconds": seconds, "now": time.time()}
            taken = [
                self._connection.execute(_CLAIM, given | {"name": name}).fetchall()
                for name in names
            ]
            return frozenset(name for rows in taken for (name,) in rows)

        return await self._change(claim) if names else frozenset()

    async def release(self, names: Sequence[str], holder: str) -> None:
        """Gives names back; see ``Leases.release``."""

        def release() -> None:
            rows = [(name, holder) for name in names]
            self._connection.executemany(_RELEASE, rows)

        await self._change(release)

    async def holders(self, prefix: str = "") -> dict[str, str]:
        """The holder of each name; see ``Leases.holders``."""

        def look() -> dict[str, str]:
            if self._connection.execute(_THERE).fetchone() is None:
                return {}
            return dict(self._connection.execute(_LIVE, {"now": time.time(), "prefix": prefix}))

        return await self._run(look)

    async def _change(self, work: Callable[[], T]) -> T:
        """Does something in a transaction that need not survive a loss of power."""

        def change() -> T:
            with unsynced(self._connection, self._url):
                return work()

        return await self._run(change)

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await self._writer.call(work)
        except sqlite3.Error as error:
            raise translate(error, self._url, so="no lease was changed") from error
