"""The floor of the log on PostgreSQL: ``asyncpg`` alone, with the same rows in the same tables and indexes.

It encodes the same events and writes them with COPY, one transaction for each group; it keeps no list
of sessions, computes no checksums and checks nothing. Reading takes the same rows from a cursor, and
decodes them into the same structs.
"""

from __future__ import annotations

import asyncpg
from duolog.benchmarks.workloads.typical_events import EVENTS
from duolog.engine.codec import decode_body, encode_body
from duolog.engine.log.postgres.connection import open_schema
from duolog.engine.log.postgres.settings import parse
from duolog.engine.records import Record

__all__ = ("append_floor", "read_floor")

_READ = "position, stream, version, kind, schema, time, actor, role, cause, seen, id, body"
_COLUMNS = (
    "position", "stream", "version", "kind", "schema", "time", "actor", "role", "cause", "seen", "id",
    "crc", "body",
)  # fmt: skip


async def append_floor(url: str, sessions: int, group: int, count: int) -> int:
    """Appends typical events in groups to a new log's table of records; gives how many."""
    settings = parse(url)
    await open_schema(settings, create=True)
    connection = await asyncpg.connect(settings.dsn)
    versions = [0] * (sessions + 1)
    at = 0
    while at < count:
        rows = []
        for _ in range(group):
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
        await connection.copy_records_to_table(
            "records", schema_name=settings.schema, columns=_COLUMNS, records=rows
        )
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
