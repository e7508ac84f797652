"""The rows of a log: kept, folded if new, and bit for bit the same with several processes."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import anyio
import msgspec
import pytest
from duolog.engine.errors import CodecError
from duolog.engine.events import Origin, SessionOpened, Unknown
from duolog.engine.log.contract import Derived, Store
from duolog.engine.log.memory import MemoryLog
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft
from duolog.scoring.columns import log as columns_log
from duolog.scoring.columns.kept import kind_of
from duolog.scoring.columns.log import PartRequest, Shared, changed_rows, folded
from duolog.scoring.columns.rows import FOLD_VERSION, Folded, SessionFold
from duolog.scoring.trajectory.options import Options
from duolog.testing.postgres_server import PostgresServer
from scripted_logs import MOVES, interleave, script_of


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


def bits(found: object) -> bytes:
    return msgspec.msgpack.encode(found)


async def rows(log: Store, options: Options | None = None, **more: object) -> list[Folded]:
    return [one async for one in folded(log, options, **more)]  # type: ignore[arg-type]


async def plain(log: Store, options: Options | None = None) -> list[Folded]:
    """The rows of all sessions, each folded by itself."""
    found = []
    async for summary in log.sessions():
        fold = SessionFold(summary.session, options or Options(), strict=True)
        async for record in log.read_all(session=summary.session):
            fold.feed(record)
        found.append(fold.folded())
    return found


class Scans:
    """How often a log was read, whole or a session of it."""

    def __init__(self, log: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("scan", "read_all"):
            monkeypatch.setattr(log, name, self._counted(getattr(log, name)))

    def _counted(self, method: object) -> object:
        def call(*arguments: object, **named: object) -> object:
            self.count += 1
            return method(*arguments, **named)  # type: ignore[operator]

        return call


async def test_rows_are_folded_once_and_again_when_a_session_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with odd_log("memory://") as log:
        await log.forget("s3")
        expected = await plain(log)
        assert bits(await rows(log)) == bits(expected)
        scans = Scans(log, monkeypatch)
        assert bits(await rows(log)) == bits(expected)
        assert scans.count == 2  # the forgotten ones, of which nothing is kept
        (grown,) = [one for one in expected if one.session.session == "odd"]
        await log.append("odd", [Draft(Unknown("Seen", 3, b'{"at":2}'), "x", "environment", 0.7)])
        scans.count = 0
        assert bits(await rows(log, sessions=["odd"])) == bits([grown])
        assert scans.count == 1
        scans.count = 0
        assert bits(await rows(log, sessions=["odd"])) == bits([grown])
        assert scans.count == 0


async def test_rows_of_other_options_are_others() -> None:
    async with odd_log("memory://") as log:
        usual = await rows(log)
        turns = Options(rounds="human-turn", judge="none")
        assert bits(await rows(log, turns)) == bits(await plain(log, turns))
        assert bits(await rows(log)) == bits(usual)
        assert kind_of(turns) != kind_of(Options()) == kind_of(Options(taus=(5,)))


async def test_rows_of_functions_of_your_own_are_not_kept() -> None:
    async with odd_log("memory://") as log:
        assert bits(await rows(log, Options(count=len))) == bits(
            await plain(log, Options(count=len))
        )
        assert kind_of(Options(count=len)) == ""
        assert [one async for one in log.derived("", FOLD_VERSION)] == []


async def test_kept_rows_that_differ_are_found() -> None:
    async with odd_log("memory://") as log:
        await rows(log)
        assert await changed_rows(log, 100) == []
        kept = [one async for one in log.derived(kind_of(Options()), FOLD_VERSION)]
        (one,) = [one for one in kept if one.session == "s1"]
        await log.keep_derived([msgspec.structs.replace(one, payload=b"other")])
        assert await changed_rows(log, 100) == ["s1"]


async def test_an_empty_log_has_no_rows() -> None:
    async with MemoryLog() as log:
        assert await rows(log) == []


async def test_a_damaged_body_is_raised(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with odd_log(str(path)):
        pass
    _damage(path)
    async with open_log(str(path)) as log:
        with pytest.raises(CodecError):
            await rows(log)


def _damage(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER events_stand")
        connection.execute(
            "UPDATE events SET body = x'7b' WHERE kind = 'MessageSent' AND body IS NOT NULL"
        )
        connection.commit()


# --- several processes -----------------------------------------------------------------------------


@pytest.fixture
def small_logs_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process has one part, since a program is started for each."""
    monkeypatch.setattr(columns_log, "LARGE", 1)
    monkeypatch.setattr(columns_log, "_PARTS", 1)


@pytest.fixture
def given(small_logs_are_shared: None, monkeypatch: pytest.MonkeyPatch) -> list[Derived]:
    """What other processes have given, of small logs too."""
    found: list[Derived] = []
    ask = columns_log._by_processes

    async def asked(*about: object) -> list[Derived]:
        answer = await ask(*about)  # type: ignore[arg-type]
        found.extend(answer)
        return answer

    monkeypatch.setattr(columns_log, "_by_processes", asked)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "parts"), [(Options(), 3), (Options(rounds="human-turn", judge="none"), 1)]
)
async def test_several_processes_give_the_same_to_the_bit(
    tmp_path: Path,
    options: Options,
    parts: int,
    given: list[Derived],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns_log, "_PARTS", parts)
    url = f"sqlite:///{tmp_path / 'a%20log.db'}"
    async with odd_log(url) as log:
        expected = await plain(log, options)
        shared = Shared(url=url, processes=3)
        assert bits(await rows(log, options, shared=shared)) == bits(expected)
        assert len(given) == len(expected)


