"""Writes a log of sessions that look like travel planning, for benchmarks of the programs that read logs.

The sessions have searches with long observations, a plan of some two thousand characters edited line by
line, and scores and ratings next to the trace.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import anyio
from duolog.engine import codec
from duolog.engine.events import (
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
from duolog.engine.records import TRACE, Draft

__all__ = ("session", "write")

UTILITY = ScorerRef(name="travel", version="1", config="c0ffee")
JUDGE = ScorerRef(name="rule-judge", version="1", config="c0ffee")
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
