"""What only the SQLite log promises: group commit, wholeness of the file, no way to change it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import aiosqlite
import anyio
import pytest
from duolog.engine.errors import (
    DuplicateConflict,
    InvalidInput,
    LogClosed,
    LogUnavailable,
    NotALog,
    VersionConflict,
)
from duolog.engine.events import MessageSent, Role
from duolog.engine.log.contract import Advance
from duolog.engine.log.open import open_log
from duolog.engine.log.sqlite import thread, writer
from duolog.engine.log.sqlite.file import parse
from duolog.engine.log.sqlite.log import SqliteFile, sqlite_log
from duolog.engine.log.stored import StoredLog
from duolog.engine.records import TRACE, Draft
from duolog.testing import by
from held_writer import gathered


def said(text: str, *, actor: str = "ann", role: Role = "human") -> Draft:
    return Draft(MessageSent(text=text), actor, role, 1.0)


def log_at(path: Path) -> StoredLog[SqliteFile]:
    return sqlite_log(parse(f"sqlite:///{path}"))


async def test_what_gathers_is_committed_as_one_group(tmp_path: Path) -> None:
    async with log_at(tmp_path / "a.db") as log:
        async with gathered(log, 100), anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(log.append, f"s{number}", [said("x")])
        statistics = log.statistics()
        assert (statistics.events, statistics.groups) == (100, 1)


async def test_many_ids_are_looked_up_in_the_file(tmp_path: Path) -> None:
    drafts = [Draft(MessageSent(text=str(n)), "ann", "human", 1.0, id=f"id{n}") for n in range(150)]
    async with log_at(tmp_path / "a.db") as log:
        first = await log.append("s", drafts)
        await log.append("other", drafts[:1])
    async with log_at(tmp_path / "a.db") as log:
        assert await log.append("s", drafts) == first
        assert await log.append("s", drafts[149:]) == first[149:]
        new = Draft(MessageSent(text="new"), "ann", "human", 1.0, id="new")
        with pytest.raises(DuplicateConflict, match="not all events of this append are there"):
            await log.append("s", [*drafts[:70], new])
        [record] = await log.append("s", [new])
        assert record.version == 151


async def test_a_slow_commit_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with log_at(tmp_path / "a.db") as log:
        await log.append("s", [said("x")])
        assert "slow" not in caplog.text
        monkeypatch.setattr(writer, "_SLOW", -1.0)
        await log.append("s", [said("y")])
    assert "event='a commit was slow'" in caplog.text
    assert "a.db' seconds=" in caplog.text


async def test_a_conflict_fails_alone_in_its_group(tmp_path: Path) -> None:
    async with log_at(tmp_path / "a.db") as log:
        outcomes: list[object] = []

        async def append(session: str, expected: int | None) -> None:
            try:
                outcomes.append(
                    await log.append(session, [said(session)], expected_version=expected)
                )
            except VersionConflict as error:
                outcomes.append(error)

        async with gathered(log, 4), anyio.create_task_group() as tasks:
            for session, expected in (("a", None), ("b", 7), ("c", 0), ("b", 0)):
                tasks.start_soon(append, session, expected)
        assert log.statistics().groups == 1
        assert [isinstance(outcome, VersionConflict) for outcome in outcomes] == [
            False,
            True,
            False,
            False,
        ]
        assert [record.session async for record in log.read_all()] == ["a", "c", "b"]


async def test_a_value_that_sqlite_refuses_fails_alone_in_its_group(tmp_path: Path) -> None:
    bad = [said("x", actor="\ud800"), said("y")]
    huge = [Draft(MessageSent(text="x"), "ann", "human", 1.0, seen=2**70)]
    async with log_at(tmp_path / "a.db") as log:
        refused: list[str] = []

        async def append(session: str, drafts: list[Draft]) -> None:
            try:
                await log.append(session, drafts)
            except InvalidInput:
                refused.append(session)

        async with anyio.create_task_group() as tasks:
            for session, drafts in (
                ("a", [said("x")]),
                ("bad", bad),
                ("b", [said("x")]),
                ("huge", huge),
                ("c", [said("x"), said("y")]),
            ):
                tasks.start_soon(append, session, drafts)
        assert sorted(refused) == ["bad", "huge"]
        assert [record.session async for record in log.read_all()] == ["a", "b", "c", "c"]
        assert [record.position async for record in log.read_all()] == [1, 2, 3, 4]
        assert (await log.verify()).problems == ()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM events",
        "DELETE FROM events WHERE position = 1",
        "UPDATE events SET body = X'7B7D'",
        "UPDATE events SET body = NULL",
        "UPDATE events SET time = 5",
        "REPLACE INTO events SELECT * FROM events WHERE position = 1",
    ],
)
async def test_events_cannot_be_changed_or_deleted(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "a.db"
    async with log_at(path) as log:
        before = await log.append("s", [said("x"), said("y")])
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA recursive_triggers = ON")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()
    async with log_at(path) as log:
        assert [record async for record in log.read_all()] == before


async def test_a_person_can_read_the_file_with_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with log_at(path) as log:
        await log.append("s", [said("hello")])
    connection = sqlite3.connect(path)
    [row] = connection.execute("SELECT session, stream, version, actor, kind, body FROM log")
    connection.close()
    assert row == ("s", "trace", 1, "ann", "MessageSent", '{"kind":"MessageSent","text":"hello"}')


async def test_a_reopened_log_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with log_at(path) as log:
        first = await log.append("s", [said("x")])
        move = Advance(consumer="c", version="1", expected=0, position=1)
        await log.append("s", [], checkpoint=move)
    async with log_at(path) as log:
        assert await log.checkpoint("c", "1") == 1
        second = await log.append("s", [said("y")], expected_version=1)
        assert [record async for record in log.read_all()] == first + second
        assert second[0].position == 2


@pytest.mark.parametrize("followed", [0, 1, 20])
async def test_nothing_is_left_beside_a_closed_log(tmp_path: Path, followed: int) -> None:
    async with log_at(tmp_path / "a.db") as log:
        await log.append("s", [said("x")])
        if followed:
            async with log.subscribe():
                for _ in range(followed):
                    await anyio.lowlevel.checkpoint()
    assert os.listdir(tmp_path) == ["a.db"]


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
async def test_durability_is_what_the_url_says(tmp_path: Path, durability: str, level: int) -> None:
    log = sqlite_log(parse(f"sqlite:///{tmp_path}/a.db?durability={durability}"))
    async with log:
        connection = log._backend.committer._connection

        def pragma() -> tuple[object, object]:
            (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
            (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
            return synchronous, journal

        assert await log._backend.writer.call(pragma) == (level, "wal")


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///a.db?durability=none",
        "sqlite:///a.db?chain=maybe",
        "sqlite:///a.db?nonsense=1",
        "mysql://host/db",
        "",
    ],
)
def test_a_bad_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(InvalidInput):
        open_log(url)


@pytest.mark.parametrize("name", ["with space.db", "per%cent.db", "qu?estion.db", "ünïcode#.db"])
async def test_any_path_will_do(tmp_path: Path, name: str) -> None:
    async with open_log(str(tmp_path / name)) as log:
        await log.append("s", [said("x")])
    assert (tmp_path / name).is_file()


@pytest.mark.parametrize("name", ["with space.db", "per%cent.db", "qu?estion.db", "a#b.db"])
async def test_a_logs_url_leads_back_to_it(tmp_path: Path, name: str) -> None:
    async with open_log(str(tmp_path / name)) as log:
        await log.append("s", [said("x")])
        async with open_log(log.url, create=False) as again:
            assert (await again.summary("s")).events == 1


async def test_a_url_may_be_quoted(tmp_path: Path) -> None:
    async with open_log(f"sqlite:///{tmp_path}/a%3Fb.db") as log:
        await log.append("s", [said("x")])
    assert (tmp_path / "a?b.db").is_file()


async def test_the_queue_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duolog.engine.log.append_writer._APPENDS", 10)
    waiting: list[int] = []
    async with log_at(tmp_path / "a.db") as log:

        async def write(number: int) -> None:
            for _ in range(5):
                await log.append(f"s{number}", [said("x")])
                waiting.append(log.statistics().waiting)

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(write, number)
        assert max(waiting) <= 10
        assert log.statistics().events == 500


async def test_who_waits_for_room_is_told_of_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duolog.engine.log.append_writer._APPENDS", 1)
    outcomes: list[str] = []
    async with log_at(tmp_path / "a.db") as log, anyio.create_task_group() as tasks:

        async def write(number: int) -> None:
            session, drafts = f"s{number}", [said("x")]
            try:
                if number % 2:
                    staged = log.stage(session, drafts, stream=TRACE, expected_version=0)
                    log.write_staged([staged])
                    await staged.wait()
                else:
                    await log.append(session, drafts)
                outcomes.append("there")
            except LogClosed:
                outcomes.append("closed")

        for number in range(5):
            tasks.start_soon(write, number)
        await anyio.lowlevel.checkpoint()
        await log.aclose()
    async with log_at(tmp_path / "a.db") as log:
        assert outcomes.count("there") == len([r async for r in log.read_all()])
    assert len(outcomes) == 5


async def test_closing_commits_what_waits(tmp_path: Path) -> None:
    results: list[int] = []
    async with log_at(tmp_path / "a.db") as log, anyio.create_task_group() as tasks:

        async def write(number: int) -> None:
            results.append((await log.append(f"s{number}", [said("x")]))[0].position)

        for number in range(20):
            tasks.start_soon(write, number)
        await anyio.lowlevel.checkpoint()
        await log.aclose()
    assert sorted(results) == list(range(1, 21))


async def test_the_bodys_own_exception_comes_out_as_it_is(tmp_path: Path) -> None:
    async def fail() -> None:
        async with log_at(tmp_path / "a.db") as log:
            await log.append("s", [said("x")])
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await fail()


async def test_a_cancelled_scope_around_a_log_closes_it(tmp_path: Path) -> None:
    log = log_at(tmp_path / "a.db")
    with anyio.CancelScope() as scope:
        async with log, log.subscribe() as subscription:
            await log.append("s", [said("x")])
            await anext(subscription)
            scope.cancel()
            await anext(subscription)
    assert scope.cancelled_caught
    with pytest.raises(LogClosed):
        await log.append("s", [said("late")])
    async with log_at(tmp_path / "a.db") as again:
        assert (await again.summary("s")).events == 1


async def test_closing_early_leaves_the_rest_of_the_body_alone(tmp_path: Path) -> None:
    async with log_at(tmp_path / "a.db") as log:
        async with log.subscribe():
            await log.append("s", [said("x")])
            await log.aclose()
        await anyio.lowlevel.checkpoint()  # would be cancelled if the log's tasks took it along


async def test_a_writer_task_that_is_cancelled_by_force_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    outcomes: list[object] = []

    async def write(log: StoredLog[SqliteFile], number: int) -> None:
        try:
            outcomes.append(await log.append(f"s{number}", [said("x")]))
        except LogClosed as error:
            outcomes.append(error)

    async with log_at(path) as log:
        [writer] = [t for t in asyncio.all_tasks() if t.get_name().startswith("writer of")]
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(write, log, number)
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            writer.cancel()
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(LogClosed):
            await log.append("s", [said("late")])
    acknowledged = [outcome for outcome in outcomes if isinstance(outcome, list)]
    assert len(outcomes) == 50
    async with log_at(path) as log:
        assert len([record async for record in log.read_all()]) == len(acknowledged)


UNCLOSED = """
import asyncio, gc, sys
from duolog.engine.log.open import open_log

