"""Hands records to a scorer, with the rounds that they close, on the right thread.

In a simulation everything is computed at once: no user waits, and one thread keeps the order. In a
product, a function that computes for a second would block the event loop, so it runs in a thread.
"""

from __future__ import annotations

import asyncio
import dis
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from typing import Final, TypeAlias, TypeVar, final

import anyio
import anyio.from_thread
import anyio.to_thread

from ..plugins import PluginCall
from ..records import Record
from ..rounds import Round, RoundProjector, Rounds
from .protocol import Cost, Measurement, SessionScorer

__all__ = ("WAITED", "ComputeThread", "Observer", "OpenRounds", "drive", "finished", "waits")

T = TypeVar("T")

WAITED: Final = "it waits for something, although it seemed to await nothing"

_CloseRound: TypeAlias = Callable[[Round], Awaitable[Sequence[Measurement]]]
_SayCost: TypeAlias = Callable[[Record, Round | None], Cost]

_LARGE: Final = 1 << 15  # bytes of a body that is not decoded on the event loop


@final
class OpenRounds:
    """The rounds of one session, folded once for all of its scorers."""

    def __init__(self) -> None:
        self._projectors: dict[Rounds, RoundProjector] = {}
        self._over: dict[Rounds, Round | Exception | None] = {}
        self._version = 0

    def count(self, rounds: Rounds) -> None:
        """Counts rounds in this way too; before the first record."""
        self._projectors.setdefault(rounds, RoundProjector(rounds))

    def feed(self, record: Record) -> None:
        """Takes the next record of the trace; again, it changes nothing."""
        if record.version <= self._version:
            return
        self._version = record.version
        for rounds, projector in self._projectors.items():
            try:
                self._over[rounds] = projector.feed(record)
            except Exception as error:  # noqa: BLE001  (raised to those who are handed the round)
                self._over[rounds] = error

    def over(self, rounds: Rounds) -> Round | None:
        """The round that the last record closed, if it closed one.

        Raises:
            CodecError: the record is damaged.
        """
        found = self._over.get(rounds)
        if isinstance(found, Exception):
            raise found
        return found


@final
class Observer:
    """Hands the records of one session to one scorer.

    Args:
        scorer: its work on the session.
        rounds: the rounds of the session, shared by its scorers; None for separate ones.
    """

    def __init__(self, scorer: SessionScorer, rounds: OpenRounds | None = None) -> None:
        self._observe = scorer.observe
        self._open = rounds or OpenRounds()
        self._rounds: Rounds | None = None
        methods: list[Callable[..., object]] = [scorer.observe]
        # Looking up attributes is ten times as fast as asking whether it satisfies a protocol.
        counted: Rounds | None = getattr(scorer, "rounds", None)
        close: _CloseRound | None = getattr(scorer, "close_round", None)
        if counted is not None and close is not None:
            self._rounds, self._close = counted, close
            self._open.count(counted)
            methods.append(close)
        self._said: _SayCost | None = getattr(scorer, "cost", None)
        self._cost: Cost = "waits" if any(map(waits, methods)) else "computes"

    def cost(self, record: Record) -> Cost:
        """The cost of scoring the next record.

        Raises:
            CodecError: the record is damaged. Errors of the scorer are passed on.
        """
        if self._said is None:
            return self._cost
        self._open.feed(record)
        cost = self._said(record, None if self._rounds is None else self._open.over(self._rounds))
        return "computes" if cost == "quick" and len(record.body or b"") > _LARGE else cost

    async def observe(self, record: Record) -> Sequence[Measurement]:
        """Hands over the next record of the trace, and the round that it closes.

        Raises:
            CodecError: the record is damaged. And whatever else the scorer raises.
        """
        if self._rounds is None:
            return await self._observe(record)
        self._open.feed(record)
        over = self._open.over(self._rounds)
        if over is None:
            return await self._observe(record)
        if record.kind == "SessionClosed":
            return [*await self._observe(record), *await self._close(over)]
        return [*await self._close(over), *await self._observe(record)]


def waits(method: Callable[..., object]) -> bool:
    """Whether a method may wait for something: not if it is a coroutine function without ``await``."""
    return _waits(getattr(method, "__func__", method))


@lru_cache(maxsize=1024)
def _waits(function: Callable[..., object]) -> bool:
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or not inspect.iscoroutinefunction(function):
        return True
    return any(i.opname in ("GET_AWAITABLE", "GET_AITER") for i in dis.get_instructions(code))


def drive(looking: Awaitable[T]) -> T:
    """Runs a coroutine that waits for nothing, without an event loop, and returns its result.

    Raises:
        RuntimeError: it waits. Its own errors are passed on.
    """
    steps = looking.__await__()
    try:
        next(steps)
    except StopIteration as stop:
        found: T = stop.value
        return found
    raise RuntimeError(WAITED)


async def finished(found: T | Awaitable[T]) -> T:
    """The result of a function that may be async without looking it; awaits it if necessary."""
    if not isinstance(found, Awaitable):
        return found
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # in a worker thread: it waits for the event loop, which waits for this
        result: T = anyio.from_thread.run(_awaited, found)
        return result
    return await found


async def _awaited(waiting: Awaitable[T]) -> T:
    return await waiting


@final
class ComputeThread:
    """Runs functions of one scorer in a worker thread, one at a time.

    A call whose caller is cancelled is abandoned: Python cannot end a thread. It continues by
    itself, and what it returns is dropped.
    """

    def __init__(self) -> None:
        self._turn = anyio.Lock()
        self._thread = anyio.CapacityLimiter(1)

    async def run(
        self,
        function: Callable[[], T],
        excused: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> T:
        """Runs a function in the thread; returns its result, or raises its error.

        Args:
            function: the function to run.
            excused: entered during the wait for the thread, which does not count as the scorer's time.
        """
        with excused():
            await self._turn.acquire()
        try:
            return await anyio.to_thread.run_sync(
                partial(_contained, function), abandon_on_cancel=True, limiter=self._thread
            )
        finally:
            self._turn.release()


def _contained(function: Callable[[], T]) -> T:
    with PluginCall("what computes for a scorer"):  # not every exception passes to a task
        return function()
