"""Sessions that the benchmarks simulate: two scripted actors, and travel planning by rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from duolog.benchmarks.floors.kernel import TEXT, TURNS
from duolog.engine.events import ActionResolved, Participant, SessionOpened
from duolog.engine.log.open import open_log
from duolog.engine.session.actors import Player
from duolog.engine.session.context import ActorContext
from duolog.engine.session.environment import Action, ActionSpec, Outcome
from duolog.engine.session.limits import Limits
from duolog.engine.session.runner import Session, SessionResult
from duolog.engine.session.simulation import Outcome as SessionOutcome
from duolog.engine.session.simulation import simulate

__all__ = ("PARTS", "scripted", "simulate_sessions")


class Lookup:
    """An environment that answers at once."""

    def __init__(self) -> None:
        self.actions = {"look": ActionSpec(name="look", description="looks things up")}

    async def perform(self, action: Action) -> Outcome:
        """A constant answer, after 1.5 seconds of session time."""
        return Outcome(observation={"found": ["a", "b", "c"], "text": TEXT}, seconds=1.5)

    def recall(self, action: Action, resolved: ActionResolved) -> None:
        """There is nothing to remember."""


async def user(context: ActorContext) -> None:
    """Says something, waits for the answer, and again."""
    for _ in range(TURNS):
        await context.say(TEXT)
        await context.news()
        context.look()
        await context.pause(5.0)
    await context.finish()


async def helper(context: ActorContext) -> None:
    """Looks something up, writes it down, and says so, whenever it is spoken to."""
    for turn in range(TURNS):
        await context.news()
        context.look()
        action = await context.act("look", {"at": turn})
        await context.result(action)
        await context.note(TEXT[:80])
        await context.submit(f"Day {turn}\n{TEXT}")
        await context.say(TEXT[:120])
    await context.news()


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


def travel() -> Callable[[int], Session]:
    """Makes sessions of travel planning, the kinds of agents in turn."""
    from duolog.engine.task import Cell, Setting
    from duolog.examples.travel.travel_task import travel_task

    task = travel_task()
    setting = Setting()
    names = task.instances(10_000, 7)

    def make(number: int) -> Session:
        kind = ("auto", "one-stage", "two-stage")[number % 3]
        person = "none" if task.automated(kind) else "proactive"
        cell = Cell(agent=kind, user=person, instance=names[number // 3], seed=7)
        return task.session(cell, setting)

    make(0)  # the world is made once
    return make


PARTS: Final[dict[str, Callable[[], Callable[[int], Session]]]] = {
    "scripted": lambda: scripted,
    "travel": travel,
}


async def simulate_sessions(
    url: str, make: Callable[[int], Session], sessions: int, at_once: int
) -> int:
    """Runs sessions against a new log, a number at once; returns the number of their events.

    Raises:
        RuntimeError: one of them failed.
    """
    ended: list[SessionOutcome] = []

    def makers() -> Iterator[Callable[[], Session]]:
        for number in range(sessions):
            yield lambda number=number: make(number)  # type: ignore[misc]

    async with open_log(url) as log:
        await simulate(log, makers(), concurrency=at_once, on_outcome=ended.append)
        events = log.statistics().events
    bad = [o for o in ended if not isinstance(o, SessionResult) or o.reason == "failed"]
    if bad or len(ended) != sessions:
        raise RuntimeError(f"{len(bad)} of {len(ended)} sessions failed, such as {bad[:1]}")
    return events