async def main():
    log = open_log(sys.argv[1])
    await log.__aenter__()

loop = asyncio.new_event_loop()
loop.run_until_complete(main())
loop.close()
gc.collect()
print("done")
"""


@pytest.mark.slow
def test_a_log_that_nobody_closed_warns_and_does_not_hang(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", UNCLOSED, tmp_path / "a.db"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "was never closed" in done.stderr
    assert done.stdout == "done\n"


async def test_one_hop_runs_a_function_whole_in_the_connections_thread(tmp_path: Path) -> None:
    """The internals of aiosqlite that the engine uses exist, and behave as it assumes."""
    threads: list[str] = []

    def many(connection: sqlite3.Connection) -> list[int]:
        threads.append(threading.current_thread().name)
        return [connection.execute("SELECT ?", (n,)).fetchone()[0] for n in range(3)]

    made: list[sqlite3.Connection] = []

    def make() -> sqlite3.Connection:
        made.append(sqlite3.connect(tmp_path / "x.db"))
        return made[0]

    connection = await thread.connect(make)
    assert isinstance(connection, aiosqlite.Connection)
    assert connection._thread.daemon
    assert await thread.run_in_thread(connection, many, made[0]) == [0, 1, 2]
    assert threads != ["MainThread"]
    with pytest.raises(ZeroDivisionError):
        await thread.run_in_thread(connection, lambda: 1 / 0)
    await connection.close()
    with pytest.raises(ValueError, match="closed"):
        await thread.run_in_thread(connection, int)


async def test_a_full_disk_is_a_clear_error_and_harms_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    async def limit(log: StoredLog[SqliteFile], pages: int) -> None:
        connection = log._backend.committer._connection
        await log._backend.writer.call(connection.execute, f"PRAGMA max_page_count = {pages}")

    async with log_at(path) as log:
        await log.append("s", [said("x")])
        await limit(log, 40)

        async def fill() -> None:
            for _ in range(1000):
                await log.append("s", [said("x" * 2000)])

        with pytest.raises(LogUnavailable, match="disk is full; nothing was written"):
            await fill()
        there = (await log.summary("s")).version
        assert there > 1
        with pytest.raises(LogUnavailable):
            await log.append("t", [said("x" * 100_000)] * 3, expected_version=0)
        await limit(log, 1_000_000)
        [record] = await log.append("s", [said("room again")], expected_version=there)
        assert record.position == there + 1
        assert (await log.verify()).problems == ()


@pytest.mark.slow
def test_a_log_that_finds_no_room_for_its_tables_says_so(tmp_path: Path) -> None:
    script = (
        "import asyncio, resource, signal, sys\n"
        "from duolog.engine.log.open import open_log\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        "async def create():\n"
        "    async with open_log(sys.argv[1]): pass\n"
        "asyncio.run(create())\n"
    )
    command = [sys.executable, "-P", "-c", script, str(tmp_path / "a.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode
    [*_, last] = done.stderr.strip().splitlines()
    assert "LogUnavailable" in last
    assert "disk" in last
    assert "cannot rollback" not in done.stderr


async def test_an_error_nobody_foresaw_reaches_who_appends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No caller is left waiting, and the log continues."""
    async with log_at(tmp_path / "a.db") as log:
        with monkeypatch.context() as patch:

            def fail() -> None:
                raise ZeroDivisionError("a bug")

            patch.setattr(log._backend.committer, "_refresh", fail)
            with pytest.raises(ZeroDivisionError):
                await log.append("s", [said("x")])
        [record] = await log.append("s", [said("y")], expected_version=0)
        assert record.position == 1


@pytest.mark.parametrize("labels", ["[" * 100_000, "[]", '{"agent": 1}'])
async def test_labels_that_nobody_wrote_are_damage(tmp_path: Path, labels: str) -> None:
    path = tmp_path / "log.db"
    async with open_log(f"sqlite:///{path}") as log:
        await log.append("s", [by("human", MessageSent(text="Hi"))])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE sessions SET labels = ?", (labels,))
        connection.commit()
    async with open_log(f"sqlite:///{path}") as log:
        with pytest.raises(NotALog, match="the labels of a session are not what was written"):
            _ = [summary async for summary in log.sessions()]
