"""What Duolog's own tests are made of, for everybody who extends it.

Actors that follow a script, sessions to put them in, an order for tasks that run at once, folds
told as *given, when, then*, and checks of contracts that a store, a scorer or an importer has to
keep::

    user = Script().say("A weekend in Oslo, please.").hear().finish()
    helper = Script().hear().submit("Day 1: the fjord").say("How is this?")
    result, streams = await played(a_session(human(user), agent(helper)))
    assert result.reason == "finished"
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

import anyio

from .actors import Improviser, Script, agent, human
from .contracts.importer import check_importer
from .contracts.log import check_event_log
from .contracts.scorer import check_scorer
from .folds import by, given, records_of
from .sessions import Played, Workshop, a_session, played, put_records, streams, virtual_turns

__all__ = (
    "Improviser",
    "Played",
    "Script",
    "Steps",
    "Workshop",
    "a_session",
    "agent",
    "by",
    "check_event_log",
    "check_importer",
    "check_scorer",
    "given",
    "human",
    "played",
    "put_records",
    "records_of",
    "streams",
    "virtual_turns",
)


@final
class Steps:
    """Puts what several tasks do into one order, that of the numbers they wait for.

    Each number is used once, from 0 on::

        steps = Steps()
        async with steps(1):  # in one task: comes second
            ...
        async with steps(0):  # in another: comes first
            ...
    """

    def __init__(self) -> None:
        self._next = 0
        self._events: dict[int, anyio.Event] = {}
        self._used: set[int] = set()

    @asynccontextmanager
    async def __call__(self, number: int) -> AsyncIterator[None]:
        """Waits until all numbers below have been used; the next may go when this one is done.

        Raises:
            ValueError: the number was used before.
        """
        if number in self._used:
            raise ValueError(f"step {number} was taken already")
        self._used.add(number)
        if number != self._next:
            await self._events.setdefault(number, anyio.Event()).wait()
        try:
            yield
        finally:
            self._next = number + 1
            self._events.setdefault(self._next, anyio.Event()).set()
