"""Writes a log of very many sessions, and one very long one, for benchmarks of the programs that show logs.

python -P -m duolog.benchmarks.workloads.many_sessions LOG [--sessions N] [--records N] [--long N]
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import anyio
from duolog.engine import codec
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    CloseReason,
    Event,
    MessageSent,
    Participant,
    ProgressRated,
    Role,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.log.sqlite.file import parse
from duolog.engine.log.sqlite.log import sqlite_log
from duolog.engine.records import TRACE, Draft

__all__ = ("LONG", "session", "write")

LONG = "long-session"
"""Id of the session that is long."""

_AGENTS = ("auto", "one-stage", "two-stage", "adaptive")
_USERS = ("proactive", "feedback-only", "lazy")
_REASONS: tuple[CloseReason, ...] = ("finished", "finished", "abandoned", "limit", "tolerance")
_UTILITY = ScorerRef(name="travel", version="1", config="c0ffee")
_JUDGE = ScorerRef(name="rule-judge", version="1", config="c0ffee")
_AT_ONCE = 64


def session(number: int, records: int, *, closed: bool = True) -> list[tuple[str, Draft]]:
    """The events of a session with a number of records, each with its stream."""
    return list(_session(random.Random(number), number, records, closed))


def _session(
    random_: random.Random, number: int, records: int, closed: bool
) -> Iterator[tuple[str, Draft]]:
    clock = 0.0
    version = 0

    def trace(event: Event, actor: str, role: Role) -> tuple[str, Draft]:
        nonlocal clock, version
        clock += random_.randrange(1, 30)
        version += 1
        return TRACE, Draft(event, actor, role, clock, seen=version - 1)

    agent, user = _AGENTS[number % 4], _USERS[number // 4 % 3]
    yield trace(
        SessionOpened(
            task="travel",
            instance=f"travel-{number // 12}",
            participants=(
                Participant(name="user", role="human", policy="rule", persona=user),
                Participant(name="agent", role="agent", policy=agent),
            ),
            clock="virtual",
            request=f"Plan a trip of {number % 7 + 2} days, please.",
            config={
                "judge": "rule-judge",
                "utility": "travel",
                "group": {"agent": agent, "user": user, "model": f"model-{number % 5}"},
            },
            private={"user": {"profile": "likes trains"}},
        ),
        "engine",
        "environment",
    )
    lines = [f"Day {day}: nothing yet" for day in range(1, 8)]
    utility, rounds, base = 0.0, 1, None
    while version < records * 8 // 10 - 1:
        yield trace(ActionTaken(name="search", arguments={"q": "x"}), "agent", "agent")
        found = [{"name": f"Place {random_.randrange(900)}"}]
        taken = version
        yield trace(
            ActionResolved(action=taken, outcome="ok", observation=found),
            "environment",
            "environment",
        )
        lines[random_.randrange(7)] = f"Day {random_.randrange(7)}: Place {random_.randrange(900)}"
        content = "\n".join(lines)
        yield trace(
            SnapshotTaken(content=content, digest=codec.digest(content), base=base),
            "agent",
            "agent",
        )
        base = version
        utility = min(1.0, utility + random_.random() * 0.1)
        scored = UtilityScored(scorer=_UTILITY, snapshot=version, value=round(utility, 3))
        yield "travel@1", Draft(scored, "travel", "scorer", clock)
        yield trace(MessageSent(text="I have revised the *plan*. Is it better?"), "agent", "agent")
        answered = version
        yield trace(
            MessageSent(text="A little. Could we see more of the old town?"), "user", "human"
        )
        rated = ProgressRated(
            round=rounds, rating=random_.randrange(1, 6), until=answered, scorer=_JUDGE
        )
        yield "rule-judge@1", Draft(rated, "rule-judge", "scorer", clock)
        rounds += 1
    if closed:
        reason = random_.choice(_REASONS)
        yield trace(SessionClosed(reason=reason, by="user"), "engine", "environment")


async def write(path: Path, *, sessions: int, records: int, long: int) -> None:
    """Writes the log: ``sessions`` of about ``records`` each, and one of about ``long``."""
    async with sqlite_log(parse(f"sqlite:///{path}?durability=normal")) as log:

        async def one(name: str, events: list[tuple[str, Draft]]) -> None:
            for stream in ("travel@1", "rule-judge@1"):
                drafts = [draft for where, draft in events if where == stream]
                trace = [draft for where, draft in events if where == TRACE]
                if stream == "travel@1" and trace:
                    await log.append(name, trace)
                if drafts:
                    await log.append(name, drafts, stream=stream)

        if long:
            await one(LONG, session(1, long, closed=False))
        for start in range(0, sessions, _AT_ONCE):
            async with anyio.create_task_group() as tasks:
                for number in range(start, min(start + _AT_ONCE, sessions)):
                    tasks.start_soon(one, f"session-{number}", session(number, records))


def main() -> None:
    """Writes the log that the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--records", type=int, default=50)
    parser.add_argument("--long", type=int, default=20_000)
    asked = parser.parse_args()
    asyncio.run(write(asked.log, sessions=asked.sessions, records=asked.records, long=asked.long))


if __name__ == "__main__":
    main()
