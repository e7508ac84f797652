"""Damage to the files of a log: whatever changes what readers get is found by ``verify``."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import msgspec
import pytest
from duolog.engine.errors import DuologError, NotALog
from duolog.engine.events import MessageSent, ScorerRef, SessionOpened, UtilityScored
from duolog.engine.log.contract import Advance, Derived, Store
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft


def said(text: str, caller_id: str | None = None) -> Draft:
    return Draft(MessageSent(text=text), "ann", "human", 1.5, caller_id, "trace/1", 1)


async def fill(log: Store) -> None:
    """All that a log holds: sessions, labels, ids, measurements, checkpoints, erased ones."""
    opened = SessionOpened(
        task="travel",
        instance="7",
        participants=(),
        clock="utc",
        config={"group": {"agent": "two-stage"}},
    )
    scored = UtilityScored(scorer=ScorerRef(name="judge", version="1", config="-"), value=0.5)
    for number in range(4):
        name = f"session-{number}"
        await log.append(name, [Draft(opened, "engine", "environment", 0.0)])
        for turn in range(8):
            await log.append(name, [said(f"turn {turn} {'x' * 200}", f"id-{turn}")])
        await log.append(name, [Draft(scored, "judge", "scorer", 9.0)], stream="judge@1")
    await log.append(
        "session-1",
        [said("counted")],
        checkpoint=Advance(consumer="c", version="1", expected=0, position=12),
    )
    rows = [
        Derived(
            session=name, kind="fold/1", version=1, position=10, payload=b"x" * 1500, numbers=(0.5,)
        )
        for name in ("session-0", "session-2", "session-3")
    ]
    assert await log.keep_derived(rows[::2]) == 2
    await log.forget("session-2")


async def contents(log: Store) -> bytes:
    """All that readers get."""
    return msgspec.json.encode(
        [
            [record async for record in log.read_all()],
            [record async for record in log.read("session-0")],
            [summary async for summary in log.sessions()],
            await log.checkpoint("c", "1"),
            [row async for row in log.derived("fold/1", 1)],
        ]
    )


async def look(path: Path) -> tuple[bytes | None, bool]:
    """The bytes that readers get (None on an error), and whether ``verify`` finds no problem."""
    found, clean = None, False
    try:
        async with open_log(str(path), create=False) as log:
            try:
                clean = not (await log.verify()).problems
            except DuologError:
                clean = False
            found = await contents(log)
    except (DuologError, msgspec.MsgspecError, UnicodeDecodeError, ValueError):
        pass
    return found, clean


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def all_flips(directory: Path, options: str, count: int, seed: int) -> tuple[int, list[int]]:
    """How many flipped bits changed what readers get, and those that nothing says."""
    whole, damaged = directory / "whole.db", directory / "damaged.db"

    async def make() -> bytes:
        async with open_log(f"sqlite:///{whole}{options}") as log:
            await fill(log)
            return await contents(log)

    before = asyncio.run(make())
    changed, missed = 0, []
    random = Random(seed)
    for _ in range(count):
        shutil.copyfile(whole, damaged)
        bit = random.randrange(8 * whole.stat().st_size)
        flip(damaged, bit)
        found, clean = asyncio.run(look(damaged))
        changed += found != before
        if found != before and clean:
            missed.append(bit)
        for rest in directory.glob("damaged.db*"):
            rest.unlink()
    return changed, missed


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    changed, missed = all_flips(tmp_path, "", 60, 5)
    assert missed == []
    assert changed >= 10


async def test_a_flipped_bit_that_sqlite_does_not_see_is_found(tmp_path: Path) -> None:
    """In what an index says of where its row is; the check of SQLite's own compares keys."""
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        await fill(log)
    connection = sqlite3.connect(path)
    [(page,)] = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'events_in_stream'"
    )
    flip(path, 8 * (4096 * page - 39))
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    found, clean = await look(path)
    assert (found, clean) == (None, False)


async def test_what_sqlite_itself_finds_is_told(tmp_path: Path) -> None:
    """A value of another type than its column has: all records are whole."""
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        await fill(log)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'compacted INTEGER', "
            "'compacted TEXT') WHERE name = 'forgotten'"
        )
        connection.commit()
    assert await problems(path) == ["SQLite: non-TEXT value in forgotten.compacted"]


async def test_an_index_without_some_rows_of_its_table_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        await fill(log)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE INDEX other ON events (stream, version) WHERE position < 5")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'other') "
            "WHERE name = 'events_in_stream'"
        )
        connection.execute("DELETE FROM sqlite_master WHERE name = 'other'")
        connection.commit()
    named = "the index events_in_stream holds other values than its table"
    assert named in await problems(path)


