"""Several processes score a log as one does: to the bit, whatever it holds, and whatever goes wrong."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import msgspec
import pytest
from duolog.engine.errors import CodecError
from duolog.engine.events import Origin, SessionOpened, Unknown
from duolog.engine.log.contract import Store
from duolog.engine.log.open import open_log
from duolog.engine.log.parts import Part
from duolog.engine.log.sqlite.log import SqliteLog
from duolog.engine.records import Draft, Record
from duolog.scoring import part_process, parts
from duolog.scoring.live import score_sessions
from duolog.scoring.part_process import Request
from duolog.scoring.parts import Shared, score_parts
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


async def test_a_damaged_body_is_what_one_process_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        assert isinstance(log, SqliteLog)
        scan, begun = log.scan_part, []

        async def scan_part(part: Part, consume: Callable[[Sequence[Record]], object]) -> None:
            begun.append(part)
            await scan(part, consume)

        monkeypatch.setattr(log, "scan_part", scan_part)
        monkeypatch.setattr(part_process, "WORKER", ("-c", "import time; time.sleep(600)"))
        assert await score_parts(log, Options(), process=True, shared=shared) is None
        assert len(begun) == 1  # and no further one, since nobody wants it any more


KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.parametrize(
    ("end", "how"),
    [
        (KILLED, "signal 9"),
        ("raise SystemExit(3)", "exit code 3"),
        ("print('no answer')", "exit code 0"),
        ("", "No such file"),
    ],
)
async def test_where_a_process_ends_another_one_does_its_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, how: str
) -> None:
    monkeypatch.setattr(part_process, "WORKER", ("-c", end))
    if not end:
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
    url = str(tmp_path / "log.db")
    said: list[str] = []
    async with odd_log(url) as log:
        shared = Shared(url=url, processes=2, on_ended=said.append)
        found = await score_parts(log, Options(), process=True, shared=shared)
        assert bits(found) == bits(await plain(log))
    assert len(said) == 1
    assert how in said[0]


BUSY = """
import os, sys
from duolog.scoring import part_worker

def scores_for_ever(self, records):
    pipe = open(sys.argv[1], "w", buffering=1)
    print(os.getppid(), file=pipe)
    while True:
        pass

part_worker.SessionFolds.consume = scores_for_ever
part_worker._main()
"""

CALLER = """
import sys
from duolog.cli.commands.report import print_report
from duolog.scoring import part_process, parts

parts.RECORDS = 1
part_process.WORKER = ("-c", sys.argv[1], sys.argv[2])
print_report(sys.argv[3])
"""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_scores_ends_with_its_caller(tmp_path: Path, end: signal.Signals) -> None:
    pipe, path = tmp_path / "pipe", tmp_path / "log.db"

    async def make() -> None:
        async with odd_log(str(path)):
            pass

    anyio.run(make)
    os.mkfifo(pipe)
    command = [sys.executable, "-P", "-c", CALLER, BUSY, str(pipe), str(path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as caller, pipe.open() as busy:
        assert int(busy.readline()) == caller.pid
        caller.send_signal(end)
        assert busy.read() == ""  # it is gone: nobody can write any more


async def test_a_process_is_gone_once_its_caller_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    waits = f"import os, time; open({str(pipe)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    monkeypatch.setattr(part_process, "WORKER", ("-c", waits))
    url = str(tmp_path / "log.db")
    async with odd_log(url) as log, anyio.create_task_group() as tasks:
        shared = Shared(url=url, processes=2)
        tasks.start_soon(lambda: score_parts(log, Options(), process=True, shared=shared))
        pid = int(await anyio.Path(pipe).read_text())
        tasks.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_process_is_asked_with_all_options_but_the_callers_functions() -> None:
    asked = {*Request.__struct_fields__} - {"url", "process"}
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
