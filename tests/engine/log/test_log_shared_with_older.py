"""A log that older programs write too, as during a deploy; their statements are repeated here."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio.to_thread
import asyncpg
import pytest
from duolog.engine.errors import VersionConflict
from duolog.engine.events import MessageSent, Role, SessionOpened
from duolog.engine.log.contract import Derived, Store
from duolog.engine.log.integrity.checksum import checksum_of
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft, Record
from duolog.testing.postgres_server import PostgresServer
from duolog.testing.tools import appended, collect
from postgres_shell import shell

OPENED = SessionOpened(
    task="travel", instance="7", participants=(), clock="utc", config={"group": {"agent": "auto"}}
)
_OPENING = (
    b'{"kind":"SessionOpened","task":"travel","instance":"7","participants":[],"clock":"utc",'
    b'"config":{"group":{"agent":"auto"}}}'
)
BODIES: tuple[tuple[str, bytes, str, Role], ...] = (
    ("SessionOpened", _OPENING, "engine", "environment"),
    ("MessageSent", b'{"kind":"MessageSent","text":"hello"}', "ann", "human"),
)


def records_from(position: int, session: str, version: int, *which: int) -> list[Record]:
    """Records as an older program appends them to a trace."""
    return [
        Record(position + n, session, "trace", version + n, kind, 1, 1.0, actor, role, None, None, None, body)
        for n, (kind, body, actor, role) in enumerate([BODIES[each] for each in which])
    ]  # fmt: skip


def write_to_file(path: Path, key: int, stream: int, records: list[Record]) -> None:
    """One append, with the statements of the program before derived rows."""
    last = records[-1]
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        execute = connection.execute
        execute("BEGIN IMMEDIATE")
        assert execute("SELECT coalesce(max(position), 0) FROM events").fetchone() == (
            records[0].position - 1,
        )
        if records[0].version == 1:
            execute("INSERT INTO sessions (session) VALUES (?)", (last.session,))
            execute("INSERT INTO streams (session, stream) VALUES (?, ?)", (key, "trace"))
        for r in records:
            execute(
                "INSERT OR ROLLBACK INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (r.position, key, stream, r.version, r.kind, r.schema, r.time, r.actor, r.role)
                + (r.cause, r.seen, r.caller_id, r.body, checksum_of(r)),
            )
        execute(
            """
