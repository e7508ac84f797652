"""Measures a report over many sessions: reading a log of them, the numbers, the intervals.

python -P -m duolog.benchmarks.report [--sessions 10000] [--resamples 1000]
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
from duolog.benchmarks.floors.sqlite import decode_raw
from duolog.benchmarks.measuring import Row, add_arguments, compare, peak_memory, write_rows
from duolog.benchmarks.workloads.recorded_sessions import write
from duolog.engine.log.open import open_log
from duolog.engine.rounds import Stage
from duolog.scoring.metrics import Convention, aggregate
from duolog.scoring.trajectory.files import read_trajectories, write_trajectories
from duolog.scoring.trajectory.points import Point, Trajectory

_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


def make(count: int, seed: int = 0) -> Iterator[Trajectory]:
    """Random sessions: two agents with two models, and automated runs, 1 to 30 rounds each."""
    chance = random.Random(seed)
    for number in range(count):
        agent = ("one-stage", "two-stage", "auto")[number % 3]
        points: list[Point] = []
        standing = 0.0
        stage: Stage = "initial"
        for k in range(1, 2 if agent == "auto" else chance.randint(2, 31)):
            value = chance.randint(0, 48) / 48 if chance.random() < 0.6 else None
            standing = standing if value is None else value
            rating = chance.randint(1, 5) if chance.random() < 0.9 else None
            points.append(
                Point(
                    round=k,
                    value=value,
                    utility=standing,
                    rating=rating,
                    updated=value is not None,
                    stage=stage,
                )
            )
            if value is not None:
                stage = "refinement"
        yield Trajectory(
            session=f"s{number}",
            group={"agent": agent, "model": f"m{number % 2}"},
            points=tuple(points),
            agent_tokens=chance.randint(100, 20_000),
            human_tokens=chance.randint(10, 5_000),
            baseline=agent == "auto",
        )


def report_rows(sessions: int, repeat: int) -> list[Row]:
    """Commands over a log on disk, of merely fetching and decoding its rows: the first report, the second
    one, for which the log keeps what the first has folded, screens of sessions, and one session.
    """
    least = 0.5  # seconds that a command may take, however small its log is
    screen = ["sessions", "--limit", "20"]
    commands = {
        "first report": (["report"], 3.0),
        "second report": (["report"], 1.0),
        **{
            f"screen of sessions by {key}": ([*screen, "--sort", f"-{key}"], 0.0)
            for key in ("utility", "last", "session")
        },
        "one session shown": (["show"], 0.0),
    }
    ours: dict[str, list[float]] = {name: [] for name in commands}
    raw = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.db"
        anyio.run(write, path, sessions, 5, False)
        for turn in range(repeat + 1):
            anyio.run(_keep_nothing, path)
            mine = {name: _seconds(words, path) for name, (words, _) in commands.items()}
            begun = time.perf_counter()
            records = decode_raw(path)
            spent = time.perf_counter() - begun
            if turn:
                raw.append(spent)
                for name, seconds in mine.items():
                    ours[name].append(seconds)
    about = f"{records:,} records; raw {statistics.median(raw):.2f} s"
    return [
        compare(
            f"{name}, {sessions:,} sessions : raw decoding",
            ours[name],
            raw,
            better="lower",
            goal=least + each * sessions / 10_000,
            value=statistics.median(ours[name]),
            unit="s",
            about=about,
        )
        for name, (_, each) in commands.items()
    ]


async def _keep_nothing(path: Path) -> None:
    async with open_log(str(path)) as log:
        await log.drop_derived()


def _seconds(words: Sequence[str], path: Path) -> float:
    name, *options = words
    options += ["session-00000"] if name == "show" else []
    command = [sys.executable, "-P", "-m", "duolog", name, str(path), *options]
    # As in an installation, the first run writes bytecode, so later ones do not compile.
    environment = {name: os.environ[name] for name in os.environ if name != _NO_BYTECODE}
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - begun


def _bootstrap(sessions: int, resamples: int) -> None:
    """Times the parts of a report, and prints seconds and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trajectories.jsonl"
        write_trajectories(path, make(sessions))
        print(f"{sessions} sessions, {path.stat().st_size / 1e6:.1f} MB")
        begun = time.perf_counter()
        trajectories = list(read_trajectories(path))
        print(f"read                      {time.perf_counter() - begun:6.2f} s")
    conventions: tuple[Convention, ...] = ("formal", "paper")
    for convention in conventions:
        for number in (0, resamples):
            begun = time.perf_counter()
            aggregate(trajectories, convention=convention, bootstrap=number)
            spent = time.perf_counter() - begun
            print(f"{convention}, {number:5d} resamples    {spent:6.2f} s")
    print(f"peak memory {peak_memory():.0f} MB")


def main() -> None:
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--resamples", type=int, default=1_000)
    add_arguments(parser)
    asked = parser.parse_args()
    sessions = asked.sessions // 10 if asked.quick else asked.sessions
    write_rows(asked.rows, report_rows(sessions, asked.repeat))
    _bootstrap(sessions, asked.resamples)


if __name__ == "__main__":
    main()
