"""The protocol for running sessions with people; the command line implements it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from ....engine.session.context import ActorContext

__all__ = ("Host", "NewSession", "Offer", "TakenSeat")

T = TypeVar("T")


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A task that a session can be begun on.

    Attributes:
        task: its name.
        description: one line.
        agents: kinds of agents that work with people, each with a one-line description.
        agent: the one that is offered first.
    """

    task: str
    description: str
    agents: Mapping[str, str]
    agent: str


class NewSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a new session.

    Attributes:
        task: name of the task.
        agents: kinds of agents that take part, one or more.
        model: behind the agents; empty for rules.
        instance: which instance; empty for the first.
        seed: decides the world.
        people: how many people take part.
    """

    task: str
    agents: tuple[str, ...]
    model: str = ""
    instance: str = ""
    seed: int = 0
    people: int = 1


class TakenSeat(Protocol):
    """A participant's seat in a running session."""

    async def call(self, work: Callable[[ActorContext], Awaitable[T]]) -> T:
        """Performs an action through their context.

        Raises:
            SessionClosedError: the session ended first.
        """
        ...


class Host(Protocol):
    """Begins and runs sessions."""

    async def offers(self) -> Sequence[Offer]:
        """The tasks that there are."""
        ...

    async def begin(self, wanted: NewSession) -> str:
        """Begins a session; gives its id.

        Raises:
            DuologError: it cannot be begun as it is wanted.
        """
        ...

    def trouble(self, session: str) -> str:
        """Why a model cannot be asked in a session that runs; empty if it can."""
        ...

    async def seat(self, session: str, actor: str) -> TakenSeat:
        """A participant's seat; an open session that is not running is resumed.

        Raises:
            DuologError: there is no such session or seat, or it is closed.
        """
        ...
