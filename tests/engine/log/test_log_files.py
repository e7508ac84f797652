"""Files that are not a log, damaged, newer, read-only or missing: clear errors, and no harm."""

from __future__ import annotations

import errno
import sqlite3
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from duolog.engine.errors import (
    InvalidInput,
    LogError,
    LogNotFound,
    LogUnavailable,
    NewerLog,
    NotALog,
)
from duolog.engine.events import MessageSent
from duolog.engine.log.open import open_log
from duolog.engine.log.searched import Searchable, SessionText
from duolog.engine.log.sqlite.file import translate
from duolog.engine.log.sqlite.tables import LAYOUT
from duolog.engine.records import Draft, Record


def said(text: str) -> Draft:
    return Draft(MessageSent(text=text), "ann", "human", 1.0)


async def make(path: Path, *texts: str) -> None:
    async with open_log(str(path)) as log:
        await log.append("s", [said(text) for text in texts or ("x",)])


async def opened(path: Path, *, create: bool = False) -> LogError:
    with pytest.raises(LogError) as raised:
        async with open_log(str(path), create=create):
            pass
    return raised.value


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


async def test_no_file(tmp_path: Path) -> None:
    error = await opened(tmp_path / "a.db")
    assert isinstance(error, LogNotFound)
    assert "a.db" in str(error)
    assert contents(tmp_path) == {}


async def test_no_directory(tmp_path: Path) -> None:
    error = await opened(tmp_path / "no" / "a.db", create=True)
    assert isinstance(error, LogUnavailable)
    assert "no such directory" in str(error)


async def test_a_directory(tmp_path: Path) -> None:
    assert isinstance(await opened(tmp_path, create=True), NotALog)


async def test_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes, longer than a hundred characters\n" * 10, encoding="utf-8")
    before = contents(tmp_path)
    for create in (True, False):
        error = await opened(path, create=create)
        assert isinstance(error, NotALog)
        assert str(error) == f"{path} is not a Duolog log (nor any SQLite file)"
    assert contents(tmp_path) == before


async def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.touch()
    assert isinstance(await opened(path), NotALog)
    await make(path)  # creating is what an empty file is good for


@pytest.mark.parametrize("mode", ["delete", "wal"])
async def test_somebody_elses_database(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "theirs.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE events (position INTEGER PRIMARY KEY, body BLOB)")
    connection.execute("INSERT INTO events VALUES (1, 'theirs')")
    connection.commit()
    connection.close()
    before = contents(tmp_path)
    for create in (True, False):
        error = await opened(path, create=create)
        assert isinstance(error, NotALog)
        assert "not a Duolog log" in str(error)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("keep", [50, 100, 4096, 5000, 20_000])
