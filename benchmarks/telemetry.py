"""Measures live telemetry: how much recording costs its caller, and how soon scores are delivered.

    python -P -m duolog.benchmarks.telemetry [--sessions 200] [--rate 1000] [--seconds 60] [--log URL]

First, the time that a caller waits when it records an event, over events of all kinds. Second, a load:
concurrent conversations at a total rate of events, in a log on disk, with two scorers by rules and a
watch that delivers updates. Each conversation is closed after a hundred events, and another begins.
Reports

- *decision*: from when an event was handed over until its updates were delivered (effort, rounds, and
  ratings, utility and stop advice, which are measured and recorded in between);
- losses: events handed over against those in the log, and measurements that are there twice;
- memory: of the process, second by second.

Third, the cost of scorers that find nothing: processor time of events recorded at full speed, with a
watch and two scorers whose ``observe`` only returns, and with a watch alone.

Fourth, how long a request waits on the product's event loop: requests of three events come at a steady
rate, and a task that sleeps for a millisecond notes how much processor time the loop's thread took
meanwhile. The loop delays a turn by that much, whatever else the machine does.

Fifth, the processor time of an event at the same steady rate in 50 conversations, with the two scorers by
rules. The floor is ``sqlite3`` alone, which writes as many events in groups of ten.

Sixth, memory of chats that are never closed: a thousand at a time, with a scorer and a watch, each wave
two minutes after the one before by the clock of the caches.

The floor of a decision is the disk: another thread writes and syncs a page next to the log, twenty
times a second. The run is cut into five stretches, each with its own 99th percentiles.

Exits with 1 if something was lost or doubled.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import statistics
import sys
import tempfile
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import duolog
from duolog.benchmarks.floors.sqlite import append_raw
from duolog.benchmarks.measuring import (
    Row,
    add_arguments,
    alternately,
    compare,
    quantile,
    resident_memory,
    write_rows,
)
from duolog.engine.events import ScorerRef, StopAdvised
from duolog.engine.log import session_states
from duolog.engine.records import Record
from duolog.engine.scorers.protocol import Measurement, Scorer, SessionScorer
from duolog.scoring.scorers.progress import rule_judge
from duolog.scoring.scorers.retention import RetentionUtility
from duolog.scoring.trajectory.updates import Update
from duolog.telemetry.log import Where
from duolog.telemetry.queue import IntakeStatistics
from duolog.telemetry.receipt import Awaited
from duolog.telemetry.session import Recording

PER_SESSION = 100
TICK = 0.01
STRETCHES = 5
PLAN = "\n".join(f"Day {day}: a walk by the river, lunch at the mill, the museum" for day in "123")

Talk = Recording[Awaited]
Step = Callable[[Talk, int], Coroutine[object, object, object]]

STEPS: tuple[Step, ...] = (
    lambda s, n: s.human.says(f"Could you move lunch on day {n % 3 + 1} to a quieter place?"),
    lambda s, n: s.agent.acts("search", {"what": "lunch", "day": n % 3 + 1}),
    lambda s, n: s.agent.called_model("m", reply={"text": "Let me look. " * 5}, latency=0.4),
    lambda s, n: s.agent.submits(PLAN.replace("mill", f"mill no. {n}")),
    lambda s, n: s.agent.says("I have moved it; please have a look at the plan."),
    lambda s, n: s.human.edits(PLAN.replace("mill", f"old mill no. {n}")),
    lambda s, n: s.human.says("That is still wrong, as I said before: not what I asked for."),
    lambda s, n: s.agent.acts("search", {"what": "lunch"}, result=["a", "b", "c"]),
    lambda s, n: s.agent.says("There is nothing else, I am afraid."),
    lambda s, n: s.human.feedback(thumbs="down" if n % 2 else "up"),
)


def quantiles(seconds: Sequence[float]) -> str:
    """Median, 99th percentile and maximum in milliseconds."""
    ordered = sorted(seconds) or [0.0]
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    median = statistics.median(ordered)
    return f"{1e3 * median:8.3f} {1e3 * p99:8.3f} {1e3 * ordered[-1]:8.3f}  ms ({len(ordered)})"


async def measure_calls(url: str, sessions: int) -> None:
    """The time that a caller waits."""
    spent: list[float] = []
    async with duolog.open(url, room=1_000_000) as log:
        talks = [await log.session(f"call-{n}") for n in range(sessions)]
        for n in range(20_000):
            step, talk = STEPS[n % len(STEPS)], talks[n % sessions]
            begun = time.perf_counter()
            await step(talk, n)
            spent.append(time.perf_counter() - begun)
            if n % 100 == 0:
                await anyio.lowlevel.checkpoint()
    print(f"a call (median, 99 %, most)    {quantiles(spent)}")


class Load:
    """Conversations at a given rate, and their outcome."""

    def __init__(self, log: duolog.Log, sessions: int, rate: int) -> None:
        self.log = log
        self.sessions = sessions
        self.rate = rate
        self.names = itertools.count()
        self.sent = 0
        self.calls = array("d")  # compact, so that memory is the log's and not the benchmark's
        self.memory: list[float] = []
        self.begun = 0.0
        self.syncs: list[tuple[float, float]] = []
        self.positions = array("q")
        self.kinds = array("b")
        self.arrivals = array("d")
        self.names_of_kinds: list[str] = []
        self.stops = 0

    async def run(self, seconds: float) -> None:
        """Hands events over, evenly, for so long."""
        talks = [await self.begin() for _ in range(self.sessions)]
        done = [PER_SESSION * n // self.sessions for n in range(self.sessions)]  # not all in step
        begun = time.perf_counter()
        self.begun = time.time()
        turn = 0
        for tick in range(int(seconds / TICK)):
            await anyio.sleep(max(0.0, begun + tick * TICK - time.perf_counter()))
            if tick % 100 == 0:
                self.memory.append(resident_memory())
            due = int((time.perf_counter() - begun) * self.rate)
            while self.sent < due:
                at = turn % self.sessions
                turn += 1
                if done[at] >= PER_SESSION:
                    await talks[at].close()
                    talks[at], done[at] = await self.begin(), 0
                step = STEPS[done[at] % len(STEPS)]
                before = time.perf_counter()
                await step(talks[at], done[at])
                self.calls.append(time.perf_counter() - before)
                done[at] += 1
                self.sent += 1

    async def begin(self) -> Talk:
        """Another conversation."""
        return await self.log.session(
            f"talk-{next(self.names)}", task="support", agent="v7", judge="rule-judge"
        )

    def arrive(self, update: Update) -> None:
        """Notes when an update was delivered."""
        name = type(update).__name__
        self.stops += name == "StopAdvice"
        if name not in self.names_of_kinds:
            self.names_of_kinds.append(name)
        self.positions.append(update.position)
        self.kinds.append(self.names_of_kinds.index(name))
        self.arrivals.append(time.time())


class Nothing:
    """A scorer that measures nothing; its only cost is that of handing it the records."""

    def __init__(self, name: str) -> None:
        self.ref = ScorerRef(name=name, version="1", config="")

    def begin(self, session: str) -> SessionScorer:
        """Keeps nothing of a session."""
        return self

    async def observe(self, record: Record) -> Sequence[Measurement]:
        """Finds nothing."""
        return ()


def measure_scorers(folder: Path, sessions: int, events: int, repeat: int) -> Row:
    """What two scorers that do nothing add to a watch under full load."""
    names = itertools.count()

    async def load(scorers: Sequence[Scorer]) -> None:
        async with duolog.open(f"sqlite:///{folder}/full-{next(names)}.db", room=1_000_000) as log:
            log.watch(scorers=scorers, on_update=lambda update: None).start()
            talks = [await log.session(f"full-{n}", task="support") for n in range(sessions)]
            for n in range(events):
                await STEPS[n // sessions % len(STEPS)](talks[n % sessions], n)
                if n % 100 == 0:
                    await anyio.lowlevel.checkpoint()
            await log.settle()

    def work(*scorers: Scorer) -> int:
        anyio.run(load, scorers)
        return events

    works = {
        "with two scorers": lambda: work(Nothing("one"), Nothing("other")),
        "alone": work,
    }
    found = alternately(works, repeat)
    ours, alone = ([one.cpu for one in found[name]] for name in works)
    return compare(
        "watch with two scorers that do nothing : watch alone",
        ours,
        alone,
        better="lower",
        goal=1.3,
        about=f"{1e6 * statistics.median(ours):.0f} of {1e6 * statistics.median(alone):.0f} us an event",
    )


RECORDING = 250.0
"""Microseconds of processor time allowed to record an event and score it by two rules."""


def measure_recording(folder: Path, sessions: int, rate: int, seconds: float, repeat: int) -> Row:
    """Processor time of an event at a steady rate with two rule scorers, compared with ``sqlite3``."""
    names = itertools.count()

    async def record() -> int:
        async with duolog.open(f"sqlite:///{folder}/rate-{next(names)}.db") as log:
            load = Load(log, sessions, rate)
            log.watch(scorers=(rule_judge(), RetentionUtility()), on_update=load.arrive).start()
            await load.run(seconds)
            await log.settle()
        return load.sent

    def floor() -> int:
        path = folder / f"rate-{next(names)}.db"
        return append_raw(path, sessions, max(1, int(rate * TICK)), int(rate * seconds))

    found = alternately({"ours": lambda: anyio.run(record), "floor": floor}, repeat)
    ours, least = ([one.cpu for one in found[name]] for name in found)
    value = 1e6 * statistics.median(ours)
    return compare(
        f"recording {rate:,} events/s with two rule scorers : raw sqlite3",
        ours,
        least,
        better="lower",
        goal=RECORDING,
        value=value,
        unit="us CPU",
        about=f"raw {1e6 * statistics.median(least):.0f} us",
    )


TURN = 10.0
"""Milliseconds that recording and scoring may add to a turn."""


async def take_turns(
    url: str, where: Where | None, sessions: int, rate: int, seconds: float
) -> float:
    """Milliseconds of processor time that the loop takes between two looks of a task, 99th percentile.

    Args:
        url: the URL of a log.
        where: the scorers run; None for no watch.
        sessions: at a time.
        rate: requests a second.
        seconds: for which requests come.
    """
    busy: list[float] = []
    async with duolog.open(url, room=1_000_000) as log:
        if where is not None:
            scorers: list[Scorer] = [rule_judge(), RetentionUtility()]
            log.watch(scorers=scorers, where=where, on_update=lambda update: None).start()
        talks = []
        for n in range(sessions):
            talks.append(await log.session(f"turn-{n}", task="support", output=None))
            await anyio.lowlevel.checkpoint()

        async def look() -> None:
            while True:
                before = time.thread_time()
                await anyio.sleep(0.001)
                busy.append(1e3 * (time.thread_time() - before))

        async with anyio.create_task_group() as tasks:
            await log.settle()
            tasks.start_soon(look)
            for n in range(int(rate * seconds)):
                talk = talks[n % sessions]
                await talk.human.says(
                    "That is still wrong, as I said before: not what I asked for."
                )
                await talk.agent.acts("search", {"what": "lunch"}, result=["a", "b"])
                await talk.agent.says("There is nothing else, I am afraid.")
                await anyio.sleep(1 / rate)
            tasks.cancel_scope.cancel()
    return quantile(busy, 0.99)


def measure_turns(folder: Path, repeat: int, seconds: float) -> Row:
    """What scorers add to a turn on the loop, of the 10 ms that they may."""
    found: dict[Where | None, list[float]] = {"loop": [], "thread": [], None: []}
    for n in range(repeat):
        for where, took in found.items():
            url = f"sqlite:///{folder}/turns-{where}-{n}.db"
            took.append(anyio.run(take_turns, url, where, 100, 50, seconds))
    loop, thread, alone = (statistics.median(found[one]) for one in ("loop", "thread", None))
    return compare(
        "the loop's work in a turn with two scorers, p99 : 10 ms",
        found["loop"],
        [TURN] * repeat,
        better="lower",
        goal=1.0,
        about=f"{loop:.1f} ms; scorers in a thread {thread:.1f} ms; no watch {alone:.1f} ms",
    )


async def leave_open(url: str, waves: int, chats: int) -> list[float]:
    """Memory in MB after each wave of chats that are never closed."""
    held: list[float] = []
    late = 0.0

    class Clock:
        """The clock of the caches, which is put on between waves."""

        @staticmethod
        def monotonic() -> float:
            return time.monotonic() + late

    kept = vars(session_states)["time"]
    vars(session_states)["time"] = Clock
    try:
        async with duolog.open(url, room=1_000_000) as log:
            log.watch(scorers=[rule_judge()], on_update=lambda update: None).start()
            for wave in range(waves):
                for n in range(chats):
                    talk = await log.session(f"open-{wave}-{n}", task="support", output=None)
                    for _ in range(3):
                        await talk.human.says("That is still wrong, not what I asked for.")
                        await talk.agent.says("There is nothing else, I am afraid.")
                    if n % 100 == 99:
                        await log.settle()
                del talk
                late += 120.0
                gc.collect()
                held.append(resident_memory())
    finally:
        vars(session_states)["time"] = kept
    return held


def measure_unclosed(folder: Path, chats: int) -> Row:
    """Memory after five waves of chats that are never closed, against that after two."""
    held = anyio.run(leave_open, f"sqlite:///{folder}/unclosed.db", 5, chats)
    return compare(
        f"memory of {5 * chats:,} chats that nobody closes : of {2 * chats:,}",
        held[-1:],
        held[1:2],
        better="lower",
        goal=1.25,
        about=f"{', '.join(f'{one:.0f}' for one in held)} MB after each {chats:,}",
    )


def sync_pages(path: Path, found: list[tuple[float, float]], stop: threading.Event) -> None:
    """Syncs a page now and then, and notes when and how long it took."""
    with path.open("wb", buffering=0) as file:
        while not stop.wait(0.05):
            file.seek(0)
            file.write(bytes(4096))
            begun = time.perf_counter()
            os.fsync(file.fileno())
            found.append((time.time(), time.perf_counter() - begun))


async def measure_load(
    url: str, sessions: int, rate: int, seconds: float, page: Path
) -> tuple[bool, list[Row]]:
    """The load, whether all of it is in the log, once, and the rows of the table."""
    async with duolog.open(url) as log:
        load = Load(log, sessions, rate)
        scorers: tuple[Scorer, ...] = (rule_judge(), RetentionUtility())
        log.watch(scorers=scorers, on_update=load.arrive).start()
        begun, cpu = time.perf_counter(), time.process_time()
        stop = threading.Event()
        syncing = threading.Thread(target=sync_pages, args=(page, load.syncs, stop))
        syncing.start()
        try:
            await load.run(seconds)
        finally:
            stop.set()
        await anyio.to_thread.run_sync(syncing.join)
        took, cpu = time.perf_counter() - begun, time.process_time() - cpu
        await log.settle()
        intake = log.recorder.statistics()
        print(f"\n{load.sent} events in {took:.1f} s, {load.sent / took:.0f} a second, in")
        print(f"{next(load.names)} conversations, {sessions} at once; {cpu / took:.0%} of a core")
        print(f"a call (median, 99 %, most)    {quantiles(load.calls)}")
        return await report(log, load, intake, seconds)


def rows_of(load: Load, times: Mapping[int, float], seconds: float) -> list[Row]:
    """Decisions as a ratio to the disk's time, and memory as a ratio to that at the tenth second."""
    decided: list[float] = []
    synced: list[float] = []
    for stretch in range(STRETCHES):
        since = load.begun + seconds * stretch / STRETCHES
        until = since + seconds / STRETCHES
        spent = [
            at - times[position]
            for position, at in zip(load.positions, load.arrivals, strict=True)
            if since <= times[position] < until
        ]
        decided.append(quantile(spent, 0.99))
        synced.append(quantile([took for at, took in load.syncs if since <= at < until], 0.99))
    early, late = load.memory[min(10, len(load.memory) // 6)], load.memory[-1]
    latency = compare(
        "append to decision, p99 : fsync p99",
        decided,
        synced,
        better="lower",
        goal=2.5,
        about=f"{1e3 * statistics.median(decided):.1f} of {1e3 * statistics.median(synced):.1f} ms",
    )
    return [
        latency,
        compare(
            "recorder's memory at the end : after 10 s",
            [late],
            [early],
            better="lower",
            goal=1.05,
            about=f"{late:.0f} of {early:.0f} MB after {seconds:.0f} s",
        ),
    ]


async def report(
    log: duolog.Log, load: Load, intake: IntakeStatistics, seconds: float
) -> tuple[bool, list[Row]]:
    """Compares the events handed over with those in the log, and prints the times."""
    times: dict[int, float] = {}
    kinds: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    recorded_stops = 0
    async for record in log.read_all():
        times[record.position] = record.time
        kinds["trace" if record.stream == "trace" else record.stream] += 1
        seen[f"{record.session} {record.id}"] += 1
        recorded_stops += isinstance(record.event, StopAdvised)
    by_kind: dict[str, list[float]] = {}
    for position, kind, at in zip(load.positions, load.kinds, load.arrivals, strict=True):
        by_kind.setdefault(load.names_of_kinds[kind], []).append(at - times[position])
    print("a decision (median, 99 %, most)")
    for name, spent in sorted(by_kind.items()):
        print(f"  {name:<28} {quantiles(spent)}")
    print(f"  {'all':<28} {quantiles([t for spent in by_kind.values() for t in spent])}")
    doubled = sum(count - 1 for count in seen.values())
    lost = intake.dropped + intake.failed + intake.refused + intake.accepted - intake.written
    print(f"records: {dict(kinds)}; lost {lost}, doubled {doubled}")
    print(f"stops: {load.stops} advised, {recorded_stops} recorded")
    print(
        f"memory: {', '.join(f'{held:.0f}' for held in load.memory[:: max(1, int(seconds / 12))])} MB"
    )
    good = not (lost or doubled or load.stops != recorded_stops)
    return good, rows_of(load, times, seconds)


def main() -> None:
    """Runs all six."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--log", default="")
    add_arguments(parser)
    asked = parser.parse_args()
    seconds = asked.seconds / (5 if asked.quick else 1)
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(measure_calls, f"sqlite:///{folder}/calls.db", asked.sessions)
        gc.collect()
        gc.freeze()  # as a server does once it is up: imported modules are never examined again
        url = asked.log or f"sqlite:///{folder}/load.db"
        events = 4_000 if asked.quick else 10_000
        scorers = measure_scorers(Path(folder), asked.sessions, events, asked.repeat)
        unclosed = measure_unclosed(Path(folder), 200 if asked.quick else 400)
        steady = measure_recording(Path(folder), 50, asked.rate, seconds / 6, asked.repeat)
        turns = measure_turns(Path(folder), asked.repeat, 2.0 if asked.quick else 3.0)
        page = Path(folder) / "page"
        ok, rows = anyio.run(measure_load, url, asked.sessions, asked.rate, seconds, page)
    write_rows(asked.rows, [*rows, scorers, steady, turns, unclosed])
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
