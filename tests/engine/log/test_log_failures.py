"""The state after an append that was refused, hit a disk failure, or was abandoned."""

from __future__ import annotations

import asyncio
import gc
import shutil
import sqlite3
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from duolog.engine.errors import LogUnavailable, NotALog, OutcomeUnknown, VersionConflict
from duolog.engine.events import MessageSent
from duolog.engine.log.open import open_log
from duolog.engine.log.sqlite.file import parse
from duolog.engine.log.sqlite.log import SqliteFile, sqlite_log
from duolog.engine.log.stored import StoredLog
from duolog.engine.records import Draft
from duolog.telemetry.recorder import Recorder

WORKER = Path(__file__).parent / "scripts" / "log_worker.py"


def said(text: str) -> Draft:
    return Draft(MessageSent(text=text), "ann", "human", 1.0)


def log_at(path: Path) -> StoredLog[SqliteFile]:
    return sqlite_log(parse(f"sqlite:///{path}"))


async def until(happened: Callable[[], bool]) -> None:
    """Waits for something in another thread."""
    while not happened():  # noqa: ASYNC110  (threads set no events of the loop)
        await asyncio.sleep(0.001)


class FailingDisk(sqlite3.Connection):
    """A connection whose transactions fail in their last step, after it or before it."""

    failure: int = 0
    written: bool = False

    def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
        if sql != "COMMIT" or not self.failure:
            return super().execute(sql, *values)  # type: ignore[arg-type]
        if self.written:
            super().execute(sql)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = self.failure
        raise error


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> type[FailingDisk]:
    """Has all connections be such ones, which fail when the class says so."""
    connect = sqlite3.connect
    monkeypatch.setattr(FailingDisk, "failure", 0)
    monkeypatch.setattr(FailingDisk, "written", False)
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=FailingDisk))
    return FailingDisk


class BugError(Exception):
    """Nobody foresaw it."""


# --- memory ---------------------------------------------------------------------------------------


async def refused(log: StoredLog[SqliteFile], count: int) -> list[weakref.ref[BaseException]]:
    """The errors of appends that were refused, all at once."""
    errors: list[weakref.ref[BaseException]] = []

    async def append() -> None:
        try:
            await log.append("s", [said("x")], expected_version=7)
        except (VersionConflict, LogUnavailable, NotALog, BugError) as error:
            errors.append(weakref.ref(error))

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(append)
    return errors


