"""Scans of a whole log: everything, in order, and never past a gap."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from duolog.engine.errors import InvalidInput, LogClosed, NotALog
from duolog.engine.log.contract import Store
from duolog.engine.log.open import open_log
from duolog.engine.log.sqlite import reader as sqlite_read
from duolog.engine.records import Draft, Record
from duolog.testing.tools import collect, message

URLS = ("memory://", "sqlite")


def store(url: str, path: Path) -> Store:
    return open_log(url if url == "memory://" else f"sqlite:///{path / 'log.db'}")


def said(count: int) -> list[Draft]:
    return [message(f"message {number}") for number in range(count)]


async def written(log: Store, count: int) -> None:
    await log.append("b", said(count - count // 2))
    if count > 1:
        await log.append("a", said(count // 2))


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 255, 256, 257, 700])
async def test_scan_is_read_all(
    url: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_read, "_STRETCH", 256)
    async with store(url, tmp_path) as log:
        if count:
            await written(log, count)
        batches: list[Sequence[Record]] = []
        await log.scan(batches.append)
        assert all(batches)
        assert [r for batch in batches for r in batch] == await collect(log.read_all())
        assert sum(map(len, batches)) == count


@pytest.mark.parametrize("url", URLS)
async def test_what_the_function_raises_ends_the_scan(url: str, tmp_path: Path) -> None:
    calls: list[int] = []

    def consume(records: Sequence[Record]) -> None:
        calls.append(len(records))
        raise InvalidInput("enough")

    async with store(url, tmp_path) as log:
        await written(log, 1200)
        with pytest.raises(InvalidInput, match="enough"):
            await log.scan(consume)
        assert len(calls) == 1
        await log.append("a", said(1))  # the log is as usable as before
        assert len(await collect(log.read_all())) == 1201


@pytest.mark.parametrize("url", URLS)
async def test_a_closed_log_is_not_scanned(url: str, tmp_path: Path) -> None:
    async with store(url, tmp_path) as log:
        pass
    with pytest.raises(LogClosed):
        await log.scan(len)


async def test_a_scan_stops_before_a_gap(tmp_path: Path) -> None:
    async with store("sqlite", tmp_path) as log:
        await written(log, 200)
    with closing(sqlite3.connect(tmp_path / "log.db")) as connection:
        connection.execute("DROP TRIGGER events_stay")
        connection.execute("DELETE FROM events WHERE position = 100")
        connection.commit()
    found: list[Record] = []
    async with store("sqlite", tmp_path) as log:
        with pytest.raises(NotALog, match="positions after 64 are missing"):
            await log.scan(found.extend)
    assert [record.position for record in found] == list(range(1, 65))


async def test_the_loop_runs_while_sqlite_is_scanned(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    turn = threading.Event()

    def consume(records: Sequence[Record]) -> None:
        loop.call_soon_threadsafe(turn.set)
        assert turn.wait(300), "the event loop had no turn while the function ran"

    async with store("sqlite", tmp_path) as log:
        await written(log, 10)
        await log.scan(consume)
