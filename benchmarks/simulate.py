"""Measures the cost of a simulated session: the engine alone, and travel planning by rules.

    python -P -m duolog.benchmarks.simulate             # the rows of the table, some minutes
    python -P -m duolog.benchmarks.simulate travel      # figures of one part, without a floor
    python -P -m duolog.benchmarks.simulate scripted --at 100 1000   # so many sessions at a time
    python -P -m duolog.benchmarks.simulate scripted --url memory:// # against another log

``scripted``: two actors follow a script, without any planning. This is the cost of the engine, its
clock and the log. Its floor is a bare kernel (``floors.kernel``), its peer ``inspect_ai`` with a mock
model, if it is installed. The kernel waits for a commit at each event; ours stages events.
``travel``: rule-driven agents and users plan trips, and are scored.

The garbage collector is set as the command line sets it. CPU is that of all threads, including the
database's, and excludes starting Python and making the first world. To measure memory, the
configuration runs in a separate process.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
from duolog.benchmarks.floors.kernel import simulate_bare
from duolog.benchmarks.measuring import (
    Row,
    add_arguments,
    alternately,
    compare,
    missing,
    peak_memory,
    timed,
    write_rows,
)
from duolog.benchmarks.peers.inspect_simulation import PACKAGE, simulate_theirs
from duolog.benchmarks.workloads.scripted_sessions import PARTS, scripted, simulate_sessions

__all__ = ("main",)

SESSIONS = {
    "scripted": {1: 500, 100: 2_000, 1_000: 4_000, 10_000: 10_000},
    "travel": {1: 60, 100: 300, 1_000: 1_000, 10_000: 10_000},
}
"""How many sessions are run, by part and by how many run at a time."""

GOALS = {1: 0.7, 100: 0.4}
"""Goals: shares of the bare kernel's speed, by how many sessions run at a time."""


MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A folder in memory; None if there is none."""


class Measured(NamedTuple):
    """What one configuration took: sessions and events, seconds, CPU seconds, peak MB."""

    part: str
    at_once: int
    sessions: int
    events: int
    wall: float
    cpu: float
    peak: float


# --- the rows of the table -------------------------------------------------------------------------


def _ours(sessions: int, at_once: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/log.db"
        return anyio.run(simulate_sessions, url, scripted, sessions, at_once)


def _bare(sessions: int, at_once: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(simulate_bare, Path(folder) / "log.db", sessions, at_once)


def _theirs(sessions: int, at_once: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(simulate_theirs, Path(folder), sessions, at_once)


def kernel_row(at_once: int, sessions: int, repeat: int) -> Row:
    """Processor time of an event of scripted sessions, of the bare kernel's."""
    works = {"ours": partial(_ours, sessions, at_once), "bare": partial(_bare, sessions, at_once)}
    found = alternately(works, repeat)
    ours, bare = ([timing.cpu for timing in found[who]] for who in ("ours", "bare"))
    mine, least = (1e6 * statistics.median(costs) for costs in (ours, bare))
    about = f"{mine:.1f} of {least:.1f} us CPU an event"
    name, goal = f"simulate, {at_once:,} at once : bare kernel", GOALS.get(at_once)
    return compare(name, ours, bare, goal=goal, about=about)


def travel_row(sessions: int, repeat: int) -> Row:
    """Processor time of a travel session by rules, as a multiple of a bare kernel's session."""
    make = PARTS["travel"]()

    def play() -> int:
        with tempfile.TemporaryDirectory() as folder:
            anyio.run(simulate_sessions, f"sqlite:///{folder}/log.db", make, sessions, 20)
        return sessions

    def bare() -> int:
        _bare(sessions, 20)
        return sessions

    found = alternately({"ours": play, "bare": bare}, repeat)
    ours, least = ([timing.cpu for timing in found[who]] for who in ("ours", "bare"))
    return compare(
        "a travel session by rules, 20 at once : one of the bare kernel",
        ours,
        least,
        better="lower",
        value=1e3 * statistics.median(ours),
        unit="ms CPU",
    )


