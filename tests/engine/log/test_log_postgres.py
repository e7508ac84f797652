"""The log on PostgreSQL: behaviour beyond the contract of all stores."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import anyio
import asyncpg
import pytest
from duolog.engine.errors import (
    InvalidInput,
    LogNotFound,
    LogUnavailable,
    NewerLog,
    NotALog,
    SessionClosedError,
)
from duolog.engine.events import Forgotten
from duolog.engine.log.contract import Advance
from duolog.engine.log.exchange.jsonl_export import export_jsonl
from duolog.engine.log.leases import Leasing
from duolog.engine.log.open import open_log
from duolog.engine.log.postgres.settings import parse
from duolog.engine.records import Record
from duolog.testing.postgres_server import PostgresServer
from duolog.testing.tools import appended, collect, message
from postgres_shell import shell
from scripted_logs import MOVES, interleave, script_of

pytestmark = pytest.mark.slow


# --- where it is -----------------------------------------------------------------------------------


def test_a_url_says_where_and_how_and_hides_its_password() -> None:
    settings = parse(
        "postgresql://ann:secret@db.example:5433/work?schema=team_a&durability=normal&chain=yes"
        "&pooler=yes&sslmode=require"
    )
    assert settings.dsn == "postgresql://ann:secret@db.example:5433/work?sslmode=require"
    assert settings.url == "postgresql://ann@db.example:5433/work?schema=team_a"
    assert (settings.schema, settings.durability) == ("team_a", "normal")
    assert settings.chain
    assert settings.pooler


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("schema=Robert'); DROP", "schema is named with"),
        ("durability=some", "durability must be full or normal, not 'some'"),
        ("chain=1", "chain must be yes or no"),
        ("partition=5", "a partition must hold at least 100 records"),
    ],
)
def test_options_that_cannot_be_are_refused(option: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        parse(f"postgresql://h/db?{option}")


async def test_what_is_no_log_is_left_alone(postgres: PostgresServer) -> None:
    url = postgres.url()
    with pytest.raises(LogNotFound, match="no log at"):
        async with open_log(url, create=False):
            pass
    schema = parse(url).schema
    async with shell(url) as connection:
        await connection.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.theirs (a int)")
    with pytest.raises(NotALog, match="holds tables and is not a Duolog log"):
        async with open_log(url):
            pass


async def test_one_that_several_open_first_at_once_is_made_once(postgres: PostgresServer) -> None:
    url = postgres.url()

    async def write(name: str) -> None:
        async with open_log(url) as log:
            await log.append(name, [message(name)])

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(write, f"s{number}")
    async with open_log(url, create=False) as log:
        assert len([summary async for summary in log.sessions()]) == 6


async def test_a_server_that_is_not_there_is_one_clear_error() -> None:
    with pytest.raises(LogUnavailable, match="the server cannot be reached") as error:
        async with open_log("postgresql://ann:secret@127.0.0.1:1/db"):
            pass
    assert "secret" not in str(error.value)


async def test_a_newer_layout_is_read_and_not_written(postgres: PostgresServer) -> None:
    url = postgres.url()
    async with open_log(url) as log:
        await appended(log, "s", 2)
    async with shell(url) as connection:
        await connection.execute("UPDATE log SET layout = 99")
    async with open_log(url) as log:
        assert len(await collect(log.read("s"))) == 2
        with pytest.raises(NewerLog):
            await appended(log, "s", 1)


async def test_an_older_layout_is_changed_by_its_owner_and_read_by_others(
    postgres: PostgresServer,
) -> None:
    url = postgres.url()
    schema = parse(url).schema
    async with open_log(url) as log:
        await appended(log, "s", 2)
    async with shell(url) as owner:
        await owner.execute(
            f"DROP TABLE leases; UPDATE log SET layout = 1; CREATE ROLE other_{schema} LOGIN; "
            f"GRANT USAGE ON SCHEMA {schema} TO other_{schema}; "
            f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO other_{schema}"
        )
    async with open_log(url.replace("duolog@", f"other_{schema}@")) as log:
        assert len(await collect(log.read("s"))) == 2
        with pytest.raises(LogUnavailable, match=r"layout 1, .* open it once as the owner"):
            await appended(log, "s", 1)
    async with open_log(url) as log:
        [record] = await appended(log, "s", 1, expected_version=2)
        assert record.version == 3
        assert isinstance(log, Leasing)
        assert await log.leases().claim(["s"], "me", 30) == {"s"}
    async with shell(url) as owner:
        assert await owner.fetchval("SELECT layout FROM log") == 2


NEWER = """
import sys
import anyio
from duolog.engine.log.open import open_log
from duolog.engine.log.postgres import connection, tables
from duolog.testing.tools import appended

