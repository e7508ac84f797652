"""An asyncio event loop whose time is virtual and whose every step is counted, so that one seed
gives one run.

Callbacks run in the order in which they were asked for, as asyncio promises. Where nothing is ready,
time jumps to the next timer. Nothing waits for the machine: no sockets, no threads.
"""

from __future__ import annotations

import asyncio
import heapq
from asyncio import events, futures, tasks
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, TypeVar
from weakref import WeakSet

__all__ = ("Deadlock", "Endless", "SimulatedLoop")

T = TypeVar("T")


class Deadlock(AssertionError):
    """Nothing is ready and no timer is set, and the run is not over."""


class Endless(AssertionError):
    """A run took more steps than it may."""


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Runs coroutines on virtual time, step by step.

    Args:
        before_step: called with the number of each step before it is taken; what it raises ends
            the run.
        most: steps that a run may take.
    """

    def __init__(self, before_step: Callable[[int], None], *, most: int = 100_000) -> None:
        self._before_step = before_step
        self._most = most
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = 0
        self._time = 0.0
        self._running = False
        self._closed = False
        self._tasks: WeakSet[asyncio.Task[Any]] = WeakSet()
        self.steps = 0
        self.errors: list[BaseException | str] = []

    def run_until_complete(self, future: Any) -> Any:  # noqa: ANN401 (as the base class has it)
        """Runs until a coroutine or a future is done.

        Raises:
            Deadlock: nothing can go on.
            Endless: it takes too many steps.
        """
        if asyncio.iscoroutine(future):
            future = self.create_task(future)
        before = events._get_running_loop()
        events._set_running_loop(self)
        self._running = True
        try:
            while not future.done():
                self._step()
        finally:
            self._running = False
            events._set_running_loop(before)
        return future.result()

    def _step(self) -> None:
        if not self._ready:
            self._jump()
        handle = self._ready.popleft()
        if handle.cancelled():
            return
        self.steps += 1
        if self.steps > self._most:
            raise Endless(f"the run does not end: {self._most} steps, {self._time:.1f} s")
        self._before_step(self.steps)
        handle._run()

    def _jump(self) -> None:
        while self._timers:
            when, _, handle = heapq.heappop(self._timers)
            if handle.cancelled():
                continue
            self._time = max(self._time, when)
            self._ready.append(handle)
            while self._timers and self._timers[0][0] <= self._time:
                _, _, more = heapq.heappop(self._timers)
                if not more.cancelled():
                    self._ready.append(more)
            return
        raise Deadlock("nothing can go on: every task waits, and no timer is set")

    # --- what tasks, futures and anyio ask of a loop ---------------------------------------------

    def time(self) -> float:
        """Seconds of virtual time."""
        return self._time

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        """Queues a callback."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: object,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Queues a callback for later."""
        return self.call_at(self._time + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: object,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Queues a callback for a time."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A timer is skipped where it comes up."""

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return futures.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """Starts a task."""
        task = tasks.Task(coro, loop=self, name=name, context=context)
        self._tasks.add(task)
        return task

    def tasks(self) -> list[asyncio.Task[Any]]:
        """Tasks that are not done."""
        return [task for task in self._tasks if not task.done()]

    def abandon(self) -> None:
        """The process that this loop stands for is over: nobody is to complain about its tasks."""
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keeps what nobody caught."""
        self.errors.append(context.get("exception") or str(context.get("message")))

    def get_task_factory(self) -> None:
        """None: tasks are asyncio's own."""

    def get_debug(self) -> bool:
        """Never."""
        return False

    def is_running(self) -> bool:
        """Whether it runs."""
        return self._running

    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def close(self) -> None:
        """Drops what waits."""
        self._closed = True
        self._ready.clear()
        self._timers.clear()
