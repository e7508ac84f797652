"""An asyncio event loop whose time is virtual and whose every step is counted, so that one seed
gives one run.

Callbacks run in the order in which they were scheduled, as asyncio promises. When nothing is ready,
time jumps to the next timer. Nothing waits for the machine: no sockets, no threads.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import inspect
from asyncio import events, futures, tasks
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, TypeVar
from weakref import WeakSet

import anyio.to_thread
from anyio._backends import _asyncio

__all__ = ("Deadlock", "Endless", "SimulatedLoop", "bury", "no_worker_threads")

T = TypeVar("T")


async def _run_sync(function: Callable[..., T], *args: object, **_options: object) -> T:
    await asyncio.sleep(0)
    return function(*args)


@contextmanager
def no_worker_threads() -> Iterator[None]:
    """Has what is to run in a worker thread run on the loop, after others had their turn.

    A simulated loop wakes nobody whom a thread has an answer for; and the thread, which waits for the
    end of a loop that nobody ends, would keep the process from ending.
    """
    before = anyio.to_thread.run_sync
    vars(anyio.to_thread)["run_sync"] = _run_sync
    try:
        yield
    finally:
        vars(anyio.to_thread)["run_sync"] = before


async def _nothing() -> None:
    pass


def bury() -> None:
    """Frees what was under way in a process that has ended by force.

    To be called where no loop runs: as coroutines are freed they clean up, and would take a task that
    runs meanwhile for their own. What they begin then is begun on a loop that never runs it.
    """
    loop = SimulatedLoop(lambda step: None)  # type: ignore[abstract]
    loop.abandon()
    task = loop.create_task(_nothing())
    events._set_running_loop(loop)
    tasks._enter_task(loop, task)
    try:
        gc.collect()
    finally:
        tasks._leave_task(loop, task)
        events._set_running_loop(None)
        loop.close()


def _abandon(task: asyncio.Task[Any]) -> None:
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    # A state leads to its task as long as a scope is open.
    vars(_asyncio)["_task_states"].pop(task, None)
    _close(task.get_coro())


def _close(work: object) -> None:
    """Closes a coroutine that was not begun, and those that it was to begin."""
    if inspect.iscoroutine(work) and inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
        for given in inspect.getcoroutinelocals(work).values():
            _close(getattr(given, "_coro", given))  # as anyio's handles hold theirs
        work.close()


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
        self._abandoned = False
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
            self._run_until(future)
        finally:
            self._running = False
            events._set_running_loop(before)
        return future.result()

    def _run_until(self, future: asyncio.Future[Any]) -> None:
        ready, before_step = self._ready, self._before_step
        while not future.done():
            if not ready:
                self._jump()
            handle = ready.popleft()
            if handle._cancelled:
                continue
            self.steps += 1
            if self.steps > self._most:
                raise Endless(f"the run does not end: {self._most} steps, {self._time:.1f} s")
            before_step(self.steps)
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
        raise Deadlock("deadlock: every task waits, and no timer is set")

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
        """Does nothing: a cancelled timer is skipped when it comes up."""

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
        if self._abandoned:  # cleaning up may begin further tasks
            _abandon(task)
        return task

    def tasks(self) -> list[asyncio.Task[Any]]:
        """Tasks that are not done."""
        return [task for task in self._tasks if not task.done()]

    def abandon(self) -> None:
        """Ends the process that this loop simulates: its tasks are dropped without complaint, and
        coroutines that no task has begun are closed.
        """
        self._abandoned = True
        for task in self._tasks:
            _abandon(task)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keeps uncaught errors."""
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
        """Drops waiting callbacks and timers."""
        self._closed = True
        self._ready.clear()
        self._timers.clear()
