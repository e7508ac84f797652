"""The threads of a SQLite log as coroutines of the C stack, so that a seed decides when each runs.

The engine's own code runs, whole: the writer's loop, the reader, the look-out for other processes.
Only the primitives are replaced that would start a thread or block one. A greenlet plays a
thread; if it would block, the event loop continues and wakes it after a delay that a seed draws.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, TypeVar, final

from ....engine.log import backoff
from ....engine.log.sqlite import file, leases, maintenance, presence, tail, thread, writer
from ..loop import SimulatedLoop
from .processes import current_process

try:
    import greenlet
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "the simulator of SQLite logs needs greenlet: pip install greenlet"
    ) from error

__all__ = ("Threads", "simulated_threads", "wait_here")

T = TypeVar("T")

_TICK = 0.01  # virtual seconds that pass while a thread asks for the time in order to wait
_PATIENCE = 0.2  # seconds for which SQLite may wait for a lock; in one process, it does so in vain

_HESITATES = 0.1  # share of the jobs of a thread whose outcome arrives a little later
_INSISTENCE = 20  # how many times a thread that keeps running is ended

_current: list[Threads] = []


@final
class Threads:
    """The threads of one run.

    Args:
        loop: where they run.
        random: draws when each goes on.
    """

    def __init__(self, loop: SimulatedLoop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self.main = greenlet.getcurrent()
        self.all: list[_Thread] = []
        self._paused: dict[int, float] = {}  # processes, and until when

    def pause(self, process: int, seconds: float) -> bool:
        """Stops the threads of a process for some time; whether there are any."""
        self._paused[process] = self.loop.time() + seconds
        return any(each.process == process for each in self.all)

    def resumes(self, process: int) -> float:
        """The time at which the threads of a process resume."""
        return self._paused.get(process, 0.0)

    def use(self) -> None:
        """Makes these the threads that new connections get."""
        _current[:] = [self]

    def kill(self) -> None:
        """Kills all of them, and closes their connections."""
        for each in self.all:
            each.kill()
        self.all.clear()


@final
class _Thread:
    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._jobs: deque[Callable[[], None]] = deque()
        self._woken = False
        self._ended = False
        self.process = current_process()
        self.connection: sqlite3.Connection | None = None
        self._greenlet = greenlet.greenlet(self._run)
        vars(self._greenlet)["thread"] = self
        threads.all.append(self)

    def submit(self, job: Callable[[], None]) -> None:
        self._jobs.append(job)
        self.wake()

    def wake(self) -> None:
        if self._woken or self._ended:
            return
        self._woken = True
        threads = self._threads
        chance = threads.random.random()
        resumes = threads.resumes(self.process)
        if resumes > threads.loop.time():
            threads.loop.call_at(resumes, self._resume)
        elif chance < 0.7:
            threads.loop.call_soon(self._resume)
        else:
            threads.loop.call_later((chance - 0.7) / 10, self._resume)

    def _resume(self) -> None:
        self._woken = False
        if not self._ended:
            self._greenlet.switch()

    def park(self) -> None:
        """Returns control to the loop until something wakes this thread."""
        self._threads.main.switch()

    def sleep(self, seconds: float) -> None:
        until = self._threads.loop.time() + seconds
        self._threads.loop.call_at(until, self.wake)
        while self._threads.loop.time() < until and not self._ended:
            self.park()

    def hesitate(self) -> None:
        """Lets others run for a moment, at times: between the end of its work and the news of that."""
        chance = self._threads.random.random()
        if chance < _HESITATES and not self._ended:
            self.sleep(chance / 5)

    def _run(self) -> None:
        while not self._ended:
            while self._jobs:
                self._jobs.popleft()()
            if not self._ended:
                self.park()

    def end(self) -> None:
        self._ended = True

    def kill(self) -> None:
        self._ended = True
        # A thread inside SQLite notices only when SQLite returns.
        for _ in range(_INSISTENCE):
            if self._greenlet:
                self._greenlet.throw()
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def _here() -> _Thread | None:
    found: _Thread | None = getattr(greenlet.getcurrent(), "thread", None)
    return found


@final
class _Connection:
    """The part of ``aiosqlite.Connection`` that the engine uses."""

    def __init__(self, connector: Callable[[], sqlite3.Connection], _size: int) -> None:
        self._connector = connector
        self._own = _Thread(_current[0])
        self._loop = _current[0].loop
        self._thread = SimpleNamespace(daemon=True, join=lambda: None)
        self._open_now = False

    def __await__(self) -> Generator[Any, None, _Connection]:
        return self._open().__await__()

    async def _open(self) -> _Connection:
        await self._submit(self._connect)
        self._open_now = True
        return self

    def _connect(self) -> None:
        self._own.connection = self._connector()

    async def _execute(
        self,
        function: Callable[..., T],
        *args: Any,  # noqa: ANN401 (as aiosqlite has it)
        **kwargs: Any,  # noqa: ANN401
    ) -> T:
        if not self._open_now:
            raise ValueError("Connection closed")
        return await self._submit(partial(function, *args, **kwargs))

    def _submit(self, function: Callable[[], T]) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self._loop.create_future()

        def job() -> None:
            result, failure = None, None
            try:
                result = function()
            except greenlet.GreenletExit:
                raise
            except BaseException as error:  # noqa: BLE001 (the waiting caller gets it)
                failure = error
            self._own.hesitate()
            self._loop.call_soon(_settle, future, result, failure)

        self._own.submit(job)
        return future

    async def close(self) -> None:
        connection = self._own.connection
        if not self._open_now or connection is None:
            return
        try:
            await self._execute(connection.close)
        finally:
            self._open_now = False
            await self._submit(self._own.end)


def _settle(future: Any, result: object, error: BaseException | None) -> None:  # noqa: ANN401
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


@final
class _Bell:
    """The part of ``queue.SimpleQueue`` that the writer uses."""

    def __init__(self) -> None:
        self._rings = 0
        self._waits: _Thread | None = None

    def __class_getitem__(cls, item: object) -> type[_Bell]:
        return cls

    def put(self, _item: None) -> None:
        self._rings += 1
        if self._waits is not None:
            self._waits.wake()

    def get(self) -> None:
        self._waits = here = _here()
        assert here is not None
        while not self._rings:
            here.park()
        self._rings -= 1
        self._waits = None


@final
class _Event:
    """The part of ``threading.Event`` that the tail uses."""

    def __init__(self) -> None:
        self._set = False
        self._waits: _Thread | None = None

    def set(self) -> None:
        self._set = True
        if self._waits is not None:
            self._waits.wake()

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float) -> bool:
        self._waits = here = _here()
        assert here is not None
        loop = _current[0].loop
        until = loop.time() + timeout
        timer = loop.call_at(until, here.wake)
        while not self._set and loop.time() < until:
            here.park()
        timer.cancel()
        self._waits = None
        return self._set


def wait_here(seconds: float) -> bool:
    """If the caller is a thread, lets others run for some time; returns whether it is."""
    here = _here()
    if here is not None:
        here.sleep(seconds)
    return here is not None


def _now() -> float:
    return _current[0].loop.time()


def _now_while_waiting() -> float:
    """Time for a caller that polls it to wait: a thread that spins lets others run."""
    here = _here()
    if here is not None:
        here.sleep(_TICK)
    return _now()


@contextmanager
def simulated_threads() -> Iterator[None]:
    """Gives SQLite logs that are opened meanwhile simulated threads, and virtual time.

    For a process that does nothing else: what it replaces is replaced for all.
    """
    own: list[tuple[object, str, object]] = [
        (thread, "aiosqlite", SimpleNamespace(Connection=_Connection)),
        (writer, "SimpleQueue", _Bell),
        (tail, "threading", SimpleNamespace(Event=_Event)),
        (presence, "time", SimpleNamespace(monotonic=_now)),
        (leases, "time", SimpleNamespace(time=_now)),
        (file, "time", SimpleNamespace(monotonic=_now_while_waiting)),
        (file, "PATIENCE", _PATIENCE),
        (file, "SLICE", 0),
        (maintenance, "SLICE", 0),
        (maintenance, "_WAIT", 0),
        (backoff, "Random", lambda: Random(7)),
    ]
    before = [(where, name, getattr(where, name)) for where, name, _ in own]
    try:
        for where, name, value in own:
            setattr(where, name, value)
        yield
    finally:
        for where, name, value in before:
            setattr(where, name, value)
