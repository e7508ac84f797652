"""A session that is exported to OpenTelemetry, and how the tests export it."""

from __future__ import annotations

from collections.abc import Sequence

import duolog
from duolog.engine.codec import digest
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    Event,
    MessageSent,
    ModelCalled,
    Participant,
    ProgressRated,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    Tokens,
    UtilityScored,
)
from duolog.engine.records import Draft, Record
from duolog.interop.otel.exporter import OtelExport
from duolog.testing import by
from opentelemetry.sdk.trace import ReadableSpan
from otel_memory import Memory

__all__ = (
    "CALL",
    "JUDGE",
    "NOON",
    "RUBRIC",
    "SCORES",
    "STORY",
    "agent",
    "attributes",
    "engine",
    "export",
    "exported_from",
    "human",
    "opened",
    "write",
)

NOON = 1_793_534_400.0  # 2026-11-01 12:00 UTC
JUDGE = ScorerRef(name="judge", version="2", config="abc")
RUBRIC = ScorerRef(name="rubric", version="1", config="")


def opened(**more: object) -> SessionOpened:
    about = {
        "task": "support",
        "instance": "i-1",
        "participants": (
            Participant(name="ann", role="human"),
            Participant(name="bot", role="agent", policy="v7"),
        ),
        "clock": "utc",
    }
    return SessionOpened(**(about | more))  # type: ignore[arg-type]


def human(event: Event, time: float) -> Draft:
    return by("human", event, actor="ann", time=NOON + time)


def agent(event: Event, time: float) -> Draft:
    return by("agent", event, actor="bot", time=NOON + time)


def engine(event: Event, time: float) -> Draft:
    return by("environment", event, time=NOON + time)


CALL = ModelCalled(
    model="openai/gpt-4o",
    purpose="reply",
    request="d1",
    reply={"text": "secret reply", "finish": "stop", "model": "gpt-4o-2024-08-06"},
    tokens=Tokens(prompt=100, completion=20, cached=60, reasoning=8, cache_creation=30),
    latency=1.5,
    cost=0.002,
)

STORY = [
    engine(opened(), 0),
    human(MessageSent(text="secret question"), 1),  # 2
    agent(CALL, 4),  # 3
    agent(ActionTaken(name="look_up", arguments={"order": "secret"}), 5),  # 4
    engine(ActionResolved(action=4, outcome="ok", observation="secret found"), 7),  # 5
    agent(SnapshotTaken(content="secret draft", digest=digest("secret draft")), 8),  # 6
    human(MessageSent(text="secret complaint"), 20),  # 7: round 2
    agent(ActionTaken(name="look_up"), 21),  # 8
    engine(ActionResolved(action=8, outcome="failed", error="secret trouble"), 22),  # 9
    agent(MessageSent(text="secret excuse"), 23),  # 10
    human(SessionClosed(reason="finished", by="ann"), 30),  # 11
]

SCORES = [
    Draft(
        UtilityScored(scorer=RUBRIC, snapshot=6, value=0.75, parts={"tone": 0.5}), "r", "scorer", 0
    ),
    Draft(
        ProgressRated(round=1, rating=2, until=6, explanation="secret reason", scorer=JUDGE),
        "judge",
        "scorer",
        NOON + 20,
    ),
]


async def write(log: duolog.Log, drafts: Sequence[Draft], session: str = "s") -> list[Record]:
    return await log.append(session, drafts)


def export(log: duolog.Log, memory: Memory, **more: object) -> OtelExport:
    return duolog.otel_export(
        log,
        tracer_provider=memory.tracers,
        meter_provider=memory.meters,
        logger_provider=memory.loggers,
        **({"deadline": 60.0} | more),  # type: ignore[arg-type]
    )


async def exported_from(drafts: Sequence[Draft] = STORY, **more: object) -> Memory:
    """The exported data of a session."""
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, drafts)
        async with export(log, memory, **more) as running:
            pass
        assert running.statistics().failed == 0
        assert running.statistics().lag == 0
    return memory


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})
