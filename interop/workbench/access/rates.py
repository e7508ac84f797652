"""Rate limits: a number of times at once, and then so many times a second."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import final

import anyio

__all__ = ("Rate",)

_CLIENTS = 10_000


@final
class Rate:
    """Counts what clients do, each on its own.

    Args:
        at_once: how often a client may do it without a pause.
        per_second: how often in the long run.
        now: the time in seconds.
    """

    def __init__(
        self,
        at_once: float,
        per_second: float,
        now: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._at_once = at_once
        self._per_second = per_second
        self._now = now
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> bool:
        """Counts one; whether the client may do it."""
        now = self._now()
        left, then = self._clients.pop(client, (self._at_once, now))
        left = min(self._at_once, left + (now - then) * self._per_second)
        allowed = left >= 1
        self._clients[client] = (left - allowed, now)
        if len(self._clients) > _CLIENTS:
            self._clients.popitem(last=False)
        return allowed
