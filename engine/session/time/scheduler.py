"""Whose turn it is: how the actors of one session wait, wake and run under its clock.

Under a virtual clock one actor runs at a time. *Parked* is explicit: an actor parks until a time,
or until there is news, or both. When the one that runs parks, the turn goes to the earliest
wake-up; ties are broken by a hash of (seed, wake-up time, actor), never by a counter, so that one
seed gives one order, whatever the machine's load, and an observer changes nothing.

Under a real clock, actors run as their tasks do, and parking waits in real time.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import math
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import IntEnum
from typing import Protocol, final

import anyio

from ...records import ENGINE
from .clock import RealClock, VirtualClock

__all__ = ("RealTurns", "Turns", "VirtualTurns", "WakeReason")


_BITS = struct.Struct("<d").pack
_64 = (1 << 64) - 1


class WakeReason(IntEnum):
    """Why a parked actor runs again, or why the watchdog is called; if several reasons apply at the
    same time, the first counts.
    """

    NEWS = 0
    TIME = 1
    IDLE = 2


class Turns(Protocol):
    """How the actors of one session take turns."""

    def now(self) -> float:
        """Session time in seconds."""
        ...

    async def begin(self, actor: str) -> None:
        """Called by each actor's task before anything else; waits for its first turn."""
        ...

    async def park(
        self, actor: str, *, until: float | None = None, news: bool = True
    ) -> WakeReason:
        """Waits for a time, or for news."""
        ...

    def wake(self, actor: str) -> None:
        """There is news for an actor: if it is parked for news, it runs again from now."""
        ...

    def holds(self, actor: str) -> bool:
        """Whether an actor may act now."""
        ...

    def excused(self) -> AbstractContextManager[None]:
        """While the actor with the turn waits for something that is sure to come: holding the turn
        for that is not held against it.
        """
        ...

    def leave(self, actor: str) -> None:
        """Called by each actor's task last of all."""
        ...

    def end(self) -> None:
        """The session is over: no actor gets a turn, and the watchdog is not called."""
        ...

    def close(self) -> None:
        """Stops all timers."""
        ...


class _Parked:
    """An actor that waits: for a time that is in the heap, or for news."""

    __slots__ = ("actor", "future", "news", "ticket")

    def __init__(
        self, actor: str, future: asyncio.Future[WakeReason], ticket: int, *, news: bool
    ) -> None:
        self.actor = actor
        self.future = future
        self.ticket = ticket
        self.news = news