async def test_a_truncated_log(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "a.db"
    await make(path, *("x" * 1000 for _ in range(100)))
    whole = path.read_bytes()
    path.write_bytes(whole[:keep])
    error = await opened(path)
    assert isinstance(error, NotALog), error
    cut = f"is damaged or was cut off; {keep} bytes are left"
    assert str(error).endswith("a SQLite file, but not a Duolog log" if keep < 100 else cut)
    assert contents(tmp_path) == {"a.db": whole[:keep]}


async def test_a_damaged_page(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await make(path, *("x" * 1000 for _ in range(200)))
    data = bytearray(path.read_bytes())
    for offset in range(60_000, 150_000):
        data[offset] = offset % 251
    path.write_bytes(data)
    async with open_log(str(path), create=False) as log:
        assert (await log.verify()).problems != ()
        with pytest.raises(NotALog, match="damaged"):
            _ = [record.event async for record in log.read_all()]


async def newer(path: Path) -> None:
    await make(path, "hello")
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {LAYOUT + 1}")
    connection.close()


async def test_a_newer_log_is_for_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await newer(path)
    before = path.read_bytes()
    async with open_log(str(path)) as log:
        assert [record.event async for record in log.read_all()] == [MessageSent(text="hello")]
        assert (await log.summary("s")).events == 1
        with pytest.raises(NewerLog, match="newer Duolog"):
            await log.append("s", [said("x")])
        with pytest.raises(NewerLog):
            await log.forget("s")
        with pytest.raises(NewerLog):
            await log.vacuum()
        with pytest.raises(NewerLog):
            await log.restore([])
    assert path.read_bytes() == before


def take_over(path: Path) -> None:
    """Does what a newer Duolog would, whose tables have one column more."""
    connection = sqlite3.connect(path, timeout=300, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ALTER TABLE events ADD COLUMN extra TEXT")
    connection.execute(f"PRAGMA user_version = {LAYOUT + 1}")
    connection.execute("COMMIT")
    connection.close()


async def test_a_newer_program_takes_a_log_over_from_writers_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    refusal = f"{path}: a newer Duolog has taken over this log: it can be read, and not written"
    acknowledged: list[Record] = []
    refused: list[str] = []
    async with open_log(str(path)) as log, log.subscribe() as reader:
        assert isinstance(log, Searchable)
        kept = SessionText("s", 1, 1, ("harbour walk",))
        [first] = await log.append("s", [said("x")])
        assert await log.keep_texts([kept]) == 1

        async def write(session: str) -> None:
            while not refused:
                try:
                    acknowledged.extend(await log.append(session, [said("x")]))
                except NewerLog as error:
                    refused.append(str(error))

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(write, f"s{number}")
            seen = [await anext(reader) for _ in range(20)]
            await anyio.to_thread.run_sync(take_over, path)
        assert set(refused) == {refusal}
        for change in (log.forget("s0"), log.vacuum(), log.drop_derived()):
            with pytest.raises(NewerLog, match="a newer Duolog has taken over this log"):
                await change
        while len(seen) <= len(acknowledged):
            seen.append(await anext(reader))
        assert seen == [first, *acknowledged] == [record async for record in log.read_all()]
        assert not (await log.verify()).problems


async def test_no_chain_can_be_added_later(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await make(path)
    with pytest.raises(InvalidInput, match="without a hash chain"):
        async with open_log(f"sqlite:///{path}?chain=yes"):
            pass


READ_ONLY = """
import asyncio, os, sys
from duolog.engine.errors import LogUnavailable
from duolog.engine.events import MessageSent
from duolog.engine.records import Draft
from duolog.engine.log.open import open_log

async def main():
    async with open_log(sys.argv[1] + ".warm-up") as log:  # imports all that is imported lazily
        await log.append("s", [Draft(MessageSent(text="x"), "ann", "human", 1.0)])
    os.unlink(sys.argv[1] + ".warm-up")
    os.chmod(os.path.dirname(sys.argv[1]), int(sys.argv[2], 8))
    if not os.geteuid():  # file modes mean nothing to root
        os.setegid(65534)
        os.seteuid(65534)
    async with open_log(sys.argv[1]) as log:
        print([record.event.text async for record in log.read_all()])
        try:
            await log.append("s", [Draft(MessageSent(text="x"), "ann", "human", 1.0)])
        except LogUnavailable as error:
            print(error)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["755", "555"])
async def test_a_read_only_log_can_be_read(public_path: Path, mode: str) -> None:
    directory = public_path
    path = directory / "a.db"
    await make(path, "hello")
    path.chmod(0o444)
    before = path.read_bytes()
    done = run(READ_ONLY, path, mode)
    directory.chmod(0o755)
    assert done.returncode == 0, done.stderr
    texts, error = done.stdout.splitlines()
    assert texts == "['hello']"
    assert "nothing was written" in error
    assert contents(directory) == {"a.db": before}


async def test_a_log_on_a_file_system_that_may_only_be_read_can_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    await make(path)

    def unlink(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(Path, "unlink", unlink)
    async with open_log(str(path)) as log:
        assert [record.version async for record in log.read("s")] == [1]
    (tmp_path / "a.db-head").touch()  # a copy of a log that was in use has one
    async with open_log(str(path)):
        pass
    assert (tmp_path / "a.db-head").exists()


def test_no_room_for_what_all_who_have_a_log_open_share_is_a_full_disk() -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    assert str(translate(error, "a.db")) == "a.db: the disk is full; nothing was written"


def run(script: str, path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, path, *more],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


FULL = """
import asyncio, os, resource, signal, sys
from duolog.engine.errors import LogUnavailable
from duolog.engine.events import MessageSent
from duolog.engine.records import Draft
from duolog.engine.log.open import open_log

async def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    async with open_log(sys.argv[1]) as log:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
        acknowledged = 0
        try:
            while True:
                records = await log.append(
                    "s", [Draft(MessageSent(text="x" * 900), "ann", "human", 1.0)] * 3
                )
                acknowledged = records[-1].version
        except LogUnavailable as error:
            print(acknowledged, error)
        print([record.version async for record in log.read("s")][-1])

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """As on a full disk, the file system itself refuses to write, in the middle of a group."""
    pytest.importorskip("resource")
    path = tmp_path / "a.db"
    done = run(FULL, path)
    assert done.returncode == 0, done.stderr
    told, read = done.stdout.splitlines()
    acknowledged = int(told.split(" ", 1)[0])
    assert acknowledged > 0
    assert int(read) == acknowledged
    async with open_log(str(path), create=False) as log:
        verified = await log.verify()
        assert (verified.events, verified.problems) == (acknowledged, ())
        await log.append("s", [said("room again")], expected_version=acknowledged)
