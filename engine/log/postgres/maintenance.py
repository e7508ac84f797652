"""Care for a PostgreSQL log: erasing, giving room back, verifying."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import asyncpg

from ...errors import SessionNotFound
from ..contract import VacuumResult, Verification
from ..integrity.checksum import checksum_of
from ..integrity.verify import Verifier
from .connection import Connection, Identity, check_taken_over
from .derived import problems_of_derived
from .reader import BATCH, EVENT, Reader, detached, records_of
from .settings import Settings

__all__ = ("forget", "vacuum", "verify")

_FAMILY: Final = """
WITH RECURSIVE family (key, session) AS (
    SELECT key, session FROM {schema}.summaries WHERE session = ANY($1::text[])
    UNION
    SELECT fork.key, fork.session FROM {schema}.summaries fork
    JOIN family ON fork.origin = family.session
)
SELECT key, session FROM family ORDER BY key"""


async def forget(connection: Connection, settings: Settings, sessions: Sequence[str]) -> list[str]:
    """Erases sessions and their forks, in one transaction; returns all ids.

    Raises:
        NewerLog: a newer Duolog has taken the log over.
        SessionNotFound: there is no such session.
        asyncpg.PostgresError: nothing was erased.
    """
    schema = settings.schema
    async with connection.transaction():
        layout = await connection.fetchval(  # holds the lock
            f"UPDATE {schema}.log SET epoch = epoch + 1 RETURNING layout"
        )
        check_taken_over(layout, settings.url)  # the tables may hold more now than is erased here
        family = await connection.fetch(_FAMILY.format(schema=schema), list(sessions))
        missing = set(sessions).difference(name for _, name in family)
        if missing:
            raise SessionNotFound(min(missing), settings.url)
        keys = [key for key, _ in family]
        await connection.execute(
            f"UPDATE {schema}.summaries SET task = '', instance = '', labels = '{{}}', "
            "utility = NULL, evaluated = false, state = 'forgotten', salt = NULL, "
            "compacted = false WHERE key = ANY($1::bigint[])",
            keys,
        )
        for key, name in family:
            for stream_key, stream in await connection.fetch(
                f"SELECT key, stream FROM {schema}.streams WHERE session = $1", key
            ):
                await _erase(connection, schema, stream_key, name, stream)
    return [name for _, name in family]


async def _erase(connection: Connection, schema: str, key: int, session: str, stream: str) -> None:
    query = f"SELECT max(version) FROM {schema}.records WHERE stream = $1"
    end = await connection.fetchval(query, key) or 0
    for after in range(0, end, BATCH):
        rows = await connection.fetch(
            f"SELECT {EVENT} FROM {schema}.records WHERE stream = $1 AND version > $2 "
            "AND version <= $3",
            key,
            after,
            after + BATCH,
        )
        records = records_of(rows, {key: (session, stream)})
        await connection.execute(
            f"UPDATE {schema}.records r SET body = NULL, crc = e.crc "
            "FROM unnest($1::bigint[], $2::bigint[]) AS e (position, crc) "
            "WHERE r.position = e.position AND r.body IS NOT NULL",
            [record.position for record in records],
            [checksum_of(record, erased=True) for record in records],
        )


async def vacuum(connection: Connection, settings: Settings) -> VacuumResult:
    """Frees unused space, and rewrites the partitions that may still hold copies of erased data.

    A partition is locked while it is rewritten. Only its owner can rewrite it; for other roles, the
    result says that it is not finished.

    Raises:
        NewerLog: a newer Duolog has taken the log over.
        asyncpg.PostgresError: it was not finished.
    """
    schema = settings.schema
    layout = await connection.fetchval(f"SELECT layout FROM {schema}.log")
    check_taken_over(layout, settings.url)
    before = await _size(connection, schema)
    owned = await connection.fetchval(
        "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = $1::text::regclass",
        f"{schema}.records",
    )
    if owned:
        dirty = await connection.fetch(
            f"""
            SELECT DISTINCT r.tableoid::regclass::text FROM {schema}.records r
            JOIN {schema}.streams t ON t.key = r.stream
            JOIN {schema}.summaries s ON s.key = t.session WHERE NOT s.compacted"""
        )
        for (partition,) in dirty:
            await connection.execute(f"VACUUM (FULL) {partition}")
        for table in ("records", "summaries", "streams", "ids", "log"):
            await connection.execute(f"VACUUM (ANALYZE) {schema}.{table}")
        for kept in ("derived", "texts") if dirty else ():
            if await connection.fetchval("SELECT to_regclass($1)::oid", f"{schema}.{kept}"):
                await connection.execute(f"VACUUM (FULL, ANALYZE) {schema}.{kept}")
        await connection.execute(
            f"UPDATE {schema}.summaries SET compacted = true WHERE NOT compacted"
        )
    after = await _size(connection, schema)
    return VacuumResult(before=before, after=after, finished=bool(owned))


async def _size(connection: Connection, schema: str) -> int:
    return int(
        await connection.fetchval(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = $1 AND c.relkind = 'r'",
            schema,
        )
    )


async def verify(
    connection: Connection, settings: Settings, reader: Reader, identity: Identity
) -> Verification:
    """Looks at every record and at the list of sessions, as of one moment, while others write."""
    schema = settings.schema
    verifier = Verifier(chained=identity.chained, since=1)
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        head = await connection.fetchval(f"SELECT position FROM {schema}.log")
        first = await reader.first(connection)
        if first > 1:
            verifier.complain(f"not looked at: {detached(settings.url, first)}")
            return verifier.result()
        try:
            await _check_records(connection, reader, verifier, head)
            await _check_lists(connection, reader, verifier)
            for what in await problems_of_derived(connection, schema):
                verifier.complain(what)
        except asyncpg.DataCorruptedError as error:
            verifier.complain(f"the rest cannot be read: {error}")
            return verifier.result()
        uncompacted = await connection.fetchval(
            f"SELECT count(*) FROM {schema}.summaries WHERE NOT compacted"
        )
    return verifier.result(uncompacted=uncompacted)


async def _check_records(
    connection: Connection, reader: Reader, verifier: Verifier, head: int
) -> None:
    last = 0
    for after in range(0, head, BATCH):
        batch, _ = await reader.all_after(connection, after, head, strict=False)
        links = await reader.links(connection, after, after + BATCH) if verifier.chained else {}
        crcs = await reader.checksums(connection, after, after + BATCH)
        for record in batch:
            verifier.feed(record, links.get(record.position), crcs.get(record.position))
            last = record.position
    if last < head:
        verifier.complain(f"the records from position {last + 1} to {head} cannot be read")


async def _check_lists(connection: Connection, reader: Reader, verifier: Verifier) -> None:
    key = 0
    while True:
        summaries, key = await reader.summaries_after(connection, key)
        if not summaries:
            return
        for summary in summaries:
            verifier.check_session(summary)