async def test_a_text_in_place_of_a_body_is_found(tmp_path: Path) -> None:
    """One bit says which of the two it is."""
    path = tmp_path / "a.db"
    async with open_log(str(path)) as log:
        await fill(log)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = replace(sql, ') STRICT', ')')")
    connection.commit()
    connection.close()
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER events_stand")
    connection.execute("UPDATE events SET body = CAST(body AS TEXT) WHERE position = 3")
    connection.commit()
    connection.close()
    assert any("what was never written" in problem for problem in await problems(path))


@pytest.mark.soak
def test_many_flipped_bits_are_found(tmp_path: Path, seed: int) -> None:
    for options in ("", "?chain=yes"):
        directory = tmp_path / options.strip("?")
        directory.mkdir(exist_ok=True)
        assert all_flips(directory, options, 3000, seed)[1] == []


# --- the end of the log ---------------------------------------------------------------------------


async def killed(path: Path, count: int, options: str = "") -> Path:
    """The files of a log as a process leaves them that is killed after so many appends."""
    async with open_log(f"sqlite:///{path}{options}") as log:
        for number in range(count):
            await log.append("s", [said(f"{number}", f"id-{number}")])
        copied = path.with_name("killed.db")
        for suffix in ("", "-wal", "-head"):
            shutil.copyfile(f"{path}{suffix}", f"{copied}{suffix}")
    return copied


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def mark_of(path: Path) -> Path:
    return path.with_name(path.name + "-head")


async def problems(path: Path) -> list[str]:
    async with open_log(str(path), create=False) as log:
        return [problem.what for problem in (await log.verify()).problems]


async def test_a_killed_process_leaves_a_mark_that_holds(tmp_path: Path) -> None:
    path = await killed(tmp_path / "a.db", 30)
    async with open_log(str(path), create=False) as log:
        found = await log.verify()
        assert (found.problems, found.events, found.marked) == ((), 30, True)
        await log.append("s", [said("on")])
    assert not mark_of(path).exists()  # nor a write-ahead log, whose end it could show
    assert await problems(path) == []


