"""Several processes on one log file."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Barrier
from typing import Literal

import anyio
import anyio.to_thread
import pytest
from duolog.engine.errors import LogNotFound, LogUnavailable, NotALog
from duolog.engine.events import MessageSent
from duolog.engine.log.open import open_log
from duolog.engine.log.sqlite.file import connect, parse
from duolog.engine.log.sqlite.log import sqlite_log
from duolog.engine.log.sqlite.reader import Reader
from duolog.engine.records import Draft

WORKER = Path(__file__).parent / "scripts" / "log_worker.py"


@contextmanager
def worker(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, WORKER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    try:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(300) == 0
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def told(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text + "\n")
    process.stdin.flush()


def said(text: str) -> Draft:
    return Draft(MessageSent(text=text), "ann", "human", 1.0)


@pytest.mark.slow
async def test_writers_in_several_processes(tmp_path: Path) -> None:
    """Expected versions hold across processes, and no caller sees a locked database."""
    url = f"sqlite:///{tmp_path}/a.db"
    names = ("one", "two", "three")
    count = 40
    async with open_log(url) as log, log.subscribe() as subscription:
        with ExitStack() as stack:
            processes = [
                stack.enter_context(worker("write_some", url, name, str(count))) for name in names
            ]
            mine = [await log.append("mine", [said(str(n))]) for n in range(30)]
            for process in processes:
                assert await anyio.to_thread.run_sync(line, process) == "ready"
                assert await anyio.to_thread.run_sync(line, process) == "done"
        shared = [record async for record in log.read("shared")]
        assert [record.version for record in shared] == list(range(1, 3 * count + 1))
        for name in names:
            assert (await log.summary(f"own-{name}")).events == 2 * count
        assert (await log.summary("mine")).events == len(mine)
        total = len(names) * 3 * count + len(mine)
        everything = [record async for record in log.read_all()]
        assert [record.position for record in everything] == list(range(1, total + 1))
        followed = [await anext(subscription) for _ in range(total)]
        assert followed == everything
        assert (await log.verify()).problems == ()


@pytest.mark.slow
async def test_a_subscriber_sees_what_another_process_appends_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    async with open_log(url) as log, log.subscribe() as subscription, log.tap() as tap:
        with worker("echo", url) as process:
            assert await anyio.to_thread.run_sync(line, process) == "ready"
            for number in range(10):
                await anyio.to_thread.run_sync(told, process, f"line{number}")
                record = await anext(subscription)
                event = record.event
                assert isinstance(event, MessageSent)
                assert event.text.startswith(f"line{number} ")
                assert await anext(tap) == record
            await log.append("own", [said("x")])
            assert (await anext(subscription)).session == "own"
        assert tap.statistics().dropped == 0


async def test_looking_for_others_costs_next_to_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nothing happens, a look asks one pragma, at most fifty times a second, and reads no table."""
    looks: list[float] = []
    read: list[float] = []

    def counted(name: str, calls: list[float]) -> None:
        function = getattr(Reader, name)

        def counting(self: Reader) -> int:
            calls.append(time.monotonic())
            return int(function(self))

        monkeypatch.setattr(Reader, name, counting)

    counted("data_version", looks)
    counted("head", read)
    async with open_log(f"sqlite:///{tmp_path}/a.db") as log, log.subscribe() as subscription:
        await log.append("s", [said("x")])
        await anext(subscription)
        settled = len(looks) + 2  # the first look after an append reads how far the log is
        with anyio.fail_after(120):
            while len(looks) < settled + 10:  # noqa: ASYNC110 (a thread looks)
                await anyio.sleep(0.01)
    later = looks[settled:]
    assert [at for at in read if later[0] < at < later[9]] == []
    assert later[9] - later[0] > 9 * 0.015  # a machine that is busy looks less often


async def test_who_holds_the_lock_too_long_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duolog.engine.log.sqlite.file.PATIENCE", 0.1)
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        await log.append("s", [said("x")])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogUnavailable, match="another process"):
            await log.append("s", [said("y")])
        assert [record.version async for record in log.read("s")] == [1]
        other.execute("ROLLBACK")
        other.close()
        [record] = await log.append("s", [said("y")], expected_version=1)
        assert record.version == 2


async def test_a_lock_that_is_let_go_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        await log.append("s", [said("x")])
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(log.append, "s", [said("y")])
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            await anyio.to_thread.run_sync(other.execute, "ROLLBACK")
        other.close()
        assert (await log.summary("s")).version == 2


@pytest.mark.slow
async def test_eight_processes_open_a_new_log_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with ExitStack() as stack:
        for number in range(8):
            stack.enter_context(worker("write_some", url, f"p{number}", "5"))
    async with open_log(url, create=False) as log:
        assert (await log.summary("shared")).version == 40
        assert (await log.verify()).problems == ()


def test_a_log_that_is_being_created_is_whole_or_not_there(tmp_path: Path) -> None:
    def open_it(path: Path, start: Barrier, mode: Literal["rw", "rwc"]) -> None:
        start.wait()
        while True:
            try:
                return connect(parse(str(path)), mode).close()
            except LogNotFound:
                continue
            except NotALog as error:
                if "is empty" not in str(error):  # a file is made before anything is in it
                    raise

    with ThreadPoolExecutor(4) as threads:
        for number in range(100):
            path, start = tmp_path / f"{number}.db", Barrier(4)
            modes: list[Literal["rw", "rwc"]] = ["rwc", "rwc", "rw", "rw"]
            for opening in [threads.submit(open_it, path, start, mode) for mode in modes]:
                opening.result()


@pytest.mark.slow
async def test_opening_a_log_again_keeps_the_locks_on_it(tmp_path: Path) -> None:
    """A process that opens and closes a file lets go of its locks on it. If a log did that to
    itself, another process would take the file for its own when it closes it."""
    url = f"sqlite:///{tmp_path}/a.db"
    async with open_log(url) as log:
        await log.append("s", [said("x")])
        for _ in range(3):
            async with open_log(url) as again:
                await again.append("s", [said("y")])
            with worker("write_some", url, "other", "3"):
                pass
            await log.append("s", [said("z")])
            assert (await log.verify()).problems == ()
        assert (await log.summary("s")).version == 7


async def test_who_follows_is_told_when_others_can_no_longer_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    async with sqlite_log(parse(url)) as log, open_log(url) as other, log.subscribe() as follower:

        async def damaged() -> int:
            raise NotALog("damaged")

        monkeypatch.setattr(log._backend.reader, "head", damaged)
        await other.append("s", [said("x")])
        with pytest.raises(NotALog, match="damaged"):
            await anext(follower)


async def test_a_moment_of_trouble_is_got_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    async with sqlite_log(parse(url)) as log, open_log(url) as other, log.subscribe() as follower:
        head = log._backend.reader.head
        calls: list[int] = []

        async def trouble() -> int:
            calls.append(1)
            if len(calls) < 3:
                raise LogUnavailable("busy")
            return await head()

        monkeypatch.setattr(log._backend.reader, "head", trouble)
        [record] = await other.append("s", [said("x")])
        assert await anext(follower) == record
        assert len(calls) >= 3
