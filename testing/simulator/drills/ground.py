"""The ground of a drill: it opens new logs, in memory or on the simulated disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import anyio

from ....engine.events import (
    ActionTaken,
    FeedbackGiven,
    MessageSent,
    Origin,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    UtilityScored,
)
from ....engine.log.contract import EventLog, Store
from ....engine.records import Draft, Record
from ...tools import require

__all__ = (
    "Drill",
    "Ground",
    "act",
    "begun",
    "closing",
    "feedback",
    "measured",
    "opening",
    "populate",
    "said",
    "soon",
)

T = TypeVar("T")

_LATEST = 5.0  # seconds within which what is due takes place


class Ground(NamedTuple):
    """The tools of a drill.

    Attributes:
        open: gives the log of a name, not entered yet; one in memory is new each time.
        directory: the directory of the files; None for logs in memory.
        draw: all that is left to chance.
        fail: has the disk fail as it says, from the n-th operation on, or no more if it is empty.
    """

    open: Callable[[str], Store]
    directory: Path | None
    draw: int
    fail: Callable[[str, int], None]


Drill: TypeAlias = Callable[[Ground], Coroutine[object, object, None]]
"""A sequence of operations on new logs, each result of which is known."""


async def soon(what: str, work: Awaitable[T]) -> T:
    """The result of something that must not take long."""
    with anyio.move_on_after(_LATEST):
        return await work
    raise AssertionError(f"{what}: not within {_LATEST:g} s")


def begun(work: Awaitable[T]) -> asyncio.Task[T]:
    """A task at work on something."""

    async def run() -> T:
        return await work

    return asyncio.get_running_loop().create_task(run())


def said(text: str, own: str | None = None, actor: str = "ann") -> Draft:
    """A message of a person."""
    return Draft(MessageSent(text=text), actor, "human", 1.0 + len(text), own)


def act(name: str, own: str | None = None) -> Draft:
    """An act of an agent."""
    return Draft(ActionTaken(name=name, arguments={"n": len(name)}), "bot", "agent", 2.0, own)


def opening(task: str, origin: str | None = None) -> Draft:
    """The opening of a session, perhaps of a fork."""
    forked = None if origin is None else Origin(session=origin, version=1)
    config = {"group": {"agent": task, "user": "u"}}
    event = SessionOpened(
        task=task, instance="1", participants=(), clock="utc", config=config, forked_from=forked
    )
    return Draft(event, "engine", "environment", 0.5)


def closing() -> Draft:
    """The close of a session."""
    return Draft(SessionClosed(reason="finished", by="ann"), "ann", "human", 9.0)


def feedback(comment: str, own: str | None = None) -> Draft:
    """What may follow a close."""
    return Draft(FeedbackGiven(comment=comment), "ann", "human", 10.0, own)


def measured(value: float, own: str | None = None) -> Draft:
    """A scorer's measurement."""
    scorer = ScorerRef(name="judge", version="1", config="-")
    return Draft(UtilityScored(scorer=scorer, value=value), "judge", "scorer", 3.0, own)


async def populate(log: EventLog, *, bodies: str = "") -> list[Record]:
    """A few sessions: one with two streams and a fork of a fork, one that is closed, one of another task.

    Args:
        log: a new log.
        bodies: is in the text of each message of the first session and its forks.
    """
    records = await log.append("a", [opening("travel"), said(f"{bodies} one", "1"), act("look")])
    records += await log.append("b", [opening("data"), said("two"), closing(), feedback("fine")])
    records += await log.append("a", [measured(0.5), measured(0.75, "m")], stream="judge@1")
    records += await log.append("f", [opening("travel", "a"), said(f"{bodies} forked", "1")])
    records += await log.append("c", [said("three", "3")])
    records += await log.append("g", [opening("travel", "f"), said(f"{bodies} again")])
    records += await log.append("a", [said(f"{bodies} more", "2"), act("find", "4")])
    positions = [record.position for record in records]
    require(positions == list(range(1, len(records) + 1)), f"positions count from 1: {positions}")
    return records
