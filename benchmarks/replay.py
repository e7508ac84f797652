"""How fast a log is replayed, against merely fetching and decoding the same rows.

    python benchmarks/replay.py [--sessions 1000] [--rounds 8] [--models] [--log FILE] [--repeat 5]

Writes a SQLite log of sessions that look like travel planning (searches with long observations, a
plan of some two thousand characters edited line by line, scores and ratings beside the trace), or
takes one that is there. Then measures, in turn in one process, the least processor time of several
runs of each:

- ``decode``: every row fetched with sqlite3 and every body decoded with msgspec, nothing else;
- ``records``: the same with the envelopes, that is ``Record`` objects whose events are decoded;
- ``read``: all records through ``read_all``, undecoded, on the event loop;
- ``replay``: the same through rounds, effort, utility, tolerance and trajectory as well;
- ``updates``: the same with all updates, as a live watch gives them;
- ``fold``: the part of ``replay`` that is no reading, over records that are in memory;
- ``frames``: one pandas frame per session, and the same numbers from that (see ``frames``), where
  pandas is installed.

Also says what the fold of one session keeps in memory per round.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import random
import sqlite3
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import msgspec
from duolog.engine import codec
from duolog.engine.events import (
    ACTS,
    EVENTS,
    JSON,
    ActionResolved,
    ActionTaken,
    Event,
    MessageSent,
    ModelCalled,
    Participant,
    ProgressRated,
    Role,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    Tokens,
    UtilityScored,
)
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Draft, Record
from duolog.scoring.live import score_sessions
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.testing.records import RecordWriter

UTILITY = ScorerRef(name="travel", version="1", config="c0ffee")
JUDGE = ScorerRef(name="rule-judge", version="1", config="c0ffee")
COLUMNS = "position, stream, version, kind, schema, time, actor, role, cause, seen, id, body"
SLOTS = ("Transportation", "Breakfast", "Attraction", "Lunch", "Dinner", "Accommodation")
CITIES = ("Denver", "Boise", "Austin", "Tucson", "Mobile", "Fresno", "Tulsa", "Reno")


def plan(random_: random.Random, days: int) -> list[str]:
    """A plan as lines of text."""
    lines = []
    for day in range(1, days + 1):
        city = random_.choice(CITIES)
        lines.append(f"Day {day}:")
        lines.append(f"Current City: {city}")
        lines += [
            f"{slot}: The {random_.choice(CITIES)} House {random_.randrange(900)}, {city}"
            for slot in SLOTS
        ]
    return lines


def session(name: str, rounds: int, models: bool) -> Iterator[tuple[str, Draft]]:
    """The events of one session, with the stream of each."""
    random_ = random.Random(name)
    version = 0
    clock = 0.0

    def trace(event: Event, actor: str, role: Role) -> tuple[str, Draft]:
        nonlocal version, clock
        version += 1
        clock += random_.random() * 20
        return TRACE, Draft(event, actor, role, round(clock, 3), seen=version - 1)

    opened = SessionOpened(
        task="travel",
        instance=name,
        participants=(
            Participant(name="user", role="human", policy="rule", persona="proactive"),
            Participant(name="agent", role="agent", policy="two-stage"),
        ),
        clock="virtual",
        seed=7,
        request="Help me plan a 5-day trip from Omaha to Michigan starting on 2022-03-19.",
        config={"judge": "rule-judge"},
        private={"user": {"profile": "Likes trains, dislikes crowds, " * 20}},
    )
    yield trace(opened, "engine", "environment")
    lines = plan(random_, 5)
    base: int | None = None
    for number in range(1, rounds + 1):
        text = (
            f"Could you move the dinner of day {1 + number % 5} to a place that is quiet and cheap?"
        )
        yield trace(MessageSent(text=text), "user", "human")
        for _ in range(4):
            if models:
                tokens = Tokens(prompt=3000, completion=80)
                reply = {"text": "I should look for restaurants first. " * 8, "tool_calls": []}
                called = ModelCalled(
                    model="m", purpose="act", request="f" * 32, reply=reply, tokens=tokens
                )
                yield trace(called, "agent", "agent")
            search = ActionTaken(
                name="search_restaurants", arguments={"city": random_.choice(CITIES)}
            )
            yield trace(search, "agent", "agent")
            rows: JSON = [
                {"name": f"House {i}", "cost": i, "rating": 4.5, "cuisines": ["Thai", "Diner"]}
                for i in range(10)
            ]
            found = ActionResolved(action=version, outcome="ok", observation=rows)
            yield trace(found, "environment", "environment")
        lines[random_.randrange(len(lines))] = f"Dinner: The Quiet House {number}, {CITIES[0]}"
        content = "\n".join(lines)
        snapshot = SnapshotTaken(content=content, digest=codec.digest(content), base=base)
        yield trace(snapshot, "agent", "agent")
        base = version
        scored = UtilityScored(
            scorer=UTILITY,
            snapshot=version,
            value=round(random_.random(), 3),
            parts={"commonsense": 0.875, "preference": 0.5},
        )
        yield (
            "travel@1",
            Draft(scored, "travel", "scorer", clock, id=f"travel@1/snapshot/{version}"),
        )
        yield trace(
            MessageSent(text="I have moved it to a quiet place nearby; anything else to change?"),
            "agent",
            "agent",
        )
        rated = ProgressRated(
            round=number, rating=random_.randint(1, 5), until=version, scorer=JUDGE
        )
        yield "rule-judge@1", Draft(rated, "rule-judge", "scorer", clock, id=f"judge/{number}")
    yield trace(SessionClosed(reason="finished", by="user"), "engine", "environment")


async def write(path: Path, sessions: int, rounds: int, models: bool) -> None:
    """Writes the log, many sessions at a time, so that their records are interleaved."""
    async with open_log(f"sqlite:///{path}") as log:
        limit = anyio.CapacityLimiter(32)

        async def play(name: str) -> None:
            async with limit:
                for stream, draft in session(name, rounds, models):
                    await log.append(name, [draft], stream=stream)

        async with anyio.create_task_group() as tasks:
            for number in range(sessions):
                tasks.start_soon(play, f"session-{number:05}")


def decode(path: Path) -> int:
    """Fetches every row, and decodes every body by its kind; gives how many."""
    decoders = {kind: msgspec.json.Decoder(cls).decode for kind, cls in EVENTS.items()}
    count = 0
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(f"SELECT {COLUMNS} FROM events ORDER BY position")
        while batch := rows.fetchmany(512):
            for row in batch:
                decoders[row[3]](row[-1])
            count += len(batch)
    return count


def frames(path: Path) -> int:
    """Scores every session with a pandas frame of its own; gives how many rounds.

    Selects the rows of one session by an index, decodes their bodies with msgspec, makes a frame of
    one row per event with a column per field, and derives from it, with pandas throughout, what
    ``replay`` does: rounds where a human acts after an agent, the utility and the rating of each,
    the utility carried forward, runs of bad ratings, and the words that each side wrote.
    """
    pandas = importlib.import_module("pandas")
    decode_body = msgspec.json.Decoder(dict[str, object]).decode
    names = COLUMNS.split(", ")[:-1]
    count = 0
    with closing(sqlite3.connect(path)) as connection:
        keys = connection.execute("SELECT key FROM sessions ORDER BY key").fetchall()
        for key in keys:
            rows = connection.execute(
                f"SELECT {COLUMNS} FROM events WHERE stream IN "
                "(SELECT key FROM streams WHERE session = ?) ORDER BY position",
                key,
            )
            frame = pandas.DataFrame(
                [{**decode_body(row[-1]), **dict(zip(names, row, strict=False))} for row in rows]
            )
            is_act = frame["kind"].isin(ACTS) & frame["role"].isin(("human", "agent"))
            acts = frame[is_act]
            opens = (acts["role"] == "human") & (acts["role"].shift() == "agent")
            number = opens.cumsum() + 1
            rounds = acts.groupby(number)["version"].agg(["min", "max", "count"])
            snapshots = acts[acts["kind"] == "SnapshotTaken"]
            round_of = number.loc[snapshots.index].set_axis(snapshots["version"])
            scored = frame[frame["kind"] == "UtilityScored"]
            values = scored.groupby(scored["snapshot"].map(round_of))["value"].last()
            rounds["utility"] = values.reindex(rounds.index).ffill().fillna(0.0)
            rated = frame[frame["kind"] == "ProgressRated"]
            rounds["rating"] = rated.groupby("round")["rating"].last().reindex(rounds.index)
            bad = rounds["rating"] < 3
            rounds["bad"] = bad.groupby((~bad).cumsum()).cumsum()
            words = acts["text"].where(acts["kind"] == "MessageSent").str.count(" ")
            words.groupby([number, acts["role"]]).sum().unstack().cumsum()
            count += len(rounds)
    return count


def decode_records(path: Path) -> int:
    """Fetches every row as a record, and decodes its event; gives how many."""
    count = 0
    with closing(sqlite3.connect(path)) as connection:
        streams = {
            key: (session, stream)
            for key, session, stream in connection.execute(
                "SELECT t.key, s.session, t.stream FROM streams t "
                "JOIN sessions s ON s.key = t.session"
            )
        }
        rows = connection.execute(f"SELECT {COLUMNS} FROM events ORDER BY position")
        while batch := rows.fetchmany(512):
            for position, stream, *rest in batch:
                assert Record(position, *streams[stream], *rest).event is not None
            count += len(batch)
    return count


async def read(path: Path) -> int:
    """Reads all records, and leaves their bodies alone; gives how many."""
    count = 0
    async with open_log(f"sqlite:///{path}") as log:
        async for _ in log.read_all():
            count += 1
    return count


async def replay(path: Path) -> int:
    """Scores all sessions of the log, in one pass; gives how many rounds."""
    async with open_log(f"sqlite:///{path}") as log:
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


def timed(function: Callable[[], object]) -> float:
    """Seconds of processor time that a call takes."""
    gc.collect()
    start = time.process_time()
    function()
    return time.process_time() - start


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


def main() -> None:
    """Measures, and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--models", action="store_true", help="agents call models")
    parser.add_argument("--log", type=Path, help="a SQLite log to take instead of writing one")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = arguments.log or Path(directory) / "replay.db"
        if arguments.log is None:
            anyio.run(write, path, arguments.sessions, arguments.rounds, arguments.models)
        measure(path, arguments.repeat)
    for rounds in (100, 1000):
        kept = anyio.run(memory, rounds, arguments.models)
        print(f"a fold of {rounds:5} rounds keeps {kept:6.0f} bytes per round")