tables._MIGRATIONS = {tables.LAYOUT: "ALTER TABLE {schema}.streams ADD extra text"}
tables.LAYOUT = connection.LAYOUT = tables.LAYOUT + 1

async def main():
    async with open_log(sys.argv[1]) as log:
        await appended(log, "s0", 1)

anyio.run(main)
"""
"""A program of a newer Duolog, whose tables have one column more."""


async def test_a_newer_program_takes_the_log_over_from_writers_and_nothing_is_lost(
    postgres: PostgresServer,
) -> None:
    url = postgres.url()
    acknowledged: list[Record] = []
    async with open_log(url) as log, log.subscribe() as reader:

        async def write(name: str) -> None:
            while True:
                try:
                    acknowledged.extend(await appended(log, name, 1))
                except NewerLog as error:
                    assert "a newer Duolog has taken over this log" in str(error)  # noqa: PT017
                    return

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(write, f"s{number}")
            seen = [await anext(reader) for _ in range(20)]
            await anyio.run_process([sys.executable, "-P", "-c", NEWER, url])
        for change in (log.forget("s0"), log.vacuum()):
            with pytest.raises(NewerLog, match="a newer Duolog has taken over this log"):
                await change
        while len(seen) <= len(acknowledged):
            seen.append(await anext(reader))
        assert seen[:-1] == acknowledged
        assert await collect(log.read_all()) == seen
        assert not (await log.verify()).problems


# --- what stays ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET actor = 'eve' WHERE position = 1",
        "UPDATE records SET body = NULL WHERE position = 1",
        "DELETE FROM records WHERE position = 1",
        "TRUNCATE records",
        "TRUNCATE records_1",
        "DELETE FROM chain",
    ],
)
async def test_the_tables_refuse_what_an_append_only_log_does_not_do(
    postgres: PostgresServer, statement: str
) -> None:
    url = postgres.url(chain="yes")
    async with open_log(url) as log:
        await appended(log, "s", 2)
        async with shell(url) as connection:
            with pytest.raises(asyncpg.RestrictViolationError, match="append-only"):
                await connection.execute(statement)
        assert not (await log.verify()).problems


async def test_verify_finds_what_was_changed_behind_its_back(postgres: PostgresServer) -> None:
    url = postgres.url(chain="yes")
    async with open_log(url) as log:
        await appended(log, "s", 3)
        async with shell(url) as connection:
            await connection.execute(
                "ALTER TABLE records DISABLE TRIGGER USER; "
                "ALTER TABLE records_1 DISABLE TRIGGER USER; "
                "UPDATE records SET actor = 'eve' WHERE position = 2; "
                "UPDATE summaries SET events = 7"
            )
        said = " ".join(problem.what for problem in (await log.verify()).problems)
    assert "its checksum differs" in said
    assert "the hash chain is broken" in said
    assert "the list says events is 7" in said


async def test_erased_bodies_are_gone_and_the_rest_still_verifies(postgres: PostgresServer) -> None:
    url = postgres.url(chain="yes", partition="100")
    async with open_log(url) as log:
        await log.append("s", [message("a secret wish")] * 150)
        await appended(log, "other", 3)
        result = await log.forget("s")
        assert result.sessions == ("s",)
        assert not result.compacted
        assert "until the log is vacuumed" in result.held_up
        assert all(isinstance(record.event, Forgotten) for record in await collect(log.read("s")))
        assert (await log.verify()).uncompacted == 1
        assert (await log.vacuum()).finished
        checked = await log.verify()
        assert (checked.uncompacted, checked.problems) == (0, ())
        with pytest.raises(SessionClosedError):
            await appended(log, "s", 1)
    async with shell(url) as connection:
        assert (
            await connection.fetchval("SELECT count(*) FROM records WHERE body LIKE '%wish%'") == 0
        )


async def test_records_fill_partition_after_partition(postgres: PostgresServer) -> None:
    url = postgres.url(partition="100")
    async with open_log(url) as log:
        for _ in range(5):
            await log.append("s", [message("x")] * 70)
        assert len(await collect(log.read_all(session="s", after_position=99))) == 251
    async with shell(url) as connection:
        partitions = await connection.fetch(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'records%' "
            "AND relnamespace = current_schema()::regnamespace ORDER BY oid"
        )
    names = [name for (name,) in partitions]
    assert names == ["records_1", "records_101", "records_201", "records_301"]


async def test_a_partition_is_attached_before_anything_is_in_it(postgres: PostgresServer) -> None:
    """In one transaction, readers could see that there are records before they see the partition."""
    url = postgres.url(partition="100")
    async with open_log(url) as log:
        await appended(log, "s", 99)
        await appended(log, "s", 1)
        await log.append("t", [message("x")] * 230)  # needs two at once
        assert len(await collect(log.read_all())) == 330
    async with shell(url) as connection:
        for name in ("records_101", "records_201", "records_301"):
            attached = await connection.fetchval(
                "SELECT xmin::text::bigint FROM pg_inherits WHERE inhrelid = $1::text::regclass",
                name,
            )
            written = await connection.fetchval(f"SELECT min(xmin::text::bigint) FROM {name}")
            assert attached < written


async def test_old_partitions_are_detached_at_once_and_attached_again(
    postgres: PostgresServer,
) -> None:
    url = postgres.url(partition="100", chain="yes")
    async with open_log(url) as log, shell(url) as owner:
        await appended(log, "old", 90)
        await appended(log, "s", 30)
        await owner.execute("ALTER TABLE records DETACH PARTITION records_1")
    async with open_log(url) as log, shell(url) as owner:
        assert [r.position for r in await collect(log.read_all(after_position=100))] == [
            *range(101, 121)
        ]
        for reading in (log.read_all(), log.read_all(after_position=50), log.read("s")):
            with pytest.raises(NotALog, match="before position 101 were detached"):
                await collect(reading)
        with pytest.raises(NotALog, match="records of session 'old' were detached"):
            await appended(log, "old", 1)
        [record] = await appended(log, "s", 1, expected_version=30)
        assert record.position == 121
        [problem] = (await log.verify()).problems
        assert "before position 101 were detached" in problem.what
        await owner.execute(
            "ALTER TABLE records ATTACH PARTITION records_1 FOR VALUES FROM (1) TO (101)"
        )
        assert len(await collect(log.read_all())) == 121
        assert not (await log.verify()).problems


async def test_a_young_log_is_read_once_from_end_to_end(postgres: PostgresServer) -> None:
    """Whatever a server without statistics thinks of it."""
    url = postgres.url()
    count = 3000
    async with open_log(url) as log:
        await log.append("s", [message("x" * 700)] * count)
        assert len(await collect(log.read_all())) == count
    query = (
        "SELECT coalesce(seq_tup_read + idx_tup_fetch, 0) FROM pg_stat_user_tables "
        "WHERE schemaname = current_schema() AND relname = 'records_1'"
    )
    async with shell(url) as connection:
        with anyio.fail_after(120):  # the server counts when the log's connections have ended
            while (read := await connection.fetchval(query)) < count:
                await anyio.lowlevel.checkpoint()
    assert read < 2 * count


async def test_a_value_that_the_server_refuses_fails_alone(postgres: PostgresServer) -> None:
    async with open_log(postgres.url()) as log:
        outcomes: dict[str, str] = {}

        async def add(name: str) -> None:
            try:
                await log.append(name, [message("x")])
                outcomes[name] = "written"
            except InvalidInput as error:
                outcomes[name] = str(error)

        async with anyio.create_task_group() as tasks:
            for name in ("a", "b\0c", "d"):
                tasks.start_soon(add, name)
        assert outcomes["a"] == outcomes["d"] == "written"
        assert "cannot be stored" in outcomes["b\0c"]
        assert [s.session async for s in log.sessions()] == ["a", "d"]


async def test_a_log_moves_to_postgresql_and_back_byte_for_byte(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("moved")
    async with open_log(f"sqlite:///{path}/a.db") as source, open_log(postgres.url()) as log:
        await interleave(source, [script_of(MOVES, "a"), script_of(MOVES[::-1], "b")], (0, 1, 1, 0))
        held = await collect(source.read_all())
        assert all(isinstance(taken, Record) for taken in await log.restore(held))
        await export_jsonl(source, path / "a.jsonl")
        await export_jsonl(log, path / "b.jsonl")
        assert not (await log.verify()).problems
    assert (path / "a.jsonl").read_bytes() == (path / "b.jsonl").read_bytes()


# --- who may do what ---------------------------------------------------------------------------------


async def test_the_documented_grants_let_a_writer_write_and_a_reader_read_only(
    postgres: PostgresServer, root: Path
) -> None:
    url = postgres.url(partition="100", chain="yes")
    schema = parse(url).schema
    names = {role: f"{role}_{schema}" for role in ("writer", "reader")}
    page = (root / "docs" / "postgresql.md").read_text(encoding="utf-8")
    grants = [line.strip() for line in page.splitlines() if line.strip().startswith("GRANT ")]
    assert len(grants) == 6
    async with open_log(url), shell(url) as owner:
        for name in names.values():
            await owner.execute(f"CREATE ROLE {name} LOGIN")
        for grant in grants:
            for role, name in names.items():
                grant = grant.replace(role, name)
            await owner.execute(re.sub(r"\bduolog\b", schema, grant))

    def as_role(role: str) -> str:
        return url.replace("duolog@", f"{names[role]}@")

    async with open_log(as_role("writer"), create=False) as log:
        for number in range(3):
            await log.append("s", [message("x")] * 60, expected_version=60 * number)
        advance = Advance(consumer="c", version="1", expected=0, position=9)
        await log.append("s", [], checkpoint=advance)
        assert not (await log.vacuum()).finished
        assert isinstance(log, Leasing)
        assert await log.leases().claim(["a", "b"], "ann", 60.0) == {"a", "b"}
        await log.leases().release(["b"], "ann")
    async with open_log(as_role("reader"), create=False) as log:
        assert len(await collect(log.read_all())) == 180
        assert await log.checkpoint("c", "1") == 9
        assert not (await log.verify()).problems
        assert isinstance(log, Leasing)
        assert await log.leases().holders() == {"a": "ann"}
        with pytest.raises(LogUnavailable, match="the role may not do this"):
            await appended(log, "s", 1)


# --- several machines ------------------------------------------------------------------------------

_WRITER = """
import sys, anyio, duolog
from duolog.engine.log.open import open_log
from duolog.testing.tools import message

