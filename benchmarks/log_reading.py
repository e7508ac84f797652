"""Reading a log: in batches, one by one, and the list of sessions, against ``sqlite3`` alone."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
from duolog.benchmarks.floors.sqlite import list_raw, read_raw
from duolog.benchmarks.measuring import Row, alternately, compare, missing
from duolog.benchmarks.peers.eventsourcing_log import PACKAGE, read_theirs
from duolog.benchmarks.workloads.typical_events import fill
from duolog.engine.log.open import open_log
from duolog.engine.log.sqlite.file import parse
from duolog.engine.log.sqlite.log import sqlite_log
from duolog.engine.records import Record
from duolog.scoring.index.sessions import SessionIndex

__all__ = ("open_rows", "read_rows")


def _fill(path: Path, sessions: int, count: int) -> None:
    log = sqlite_log(parse(f"sqlite:///{path}?durability=normal"))
    asyncio.run(fill(log, sessions, count))


async def scan_ours(path: Path, *, decode: bool = True) -> int:
    """Reads a whole log, a batch at a time, in the thread that reads; gives how many records."""
    count = 0

    def consume(records: Sequence[Record]) -> None:
        nonlocal count
        if decode:
            for record in records:
                count += record.event is not None
        else:
            count += len(records)

    async with sqlite_log(parse(str(path)), create=False) as log:
        await log.scan(consume)
    return count


def _scan(path: Path, decode: bool) -> int:
    return asyncio.run(scan_ours(path, decode=decode))


async def iterate_ours(path: Path) -> int:
    """The same one record at a time, on the event loop."""
    count = 0
    async with sqlite_log(parse(str(path)), create=False) as log:
        async for record in log.read_all():
            count += record.event is not None
    return count


def read_rows(directory: Path, scale: float, repeat: int) -> list[Row]:
    """Reading and decoding, of raw fetching and decoding and of ``eventsourcing``."""
    count = int(300_000 * scale)
    path = directory / "read.db"
    _fill(path, 1000, count)
    found = alternately(
        {
            "batches": partial(_scan, path, True),
            "one by one": lambda: asyncio.run(iterate_ours(path)),
            "raw": lambda: read_raw(path),
        },
        repeat,
    )
    raw = [timing.cpu for timing in found["raw"]]
    rows = []
    for name in ("one by one", "batches"):
        speed = 1 / statistics.median(timing.wall for timing in found[name])
        rows.append(
            compare(
                f"read {name} : raw",
                [timing.cpu for timing in found[name]],
                raw,
                goal=0.9,
                about=f"{speed:,.0f} events/s; CPU",
            )
        )
    name = "read and decode : eventsourcing"
    rows.append(missing(name, PACKAGE) or _against_peer(name, directory, path, repeat))
    return rows


def _against_peer(name: str, directory: Path, path: Path, repeat: int) -> Row:
    other = read_theirs(directory / "theirs.db", 20_000)
    found = alternately(
        {"ours": partial(_scan, path, True), "theirs": partial(other, True)}, repeat
    )
    ours, theirs = ([t.wall for t in found[who]] for who in ("ours", "theirs"))
    return compare(name, ours, theirs)


async def open_and_show(path: Path) -> float:
    """Opens a log, reads the list of sessions, then one session; gives the seconds it took."""
    begin = time.perf_counter()
    async with open_log(str(path), create=False) as log:
        sessions = [summary async for summary in log.sessions()]
        session = sessions[len(sessions) // 2].session
        _ = [record.event async for record in log.read(session)]
        return time.perf_counter() - begin


async def know_all(path: Path) -> int:
    """Opens a log and knows all of its sessions, as ``watch`` and the workbench do; gives how many."""
    async with open_log(str(path), create=False) as log, anyio.create_task_group() as tasks:
        index = SessionIndex(log)
        tasks.start_soon(index.run)
        while not index.loaded:
            await index.wait()
        tasks.cancel_scope.cancel()
    return len(index)


def open_rows(directory: Path, scale: float, repeat: int) -> list[Row]:
    """Opening a long log, listing its sessions and showing one of them, of the same by hand."""
    rows = []
    for among, goal in ((1_000, None), (100_000, 0.1)):
        count, sessions = int(300_000 * scale), int(among * scale)
        path = directory / f"open-{sessions}.db"
        _fill(path, sessions, count)
        ours, raw = [], []
        for turn in range(repeat + 1):
            mine = asyncio.run(open_and_show(path))
            begun = time.perf_counter()
            list_raw(path, f"session-{sessions // 2}")
            if turn:
                ours.append(mine)
                raw.append(time.perf_counter() - begun)
        rows.append(
            compare(
                f"open, list, show: {count:,} events, {sessions:,} sessions : raw",
                ours,
                raw,
                better="lower",
                goal=goal,
                value=statistics.median(ours),
                unit="s",
                about=f"raw {statistics.median(raw):.3f} s",
            )
        )
        if goal is not None:
            rows.append(_index_row(path, sessions, repeat))
        path.unlink()
    return rows


def _index_row(path: Path, sessions: int, repeat: int) -> Row:
    """Processor time until all sessions are known to those who list them, of the raw list's."""
    found = alternately(
        {
            "ours": lambda: anyio.run(know_all, path),
            "raw": lambda: list_raw(path, f"session-{sessions // 2}"),
        },
        repeat,
    )
    ours, raw = ([timing.cpu for timing in found[who]] for who in ("ours", "raw"))
    return compare(
        f"know {sessions:,} sessions, as watch does : raw list",
        ours,
        raw,
        better="lower",
        about=f"{sessions * statistics.median(ours):.2f} s CPU",
    )
