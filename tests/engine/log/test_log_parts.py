"""Parts of a log: whole sessions, all of them, as of one position."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from duolog.engine.errors import NotALog
from duolog.engine.log.open import open_log
from duolog.engine.log.parts import Divisible, Part, divided, joined
from duolog.engine.log.sqlite import reader as sqlite_read
from duolog.engine.records import Record
from duolog.testing.postgres_server import PostgresServer
from duolog.testing.tools import appended, collect, message
from scripted_logs import MOVES, interleave, script_of


async def check_parts(url: str) -> None:
    """That parts hold the sessions of a log, each once, in order of their first records."""
    chance = random.Random(5)
    scripts = [script_of(chance.choices(MOVES, k=12), f"s{number}") for number in range(9)]
    async with open_log(url) as log:
        assert isinstance(log, Divisible)
        assert await log.parts(3) == []
        await interleave(log, scripts, [chance.randrange(9) for _ in range(60)])
        await log.forget("s4")
        everything = await collect(log.read_all())
        order = [*dict.fromkeys(record.session for record in everything)]
        divisions = [await log.parts(count) for count in (1, 2, 3, 20)]
        assert [len(parts) for parts in divisions] == [1, 2, 3, len(order)]
        await appended(log, "late", 1)  # after that, and in no part
        await log.append("s1", [message("late")], stream="late@1")
        for parts in (*divisions, [joined(divisions[2][:2]), divisions[2][2]]):
            found: list[Record] = []
            for part in parts:
                held: list[Record] = []
                await log.scan_part(part, held.extend)
                assert held == [record for record in everything if record in held]
                found += held
            assert [*dict.fromkeys(record.session for record in found)] == order
            assert sorted(found, key=lambda record: record.position) == everything


async def test_parts_hold_each_session_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_read, "_STRETCH", 7)
    await check_parts(f"sqlite:///{tmp_path / 'log.db'}")


@pytest.mark.slow
async def test_parts_hold_each_session_once_on_postgres(postgres: PostgresServer) -> None:
    await check_parts(postgres.url())


async def test_a_part_with_a_record_missing_is_not_read_as_whole(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    async with open_log(str(path)) as log:
        for name in "abc":
            await appended(log, name, 4)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER events_stay")
        connection.execute("DELETE FROM events WHERE position = 6")
        connection.commit()
    async with open_log(str(path)) as log:
        assert isinstance(log, Divisible)
        first, second, third = await log.parts(3)
        await log.scan_part(first, len)
        with pytest.raises(NotALog, match="counts 4 records, but 3 exist"):
            await log.scan_part(second, len)
        await log.scan_part(third, len)


@pytest.mark.parametrize(
    ("records", "count", "expected"),
    [
        ([5, 5, 5, 5], 2, [10, 10]),
        ([9, 1, 1, 1], 2, [9, 3]),
        ([1, 1, 1, 9], 2, [12]),
        ([3], 4, [3]),
        ([1, 1, 1], 9, [1, 1, 1]),
        ([], 2, []),
    ],
)
def test_parts_have_about_as_many_records_each(
    records: list[int], count: int, expected: list[int]
) -> None:
    sessions = [(key, held, 100 - key) for key, held in enumerate(records, start=1)]
    parts = divided(sessions, count)
    assert [part.records for part in parts] == expected
    assert [part.upto for part in parts] == [100 - part.first for part in parts]
    spans: list[Part] = parts
    assert [key for part in spans for key in range(part.first, part.last + 1)] == [
        *range(1, len(records) + 1)
    ]
