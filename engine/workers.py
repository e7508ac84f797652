"""Tasks that are reused: starting a task takes four times the CPU of waking one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar, final

from anyio.abc import TaskGroup

__all__ = ("Workers",)

T = TypeVar("T")

_KEPT: Final = 64


@final
class Workers(Generic[T]):
    """Reusable tasks of a group. Each works on one item at a time, and items do not wait for each other.

    Args:
        tasks: the group that they belong to; an error of the work is raised there.
        work: works on an item.
        name: the name of the tasks.
    """

    def __init__(
        self, tasks: TaskGroup, work: Callable[[T], Awaitable[None]], name: str | None = None
    ) -> None:
        self._tasks = tasks
        self._work = work
        self._name = name
        self._idle: list[asyncio.Future[tuple[T] | None]] = []
        self._closed = False

    def start(self, item: T) -> None:
        """Starts to work on an item, on the event loop."""
        while self._idle:
            idle = self._idle.pop()
            if not idle.done():  # else its task was cancelled
                idle.set_result((item,))
                return
        self._tasks.start_soon(self._run, item, name=self._name)

    def close(self) -> None:
        """Ends idle tasks at once, and the others after their item. Start nothing after this."""
        self._closed = True
        for idle in self._idle:
            if not idle.done():
                idle.set_result(None)
        self._idle.clear()

    async def _run(self, item: T) -> None:
        while True:
            await self._work(item)
            if self._closed or len(self._idle) >= _KEPT:
                return
            idle: asyncio.Future[tuple[T] | None] = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            del item  # while it waits, it must not keep the work alive
            given = await idle
            if given is None:
                return
            (item,) = given
            del given