async def main(url, name, count):
    async with open_log(url) as log:
        async def write(session):
            for number in range(count):
                await log.append(session, [message(f"{number}")] * 2, expected_version=2 * number)
        async with anyio.create_task_group() as tasks:
            for session in range(4):
                tasks.start_soon(write, f"{name}-{session}")

anyio.run(main, sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


async def test_processes_write_and_a_reader_sees_all_once_in_order(
    postgres: PostgresServer,
) -> None:
    url = postgres.url()
    writers, each = 3, 40
    total = writers * 4 * each * 2
    seen: list[Record] = []
    async with open_log(url) as log, anyio.create_task_group() as tasks:

        async def follow() -> None:
            async with log.subscribe() as subscription:
                async for record in subscription:
                    seen.append(record)
                    if len(seen) == total:
                        return

        tasks.start_soon(follow)
        for number in range(writers):
            command = [sys.executable, "-P", "-c", _WRITER, url, f"w{number}", str(each)]
            tasks.start_soon(anyio.run_process, command)
    assert [record.position for record in seen] == list(range(1, total + 1))
    assert {r.session for r in seen} == {f"w{n}-{m}" for n in range(writers) for m in range(4)}


async def test_behind_a_pooler_what_others_write_is_seen_by_looking(
    postgres: PostgresServer,
) -> None:
    url = postgres.url()
    async with open_log(url) as log, open_log(f"{url}&pooler=yes") as other:
        async with other.subscribe() as subscription:
            await appended(log, "s", 3)
            with anyio.fail_after(120):
                assert [(await anext(subscription)).position for _ in range(3)] == [1, 2, 3]
        taken = await appended(other, "s", 2, expected_version=3)
    assert [record.version for record in taken] == [4, 5]


def test_a_missing_client_is_named_with_its_extra() -> None:
    program = (
        "import sys; sys.modules['asyncpg'] = None\n"
        "from duolog.engine.log.open import open_log\n"
        "try: open_log('postgresql://h/db')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    found = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith("MissingExtra a log on PostgreSQL needs an extra: ")