def measure(path: Path, repeat: int) -> None:
    """Runs everything in turn, and prints the best of each."""
    rows = decode(path)
    runs: dict[str, Callable[[], object]] = {
        "decode": lambda: decode(path),
        "records": lambda: decode_records(path),
        "read": lambda: anyio.run(read, path),
        "replay": lambda: anyio.run(replay, path),
        "updates": lambda: anyio.run(updates, path),
    }
    if importlib.util.find_spec("pandas") is None:
        print("pandas is not installed: no comparison with frames")
    else:
        runs["frames"] = lambda: frames(path)
    best = dict.fromkeys((*runs, "fold"), float("inf"))
    for _ in range(repeat):
        for name, run in runs.items():
            best[name] = min(best[name], timed(run))
        records = anyio.run(records_of, path)
        best["fold"] = min(best["fold"], timed(partial(fold, records)))
        del records  # their bodies are decoded now
    print(f"{rows} rows in {path.stat().st_size / 1e6:.1f} MB, Python {sys.version.split()[0]}")
    for name, seconds in best.items():
        speed = rows / seconds
        ratio = best["decode"] / seconds
        print(f"{name:7} {seconds:7.3f} s {speed:10.0f} rows/s  {ratio:5.2f} of decode")
    if "frames" in best:
        print(f"replay is {best['frames'] / best['replay']:.1f} times as fast as frames")


if __name__ == "__main__":
    main()