@final
class VirtualTurns:
    """Turns under a virtual clock.

    Args:
        clock: its settings.
        seed: breaks ties.
        actors: all actors that take turns; none runs before all have begun.
        on_overdue: called with the name of an actor that held the turn for too long, and again
            while it continues to hold it.
        watchdog: called, with the turn in its hand, when all wait for news (``WakeReason.IDLE``) or the
            limit has come (``WakeReason.TIME``); it gives the turn back by ``leave(ENGINE)``.
        start: session time to start from.
    """

    def __init__(
        self,
        clock: VirtualClock,
        *,
        seed: int | None,
        actors: frozenset[str],
        on_overdue: Callable[[str], None],
        watchdog: Callable[[WakeReason], None] | None = None,
        start: float = 0.0,
    ) -> None:
        self._hold = clock.hold
        self._watchdog = watchdog
        self._over = False
        self._limit = math.inf
        self._missing = set(actors)
        self._on_overdue = on_overdue
        self._time = start
        self._heap: list[tuple[float, int, int, WakeReason, _Parked]] = []
        self._parked: dict[str, _Parked] = {}
        self._running: str | None = None
        self._tickets = 0
        self._switches = 0
        self._keys = {actor: _key(f"{seed}/{actor}") for actor in actors}
        self._loop = asyncio.get_running_loop()
        self._watched = (-1, 0.0)
        self._excused = False
        self._watch: asyncio.TimerHandle | None = None

    def now(self) -> float:
        """Session time in seconds."""
        return self._time

    def recast(self, seed: int | None, actors: frozenset[str], fresh: frozenset[str]) -> None:
        """Changes the seed that breaks ties, and the actors, from now on.

        Args:
            seed: the new seed.
            actors: all actors that take turns from now on.
            fresh: actors that have yet to begin; no actor gets a turn before they have begun.
        """
        self._keys = {actor: _key(f"{seed}/{actor}") for actor in actors}
        self._missing = (self._missing & actors) | fresh

    async def begin(self, actor: str) -> None:
        """Waits until all have begun, and for the first turn."""
        self._missing.discard(actor)
        if not self._missing and self._watch is None:
            self._watch = self._loop.call_later(self._hold / 4, self._check)
        await self.park(actor, until=self._time, news=False)

    def limit(self, until: float | None) -> None:
        """Calls the watchdog at a session time, before an actor acts at it; None for never."""
        self._limit = math.inf if until is None else until

    async def park(
        self, actor: str, *, until: float | None = None, news: bool = True
    ) -> WakeReason:
        """Gives the turn away, and waits to get it back."""
        self._tickets += 1
        future: asyncio.Future[WakeReason] = asyncio.Future(loop=self._loop)
        parked = _Parked(actor, future, self._tickets, news=news)
        if until is not None:
            _check_time(until)
            self._push(max(self._time, until), parked, WakeReason.TIME)
        self._parked[actor] = parked
        if self._running == actor:
            self._running = None
        if self._running is None and not self._missing:
            self._next()
        try:
            if future.done():
                await asyncio.sleep(0)  # it is its own turn again: let other sessions have theirs
            return await future
        except asyncio.CancelledError:
            # Cancelled while waiting: it waits no more, and may not act either. If the turn was
            # already its own, it keeps it until it parks or leaves.
            if self._parked.get(actor) is parked:
                del self._parked[actor]
            raise

    def wake(self, actor: str) -> None:
        """Makes an actor that is parked for news ready from now on."""
        parked = self._parked.get(actor)
        if parked is not None and parked.news:
            parked.news = False
            self._push(self._time, parked, WakeReason.NEWS)
            if self._running is None and not self._missing:
                self._next()

    def holds(self, actor: str) -> bool:
        """Whether it is this actor's turn."""
        return self._running == actor

    @contextmanager
    def excused(self) -> Iterator[None]:
        """Stops the watch, and starts it again."""
        self._excused = True
        try:
            yield
        finally:
            self._excused = False
            self._watched = (self._switches, self._loop.time())

    def leave(self, actor: str) -> None:
        """Takes an actor out; if it held the turn, the turn passes on."""
        self._missing.discard(actor)
        if self._running == actor:
            self._running = None
        if self._running is None and not self._missing:
            self._next()

    def end(self) -> None:
        """The session is over: no actor gets the turn any more."""
        self._over = True

    def close(self) -> None:
        """Stops watching."""
        if self._watch is not None:
            self._watch.cancel()

    def _push(self, time: float, parked: _Parked, why: WakeReason) -> None:
        tie = _tie(self._keys[parked.actor], time)
        heapq.heappush(self._heap, (time, tie, parked.ticket, why, parked))

    def _next(self) -> None:
        """Gives the turn to the earliest wake-up, or to the watchdog."""
        if self._over:
            return
        heap = self._heap
        while heap and heap[0][4].future.done():
            heapq.heappop(heap)
        if not heap:
            self._call_watchdog(WakeReason.IDLE)
        elif heap[0][0] >= self._limit:
            self._time = max(self._time, self._limit)
            self._limit = math.inf
            self._call_watchdog(WakeReason.TIME)
        else:
            time, _, _, why, parked = heapq.heappop(heap)
            self._time = max(self._time, time)
            del self._parked[parked.actor]
            self._running = parked.actor
            self._switches += 1
            parked.future.set_result(why)

    def _call_watchdog(self, why: WakeReason) -> None:
        if self._watchdog is not None:
            self._running = ENGINE
            self._switches += 1
            self._watchdog(why)

    def _check(self) -> None:
        """Finds an actor that has held the turn for too long; waits outside the kernel cannot be
        seen otherwise.
        """
        now = self._loop.time()
        switches, since = self._watched
        if switches != self._switches:
            self._watched = (self._switches, now)
        elif self._running is not None and not self._excused and now - since >= self._hold:
            self._on_overdue(self._running)
        self._watch = self._loop.call_later(self._hold / 4, self._check)


