"""Measures a report over many sessions: reading the file, the numbers, the intervals.

Usage: python benchmarks/report.py [--sessions 10000] [--resamples 1000]
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from duolog.engine.rounds import Stage
from duolog.scoring.metrics import Convention, aggregate
from duolog.scoring.trajectory.files import read_trajectories, write_trajectories
from duolog.scoring.trajectory.points import Point, Trajectory


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


def main() -> None:
    """Times the parts, and prints seconds and peak memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--resamples", type=int, default=1_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trajectories.jsonl"
        write_trajectories(path, make(asked.sessions))
        print(f"{asked.sessions} sessions, {path.stat().st_size / 1e6:.1f} MB")
        begun = time.perf_counter()
        trajectories = list(read_trajectories(path))
        print(f"read                      {time.perf_counter() - begun:6.2f} s")
    conventions: tuple[Convention, ...] = ("formal", "paper")
    for convention in conventions:
        for resamples in (0, asked.resamples):
            begun = time.perf_counter()
            aggregate(trajectories, convention=convention, bootstrap=resamples)
            spent = time.perf_counter() - begun
            print(f"{convention}, {resamples:5d} resamples    {spent:6.2f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