@pytest.mark.parametrize("failure", ["conflict", "disk", "damage", "bug"])
async def test_what_was_refused_is_freed(
    tmp_path: Path, disk: type[FailingDisk], monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    """Without the garbage collector: an error leads to a frame, and the frame to nothing of it."""
    async with log_at(tmp_path / "a.db") as log:
        await log.append("s", [said("x")])
        disk.failure = {"disk": sqlite3.SQLITE_FULL, "damage": sqlite3.SQLITE_CORRUPT}.get(
            failure, 0
        )
        if failure == "bug":

            def fail() -> None:
                raise BugError

            monkeypatch.setattr(log._backend.committer, "_refresh", fail)
        errors = await refused(log, 50)
        assert len(errors) == 50
        if failure == "bug":  # keeps its traceback, for debugging
            await log._backend.writer.call(
                gc.collect
            )  # in the thread, which has left that frame then
        assert [error for error in errors if error() is not None] == []


async def test_a_recorder_before_a_full_disk_holds_what_waits_once(
    tmp_path: Path, disk: type[FailingDisk]
) -> None:
    """However often it has tried."""
    async with log_at(tmp_path / "a.db") as log:
        made: list[weakref.ref[list[Draft]]] = []
        append = log.append

        class Drafts(list[Draft]):
            __slots__ = ("__weakref__",)

        async def count(session: str, drafts: list[Draft], **options: int) -> object:
            own = Drafts(drafts)
            made.append(weakref.ref(own))
            return await append(session, own, expected_version=options["expected_version"])

        log.append = count  # type: ignore[method-assign, assignment]
        async with Recorder(log, retry=0.0) as recorder:
            session = await recorder.session("s")
            await session.human.says("x", durable=True)
            disk.failure = sqlite3.SQLITE_FULL
            await session.human.says("x" * 10_000)
            await until(lambda: recorder.statistics().retries >= 20)
            assert sum(drafts() is not None for drafts in made) <= 2
            disk.failure = 0
            await session.human.says("y", durable=True)


async def test_a_cancelled_append_is_freed(tmp_path: Path) -> None:
    async with log_at(tmp_path / "a.db") as log:
        await log.append("s", [said("x")])
        errors = []
        for _ in range(20):
            task = asyncio.create_task(log.append("s", [said("y")], expected_version=9))
            await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except (asyncio.CancelledError, VersionConflict) as error:
                errors.append(weakref.ref(error))
            del task
        await log.append("t", [said("z")])  # the writing thread is past the last of them
        gc.collect()
        assert [error for error in errors if error() is not None] == []


# --- a disk that fails ----------------------------------------------------------------------------


@pytest.mark.parametrize("written", [True, False])
async def test_a_commit_that_fails_on_the_disk_has_an_unknown_outcome(
    tmp_path: Path, disk: type[FailingDisk], written: bool
) -> None:
    """Following the message's advice settles it, whether it was written or not."""
    async with log_at(tmp_path / "a.db") as log:
        await log.append("s", [said("x")])
        disk.failure, disk.written = sqlite3.SQLITE_IOERR_FSYNC, written
        draft = Draft(MessageSent(text="y"), "ann", "human", 1.0, "an-id")
        with pytest.raises(OutcomeUnknown, match="not known whether this was") as caught:
            await log.append("s", [draft])
        assert "nothing was written" not in str(caught.value)
        disk.failure = 0
        assert [record.version async for record in log.read("s")] == [1, 2][: 1 + written]
        [record] = await log.append("s", [draft])
        assert record.version == 2
        assert (await log.summary("s")).version == 2
        assert (await log.verify()).problems == ()


async def test_a_full_disk_has_a_known_outcome(tmp_path: Path, disk: type[FailingDisk]) -> None:
    async with log_at(tmp_path / "a.db") as log:
        disk.failure = sqlite3.SQLITE_FULL
        with pytest.raises(LogUnavailable, match="nothing was written") as caught:
            await log.append("s", [said("x")])
        assert not isinstance(caught.value, OutcomeUnknown)
        disk.failure = 0


@pytest.mark.parametrize("written", [True, False])
async def test_a_recorder_finds_out_whether_it_was_written(
    tmp_path: Path, disk: type[FailingDisk], written: bool
) -> None:
    async with log_at(tmp_path / "a.db") as log:
        async with Recorder(log, retry=0.0) as recorder:
            session = await recorder.session("s")
            await session.human.says("one", durable=True)
            disk.failure, disk.written = sqlite3.SQLITE_IOERR_FSYNC, written
            receipts = [await session.human.says("two"), await session.agent.says("three")]
            await until(lambda: recorder.statistics().retries > 0)
            disk.failure = 0
            await session.human.says("four", durable=True)
            assert [receipt.version for receipt in receipts] == [3, 4]
            statistics = recorder.statistics()
            assert (statistics.waiting, statistics.failed, statistics.refused) == (0, 0, 0)
        texts = [record.event async for record in log.read("s", after_version=1)]
        assert [getattr(event, "text", "") for event in texts] == ["one", "two", "three", "four"]


@pytest.mark.slow
def test_a_sync_that_fails(tmp_path: Path) -> None:
    """A failure of the system: unsynced events are there after all when the log is reopened."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace")
    inject = "inject=fsync,fdatasync:error=EIO:when=15+"
    url = f"sqlite:///{tmp_path}/a.db"
    done = subprocess.run(
        [strace, "-f", "-o", "/dev/null", "-e", inject, sys.executable, WORKER, "until_error", url],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "ptrace" in done.stderr.lower() and done.returncode:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    acknowledged, error = done.stdout.splitlines()
    assert error == "OutcomeUnknown", done.stderr

    async def count() -> int:
        async with open_log(url, create=False) as log:
            assert (await log.verify()).problems == ()
            return (await log.summary("s")).version

    assert asyncio.run(count()) == int(acknowledged) + 1


# --- erasing where there is no room ---------------------------------------------------------------


async def test_forgetting_says_what_it_has_done_and_what_not_yet(tmp_path: Path) -> None:
    async with log_at(tmp_path / "a.db") as log:
        await log.append("s", [said("secret")])
        connection = log._backend.committer._connection

        def no_room(limit: int) -> int:  # VACUUM attaches another file
            return connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, limit)

        limit = await log._backend.writer.call(no_room, 0)
        forgotten = await log.forget("s")
        assert (forgotten.sessions, forgotten.compacted) == (("s",), False)
        assert "no room was given back" in forgotten.held_up
        [record] = [record async for record in log.read("s")]
        assert record.body is None
        assert (await log.verify()).uncompacted == 1
        with pytest.raises(LogUnavailable, match="no room was given back"):
            await log.vacuum()
        await log._backend.writer.call(no_room, limit)
        assert (await log.vacuum()).finished
        assert (await log.verify()).uncompacted == 0


async def test_an_erasure_that_fails_on_the_disk_has_an_unknown_outcome(
    tmp_path: Path, disk: type[FailingDisk]
) -> None:
    async with log_at(tmp_path / "a.db") as log:
        await log.append("s", [said("secret")])
        disk.failure = sqlite3.SQLITE_IOERR_FSYNC
        with pytest.raises(OutcomeUnknown):
            await log.forget("s")
        disk.failure = 0
        assert (await log.forget("s")).compacted


# --- a lock that another process holds ------------------------------------------------------------


async def test_a_cancelled_append_does_not_wait_for_another_process(tmp_path: Path) -> None:
    """It is taken back, and reported so; another one in its group continues to wait."""
    path = tmp_path / "a.db"
    async with log_at(path) as log:
        await log.append("s", [said("x")])
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        busy = threading.Event()
        work = asyncio.create_task(log._backend.writer.call(busy.wait))
        goes = asyncio.create_task(log.append("s", [said("never")]))
        stays = asyncio.create_task(log.append("s", [said("later")]))
        await until(lambda: log.statistics().waiting == 2)
        busy.set()
        await work
        await until(lambda: log.statistics().waiting == 0)
        goes.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(goes, 120)  # the other process is waited for 30 seconds
        assert not stays.done()
        await anyio.to_thread.run_sync(other.execute, "ROLLBACK")
        other.close()
        [record] = await stays
        texts = [record.event async for record in log.read("s")]
        assert [getattr(event, "text", "") for event in texts] == ["x", "later"]
        assert record.version == 2