INSERT OR ROLLBACK INTO sessions
(key, session, state, events, version, rounds, acted, utility, last, position)
VALUES (?, '', ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    state = excluded.state, events = excluded.events, version = excluded.version,
    rounds = excluded.rounds, acted = excluded.acted, utility = excluded.utility,
    last = excluded.last, position = excluded.position""",
            (key, "open", last.version, last.version, 1, 0, None, last.time, last.position),
        )
        if records[0].version == 1:
            execute(
                "UPDATE sessions SET task = ?, instance = ?, labels = ?, origin = ?, opened = ? "
                "WHERE key = ?",
                ("travel", "7", '{"agent":"auto"}', None, 1.0, key),
            )
        execute("COMMIT")


async def write_to_database(
    connection: asyncpg.Connection, key: int, records: list[Record]
) -> None:
    """One append, with the statements of the program before derived rows."""
    last = records[-1]
    async with connection.transaction():
        position = await connection.fetchval("SELECT position FROM log FOR UPDATE")
        assert position == records[0].position - 1
        await connection.execute(
            """
            INSERT INTO summaries (key, session, task, instance, labels, origin, state, events, version,
                rounds, acted, utility, evaluated, opened, last, position, salt)
            VALUES ($1, $2, 'travel', '7', '{"agent":"auto"}', NULL, 'open', $3, $3, 1, 0, NULL, false,
                1.0, $4, $5, NULL)
            ON CONFLICT (key) DO UPDATE SET
                task = excluded.task, instance = excluded.instance, labels = excluded.labels,
                origin = excluded.origin, state = excluded.state, events = excluded.events,
                version = excluded.version, rounds = excluded.rounds, acted = excluded.acted,
                utility = excluded.utility, evaluated = excluded.evaluated,
                opened = excluded.opened, last = excluded.last, position = excluded.position""",
            key, last.session, last.version, last.time, last.position,
        )  # fmt: skip
        if records[0].version == 1:
            await connection.execute(
                "INSERT INTO streams (key, session, stream) VALUES ($1, $1, 'trace')", key
            )
        names = "position stream version kind schema time actor role cause seen id body crc".split()
        await connection.copy_records_to_table(
            "records",
            schema_name=await connection.fetchval("SELECT current_schema()"),
            columns=names,
            records=[
                (
                    r.position,
                    key,
                    r.version,
                    r.kind,
                    r.schema,
                    r.time,
                    r.actor,
                    r.role,
                    r.cause,
                    r.seen,
                )
                + (r.caller_id, r.body, checksum_of(r))
                for r in records
            ],
        )
        await connection.execute("UPDATE log SET position = $1", last.position)
        await connection.execute(f'NOTIFY "{await connection.fetchval("SELECT current_schema()")}"')


async def both_write(log: Store, write: object) -> None:
    """Turns of the older and of this program, in one session and in two."""
    assert callable(write)
    await write(1, records_from(1, "theirs", 1, 0, 1))
    [listed] = await collect(log.sessions())
    assert (listed.task, listed.group, listed.version) == ("travel", {"agent": "auto"}, 2)
    row = Derived(session="theirs", kind="fold/1", version=1, position=2, payload=b"2")
    assert await log.keep_derived([row]) == 1
    async with log.subscribe() as subscription:
        with pytest.raises(VersionConflict):
            await appended(log, "theirs", 1, expected_version=1)
        await appended(log, "theirs", 1, expected_version=2)
        ours = Draft(OPENED, "engine", "environment", 1.0)
        await log.append("ours", [ours, Draft(MessageSent(text="hi"), "ann", "human", 1.0)])
        await write(1, records_from(6, "theirs", 4, 1))
        followed = [await anext(subscription) for _ in range(6)]
    assert [record.position for record in followed] == [1, 2, 3, 4, 5, 6]
    theirs, ours_listed = await collect(log.sessions())
    assert (theirs.events, theirs.version, theirs.position) == (4, 4, 6)
    assert (ours_listed.task, ours_listed.group) == ("travel", {"agent": "auto"})
    assert await collect(log.derived("fold/1", 1)) == [row]  # stale, as its position says
    await appended(log, "theirs", 1, expected_version=4)
    assert (await log.verify()).problems == ()


async def test_a_file_that_an_older_program_writes_too(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    async def write(key: int, records: list[Record]) -> None:
        await anyio.to_thread.run_sync(write_to_file, path, key, 1, records)

    async with open_log(str(path)) as log:
        await both_write(log, write)


@pytest.mark.slow
async def test_a_database_that_an_older_program_writes_too(postgres: PostgresServer) -> None:
    url = postgres.url(partition="100")
    async with open_log(url) as log, shell(url) as older:

        async def write(key: int, records: list[Record]) -> None:
            await write_to_database(older, key, records)

        await both_write(log, write)


@pytest.mark.slow
async def test_an_older_program_reads_what_this_one_wrote_to_a_database(
    postgres: PostgresServer,
) -> None:
    """Its columns are there, and each of them has the value that it expects."""
    url = postgres.url(partition="100")
    async with open_log(url) as log, shell(url) as older:
        await log.append("ours", [Draft(OPENED, "engine", "environment", 1.0)])
        row = await older.fetchrow(
            "SELECT key, session, task, instance, labels, state, events, version, rounds, utility, "
            "evaluated, opened, last, position FROM summaries WHERE session = 'ours'"
        )
        assert row is not None
        key, *rest = row
        assert (key, rest[:7]) == (1, ["ours", "travel", "7", '{"agent":"auto"}', "open", 1, 1])
        assert (type(rest[7]), type(rest[9])) == (int, bool)
        assert rest[10:] == [1.0, 1.0, 1]
