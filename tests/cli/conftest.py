"""Logs written by hand, small and with everything in them, for the commands that read logs."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from duolog.engine import codec
from duolog.engine.events import (
    JSON,
    ActionResolved,
    ActionTaken,
    ActorFailed,
    ApprovalAsked,
    ApprovalGiven,
    Event,
    FeedbackGiven,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Nudged,
    Participant,
    ProgressRated,
    Role,
    ScorerFailed,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SimulatorFlagged,
    SnapshotTaken,
    StopAdvised,
    Tokens,
    TurnYielded,
    Unknown,
    UtilityScored,
)
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Draft

NOON = 1_772_366_400.0  # 2026-03-01 12:00 UTC

TASTE = ScorerRef(name="taste", version="2", config="c0ffee")
MOOD = ScorerRef(name="mood", version="1", config="")

ROLES: dict[str, Role] = {"ann": "human", "bot": "agent", "kitchen": "environment"}


class Pen:
    """Writes one session, an event at a time."""

    def __init__(self, log: EventLog, session: str, start: float = 0.0) -> None:
        self.log = log
        self.session = session
        self.start = start

    async def write(
        self,
        actor: str,
        event: Event | Unknown,
        *,
        at: float,
        seen: int | None = None,
        stream: str = TRACE,
    ) -> None:
        role: Role = "scorer" if stream != TRACE else ROLES.get(actor, "environment")
        draft = Draft(event, actor, role, self.start + at, seen=seen)
        await self.log.append(self.session, [draft], stream=stream)


def snapshot(content: str, base: int | None = None) -> SnapshotTaken:
    return SnapshotTaken(content=content, digest=codec.digest(content), base=base)


MENU = "Monday: soup\nTuesday: pasta\nWednesday: curry\nThursday: rice\nFriday: fish"
MENU_2 = MENU.replace("Tuesday: pasta", "Tuesday: dumplings")


async def write_dinner(log: EventLog) -> None:
    """Two rounds under a virtual clock, with each kind of event that can be told."""
    pen = Pen(log, "menu-1-two-stage-ab12")
    people = (
        Participant(name="ann", role="human", policy="rules", persona="proactive"),
        Participant(name="bot", role="agent", policy="two-stage", model="gpt-x"),
    )
    config: dict[str, JSON] = {
        "group": {"agent": "two-stage", "user": "proactive"},
        "judge": "human",
    }
    opened = SessionOpened(
        task="menu", instance="1", participants=people, clock="virtual", seed=7, config=config
    )
    await pen.write("engine", opened, at=0)
    await pen.write("ann", MessageSent(text="Plan [bold]five[/bold] dinners, please."), at=0)
    called = ModelCalled(
        model="gpt-x", purpose="act", request="d", tokens=Tokens(prompt=120, completion=8)
    )
    await pen.write("bot", called, at=2)
    found: JSON = {"columns": ["name"], "rows": [["soup"], ["pasta"]]}
    await pen.write("bot", ActionTaken(name="Search", arguments={"what": "dinners"}), at=2, seen=2)
    await pen.write("bot", NoteTaken(text="she likes soup"), at=2)
    await pen.write("kitchen", ActionResolved(action=4, outcome="ok", observation=found), at=3.5)
    await pen.write("bot", ActionTaken(name="Fry", arguments={"oil": 2}), at=4, seen=6)
    await pen.write("kitchen", ActionResolved(action=7, outcome="failed", error="no oil"), at=4.5)
    await pen.write("bot", snapshot(MENU), at=9, seen=8)
    await pen.write("bot", MessageSent(text="A first menu.\nWhat do you dislike?"), at=10, seen=9)
    await pen.write("bot", TurnYielded(), at=10)
    scored = UtilityScored(scorer=TASTE, snapshot=9, value=0.5, parts={"salt": 0.25})
    await pen.write("taste", scored, at=9, stream="taste@2")
    rated = ProgressRated(round=1, rating=2, until=10, explanation="Too much pasta.")
    await pen.write("ann", rated, at=15)
    await pen.write("ann", MessageSent(text="No pasta."), at=15, seen=11)
    await pen.write("bot", MessageSent(text="Is it for five days?"), at=15.5, seen=11)
    await pen.write("bot", snapshot(MENU_2, base=9), at=20, seen=13)
    late = ActionTaken(name="submit", arguments={"content": "Monday: toast", "base": 9})
    await pen.write("ann", late, at=21, seen=13)
    refused = ActionResolved(action=16, outcome="failed", error="the output has changed")
    await pen.write("engine", refused, at=21)
    await pen.write("bot", ApprovalAsked(question="May I order?", action="order"), at=22, seen=17)
    await pen.write("ann", ApprovalGiven(asked=18, approved=False, comment="too dear"), at=25)
    await pen.write("engine", Nudged(to="bot", reason="everybody is waiting"), at=25)
    missing = UtilityScored(scorer=TASTE, snapshot=15, missing="no taster")
    await pen.write("taste", missing, at=20, stream="taste@2")
    failed = ScorerFailed(scorer=MOOD, error="moody", type="ValueError")
    await pen.write("mood", failed, at=20, stream="mood@1")
    flagged = SimulatorFlagged(fault="invented a dish", of=13)
    await pen.write("mood", flagged, at=20, stream="mood@1")
    advised = StopAdvised(round=1, tau=1, rule="1 round in a row")
    await pen.write("tolerance", advised, at=20, stream="tolerance@1")
    await pen.write("bot", Unknown("DishBroken", 3, b'{"kind":"DishBroken","n":1}'), at=25)
    await pen.write("ann", SessionClosed(reason="finished", by="ann", detail="full"), at=30)
    await pen.write("ann", FeedbackGiven(thumbs="up", edits_kept=0.8, comment="tasty"), at=31)


async def write_rest(log: EventLog) -> None:
    """An automated run, a session that failed, and one of real people, which is still open."""
    bot = Participant(name="bot", role="agent", policy="auto")
    alone = Pen(log, "menu-1-auto-cd34")
    config: dict[str, JSON] = {
        "group": {"agent": "auto", "user": "none"},
        "baseline": True,
        "judge": "none",
    }
    await alone.write(
        "engine",
        SessionOpened(
            task="menu",
            instance="1",
            participants=(bot,),
            clock="virtual",
            seed=7,
            request="Plan five dinners.",
            config=config,
        ),
        at=0,
    )
    await alone.write("bot", snapshot("Soup, five times"), at=3)
    scored = UtilityScored(scorer=TASTE, snapshot=2, value=0.25)
    await alone.write("taste", scored, at=3, stream="taste@2")
    await alone.write("bot", SessionClosed(reason="finished", by="bot"), at=4)

    broken = Pen(log, "menu-2-two-stage-ef56")
    await broken.write(
        "engine",
        SessionOpened(task="menu", instance="2", participants=(bot,), clock="virtual"),
        at=0,
    )
    await broken.write("bot", ActorFailed(error="out of gas", type="RuntimeError"), at=1)
    await broken.write("bot", SessionClosed(reason="failed", by="bot", detail="out of gas"), at=1)

    chat = Pen(log, "chat-7", NOON)
    people = (Participant(name="ann", role="human"), Participant(name="bot", role="agent"))
    opened = SessionOpened(task="chat", instance="", participants=people, clock="utc")
    await chat.write("engine", opened, at=0)
    await chat.write("ann", MessageSent(text="Hello \x1b[31m\u202eevil"), at=1)
    await chat.write("bot", MessageSent(text="Good day.", to=("ann",)), at=60)
    await chat.write("ann", MessageSent(text="Still there?"), at=90_000)


@pytest.fixture(scope="session")
def dinner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of four sessions; not to be written to."""
    path = tmp_path_factory.mktemp("logs") / "dinner.db"

    async def write() -> None:
        async with open_log(str(path)) as log:
            await write_dinner(log)
            await write_rest(log)

    anyio.run(write)
    return path


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 100 columns without colours, in UTC."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