@final
class RealTurns:
    """Turns under a real clock: all actors run at the same time.

    Args:
        clock: the wall clock.
        actors: those whose waiting makes the session idle (humans and agents).
        busy: whether something else is under way (an action in flight).
        watchdog: called when all wait for news (``WakeReason.IDLE``), and not again before the
            engine leaves.
        start: session time reached before; the wall clock may have been set back since.
    """

    def __init__(
        self,
        clock: RealClock,
        *,
        actors: frozenset[str],
        busy: Callable[[], bool],
        watchdog: Callable[[WakeReason], None],
        start: float = 0.0,
    ) -> None:
        self._monotonic = clock.monotonic
        self._offset = max(clock.wall(), start) - clock.monotonic()
        self._actors = set(actors)
        self._busy = busy
        self._watchdog: Callable[[WakeReason], None] | None = watchdog
        self._called = False
        self._events: dict[str, anyio.Event] = {}
        self._still: set[str] = set()

    def now(self) -> float:
        """UTC epoch seconds, never running backward."""
        return self._monotonic() + self._offset

    async def begin(self, actor: str) -> None:
        """All actors may run at the same time."""

    async def park(
        self, actor: str, *, until: float | None = None, news: bool = True
    ) -> WakeReason:
        """Waits in real time."""
        if until is not None:
            _check_time(until)
        event = anyio.Event()
        if news:
            self._events[actor] = event
        if until is None:
            self._still.add(actor)
        self._look_for_idleness()
        delay = math.inf if until is None else max(0.0, until - self.now())
        try:
            with anyio.move_on_after(delay):
                await event.wait()
                return WakeReason.NEWS
            return WakeReason.TIME
        finally:
            self._still.discard(actor)
            self._events.pop(actor, None)

    def wake(self, actor: str) -> None:
        """Wakes an actor that waits for news."""
        event = self._events.get(actor)
        if event is not None:
            self._still.discard(actor)
            event.set()

    def holds(self, actor: str) -> bool:
        """Every actor may act at any time."""
        return True

    def excused(self) -> AbstractContextManager[None]:
        """Turns are not held here."""
        return nullcontext()

    def leave(self, actor: str) -> None:
        """Takes an actor out, or lets the watchdog be called again."""
        if actor == ENGINE:
            self._called = False
        self._actors.discard(actor)
        self._look_for_idleness()

    def end(self) -> None:
        """The watchdog is not called any more."""
        self._watchdog = None

    def close(self) -> None:
        """Nothing to stop."""

    def _look_for_idleness(self) -> None:
        if self._watchdog is None or self._called or self._busy():
            return
        if self._actors <= self._still:
            self._called = True
            self._watchdog(WakeReason.IDLE)


def _key(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def _tie(key: int, time: float) -> int:
    """A hash of (seed, actor), which is the key, and a time: the finish of SplitMix64 (Steele, Lea
    and Flood, 2014), which has every bit of either count.
    """
    mixed = key ^ int.from_bytes(_BITS(time), "little")
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & _64
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & _64
    return mixed ^ (mixed >> 31)


def _check_time(until: float) -> None:
    if not math.isfinite(until):
        raise ValueError(f"cannot wait until {until}: session times are finite")
