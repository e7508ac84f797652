"""Puts the steps of concurrent tasks into a fixed order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

import anyio

__all__ = ("Steps",)


@final
class Steps:
    """Orders the steps of several tasks by the numbers that they wait for.

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
