"""Compares the numbers of two versions of Duolog on the same logs.

    python -m duolog.benchmarks.same_numbers OLD/bin/duolog NEW/bin/duolog

The old version plays the five tasks and imports the sample of each format. Both versions then read
copies of these logs, from SQLite, from Parquet and, if ``DUOLOG_POSTGRES`` names a server, from
PostgreSQL. Every number has to agree to 1e-12. Ends of bootstrap intervals may differ by their Monte
Carlo error, since two versions may draw differently.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

__all__ = ("main",)

Json: TypeAlias = "bool | float | str | list[Json] | dict[str, Json] | None"

TASKS: Final = ("data", "finance", "proof", "travel", "tutoring")
PLAYERS: Final = "auto,human-alone,one-stage,two-stage,adaptive"
EXACT: Final = 1e-12
MONTE_CARLO: Final = 0.25
"""Share of an interval's width by which its ends may differ."""

READINGS: Final = {
    "report": ("report", "{log}", "--json"),
    "report paper": ("report", "{log}", "--json", "--convention", "paper"),
    "report by user": ("report", "{log}", "--json", "--group-by", "user", "--tau", "1,2"),
    "report csv": ("report", "{log}", "--csv"),
    "compare": ("report", "{log}", "--json", "--compare", "one-stage,two-stage,adaptive"),
    "sensitivity": ("report", "{log}", "--json", "--sensitivity"),
    "agreement": ("report", "{log}", "--json", "--agreement"),
    "sessions": ("sessions", "{log}", "--json"),
    "trajectories": ("export", "{log}", "--format", "trajectories"),
    "rounds": ("export", "{log}", "--format", "rounds"),
    "session table": ("export", "{log}", "--format", "sessions"),
    "records": ("export", "{log}"),
    "chat": ("export", "{log}", "--format", "chat"),
    "responses": ("export", "{log}", "--format", "responses"),
}


def main() -> None:
    """Prints a line per log and command that differs, and exits with 1 if any does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("old", help="the duolog command of the old version")
    parser.add_argument("new", help="the duolog command of the new version")
    parser.add_argument("--sessions", type=int, default=8, help="sessions per cell")
    parser.add_argument("--keep", type=Path, help="directory of the logs, kept for another run")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        room = chosen.keep or Path(temporary)
        room.mkdir(parents=True, exist_ok=True)
        logs = list(_logs(chosen.old, room, chosen.sessions))
        failed = sum(_compare(chosen.old, chosen.new, log, room) for log in logs)
    print(f"{len(logs)} logs, {failed} differences")
    sys.exit(1 if failed else 0)


def _logs(old: str, room: Path, sessions: int) -> Iterator[str]:
    """Makes the logs with the old version, and gives their paths and URLs."""
    for task in TASKS:
        log = room / f"{task}.db"
        if not log.exists():
            played = ("--users", "proactive,lazy", "--sessions", str(sessions), "--seed", "7")
            limits = ("--patience", "2") if task in {"travel", "data"} else ()
            _run(old, "run", task, "--agents", PLAYERS, *played, *limits, "--log", str(log))
        yield str(log)
    log = room / "imports.db"
    if not log.exists():
        samples = Path(__file__).parent.parent / "docs" / "samples"
        for sample in sorted([*(samples / "logs").iterdir(), samples / "cogym"]):
            done = _run(old, "import", str(sample), "--log", str(log), "--zone", "UTC", check=False)
            if done.returncode:
                print(f"not imported: {sample.name}: {done.stderr.strip().splitlines()[-1:]}")
    yield str(log)
    if server := os.environ.get("DUOLOG_POSTGRES"):
        _run(old, "copy", str(room / "tutoring.db"), server)
        yield server


def _compare(old: str, new: str, log: str, room: Path) -> int:
    """Counts the commands whose output differs, and prints where."""
    failed = 0
    where = {side: log if "://" in log else _copy(log, room, side) for side in ("old", "new")}
    readings = dict(READINGS)
    if "://" not in log:
        for name, program in (("old", old), ("new", new)):
            tables = room / f"tables-{name}"
            shutil.rmtree(tables, ignore_errors=True)
            _run(program, "export", where[name], "--format", "parquet", "--to", str(tables))
        readings["report of parquet"] = ("report", "{tables}", "--json")
    for name, reading in readings.items():
        said = [
            _run(
                program,
                *[part.format(log=where[side], tables=room / f"tables-{side}") for part in reading],
                check=False,
            )
            for side, program in (("old", old), ("new", new))
        ]
        if said[0].returncode or said[1].returncode:
            if bool(said[0].returncode) != bool(said[1].returncode):
                last = (said[0].stderr or said[1].stderr).strip().splitlines()[-1:]
                print(f"{Path(log).name}: {name}: one of both failed: {last}")
                failed += 1
            continue
        found = list(_differences(_parsed(said[0].stdout), _parsed(said[1].stdout), ""))
        if found:
            failed += 1
            print(f"{Path(log).name}: {name}: {len(found)} differences")
            for line in found[:8]:
                print(f"    {line}")
    return failed


def _copy(log: str, room: Path, side: str) -> str:
    """Copies a SQLite file, since a version may keep what it folded in there."""
    copy = room / side / Path(log).name
    copy.parent.mkdir(exist_ok=True)
    for suffix in ("", "-wal", "-shm", ".head"):
        copy.with_name(copy.name + suffix).unlink(missing_ok=True)
    shutil.copyfile(log, copy)
    return str(copy)


def _run(program: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if check and done.returncode:
        sys.exit(f"{program} {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    return done


def _parsed(text: str) -> Json:
    """JSON, JSON Lines or CSV as values that can be compared."""
    try:
        found: Json = json.loads(text)
    except ValueError:
        pass
    else:
        return found
    try:
        return [json.loads(line) for line in text.splitlines() if line]
    except ValueError:
        return [dict(row) for row in csv.DictReader(io.StringIO(text))]


def _differences(old: Json, new: Json, path: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            here = f"{path}.{key}"
            if key not in old or key not in new:
                yield f"{here}: only in the {'old' if key in old else 'new'} one"
                continue
            width = _width(old, key)
            one, other = _number(old[key]), _number(new[key])
            if width is not None and one is not None and other is not None:
                if abs(one - other) > MONTE_CARLO * width + EXACT:
                    yield f"{here}: {one} and {other}, an interval of {width:.3g}"
            else:
                yield from _differences(old[key], new[key], here)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{path}: {len(old)} and {len(new)} items"
        for index, (before, after) in enumerate(zip(old, new, strict=False)):
            yield from _differences(before, after, f"{path}[{index}]")
    elif old != new:
        one, other = _number(old), _number(new)
        if one is None or other is None or abs(one - other) > EXACT * max(1.0, abs(one)):
            yield f"{path}: {str(old)[:80]!r} and {str(new)[:80]!r}"


def _width(row: dict[str, Json], key: str) -> float | None:
    """The width of the interval that a key is an end of; None if it is not an end."""
    stem, _, end = key.rpartition("_")
    if end not in ("low", "high"):
        return None
    prefix = f"{stem}_" if stem else ""
    low, high = _number(row.get(f"{prefix}low")), _number(row.get(f"{prefix}high"))
    return None if low is None or high is None else abs(high - low)


def _number(value: Json) -> float | None:
    """A number, or a text in a table that is one."""
    if isinstance(value, bool) or value is None or isinstance(value, list | dict):
        return None
    try:
        return float(value)
    except ValueError:
        return None


if __name__ == "__main__":
    main()
