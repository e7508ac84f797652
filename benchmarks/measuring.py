"""What all benchmarks share: timing things in turn, and rows that hold a ratio to a floor.

A floor is the least that the same work can cost: the same events, encoded and written, without
what the library adds. It is measured in the same process and run, in turn with ours, so that a slow
or a busy machine is slow and busy to both. The medians of the ratios of neighbours are reported.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

__all__ = (
    "Row",
    "Timing",
    "add_arguments",
    "alternately",
    "compare",
    "missing",
    "peak_memory",
    "quantile",
    "resident_memory",
    "timed",
    "write_rows",
)

Better = Literal["higher", "lower"]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table.

    Attributes:
        name: what is compared with what.
        ratio: ours to the floor, the median of the runs; None where it was not measured.
        low: the lower quartile of the runs' ratios.
        high: their upper quartile.
        better: whether a higher or a lower ratio is better.
        goal: what the ratio, or ``value`` where there is one, should be.
        value: the same as an absolute figure, where the goal is one.
        unit: of ``value``.
        about: absolute figures, for a reader.
        skipped: why it was not measured; empty where it was.
    """

    name: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    better: Better = "higher"
    goal: float | None = None
    value: float | None = None
    unit: str = ""
    about: str = ""
    skipped: str = ""

    def line(self) -> str:
        """The row as a line of text."""
        if self.ratio is None:
            return f"  {self.name:<58} skipped: {self.skipped}"
        spread = f"{self.low:.2f}-{self.high:.2f}" if self.low and self.high else ""
        reached = "" if self.value is None else f"{self.value:.3g} {self.unit}"
        goal = "" if self.goal is None else f"goal {self.goal:g} {self.unit}".rstrip()
        return (
            f"  {self.name:<58} {self.ratio:>7.2f}  {spread:>11}  {reached:>10}  {goal:<12} "
            f"{self.about}"
        ).rstrip()


class Timing(NamedTuple):
    """Seconds by the wall and of the processor, of all threads, for one unit of work."""

    wall: float
    cpu: float


def timed(work: Callable[[], int]) -> Timing:
    """Times work that gives how many units it has done."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    count = work()
    return Timing((time.perf_counter() - wall) / count, (time.process_time() - cpu) / count)


def alternately(works: Mapping[str, Callable[[], int]], repeat: int) -> dict[str, list[Timing]]:
    """Times several works in turn, after a first turn that only warms up."""
    found: dict[str, list[Timing]] = {name: [] for name in works}
    for turn in range(repeat + 1):
        for name, work in works.items():
            timing = timed(work)
            if turn:
                found[name].append(timing)
    return found


def compare(
    name: str,
    ours: Sequence[float],
    floor: Sequence[float],
    *,
    better: Better = "higher",
    goal: float | None = None,
    value: float | None = None,
    unit: str = "",
    about: str = "",
) -> Row:
    """The row for costs that were measured in turn.

    Args:
        name: the name of the comparison.
        ours: our costs, by run.
        floor: costs of the floor or peer, by run.
        better: ``higher`` gives the floor's cost as a share of ours (the speed that is left),
            ``lower`` ours as a multiple of the floor's.
        goal: what it should be.
        value: an absolute figure, if the goal is one.
        unit: of ``value``.
        about: more figures.
    """
    pairs = list(zip(ours, floor, strict=True))
    ratios = [there / here if better == "higher" else here / there for here, there in pairs]
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return Row(
        name=name,
        ratio=statistics.median(ratios),
        low=low,
        high=high,
        better=better,
        goal=goal,
        value=value,
        unit=unit,
        about=about,
    )


def missing(name: str, package: str, goal: float | None = None) -> Row | None:
    """A row that says that a peer is not installed; None if it is."""
    if importlib.util.find_spec(package) is not None:
        return None
    return Row(name=name, goal=goal, skipped=f"{package} is not installed")


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the others lies; NaN of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else math.nan


def resident_memory(process: str = "self") -> float:
    """The current memory of a process, in MB."""
    return _status(process, "VmRSS:")


def peak_memory(process: str = "self") -> float:
    """The most that a process has held, in MB; not getrusage's, which begins with its parent's."""
    return _status(process, "VmHWM:")


def _status(process: str, field: str) -> float:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition(field)[2].split()[0]) / 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that all programs of the table have."""
    parser.add_argument("--quick", action="store_true", help="a tenth to a third of the work")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each, in turn (default 5)")
    parser.add_argument("--rows", type=Path, help="also write the rows of the table into a file")


def write_rows(path: Path | None, rows: Sequence[Row]) -> None:
    """Prints rows, and writes them as JSON Lines if a path is given."""
    print(f"{sys.version.split()[0]}: ratio, quartiles of the runs, goal")
    for row in rows:
        print(row.line(), flush=True)
    if path is not None:
        path.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
