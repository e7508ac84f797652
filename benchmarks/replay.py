"""Measures how fast a log is replayed, against merely fetching and decoding the same rows.

    python -P -m duolog.benchmarks.replay [--sessions 1000] [--rounds 8] [--models] [--log FILE]

Writes a SQLite log (``workloads.recorded_sessions``), or takes one that is there. Then measures the processor
time, in turn in one process, of

- ``decode``, the floor: every row fetched with sqlite3 and every body decoded with msgspec;
- ``records``: the same with the envelopes, that is ``Record`` objects whose events are decoded;
- ``read``: all records through ``read_all``, undecoded, on the event loop;
- ``replay``: the same through rounds, effort, utility, tolerance and trajectory as well, and keeping
  the rows in the log;
- ``updates``: the same with all updates, as a live watch gives them;
- ``fold``: the part of ``replay`` other than reading, over records in memory;
- ``frames``: one pandas frame per session, and the same numbers from it, if pandas is installed.

It also prints how much memory the fold of one session keeps per round.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
from duolog.benchmarks.floors.sqlite import decode_raw, read_raw
from duolog.benchmarks.measuring import (
    Row,
    add_arguments,
    compare,
    missing,
    timed,
    write_rows,
)
from duolog.benchmarks.peers.pandas_replay import PACKAGE, frames
from duolog.benchmarks.workloads.recorded_sessions import session, write
from duolog.engine.events import Event
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from duolog.scoring.live import score_sessions
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.testing.records import RecordWriter

__all__ = ("main",)

_GOALS = {"replay": 0.85, "updates": 0.7}


async def read(path: Path) -> int:
    """Reads all records, and leaves their bodies alone; gives how many."""
    count = 0
    async with open_log(f"sqlite:///{path}") as log:
        async for _ in log.read_all():
            count += 1
    return count


async def replay(path: Path) -> int:
    """Scores all sessions of the log, in one pass, as if for the first time; gives how many rounds."""
    async with open_log(f"sqlite:///{path}") as log:
        await log.drop_derived()  # or it would read what the previous run kept
        return sum([len(trajectory.points) async for trajectory in score_sessions(log)])


async def updates(path: Path) -> int:
    """Folds all sessions of the log with their updates; gives how many."""
    folds: dict[str, TrajectoryFold] = {}
    count = 0
    async with open_log(f"sqlite:///{path}") as log:
        async for record in log.read_all():
            one = folds.get(record.session)
            if one is None:
                one = folds[record.session] = TrajectoryFold(record.session)
            count += len(one.feed(record))
    return count


async def records_of(path: Path) -> list[Record]:
    """All records of the log."""
    async with open_log(f"sqlite:///{path}") as log:
        return [record async for record in log.read_all()]


def fold(records: list[Record]) -> int:
    """Folds records that are in memory, their bodies not decoded yet; gives how many rounds."""
    folds: dict[str, TrajectoryFold] = {}
    for record in records:
        one = folds.get(record.session)
        if one is None:
            one = folds[record.session] = TrajectoryFold(record.session, emit=False)
        one.feed(record)
    return sum(len(one.trajectory().points) for one in folds.values())


async def memory(rounds: int, models: bool) -> float:
    """Bytes that the fold of a session of so many rounds holds, per round, once it is closed."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        one = TrajectoryFold("memory")
        script = RecordWriter("memory")
        for stream, draft in session("memory", rounds, models):
            event = draft.event
            if isinstance(event, Event):
                one.feed(script.add(event, draft.actor, draft.role, stream=stream))
            script.records.clear()
        after, _ = tracemalloc.get_traced_memory()
        return (after - before) / rounds
    finally:
        tracemalloc.stop()


def measure(path: Path, repeat: int) -> list[Row]:
    """Runs everything in turn."""
    count = decode_raw(path)

    def of(run: Callable[[], object]) -> Callable[[], int]:
        def work() -> int:
            run()
            return count

        return work

    works: dict[str, Callable[[], int]] = {
        "replay": of(lambda: anyio.run(replay, path)),
        "updates": of(lambda: anyio.run(updates, path)),
        "read": of(lambda: anyio.run(read, path)),
        "records": of(lambda: read_raw(path)),
        "frames": of(lambda: frames(path)),
    }
    absent = missing("replay : pandas frames", PACKAGE)
    if absent is not None:
        del works["frames"]
    floor: list[float] = []
    costs: dict[str, list[float]] = {name: [] for name in (*works, "fold")}
    for turn in range(repeat + 1):
        least = timed(lambda: decode_raw(path)).cpu
        found = {name: timed(work).cpu for name, work in works.items()}
        records = anyio.run(records_of, path)
        found["fold"] = timed(of(partial(fold, records))).cpu
        del records  # their bodies are decoded now
        if turn:
            floor.append(least)
            for name, cost in found.items():
                costs[name].append(cost)
    rows = [
        compare(
            f"{name} : raw decoding",
            spent,
            floor,
            goal=_GOALS.get(name),
            about=f"{1 / statistics.median(spent):,.0f} rows per CPU second",
        )
        for name, spent in costs.items()
        if name != "frames"
    ]
    rows.append(absent or compare("replay : pandas frames", costs["replay"], costs["frames"]))
    return rows


def main() -> None:
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--models", action="store_true", help="agents call models")
    parser.add_argument("--log", type=Path, help="a SQLite log to take instead of writing one")
    add_arguments(parser)
    asked = parser.parse_args()
    sessions = asked.sessions // 10 if asked.quick else asked.sessions
    with tempfile.TemporaryDirectory() as directory:
        path = asked.log or Path(directory) / "replay.db"
        if asked.log is None:
            anyio.run(write, path, sessions, asked.rounds, asked.models)
        write_rows(asked.rows, measure(path, asked.repeat))
    for rounds in (100, 1000):
        kept = anyio.run(memory, rounds, asked.models)
        print(f"a fold of {rounds:5} rounds keeps {kept:6.0f} bytes per round")


if __name__ == "__main__":
    main()