async def test_a_flipped_bit_in_the_write_ahead_log_is_found(tmp_path: Path) -> None:
    """SQLite drops all that lies behind it, without a word."""
    path = await killed(tmp_path / "a.db", 300)
    flip(wal_of(path), 8 * (wal_of(path).stat().st_size // 3))
    for _ in range(2):  # looking at it does not do away with the evidence
        [problem] = await problems(path)
        assert "to 300 were acknowledged, and are missing" in problem
    async with open_log(str(path), create=False) as log:
        left = (await log.summary("s")).events
        assert 0 < left < 300
        with pytest.raises(NotALog, match=r"It can be read; .*killed.db-head to go on without"):
            await log.append("s", [said("on")])
    mark_of(path).unlink()
    async with open_log(str(path), create=False) as log:
        [record] = await log.append("s", [said("on")])
        assert record.position == left + 1


def test_any_flipped_bit_in_the_write_ahead_log_is_found(tmp_path: Path) -> None:
    whole = asyncio.run(killed(tmp_path / "a.db", 12))
    (damaged := tmp_path / "flipped").mkdir()
    random = Random(3)

    async def read(path: Path) -> bytes:
        async with open_log(str(path), create=False) as log:
            return await contents(log)

    for _ in range(30):
        for suffix in ("", "-wal", "-head"):
            shutil.copyfile(f"{whole}{suffix}", damaged / f"a.db{suffix}")
        flip(damaged / "a.db-wal", random.randrange(8 * wal_of(whole).stat().st_size))
        found, clean = asyncio.run(look(damaged / "a.db"))
        assert not clean or found == asyncio.run(read(tmp_path / "a.db"))


async def test_a_loss_of_power_may_lose_the_end_where_that_was_agreed(tmp_path: Path) -> None:
    """The mark shows it, and the log continues."""
    path = await killed(tmp_path / "a.db", 30, "?durability=normal")
    wal_of(path).unlink()
    [problem] = await problems(path)
    assert "may do that with durability=normal" in problem
    async with open_log(str(path), create=False) as log:
        await log.append("s", [said("on")])
    assert await problems(path) == []


def no_mark(path: Path) -> None:
    mark_of(path).unlink()


def cut_mark(path: Path) -> None:
    mark_of(path).write_bytes(mark_of(path).read_bytes()[:40])


def older_mark(path: Path) -> None:
    shutil.copyfile(path.with_name("older-head"), mark_of(path))


def foreign_mark(path: Path) -> None:
    shutil.copyfile(path.with_name("foreign-head"), mark_of(path))


@pytest.mark.parametrize("change", [no_mark, cut_mark, older_mark, foreign_mark])
async def test_what_is_no_damage(tmp_path: Path, change: Callable[[Path], None]) -> None:
    """A mark that is missing, cut off, behind, or another log's."""
    async with open_log(str(tmp_path / "other.db")) as log:
        await log.append("s", [said("x")] * 200)
        shutil.copyfile(tmp_path / "other.db-head", tmp_path / "foreign-head")
    async with open_log(str(tmp_path / "a.db")) as log:
        await log.append("s", [said("x")])
        shutil.copyfile(tmp_path / "a.db-head", tmp_path / "older-head")
    path = await killed(tmp_path / "a.db", 30)
    change(path)
    async with open_log(str(path), create=False) as log:
        found = await log.verify()
        assert (found.problems, found.marked) == ((), change is older_mark)
        await log.append("s", [said("on")])
        assert (await log.verify()).marked


async def test_the_mark_is_about_an_envelope_and_survives_erasing(tmp_path: Path) -> None:
    async with open_log(str(tmp_path / "a.db")) as log:
        await log.append("s", [said("secret")])
        before = mark_of(tmp_path / "a.db").read_bytes()
        await log.forget("s")
        assert mark_of(tmp_path / "a.db").read_bytes() == before
        assert (await log.verify()).problems == ()


async def test_another_record_at_the_mark_is_found(tmp_path: Path) -> None:
    """An end that was lost, and rewritten by a program that does not know the mark."""
    path = await killed(tmp_path / "a.db", 5)
    mark = mark_of(path).read_bytes()
    wal_of(path).unlink()
    mark_of(path).unlink()
    async with open_log(str(path), create=False) as log:
        await log.append("s", [said(f"another {number}") for number in range(9)])
        mark_of(path).write_bytes(mark)
        [problem] = (await log.verify()).problems
        assert "not the one that the head mark is about" in problem.what


# --- older logs -----------------------------------------------------------------------------------


async def test_an_append_to_a_session_that_lost_its_records_names_damage(tmp_path: Path) -> None:
    """As after a disk lost some of its pages; nothing is written in the place of lost records."""
    path = tmp_path / "log.db"
    async with open_log(str(path)) as log:
        await log.append("s", [said("hello")])
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM streams")
    connection.close()
    async with open_log(str(path)) as log:
        with pytest.raises(NotALog, match=r"is damaged .*; restore it from a backup"):
            await log.append("s", [said("again")])
        [other] = await log.append("another", [said("again")])
        assert (other.position, other.version) == (2, 1)
        assert (await log.verify()).problems


async def test_an_append_whose_place_is_taken_names_damage(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with open_log(str(path)) as log:
        await log.append("s", [said("hello")])
    with sqlite3.connect(path) as connection:  # the place of the next stream
        connection.execute("INSERT INTO streams VALUES (2, 9, 'trace')")
    connection.close()
    async with open_log(str(path)) as log:
        with pytest.raises(NotALog, match=r"is damaged .*; restore it from a backup"):
            await log.append("another", [said("again")])


async def test_an_older_log_gets_checksums_for_what_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    golden = Path(__file__).parent / "golden" / "layout-1.sql"
    connection = sqlite3.connect(path)
    connection.executescript(golden.read_text(encoding="utf-8"))
    connection.execute("PRAGMA application_id = 0x44554F4C")
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    async with open_log(str(path), create=False) as log:
        assert (await log.verify()).unchecked == 19
        assert await log.checkpoint("copier", "1") == 5
    with closing(sqlite3.connect(path)) as connection:
        layout = connection.execute("PRAGMA user_version").fetchone()
    assert layout == (1,)  # to look at it changes nothing
    async with open_log(str(path), create=False) as log:
        await log.append("new", [said("x")])
        assert (await log.verify()).unchecked == 19
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER events_stand")
    connection.execute("UPDATE events SET actor = 'eve' WHERE position = 20")
    connection.execute("UPDATE checkpoints SET crc = 1")
    connection.commit()
    connection.close()
    found = await problems(path)
    assert "the record is not what was written: its checksum differs" in found
    assert "the checkpoint of consumer 'copier' is not what was written" in found
    async with open_log(str(path), create=False) as log:
        await log.forget("golden")
        assert (await log.verify()).unchecked == 0  # an erased one has a checksum of its envelope
