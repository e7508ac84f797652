"""Derived rows in a table of the log's schema; see ``tables`` for how they are forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import asyncpg

from ...errors import LogUnavailable
from ..contract import Derived
from ..derived import derived_checksum, derived_problem
from ..ranked import Dialect, RowNumbers, Rows
from .connection import Connection
from .settings import Settings

__all__ = (
    "AT_ONCE",
    "DIALECT",
    "JOINED",
    "drop_derived",
    "find_keys",
    "is_readable",
    "keep_derived",
    "outdated",
    "problems_of_derived",
    "read_numbers",
    "read_rows",
)

AT_ONCE: Final = 512
"""Rows in one transaction, and in one read."""

_ROWS: Final = """
SELECT d.session, s.session, d.kind, d.version, d.position, d.payload, d.numbers, d.crc, s.state,
    s.position
FROM {schema}.derived d LEFT JOIN {schema}.summaries s ON s.key = d.session"""
_AFTER: Final = f"""{_ROWS}
WHERE d.session > $1 AND d.kind = $2 AND d.version = $3 ORDER BY d.session LIMIT {AT_ONCE}"""
_SOME: Final = f"""{_ROWS}
WHERE d.session = ANY($1::bigint[]) AND d.kind = $2 AND d.version = $3 ORDER BY d.session"""
_KEYS: Final = """
SELECT key FROM {schema}.summaries WHERE session = ANY($1::text[]) ORDER BY key"""
_READABLE: Final = """
SELECT CASE WHEN to_regclass($1) IS NULL THEN false
ELSE has_table_privilege(to_regclass($1)::oid, 'SELECT') END"""
_KEEP: Final = """
INSERT INTO {schema}.derived AS old
SELECT s.key, n.kind, n.version, n.position, n.numbers::double precision[], n.payload, n.crc
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::bytea[], $7::bigint[])
    AS n (session, kind, version, position, numbers, payload, crc)
JOIN {schema}.summaries s USING (session)
WHERE s.state <> 'forgotten' AND s.position >= n.position ORDER BY s.key, n.kind
ON CONFLICT (session, kind) DO UPDATE SET
    version = excluded.version, position = excluded.position, numbers = excluded.numbers,
    payload = excluded.payload, crc = excluded.crc
WHERE old.version <> excluded.version OR old.position <= excluded.position"""

JOINED: Final = """
LEFT JOIN {schema}.derived d ON d.session = s.key AND d.kind = $1 AND d.version = $2"""
"""Joins the rows of a kind to summaries ``s``."""

DIALECT: Final = Dialect(
    behind="d.position IS NULL OR d.position < s.position",
    number="d.numbers[{} + 1]",
    label="s.labels::jsonb ->> '{}'",
    others="{} COLLATE \"C\" ~ '[^ -~]'",
    part="strpos({}, {}) > 0",
    lower='lower({} COLLATE "C")',
)
_NUMBERS: Final = """
SELECT s.session, d.position, d.numbers FROM {schema}.summaries s
JOIN {schema}.derived d ON d.session = s.key AND d.kind = $1 AND d.version = $2
WHERE s.session = ANY($3::text[])"""
_OUTDATED: Final = f"""
SELECT s.session FROM {{schema}}.summaries s {JOINED}
WHERE s.state <> 'forgotten' AND ({DIALECT.behind}) ORDER BY s.key"""
_ALL: Final = "SELECT session FROM {schema}.summaries s WHERE state <> 'forgotten' ORDER BY key"


async def find_keys(connection: Connection, schema: str, sessions: Sequence[str]) -> list[int]:
    """The keys of those sessions that the log has, in order of their first records."""
    found = await connection.fetch(_KEYS.format(schema=schema), list(sessions))
    return [key for (key,) in found]


async def outdated(connection: Connection, schema: str, kind: str, version: int) -> list[str]:
    """The sessions without a current row; see ``Ranked.outdated``."""
    if await is_readable(connection, schema):
        found = await connection.fetch(_OUTDATED.format(schema=schema), kind, version)
    else:
        found = await connection.fetch(_ALL.format(schema=schema))
    return [session for (session,) in found]


async def read_numbers(
    connection: Connection, schema: str, rows: Rows, sessions: Sequence[str]
) -> list[RowNumbers]:
    """The numbers of the rows of some sessions; see ``Ranked.numbers``."""
    if not await is_readable(connection, schema):
        return []
    found = await connection.fetch(_NUMBERS.format(schema=schema), *rows, list(sessions))
    return [RowNumbers(session, at, tuple(numbers)) for session, at, numbers in found]


async def read_rows(
    connection: Connection, schema: str, kind: str, version: int, after: int | Sequence[int]
) -> tuple[list[Derived], int]:
    """The rows of some sessions by their keys, or a batch after a key; and the last key, or 0."""
    if not await is_readable(connection, schema):
        return [], 0
    query = (_AFTER if isinstance(after, int) else _SOME).format(schema=schema)
    found = await connection.fetch(query, after, kind, version)
    rows = [row for row, wrong in map(_checked, found) if not wrong]
    return rows, found[-1][0] if found else 0


async def drop_derived(connection: Connection, schema: str) -> None:
    """Drops all rows, if there is a table of them."""
    if await connection.fetchval("SELECT to_regclass($1)::oid", f"{schema}.derived"):
        await connection.execute(f"DELETE FROM {schema}.derived")


async def problems_of_derived(connection: Connection, schema: str) -> list[str]:
    """The problems of all rows."""
    if not await is_readable(connection, schema):
        return []
    rows = connection.cursor(_ROWS.format(schema=schema))
    return [wrong async for row in rows if (wrong := _checked(row)[1])]


async def is_readable(connection: Connection, schema: str) -> bool:
    """Whether the table is there, and this role may read it."""
    return bool(await connection.fetchval(_READABLE, f"{schema}.derived"))


async def keep_derived(connection: Connection, settings: Settings, rows: Sequence[Derived]) -> int:
    """Keeps rows, and returns how many were kept; see ``EventLog.keep_derived``.

    Raises:
        LogUnavailable: the server only reads.
        asyncpg.PostgresError: none was kept.
    """
    schema = settings.schema
    values = [
        (
            row.session,
            row.kind,
            row.version,
            row.position,
            # An array of arrays cannot have rows of different lengths, so each one goes as text.
            f"{{{','.join('NULL' if n is None else repr(float(n)) for n in row.numbers)}}}",
            row.payload,
            derived_checksum(row),
        )
        for row in rows
    ]
    try:
        async with connection.transaction():
            # Waits for a transaction that is forgetting sessions, before it looks at their state.
            await connection.execute(f"LOCK TABLE {schema}.derived IN ROW EXCLUSIVE MODE")
            done = await connection.execute(_KEEP.format(schema=schema), *zip(*values, strict=True))
    except asyncpg.ReadOnlySQLTransactionError as error:  # not to be waited for, as an append would
        raise LogUnavailable(f"{settings.url}: the server only reads ({error})") from error
    return int(done.rpartition(" ")[2])


def _checked(found: asyncpg.Record) -> tuple[Derived, str]:
    """The row, and its problem, if it has one."""
    key, session, kind, version, position, payload, numbers, crc, state, last = found
    row = Derived(
        session=session or f"key {key}",
        kind=kind,
        version=version,
        position=position,
        payload=payload,
        numbers=tuple(numbers),
    )
    return row, derived_problem(row, crc, state, last)
