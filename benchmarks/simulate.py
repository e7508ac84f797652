"""What a simulated session costs: the engine alone, and travel planning by rules.

    python benchmarks/simulate.py                        # all of it, some minutes
    python benchmarks/simulate.py scripted               # one part
    python benchmarks/simulate.py scripted --at 100 1000 # so many sessions at a time
    python benchmarks/simulate.py --url memory://        # against another log

``scripted``: two actors who do what they were told, without any planning: what the engine, its
clock and the log cost. ``travel``: rule-driven agents and users plan trips, and are scored.

Each configuration runs in a process of its own, so that its memory is its own, with the garbage
collector set as the command line sets it. Events are durable before their actors go on; CPU is of
all threads, the database's too, and excludes starting Python and making the first world.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
from duolog.engine.events import ActionResolved, Participant, SessionOpened
from duolog.engine.log.open import open_log
from duolog.engine.session.actors import Player
from duolog.engine.session.desk import Desk
from duolog.engine.session.environment import Action, ActionSpec, Outcome
from duolog.engine.session.limits import Limits
from duolog.engine.session.runner import Session, SessionResult
from duolog.engine.session.simulation import Outcome as SessionOutcome
from duolog.engine.session.simulation import simulate

__all__ = ("main",)

SESSIONS = {
    "scripted": {1: 500, 100: 2_000, 1_000: 4_000, 10_000: 10_000},
    "travel": {1: 60, 100: 300, 1_000: 1_000, 10_000: 10_000},
}
"""How many sessions are run, by part and by how many run at a time."""


class Measured(NamedTuple):
    """What one configuration took: sessions and events, seconds, CPU seconds, peak bytes."""

    part: str
    at_once: int
    sessions: int
    events: int
    wall: float
    cpu: float
    peak: int


# --- scripted actors -------------------------------------------------------------------------------

TURNS = 8
TEXT = (
    "The museum opens at ten and is a short walk from the hotel; dinner by the river at eight. " * 3
)


class Lookup:
    """An environment that answers at once."""

    def __init__(self) -> None:
        self.actions = {"look": ActionSpec(name="look", description="looks things up")}

    async def perform(self, action: Action) -> Outcome:
        """A constant answer, after 1.5 seconds of session time."""
        return Outcome(observation={"found": ["a", "b", "c"], "text": TEXT}, seconds=1.5)

    def recall(self, action: Action, resolved: ActionResolved) -> None:
        """There is nothing to remember."""


async def user(desk: Desk) -> None:
    """Says something, waits for the answer, and again."""
    for _ in range(TURNS):
        await desk.say(TEXT)
        await desk.news()
        desk.look()
        await desk.pause(5.0)
    await desk.finish()


async def helper(desk: Desk) -> None:
    """Looks something up, writes it down, and says so, whenever it is spoken to."""
    for turn in range(TURNS):
        await desk.news()
        desk.look()
        action = await desk.act("look", {"at": turn})
        await desk.result(action)
        await desk.note(TEXT[:80])
        await desk.submit(f"Day {turn}\n{TEXT}")
        await desk.say(TEXT[:120])
    await desk.news()


PLAYERS = (
    Player(Participant(name="user", role="human"), user),
    Player(Participant(name="helper", role="agent"), helper),
)


def scripted(number: int) -> Session:
    """One session: 8 exchanges, each with an action, its outcome, a note and a snapshot."""
    opened = SessionOpened(
        task="benchmark",
        instance=str(number),
        participants=tuple(player.participant for player in PLAYERS),
        clock="virtual",
        seed=number,
    )
    return Session(
        id=f"s{number}",
        opened=opened,
        players=PLAYERS,
        environment=Lookup(),
        limits=Limits(rounds=None, actions=None),
    )


# --- travel planning -------------------------------------------------------------------------------


def travel() -> Callable[[int], Session]:
    """Makes sessions of travel planning, the kinds of agents in turn."""
    from duolog.engine.task import Cell, Setting
    from duolog.examples.travel.task import TravelTask

    task = TravelTask()
    setting = Setting()
    names = task.instances(10_000, 7)

    def make(number: int) -> Session:
        kind = ("auto", "one-stage", "two-stage")[number % 3]
        person = "none" if task.automated(kind) else "proactive"
        cell = Cell(agent=kind, user=person, instance=names[number // 3], seed=7)
        return task.session(cell, setting)

    make(0)  # the world is made once
    return make


PARTS: dict[str, Callable[[], Callable[[int], Session]]] = {
    "scripted": lambda: scripted,
    "travel": travel,
}


# --- measuring -------------------------------------------------------------------------------------


async def run(part: str, at_once: int, sessions: int, url: str) -> Measured:
    """Runs sessions of a part, so many at once, against a new log."""
    make = PARTS[part]()
    ended: list[SessionOutcome] = []

    def makers() -> Iterator[Callable[[], Session]]:
        for number in range(sessions):
            yield lambda number=number: make(number)  # type: ignore[misc]

    async with open_log(url) as log:
        wall, cpu = time.perf_counter(), time.process_time()
        await simulate(log, makers(), concurrency=at_once, on_outcome=ended.append)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        events = log.statistics().events
    bad = [o for o in ended if not isinstance(o, SessionResult) or o.reason == "failed"]
    if bad or len(ended) != sessions:
        raise SystemExit(f"{len(bad)} of {len(ended)} sessions failed, such as {bad[:1]}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Measured(part, at_once, sessions, events, wall, cpu, peak)


def measure(part: str, at_once: int, sessions: int, url: str) -> Measured:
    """Measures a configuration in a process of its own."""
    with tempfile.TemporaryDirectory() as directory:
        where = url.format(path=Path(directory) / "log.db")
        command = [sys.executable, __file__, "--child", part, str(at_once), str(sessions), where]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
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
        f"{found.peak / 1e6:>8,.0f}"
    )


def child(part: str, at_once: str, sessions: str, url: str) -> None:
    """One configuration, printed as JSON."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    found = anyio.run(run, part, int(at_once), int(sessions), url)
    print(json.dumps(found))


def main() -> None:
    """Measures what was asked for, and prints a table."""
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(SESSIONS)}")
    parser.add_argument("--at", nargs="+", type=int, metavar="N", help="sessions at a time")
    parser.add_argument("--sessions", type=int, help="how many in all, for every configuration")
    parser.add_argument("--url", default="sqlite:///{path}", help="the log ({path}: a new file)")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each; the best counts")
    options = parser.parse_args()
    print(HEADER)
    for part in options.parts or SESSIONS:
        if part not in SESSIONS:
            parser.error(f"there is no part {part!r}; there are: {', '.join(SESSIONS)}")
        for at_once in options.at or SESSIONS[part]:
            count = options.sessions or SESSIONS[part].get(at_once, 2 * at_once)
            found = [measure(part, at_once, count, options.url) for _ in range(options.repeat)]
            print(row(min(found, key=lambda m: m.cpu)), flush=True)


if __name__ == "__main__":
    main()
