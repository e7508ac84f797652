"""Leases in a table of the log's schema, by the server's clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from .connection import Connection
from .reader import Reader

__all__ = ("PostgresLeases",)

# In order of name, so that two who claim the same wait for each other in one direction only.
_CLAIM: Final = """
WITH fresh AS (
    INSERT INTO {schema}.leases (name, holder, until)
    SELECT name, $2, clock_timestamp() + $3 * interval '1 second'
    FROM unnest($1::text[]) AS name ORDER BY name
    ON CONFLICT (name) DO NOTHING RETURNING name
), free AS (
    SELECT name FROM {schema}.leases
    WHERE name = ANY($1::text[]) AND (holder = $2 OR until <= clock_timestamp())
    ORDER BY name FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE {schema}.leases l
    SET holder = $2, until = clock_timestamp() + $3 * interval '1 second'
    FROM free WHERE l.name = free.name RETURNING l.name
)
SELECT name FROM fresh UNION ALL SELECT name FROM taken"""

_RELEASE: Final = "DELETE FROM {schema}.leases WHERE name = ANY($1::text[]) AND holder = $2"
_LIVE: Final = """
SELECT name, holder FROM {schema}.leases WHERE until > clock_timestamp() AND starts_with(name, $1)"""


@final
class PostgresLeases:
    """See ``duolog.engine.log.leases.Leases``.

    The table is not in the write-ahead log of the server: a renewal costs no wait for the disk, and
    after a crash of the server all leases are free.

    Args:
        reader: has connections; does again what a lost one left undone.
        schema: the schema of the log.
    """

    def __init__(self, reader: Reader, schema: str) -> None:
        self._reader = reader
        self._schema = schema

    async def claim(self, names: Sequence[str], holder: str, seconds: float) -> frozenset[str]:
        """Takes what is free, and renews what is held; see ``Leases.claim``."""
        if not names:
            return frozenset()

        async def claim(connection: Connection) -> frozenset[str]:
            query = _CLAIM.format(schema=self._schema)
            rows = await connection.fetch(query, list(names), holder, seconds)
            return frozenset(str(name) for (name,) in rows)

        return await self._reader.call(claim)

    async def release(self, names: Sequence[str], holder: str) -> None:
        """Gives names back; see ``Leases.release``."""

        async def release(connection: Connection) -> None:
            await connection.execute(_RELEASE.format(schema=self._schema), list(names), holder)

        await self._reader.call(release)

    async def holders(self, prefix: str = "") -> dict[str, str]:
        """The holder of each name; see ``Leases.holders``."""

        async def look(connection: Connection) -> dict[str, str]:
            rows = await connection.fetch(_LIVE.format(schema=self._schema), prefix)
            return {str(name): str(holder) for name, holder in rows}

        return await self._reader.call(look)
