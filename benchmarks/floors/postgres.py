"""The floor of the log on PostgreSQL: ``asyncpg`` alone, with the same rows in the same tables and indexes.

It encodes the same events and writes them with COPY, or with an INSERT of many rows, one transaction for
each group; it keeps no list of sessions, computes no checksums and checks nothing. Reading takes the same rows from a cursor, and
decodes them into the same structs.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from itertools import chain
from typing import TypeAlias

import asyncpg
from duolog.benchmarks.workloads.typical_events import EVENTS
from duolog.engine.codec import decode_body, encode_body
from duolog.engine.log.postgres.connection import open_schema
from duolog.engine.log.postgres.settings import parse
from duolog.engine.records import Record

__all__ = ("Write", "append_floor", "copy_rows", "insert_rows", "read_floor")

Write: TypeAlias = Callable[
    ["asyncpg.Connection[asyncpg.Record]", str, Sequence[tuple[object, ...]]],
    Coroutine[object, object, None],
]
"""Writes rows into the table of records of a schema."""

_READ = "position, stream, version, kind, schema, time, actor, role, cause, seen, id, body"
_COLUMNS = (
    "position", "stream", "version", "kind", "schema", "time", "actor", "role", "cause", "seen", "id",
    "crc", "body",
)  # fmt: skip


async def copy_rows(
    connection: asyncpg.Connection[asyncpg.Record], schema: str, rows: Sequence[tuple[object, ...]]
) -> None:
    """Writes rows with COPY."""
    await connection.copy_records_to_table(
        "records", schema_name=schema, columns=_COLUMNS, records=rows
    )


async def insert_rows(
    connection: asyncpg.Connection[asyncpg.Record], schema: str, rows: Sequence[tuple[object, ...]]
) -> None:
    """Writes rows with one INSERT, prepared for as many."""
    width = len(_COLUMNS)
    values = ", ".join(
        "(" + ", ".join(f"${at + column}" for column in range(1, width + 1)) + ")"
        for at in range(0, width * len(rows), width)
    )
    insert = f"INSERT INTO {schema}.records ({', '.join(_COLUMNS)}) VALUES {values}"
    await connection.execute(insert, *chain.from_iterable(rows))


async def append_floor(url: str, sessions: int, group: int, count: int, write: Write) -> int:
    """Appends typical events in groups to a new log's table of records; gives how many."""
    settings = parse(url)
    await open_schema(settings, create=True)
    # Without a limit, else a long INSERT would be prepared for each group.
    connection = await asyncpg.connect(settings.dsn, max_cacheable_statement_size=0)
    versions = [0] * (sessions + 1)
    at = 0
    while at < count:
        rows: list[tuple[object, ...]] = []
        for _ in range(min(group, count - at)):
            key = at % sessions + 1
            event = EVENTS[at % len(EVENTS)]
            at += 1
            versions[key] += 1
            rows.append(
                (
                    at,
                    key,
                    versions[key],
                    type(event).__name__,
                    event.schema,
                    at * 0.5,
                    "bot",
                    "agent",
                    "trace/3",
                    4,
                    None,
                    0,
                    encode_body(event),
                )
            )
        await write(connection, settings.schema, rows)
    await connection.close()
    return at


async def read_floor(url: str) -> int:
    """Takes all rows from a cursor as records, in order, and decodes their events; gives how many."""
    settings = parse(url)
    schema = settings.schema
    connection = await asyncpg.connect(settings.dsn)
    names = {
        key: (session, stream)
        for key, session, stream in await connection.fetch(
            f"SELECT t.key, o.session, t.stream FROM {schema}.streams t "
            f"JOIN {schema}.summaries o ON o.key = t.session"
        )
    }
    count = 0
    async with connection.transaction(readonly=True):
        cursor = await connection.cursor(f"SELECT {_READ} FROM {schema}.records ORDER BY position")
        while rows := await cursor.fetch(512):
            for at, key, version, kind, schema_, t, actor, role, cause, seen, own, body in rows:
                session, stream = names[key]
                record = Record(
                    at,
                    session,
                    stream,
                    version,
                    kind,
                    schema_,
                    t,
                    actor,
                    role,
                    cause,
                    seen,
                    own,
                    body,
                )
                count += decode_body(record.kind, record.schema, record.body) is not None
    await connection.close()
    return count