def peer_row(sessions: int, repeat: int) -> Row:
    """Sessions per CPU second, of ``inspect_ai``'s."""
    name, goal = "simulate, 100 at once : inspect_ai", 25.0
    absent = missing(name, PACKAGE, goal)
    if absent is not None:
        return absent
    ours, theirs = [], []
    for turn in range(repeat + 1):
        mine = timed(partial(_ours, sessions, 100)).cpu * 50
        other = timed(partial(_theirs, sessions // 2, 100)).cpu
        if turn:
            ours.append(mine)
            theirs.append(other)
    about = " of ".join(f"{1e3 * statistics.median(costs):.1f}" for costs in (ours, theirs))
    return compare(name, ours, theirs, goal=goal, about=f"{about} ms CPU a session")


def memory_row(sessions: int, repeat: int) -> Row:
    """Peak memory of sessions that all run at once, of the bare kernel's with as many."""
    ours, bare = [], []
    for _ in range(repeat):
        # In memory: the disk would take most of the time and does not change the result.
        ours.append(measure("scripted", sessions, sessions, "sqlite:///{path}", MEMORY).peak)
        bare.append(measure("bare", sessions, sessions, "{path}", MEMORY).peak)
    return compare(
        f"memory of {sessions:,} sessions at once : bare kernel",
        ours,
        bare,
        better="lower",
        goal=600.0 * sessions / 10_000,
        value=statistics.median(ours),
        unit="MB",
        about=f"bare {statistics.median(bare):.0f} MB",
    )


def table(quick: bool, repeat: int) -> list[Row]:
    """The rows of the table."""
    _set_collector()
    scale = 1 if quick else 3
    return [
        kernel_row(1, 10, repeat),  # few: the kernel waits for the disk at each of their events
        kernel_row(100, 100 * scale, repeat),
        kernel_row(1_000, 1_000, repeat),
        travel_row(20 * scale, repeat),
        peer_row(50 * scale, repeat),
        memory_row(1_000 if quick else 4_000, 1),
    ]


# --- one configuration at a time -------------------------------------------------------------------


def measure(
    part: str, at_once: int, sessions: int, url: str, folder: str | None = None
) -> Measured:
    """Measures a configuration in a separate process, with its log in a new directory in a folder."""
    with tempfile.TemporaryDirectory(dir=folder) as directory:
        where = url.format(path=Path(directory) / "log.db")
        command = [sys.executable, "-P", "-m", "duolog.benchmarks.simulate", "--child"]
        command += [part, str(at_once), str(sessions), where]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return msgspec.convert(json.loads(done.stdout), Measured)


HEADER = (
    f"{'part':<9} {'at once':>7} {'sessions':>8} {'events':>8} {'sessions/s':>10} {'events/s':>9} "
    f"{'events/CPU s':>12} {'CPU ms/session':>14} {'peak MB':>8}"
)


def row(found: Measured) -> str:
    """One configuration as a line of the table."""
    return (
        f"{found.part:<9} {found.at_once:>7,} {found.sessions:>8,} {found.events:>8,} "
        f"{found.sessions / found.wall:>10,.1f} {found.events / found.wall:>9,.0f} "
        f"{found.events / found.cpu:>12,.0f} {found.cpu / found.sessions * 1e3:>14.2f} "
        f"{found.peak:>8,.0f}"
    )


def _set_collector() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def child(part: str, at_once: int, sessions: int, url: str) -> None:
    """One configuration, printed as JSON."""
    _set_collector()
    make = PARTS[part]() if part in PARTS else None
    wall, cpu = time.perf_counter(), time.process_time()
    if make is None:
        events = anyio.run(simulate_bare, Path(url), sessions, at_once)
    else:
        events = anyio.run(simulate_sessions, url, make, sessions, at_once)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps(Measured(part, at_once, sessions, events, wall, cpu, peak_memory())))


def main() -> None:
    """Measures the chosen parts, and prints a table."""
    if sys.argv[1:2] == ["--child"]:
        name, at, count, url = sys.argv[2:]
        child(name, int(at), int(count), url)
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(SESSIONS)}")
    parser.add_argument("--at", nargs="+", type=int, metavar="N", help="sessions at a time")
    parser.add_argument("--sessions", type=int, help="how many in all, for every configuration")
    parser.add_argument("--url", default="sqlite:///{path}", help="the log ({path}: a new file)")
    add_arguments(parser)
    options = parser.parse_args()
    if not options.parts:
        write_rows(options.rows, table(options.quick, options.repeat))
        return
    print(HEADER)
    for part in options.parts:
        if part not in SESSIONS:
            parser.error(f"unknown part {part!r}; choose from {', '.join(SESSIONS)}")
        for at_once in options.at or SESSIONS[part]:
            sessions = options.sessions or SESSIONS[part].get(at_once, 2 * at_once)
            found = [measure(part, at_once, sessions, options.url) for _ in range(options.repeat)]
            print(row(min(found, key=lambda m: m.cpu)), flush=True)


if __name__ == "__main__":
    main()