@pytest.mark.slow
async def test_a_log_on_postgres_is_shared_likewise(
    postgres: PostgresServer, given: list[Derived]
) -> None:
    url = postgres.url()
    async with odd_log(url) as log:
        shared = Shared(url=url, processes=2)
        expected = await plain(log)
        assert bits(await rows(log, shared=shared)) == bits(expected)
        assert len(given) == len(expected)


@pytest.mark.slow
@pytest.mark.usefixtures("small_logs_are_shared")
async def test_a_damaged_body_is_what_one_process_raises(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with odd_log(str(path)):
        pass
    _damage(path)
    async with open_log(str(path)) as log:
        with pytest.raises(CodecError) as alone:
            await rows(log)
        with pytest.raises(CodecError) as together:
            await rows(log, shared=Shared(url=str(path), processes=2))
        assert str(together.value) == str(alone.value)


KILLED = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"


@pytest.mark.slow
@pytest.mark.usefixtures("small_logs_are_shared")
@pytest.mark.parametrize(
    ("end", "how"),
    [
        (KILLED, "signal 9"),
        ("raise SystemExit(3)", "exit code 3"),
        ("print('no answer')", "no answer"),
        ("", "No such file"),
    ],
)
async def test_if_a_process_ends_its_part_is_folded_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, how: str
) -> None:
    monkeypatch.setattr(columns_log, "WORKER", ("-c", end))
    if not end:
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
    url = str(tmp_path / "log.db")
    said: list[str] = []
    async with odd_log(url) as log:
        shared = Shared(url=url, processes=2, on_ended=said.append)
        assert bits(await rows(log, shared=shared)) == bits(await plain(log))
    assert len(said) == 1
    assert how in said[0]


BUSY = """
import os, sys
from duolog.scoring.columns import rows, worker

def folds_for_ever(self, record):
    pipe = open(sys.argv[1], "w", buffering=1)
    print(os.getppid(), file=pipe)
    while True:
        pass

rows.SessionFold.feed = folds_for_ever
worker._main()
"""

CALLER = """
import sys
from duolog.cli.commands.report import print_report
from duolog.engine.log import process
from duolog.scoring.columns import log

process.cores = lambda: 2  # also on a machine with one
log.LARGE = log._PARTS = 1
log.WORKER = ("-c", sys.argv[1], sys.argv[2])
print_report(sys.argv[3])
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_folds_ends_with_its_caller(tmp_path: Path, end: signal.Signals) -> None:
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
        while busy.read():
            pass  # until the process is gone and cannot write any more


@pytest.mark.slow
@pytest.mark.usefixtures("small_logs_are_shared")
async def test_a_process_is_gone_once_its_caller_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    waits = (
        f"import os, time; open({str(pipe)!r}, 'w').write(f'{{os.getpid()}}\\n'); time.sleep(600)"
    )
    monkeypatch.setattr(columns_log, "WORKER", ("-c", waits))
    url = str(tmp_path / "log.db")
    async with odd_log(url) as log, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: rows(log, shared=Shared(url=url, processes=2)))
        started = [int(line) for line in (await anyio.Path(pipe).read_text()).split()]
        tasks.cancel_scope.cancel()
    assert started
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


SCRIPT = """
import anyio
from duolog.engine.log.open import open_log
from duolog.scoring.columns import log as columns_log
from duolog.scoring.columns.log import Shared, folded

columns_log.LARGE = columns_log._PARTS = 1
said = []

async def main():
    async with open_log({url!r}) as log:
        shared = Shared(url={url!r}, processes=2, on_ended=said.append)
        print(len([one async for one in folded(log, shared=shared)]), said)

anyio.run(main)
"""


@pytest.mark.slow
@pytest.mark.parametrize("piped", [False, True])
async def test_it_works_from_a_script_without_a_guard_and_without_a_file(
    tmp_path: Path, piped: bool
) -> None:
    url = str(tmp_path / "log.db")
    async with odd_log(url) as log:
        count = len(await plain(log))
    script = SCRIPT.format(url=url)
    (tmp_path / "unguarded.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "-P", "-" if piped else str(tmp_path / "unguarded.py")]
    done = await anyio.run_process(command, input=script.encode() if piped else None)
    assert done.stdout.decode().split(maxsplit=1) == [str(count), "[]\n"]


def test_a_process_is_asked_with_all_options_that_matter_to_columns_but_functions() -> None:
    asked = {*PartRequest.__struct_fields__} - {"url", "part", "sessions", "asker"}
    updates_only = {"taus", "oversight"}
    assert asked == {*Options.__struct_fields__} - {"count", "vague", "annotator"} - updates_only


async def test_what_only_this_process_can_do_is_not_shared(
    tmp_path: Path, given: list[Derived]
) -> None:
    said: list[str] = []
    async with odd_log("memory://") as log:
        shared = Shared(url="memory://", processes=2, on_ended=said.append)
        assert bits(await rows(log, shared=shared)) == bits(await plain(log))
        own = Options(count=len)
        assert bits(await rows(log, own, shared=shared)) == bits(await plain(log, own))
    async with odd_log(str(tmp_path / "log.db")) as log:
        alone = Shared(url=str(tmp_path / "log.db"), processes=1)
        assert bits(await rows(log, shared=alone)) == bits(await plain(log))
    assert given == []
    assert said == []
