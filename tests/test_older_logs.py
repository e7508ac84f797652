"""Logs that earlier versions wrote open, list, report and fork, and programs can continue them.

``older/`` holds one log as the last program before session rows left it: as a SQLite file with a hash
chain, as JSON Lines and as a dump of PostgreSQL, with what that program printed about it; only its minutes
are by definitions of version 4, and its hazard by those of version 5.
These files stay as they are; ``older/make.py`` says how they were made.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import asyncpg
import duolog
import pytest
from duolog.cli import main
from duolog.engine.log.exchange.jsonl_import import import_jsonl
from duolog.engine.log.open import open_log
from duolog.engine.log.postgres.settings import parse
from duolog.testing.postgres_server import PostgresServer

OLDER = Path(__file__).parent / "older"
RUN = ("--agents", "one-stage,adaptive", "--users", "proactive", "--max-rounds", "4", "--seed", "3")


def unpacked(name: str) -> bytes:
    return gzip.decompress((OLDER / f"{name}.gz").read_bytes())


def a_file(directory: Path) -> str:
    path = directory / "recorded.db"
    path.write_bytes(unpacked("recorded.db"))
    return str(path)


def a_file_of_layout_1(directory: Path) -> str:
    path = a_file(directory)
    with closing(sqlite3.connect(path)) as connection:
        for table in ("events", "checkpoints"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN crc")
        connection.execute("DROP TABLE identity")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    return path


def json_lines(directory: Path) -> str:
    path = directory / "imported.db"
    (directory / "recorded.jsonl").write_bytes(unpacked("recorded.jsonl"))

    async def take() -> None:
        async with open_log(str(path)) as log:
            assert (await import_jsonl(log, directory / "recorded.jsonl")).problems == ()

    asyncio.run(take())
    return str(path)


def a_database(url: str, before: str = "") -> str:
    """Restores the dump into a new schema."""
    settings = parse(url)

    async def restore() -> None:
        connection = await asyncpg.connect(settings.dsn)
        dump = unpacked("recorded-postgres.sql").decode()
        await connection.execute(re.sub(r"\bduolog\b", settings.schema, dump))
        await connection.execute(f"SET search_path = {settings.schema}; {before}")
        await connection.close()

    asyncio.run(restore())
    return url


@pytest.fixture(
    params=[
        a_file,
        a_file_of_layout_1,
        json_lines,
        pytest.param("", id="a_database", marks=pytest.mark.slow),
        pytest.param(
            "DROP TABLE leases; UPDATE log SET layout = 1",
            id="a_database_of_layout_1",
            marks=pytest.mark.slow,
        ),
    ]
)
def log(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if isinstance(request.param, str):
        server: PostgresServer = request.getfixturevalue("postgres")
        return a_database(server.url(), request.param)
    make: Callable[[Path], str] = request.param
    return make(tmp_path)


def printed(capsys: pytest.CaptureFixture[str], *command: str) -> object:
    """The JSON that a command prints."""
    capsys.readouterr()
    assert main([*command, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def same(found: object, expected: object) -> bool:
    """Whether JSON is equal, numbers to 1e-12."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            same(found.get(name), value) for name, value in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(found) == len(expected)
            and all(map(same, found, expected))
        )
    if isinstance(expected, float):
        return isinstance(found, (int, float)) and found == pytest.approx(expected, abs=1e-12)
    return found == expected


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("sessions", ("sessions",)),
        ("report", ("report", "--bootstrap", "50")),
        ("forks", ("report", "--forks")),
    ],
)
def test_it_is_listed_and_reported_as_before(
    log: str, capsys: pytest.CaptureFixture[str], name: str, command: tuple[str, ...]
) -> None:
    found = printed(capsys, command[0], log, *command[1:])
    expected = json.loads((OLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert same(found, expected)


def test_nothing_is_wrong_with_it(log: str) -> None:
    async def look() -> None:
        async with open_log(log, create=False) as opened:
            verified = await opened.verify()
            assert (verified.problems, verified.forgotten) == ((), 1)
            itself = log.endswith("recorded.db")  # and no copy, to which its consumers are nothing
            assert verified.chained == itself
            assert await opened.checkpoint("copier", "1") == (9 if itself else 0)

    asyncio.run(look())


def test_sessions_are_forked_and_go_on(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    first = "finance-0-one-stage"
    fork = ("fork", log, first, "--at-round", "2", "--agent", "adaptive")
    made = printed(capsys, *fork, "--from-view")
    assert isinstance(made, dict)
    assert made["fork"]["reason"] == "limit"
    assert main([*fork]) == 2
    assert "engine 1 played it" in capsys.readouterr().err
    assert main(["run", "finance", *RUN, "--sessions", "2", "--log", log]) != 0
    assert "engine 1 played it" in capsys.readouterr().err
    listed = printed(capsys, "sessions", log)
    assert isinstance(listed, list)
    states = {line["session"]: line["state"] for line in listed}
    assert len(states) == 8  # nothing was played twice, and the interrupted session is as it was
    played = sorted(state for name, state in states.items() if "finance" in name)
    assert played == ["limit"] * (len(played) - 1) + ["open"]

    async def go_on() -> None:
        async with duolog.open(log, create=False) as opened:
            conversation = await opened.session("conversation")
            await conversation.human.says("It has come.")
            await conversation.close("finished")
            await opened.settle()
            assert (await opened.summary("conversation")).state == "finished"
            await opened.forget("conversation")
            assert (await opened.verify()).problems == ()

    asyncio.run(go_on())
