"""A log whose file goes away, or becomes another, while it is open."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from duolog.engine.errors import LogGone
from duolog.engine.events import MessageSent
from duolog.engine.log.open import open_log
from duolog.engine.log.sqlite.presence import FilePresence
from duolog.engine.records import Draft
from duolog.telemetry.recorder import Recorder


def said(text: str) -> Draft:
    return Draft(MessageSent(text=text), "ann", "human", 1.0)


async def make(path: Path, count: int) -> None:
    async with open_log(str(path)) as log:
        for number in range(count):
            await log.append("s", [said(f"{number} {'x' * 3000}")])


def remove(path: Path, other: Path) -> None:
    path.unlink()


def move(path: Path, other: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def move_directory(path: Path, other: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def replace(path: Path, other: Path) -> None:
    os.replace(other, path)


def copy_over(path: Path, other: Path) -> None:
    shutil.copyfile(other, path)


def empty(path: Path, other: Path) -> None:
    os.truncate(path, 0)


def cut(path: Path, other: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def overwrite(path: Path, other: Path) -> None:
    path.write_bytes(b"something else " * 10_000)


def remove_wal(path: Path, other: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


ATTACKS = [
    remove,
    move,
    move_directory,
    replace,
    copy_over,
    empty,
    cut,
    overwrite,
    remove_wal,
]


@pytest.mark.parametrize("attack", ATTACKS)
async def test_nothing_is_acknowledged_once_the_file_is_gone(
    tmp_path: Path, attack: Callable[[Path, Path], None]
) -> None:
    """Appends say so from the next one on, and those who follow are not left waiting."""
    path, other = tmp_path / "here" / "a.db", tmp_path / "b.db"
    path.parent.mkdir()
    await make(path, 30)
    await make(other, 3)
    async with open_log(str(path)) as log, log.subscribe() as subscription:
        await log.append("s", [said("before")])
        attack(path, other)
        for _ in range(3):
            with pytest.raises(LogGone, match=r"while it was open|than when it was opened"):
                await log.append("s", [said("after")])
        with anyio.fail_after(120), pytest.raises(LogGone):
            async for _ in subscription:
                pass
        with pytest.raises(LogGone):
            await log.forget("s")


@pytest.mark.parametrize("attack", [remove, copy_over])
async def test_who_only_follows_is_not_left_waiting(
    tmp_path: Path, attack: Callable[[Path, Path], None]
) -> None:
    path, other = tmp_path / "a.db", tmp_path / "b.db"
    await make(path, 3)
    await make(other, 2)
    async with open_log(str(path)) as log, log.subscribe(after_position=3) as subscription:
        attack(path, other)
        with anyio.fail_after(120), pytest.raises(LogGone):
            await anext(subscription)
        for late in (log.subscribe(), log.tap()):
            with pytest.raises(LogGone):
                async with late:
                    pass


async def test_an_older_copy_of_itself_is_another_file(tmp_path: Path) -> None:
    path, old = tmp_path / "a.db", tmp_path / "old.db"
    await make(path, 5)
    shutil.copyfile(path, old)
    await make(path, 5)
    async with open_log(str(path)) as log:
        await log.append("s", [said("x")])
        copy_over(path, old)
        with pytest.raises(LogGone, match="overwritten"):
            await log.append("s", [said("y")])


async def test_what_the_log_does_to_its_own_file_is_no_change(tmp_path: Path) -> None:
    """Pages that move from the write-ahead log, compacting, another process that does so."""
    path = tmp_path / "a.db"
    await make(path, 5)
    async with open_log(str(path)) as log, open_log(str(path)) as other:
        presence = await anyio.to_thread.run_sync(FilePresence, path)
        for number in range(4):
            await (log, other)[number % 2].append("s", [said("x" * 100_000)])
            await other.vacuum()
            await log.append("s", [said("y")])
            await anyio.to_thread.run_sync(presence.check)
        await log.append("t", [said("z")])
        assert (await other.forget("t")).sessions == ("t",)
        await log.append("s", [said("z")])
        os.chmod(path, 0o600)
        await log.append("s", [said("z")])


async def test_a_file_that_is_whole_with_its_write_ahead_log_is_there(tmp_path: Path) -> None:
    """Another process may have died while it moved pages from there into the file."""
    path = tmp_path / "a.db"
    await make(path, 5)
    presence = await anyio.to_thread.run_sync(FilePresence, path)
    async with open_log(str(path)) as other:
        await other.forget("s", compact=False)  # changes the pages of the records, and adds none
        wal = path.with_name("a.db-wal").read_bytes()
        size = int.from_bytes(wal[8:12], "big")
        pages = {int.from_bytes(wal[at : at + 4], "big") for at in range(32, len(wal), 24 + size)}
        with path.open("r+b") as file:
            for page in pages - {1}:
                file.seek((page - 1) * size)
                file.write(bytes(size))
        await anyio.to_thread.run_sync(presence.check)


async def test_a_recorder_says_that_its_log_is_gone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """At once, in receipts and in the diagnostic log, and accepts nothing from then on."""
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log, Recorder(log) as recorder:
        session = await recorder.session("s")
        await session.human.says("x", durable=True)
        path.unlink()
        for _ in range(5):
            with pytest.raises(LogGone, match="removed or moved"):
                await session.human.says("y", durable=True)
        assert recorder.statistics().failed == 5
        said_so = [record for record in caplog.records if "could not be written" in record.message]
        assert len(said_so) == 3  # ever more rarely: at the first, the second, the fourth
