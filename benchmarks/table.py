"""The table of speeds: runs the programs that have floors, prints ratios, compares them with kept ones.

    python -P -m duolog.benchmarks.table            # make bench
    python -P -m duolog.benchmarks.table --check    # make bench-check: exits with 1 on a regression
    python -P -m duolog.benchmarks.table --keep     # writes figures.json again
    python -P -m duolog.benchmarks.table --quick simulate replay

Each program runs in a separate process. Kept figures are ratios, with the day and the kind of machine,
separately for short and full runs. A ratio is a regression if it is more than a tenth worse than the
kept one. If the quartiles of the runs reach to within a tenth of the kept ratio, the runs vary too much
to tell, and the row is marked as such.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from duolog.benchmarks.measuring import Row

__all__ = ("Figure", "compare_with_kept", "main")

_KEPT: Final = Path(__file__).with_name("figures.json")
_TOLERATED: Final = 0.1

_PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "simulate": (),
    "log": ("append", "read", "open"),
    "log_postgres": (),
    "replay": (),
    "http_load": ("--seconds", "15"),
    "telemetry": ("--seconds", "20"),
    "report": (),
    "tables": (),
    "training_speed": (),
}
"""The programs and their arguments. What waits for the disk is kept short: a sync may take ten milliseconds."""


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A ratio that is kept.

    Attributes:
        ratio: what was measured.
        better: whether a higher or a lower one is better.
        date: the day.
        machine: kind of machine and Python.
    """

    ratio: float
    better: str
    date: str
    machine: str


Kept = dict[str, dict[str, Figure]]
"""Figures by length of the run (``full``, ``quick``) and name of the row."""


def compare_with_kept(row: Row, kept: Figure | None) -> tuple[bool, str]:
    """Whether a row is a regression, and the note on it.

    Args:
        row: what was measured now.
        kept: what is kept of that row.
    """
    if row.ratio is None:
        return False, f"skipped: {row.skipped}"
    if kept is None:
        return False, "nothing is kept to compare with"
    change = row.ratio / kept.ratio - 1
    worse = -change if row.better == "higher" else change
    said = f"{row.ratio:.2f}, kept {kept.ratio:.2f} ({kept.date}), {change:+.0%}"
    if worse <= _TOLERATED:
        return False, said
    best = row.high if row.better == "higher" else row.low
    if best is not None and _worse(best, kept) <= _TOLERATED:
        return False, f"{said}: too restless to say, run it again"
    return True, f"{said}: REGRESSION"


def _worse(ratio: float, kept: Figure) -> float:
    change = ratio / kept.ratio - 1
    return -change if kept.better == "higher" else change


def _machine() -> str:
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}"
    )


def _run(program: str, *, quick: bool, repeat: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        command = [sys.executable, "-P", "-m", f"duolog.benchmarks.{program}", *_PROGRAMS[program]]
        command += ["--rows", str(rows), "--repeat", str(repeat), *(["--quick"] if quick else [])]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        if not rows.exists():
            why = f"the program ended with {done.returncode}"
            return [Row(name=program, skipped=why)]
        lines = rows.read_bytes().splitlines()
        found = [msgspec.json.decode(line, type=Row) for line in lines]
        if done.returncode:
            print(f"  {program} ended with {done.returncode}:\n{done.stdout}", flush=True)
        return found


def _check(rows: Sequence[Row], kept: Mapping[str, Figure]) -> int:
    regressions = 0
    print(f"\nof what is kept, on {_machine()}")
    for row in rows:
        worse, said = compare_with_kept(row, kept.get(row.name))
        regressions += worse
        print(f"  {row.name:<58} {said}")
    return regressions


def _read_kept() -> Kept:
    return msgspec.json.decode(_KEPT.read_bytes(), type=Kept) if _KEPT.exists() else {}


def _keep(length: str, rows: Sequence[Row], *, whole: bool) -> None:
    """Keeps figures. If the rows are not those of all programs, other figures stay as they are."""
    kept = _read_kept()
    day = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    figures = {} if whole else kept.get(length, {})
    kept[length] = figures
    for row in rows:
        if row.ratio is not None:
            figures[row.name] = Figure(
                ratio=round(row.ratio, 3), better=row.better, date=day, machine=_machine()
            )
    text = msgspec.json.format(msgspec.json.encode(kept), indent=2)
    _KEPT.write_bytes(text + b"\n")


def main() -> None:
    """Runs, prints, compares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(_PROGRAMS))
    parser.add_argument("--check", action="store_true", help="compare with the figures kept")
    parser.add_argument("--keep", action="store_true", help="keep these figures")
    parser.add_argument("--quick", action="store_true", help="a tenth to a third of the work")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, in turn (default 3)")
    asked = parser.parse_args()
    for program in asked.programs:
        if program not in _PROGRAMS:
            parser.error(f"there is no program {program!r}; choose from {', '.join(_PROGRAMS)}")
    rows: list[Row] = []
    print(f"{_machine()}: ratio, quartiles of the runs, goal", flush=True)
    for program in asked.programs or _PROGRAMS:
        begun = time.monotonic()
        for row in _run(program, quick=asked.quick, repeat=asked.repeat):
            rows.append(row)
            print(row.line(), flush=True)
        print(f"  ({program}: {time.monotonic() - begun:.0f} s)", flush=True)
    length = "quick" if asked.quick else "full"
    if asked.keep:
        _keep(length, rows, whole=not asked.programs)
    if asked.check and _check(rows, _read_kept().get(length, {})):
        sys.exit(1)


if __name__ == "__main__":
    main()
