"""Several processes score a log as one does: to the bit, whatever it holds, and whatever goes wrong."""

from __future__ import annotations

import os
import random
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import msgspec
import pytest
from duolog.engine.errors import CodecError
from duolog.engine.events import Origin, SessionOpened, Unknown
from duolog.engine.log.contract import Store
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft
from duolog.scoring import parts
from duolog.scoring.live import score_sessions
from duolog.scoring.parts import Request, Shared, score_parts
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.points import Trajectory
from duolog.testing.postgres_server import PostgresServer
from scripted_logs import MOVES, interleave, script_of

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _small_logs_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "RECORDS", 1)


@asynccontextmanager
async def odd_log(url: str) -> AsyncIterator[Store]:
    """A log of interleaved sessions: closed, open, forgotten, without an opening, forks, foreign events."""
    chance = random.Random(3)
    scripts = [script_of(chance.choices(MOVES, k=20), f"s{number}") for number in range(8)]
    async with open_log(url) as log:
        await interleave(log, scripts, [chance.randrange(8) for _ in range(90)])
        await log.append("odd", [Draft(Unknown("Seen", 3, b'{"at":1}'), "x", "environment", 0.5)])
        opening = (await anext(log.read("s1"))).event
        assert isinstance(opening, SessionOpened)
        origin = Origin(session="s1", version=1)
        forked = msgspec.structs.replace(opening, forked_from=origin)
        await log.append("fork", [Draft(forked, "x", "environment", 0.0)])
        await log.forget("s2")
        yield log


async def plain(log: Store, options: Options | None = None) -> list[Trajectory]:
    return [item async for item in score_sessions(log, options, process=True)]


def bits(found: object) -> bytes:
    return msgspec.msgpack.encode(found)


@pytest.mark.parametrize(
    "options", [Options(), Options(rounds="human-turn", taus=(2,), judge="none")]
)
async def test_a_sqlite_log_is_scored_to_the_bit(tmp_path: Path, options: Options) -> None:
    url = f"sqlite:///{tmp_path / 'a%20log.db'}"
    async with odd_log(url) as log:
        found = await score_parts(log, options, process=True, shared=Shared(url=url, processes=3))
        assert found is not None
        assert bits(found) == bits(await plain(log, options))


async def test_a_log_on_postgres_is_scored_to_the_bit(postgres: PostgresServer) -> None:
    url = postgres.url()
    async with odd_log(url) as log:
        found = await score_parts(log, Options(), process=True, shared=Shared(url=url, processes=2))
        assert found is not None
        assert bits(found) == bits(await plain(log))


async def test_a_damaged_body_is_what_one_process_raises(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with odd_log(str(path)):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER events_stand")
        connection.execute(
            "UPDATE events SET body = x'7b' WHERE kind = 'MessageSent' AND body IS NOT NULL"
        )
        connection.commit()
    shared = Shared(url=str(path), processes=2)
    async with open_log(str(path)) as log:
        assert await score_parts(log, Options(), process=True, shared=shared) is None
        with pytest.raises(CodecError) as alone:
            await plain(log)
        with pytest.raises(CodecError) as together:
            _ = [item async for item in score_sessions(log, process=True, shared=shared)]
        assert str(together.value) == str(alone.value)


@pytest.mark.parametrize("end", ["raise SystemExit(3)", "print('no answer')", ""])
async def test_where_a_process_fails_this_one_does_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, end: str
) -> None:
    monkeypatch.setattr(parts, "WORKER", ("-c", end))
    if not end:
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
    url = str(tmp_path / "log.db")
    async with odd_log(url) as log:
        shared = Shared(url=url, processes=2)
        found = [item async for item in score_sessions(log, process=True, shared=shared)]
        assert bits(found) == bits(await plain(log))
    assert "a process that scored sessions failed" in caplog.text


async def test_a_process_is_gone_once_its_caller_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    waits = f"import os, time; open({str(pipe)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    monkeypatch.setattr(parts, "WORKER", ("-c", waits))
    url = str(tmp_path / "log.db")
    async with odd_log(url) as log, anyio.create_task_group() as tasks:
        shared = Shared(url=url, processes=2)
        tasks.start_soon(lambda: score_parts(log, Options(), process=True, shared=shared))
        pid = int(await anyio.Path(pipe).read_text())
        tasks.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_process_is_asked_with_all_options_but_the_callers_functions() -> None:
    asked = {*Request.__struct_fields__} - {"url", "part", "process"}
    assert asked == {*Options.__struct_fields__} - {"count", "vague"}


async def test_what_only_this_process_can_do_is_not_shared(tmp_path: Path) -> None:
    url = str(tmp_path / "log.db")
    shared = Shared(url=url, processes=2)
    async with odd_log(url) as log:
        own = Options(count=len)
        assert await score_parts(log, own, process=False, shared=shared) is None
        alone = Shared(url=url, processes=1)
        assert await score_parts(log, Options(), process=False, shared=alone) is None
    async with odd_log("memory://") as log:
        assert await score_parts(log, Options(), process=False, shared=shared) is None
