"""Measures the cost of the log against the bare database, and against another library.

    python -P -m duolog.benchmarks.log                 # all parts
    python -P -m duolog.benchmarks.log append read     # some of them
    python -P -m duolog.benchmarks.log --quick         # a third of the events, for a first look

Ours and its floor (``floors.sqlite``) take turns in one run; so does ``eventsourcing``, if it is
installed. The parts ``latency``, ``memory`` and ``idle`` are without a floor, and print figures alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
from duolog.benchmarks.floors.sqlite import append_raw
from duolog.benchmarks.log_load import bench_idle, bench_latency, bench_memory, write_and_read
from duolog.benchmarks.log_reading import open_rows, read_rows
from duolog.benchmarks.measuring import (
    Row,
    Timing,
    add_arguments,
    compare,
    missing,
    timed,
    write_rows,
)
from duolog.benchmarks.peers.eventsourcing_log import PACKAGE, append_theirs
from duolog.benchmarks.workloads.typical_events import draft
from duolog.engine.log.sqlite.file import parse
from duolog.engine.log.sqlite.log import sqlite_log

__all__ = ("main",)

_GOALS = {1: 0.65, 100: 0.75, 1000: 0.6}


async def append_ours(path: Path, writers: int, count: int) -> float:
    """Has tasks append one event at a time, each to its session; gives the mean group size."""
    each = count // writers

    async def write(number: int) -> None:
        session = f"session-{number}"
        for index in range(each):
            await log.append(session, [draft(number + index)])

    async with sqlite_log(parse(str(path))) as log:
        async with anyio.create_task_group() as tasks:
            for number in range(writers):
                tasks.start_soon(write, number)
        done = log.statistics()
        return done.events / done.groups


def _fresh(directory: Path) -> Path:
    """A path without a log."""
    for old in directory.glob("bench.db*"):
        old.unlink()
    return directory / "bench.db"


def append_rows(directory: Path, scale: float, repeat: int) -> list[Row]:
    """Durable appends, of raw ``executemany`` in as large groups, and of ``eventsourcing``."""
    rows: list[Row] = []
    for writers, count in ((1, 600), (100, 20_000), (1000, 20_000)):
        count = max(writers, int(count * scale) // writers * writers)
        ours: list[Timing] = []
        raw: list[Timing] = []
        theirs: list[Timing] = []
        groups: list[float] = []
        name = f"append, {writers} writers : eventsourcing"
        absent = missing(name, PACKAGE)

        def run_ours(
            writers: int = writers, count: int = count, groups: list[float] = groups
        ) -> int:
            groups.append(asyncio.run(append_ours(_fresh(directory), writers, count)))
            return count

        for turn in range(repeat + 1):
            taken = timed(run_ours)
            run_raw = partial(append_raw, _fresh(directory), writers, round(groups[-1]), count)
            least = timed(run_raw)
            if turn:
                ours.append(taken)
                raw.append(least)
                if absent is None:
                    theirs.append(timed(append_theirs(_fresh(directory), writers, 300)))
        cpu = statistics.median(b.cpu / a.cpu for a, b in zip(ours, raw, strict=True))
        rows.append(
            compare(
                f"append, {writers} writers : raw sqlite3",
                [timing.wall for timing in ours],
                [timing.wall for timing in raw],
                goal=_GOALS[writers],
                about=f"{1 / statistics.median(t.wall for t in ours):,.0f}/s in groups of "
                f"{statistics.median(groups):.0f}; CPU alone {cpu:.2f}",
            )
        )
        rows.append(absent or compare(name, [t.wall for t in ours], [t.wall for t in theirs]))
    return rows


ROWS: dict[str, Callable[[Path, float, int], list[Row]]] = {
    "append": append_rows,
    "read": read_rows,
    "open": open_rows,
}
OTHERS: dict[str, Callable[[Path, float], None]] = {
    "latency": bench_latency,
    "memory": bench_memory,
    "idle": bench_idle,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parts = (*ROWS, *OTHERS)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts))
    parser.add_argument("--directory", type=Path, help="where to write (a disk, not memory)")
    parser.add_argument("--inner-memory", nargs=2, help=argparse.SUPPRESS)
    add_arguments(parser)
    options = parser.parse_args(arguments)
    if options.inner_memory:
        path, count = options.inner_memory
        print(json.dumps(asyncio.run(write_and_read(Path(path), int(count)))))
        return
    for part in options.parts:
        if part not in parts:
            parser.error(f"unknown part {part!r}; choose from {', '.join(parts)}")
    scale = 0.3 if options.quick else 1.0
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="duolog-bench-") as directory:
        print(f"sqlite {sqlite3.sqlite_version}, {os.cpu_count()} cores, in {directory}")
        for part in options.parts or parts:
            if part in ROWS:
                rows += ROWS[part](Path(directory), scale, options.repeat)
            else:
                OTHERS[part](Path(directory), scale)
    write_rows(options.rows, rows)


if __name__ == "__main__":
    main()
