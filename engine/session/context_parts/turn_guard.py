"""Guards one actor's context: refuses use that would break the session's order, or never end."""

from __future__ import annotations

import asyncio
import math
from typing import final

from ...errors import ContextError
from ..time.scheduler import Turns

__all__ = ("TurnGuard",)

_AT_ONCE = 5000
_INSTANT = 0.001  # seconds in which no actor does that many things


@final
class TurnGuard:
    """Checks each use of a context: by its actor's own task, in its turn, and not in an endless loop.

    Args:
        name: the actor's.
        turns: the session's clock.
    """

    def __init__(self, name: str, turns: Turns) -> None:
        self._name = name
        self._turns = turns
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[object] | None = None
        self._instant = -math.inf
        self._uses = 0

    def attach(self) -> None:
        """Binds the context to the task that runs now: its actor's."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()

    def check(self) -> None:
        """Counts a use of the context.

        Raises:
            ContextError: it is of another task, or out of turn, or one of thousands at one time.
        """
        if asyncio.current_task(self._loop) is not self._task:
            raise ContextError(
                f"the context of {self._name!r} was used from a task that is not its actor's; pass "
                "the other task's result to the actor, and let the actor emit it"
            )
        if not self._turns.holds(self._name):
            raise ContextError(
                f"it is not the turn of {self._name!r}: its wait was cancelled. Time-outs of "
                "anyio's measure the wall; wait with news(within=...) for session time to pass"
            )
        now = self._turns.now()
        if now - self._instant > _INSTANT:
            self._instant, self._uses = now, 0
        self._uses += 1
        if self._uses > _AT_ONCE:
            raise ContextError(
                f"{self._name!r} has done {self._uses} things at session time {now} without any "
                "time passing; wait for news, or let work take time"
            )

    def until(self, seconds: float) -> float:
        """The session time that many seconds from now.

        Raises:
            ContextError: that never comes.
        """
        if not math.isfinite(seconds):
            raise ContextError(
                f"{self._name!r} cannot wait for {seconds} s; leave the time out to wait"
            )
        return self._turns.now() + seconds
