"""Measures a report on tables of very many sessions, which a generator makes up.

python -P -m duolog.benchmarks.tables [--sessions 1000000] [--resamples 200] [--directory DIR] [--repeat 5]

The report runs in a separate process, whose peak memory is read at the end. It is compared with
reading the same columns of rounds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np
from duolog.benchmarks.measuring import add_arguments, compare, write_rows
from duolog.scoring.columns.parquet import (
    COLUMNS,
    Manifest,
    folder_of,
    save_manifest,
    view_of,
    write_part,
)
from duolog.scoring.columns.rows import PROCESS_MEASURES
from duolog.scoring.columns.table import Flags
from duolog.scoring.trajectory.effort import MEASURES
from duolog.scoring.trajectory.options import Options

_ROUNDS_MOST = 11


def generate(directory: Path, sessions: int) -> None:
    """Writes a directory of tables: three agents, 1 to 11 rounds a session, 6 on average."""
    import pyarrow  # type: ignore[import-untyped]

    chance = np.random.default_rng(0)
    key = np.arange(sessions)
    rounds = chance.integers(1, _ROUNDS_MOST + 1, sessions)
    of = np.repeat(key, rounds)
    number = np.arange(1, len(of) + 1) - np.repeat(np.cumsum(rounds) - rounds, rounds)
    names = pyarrow.array([f"s{one}" for one in range(sessions)])

    def flag(values: Flags | bool, count: int) -> Flags:
        return np.broadcast_to(np.asarray(values), (count,))

    def labels() -> object:
        agents = np.array(["one-stage", "two-stage", "adaptive"])[key % 3]
        keys = pyarrow.array(["agent", "task"] * sessions)
        values = pyarrow.array(np.stack([agents, np.full(sessions, "travel")], 1).ravel())
        return pyarrow.MapArray.from_arrays(2 * np.arange(sessions + 1), keys, values)

    none = np.zeros(sessions + 1, np.int32)
    empty = pyarrow.array([], pyarrow.string())
    session = {
        "key": key,
        "session": names,
        "state": np.array(["finished", "finished", "finished", "abandoned"])[
            chance.integers(0, 4, sessions)
        ],
        "labels": labels(),
        "instance": np.char.add("i", (key % 1000).astype(str)),
        "seed": np.zeros(sessions, np.int64),
        "scorer": np.full(sessions, "travel@1"),
        "judges": pyarrow.ListArray.from_arrays(
            np.arange(sessions + 1, dtype=np.int32), pyarrow.array(["rule-judge@1"] * sessions)
        ),
        **dict.fromkeys(
            ("baseline", "silent", "estimated", "final_missing"), flag(False, sessions)
        ),
        **dict.fromkeys(("evaluated", "output"), flag(True, sessions)),
        "candidates": pyarrow.ListArray.from_arrays(none, empty),
        "agent_tokens": 100 + chance.integers(0, 20_000, sessions),
        "human_tokens": 10 + chance.integers(0, 5_000, sessions),
        "final": pyarrow.nulls(sessions, pyarrow.float64()),
        "forked_from": pyarrow.nulls(sessions, pyarrow.string()),
        "forked_version": pyarrow.nulls(sessions, pyarrow.int64()),
        "forked_at": pyarrow.nulls(sessions, pyarrow.int64()),
        "faults": pyarrow.MapArray.from_arrays(none, empty, pyarrow.array([], pyarrow.int64())),
        "rounds": rounds,
        **{
            f"process_{name}": chance.integers(0, 7, sessions).astype(float)
            for name in PROCESS_MEASURES
        },
        **{f"effort_{name}": chance.integers(0, 900, sessions).astype(float) for name in MEASURES},
    }
    updated = chance.random(len(of)) < 0.6
    utility = chance.integers(0, 49, len(of)) / 48
    round_ = {
        "key": of,
        "session": names.take(pyarrow.array(of)),
        "round": number.astype(np.int32),
        "stage": np.where(number == 1, "initial", "refinement"),
        "closing": flag(False, len(of)),
        "updated": updated,
        "utility": utility,
        "value": pyarrow.array(utility, mask=~updated),
        "stale": flag(False, len(of)),
        "rating": pyarrow.array(
            chance.integers(1, 6, len(of)).astype(np.int8), mask=chance.random(len(of)) < 0.1
        ),
        "pending": flag(False, len(of)),
        **{
            f"effort_{name}": number * chance.integers(0, 80, sessions)[of].astype(float)
            for name in MEASURES
        },
    }
    view = view_of(Options())
    parts = [
        write_part(directory, folder_of(view, table, "travel@1"), at, [pyarrow.table(columns)])
        for at, (table, columns) in enumerate((("sessions", session), ("rounds", round_)), start=1)
    ]
    written = tuple([part for part in parts if part is not None])
    view = msgspec.structs.replace(view, columns=COLUMNS, position=1, parts=written)
    save_manifest(directory, Manifest(log="made up", number=2, views=(view,)))


def _floor(directory: Path) -> tuple[float, float]:
    """Seconds by the wall and of the processor to read the columns that a table needs."""
    import pyarrow.parquet  # type: ignore[import-untyped]

    wall, cpu = time.perf_counter(), time.process_time()
    names = ["key", "utility", "value", "rating", "updated", "stale", "pending", "closing"]
    for path in (directory / "rounds").rglob("*.parquet"):
        pyarrow.parquet.ParquetFile(path).read(columns=names)
    return time.perf_counter() - wall, time.process_time() - cpu


def _report(directory: Path, resamples: int) -> tuple[float, float, float]:
    """Seconds by the wall and of the processor that a report takes, and its peak memory in MB."""
    command = [sys.executable, "-P", "-m", "duolog", "report", str(directory)]
    begun = time.perf_counter()
    process = subprocess.Popen([*command, "--bootstrap", str(resamples)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    spent = time.perf_counter() - begun
    if status:
        sys.exit("the report failed")
    return spent, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1_000_000)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--directory", type=Path, help="keep the tables here, and use them again")
    add_arguments(parser)
    asked = parser.parse_args()
    sessions = asked.sessions // 10 if asked.quick else asked.sessions
    with tempfile.TemporaryDirectory() as temporary:
        directory = asked.directory or Path(temporary) / "tables"
        if not directory.exists():
            # In a separate process, because a child's peak memory begins with its parent's.
            maker = multiprocessing.get_context("spawn").Process(
                target=generate, args=(directory, sessions)
            )
            maker.start()
            maker.join()
        size = sum(path.stat().st_size for path in directory.rglob("*.parquet")) / 1e6
        floors, reports = [], []
        for _ in range(asked.repeat):
            floors.append(_floor(directory))
            reports.append(_report(directory, asked.resamples))
    wall, cpu, memory = map(statistics.median, zip(*reports, strict=True))
    row = compare(
        f"report of tables, {sessions:,} sessions : reading their columns",
        [spent for _, spent, _ in reports],
        [spent for _, spent in floors],
        better="lower",
        goal=8.0 * sessions / 1_000_000 + 0.5 * asked.quick,  # the start, however small they are
        value=wall,
        unit="s",
        about=f"{size:.0f} MB of Parquet; {cpu:.1f} s of CPU, {memory:.0f} MB (goal 1,200)",
    )
    write_rows(asked.rows, [row])


if __name__ == "__main__":
    main()
