"""The followers of a log in the simulator: live delivery must equal a later read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple, final

import anyio

from ...engine.errors import DuologError, LogClosed, LogUnavailable
from ...engine.log import subscriptions
from ...engine.log.contract import EventLog, Store, Subscription, Tap
from ...engine.log.exchange import copying
from ...engine.log.memory import MemoryLog
from ...engine.records import Record
from ..tools import collect, require
from .scenario import Operation

__all__ = ("Followers",)

_LATEST = 5.0  # seconds within which all that is committed is delivered
_PUBLISHED = 0.2  # seconds within which what is known to be committed is published


@final
class Followers:
    """All that follow the log of one process: subscriptions, taps and copies.

    Args:
        failing: whether the disk has failed: errors that say so are right then.
        errors: takes what must not happen.
        forgotten: sessions that were forgotten, and of which nothing is delivered any more.
        latest: seconds within which all that is committed has to be delivered.

    Attributes:
        heads: the last position that has to be delivered of each session, and of all under None; known
            once the workers are done.
        done: set once the workers are.
    """

    def __init__(
        self,
        failing: Callable[[], bool],
        errors: list[BaseException],
        forgotten: Callable[[], Collection[str]],
        latest: float = _LATEST,
    ) -> None:
        self._failing = failing
        self._errors = errors
        self._forgotten = forgotten
        self._latest = latest
        self._followed: list[_Followed] = []
        self._tapped: list[_Tapped] = []
        self._copies: list[list[Record]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.heads: dict[str | None, int] = {}
        self.done = asyncio.Event()

    # --- subscriptions ----------------------------------------------------------------------------

    def follow(self, log: EventLog, operation: Operation, *, own: bool) -> None:
        """Begins to follow the log or a session, perhaps together with a follower that leaves early.

        Args:
            log: what to follow.
            operation: says from where on, and what.
            own: whether this log is the one by which sessions are forgotten.
        """
        draw = operation.draw
        head = log.statistics().position
        after = (0, draw % 3, head, max(0, head - draw % 4))[draw >> 6 & 3]
        session = f"s{operation.session}" if draw & 256 else None
        steps = draw >> 10 & 15
        slow = (0, 0, 1, 5)[draw >> 17 & 3]
        leaves = steps if draw >> 14 & 3 == 0 else None
        self._begin(self._follow(log, session, after, leaves, own=own, slow=slow))
        if draw & 1 << 16:
            self._begin(self._follow(log, session, after, steps, own=own, slow=0))

    async def _follow(
        self,
        log: EventLog,
        session: str | None,
        after: int,
        steps: int | None,
        *,
        own: bool,
        slow: int,
    ) -> None:
        """Follows until all that is committed was delivered, or leaves after some steps."""
        gone = frozenset(self._forgotten())
        followed = _Followed(after, session, steps is not None, gone, [])
        async with log.subscribe(session=session, after_position=after) as subscription:
            self._followed.append(followed)
            forgotten = self._forgotten if own else lambda: gone
            # Batches of a file are larger than those of a log in memory.
            most = 2 * subscriptions.BUFFER if isinstance(log, MemoryLog) else 1000
            work = _take(subscription, followed.got, forgotten, slow, most)
            taking = asyncio.get_running_loop().create_task(work)
            try:
                if steps is None:
                    await self._until(
                        lambda: taking.done() or self._has_all(subscription, followed)
                    )
                    if not taking.done():
                        self._check_idle(log, subscription)
                else:
                    await _steps(steps)
            finally:
                taking.cancel()
                await asyncio.wait([taking])
            if not taking.cancelled():
                taking.result()
        if not self._failing():
            await self._check_left(subscription)

    @staticmethod
    async def _check_left(subscription: Subscription) -> None:
        """An abandoned subscription gives its buffered records, and then says that it is closed."""
        with anyio.move_on_after(_LATEST):
            try:
                while True:
                    await anext(subscription)
            except (LogClosed, LogUnavailable):
                return
        require(False, "a subscription that was left says that it is closed")

    def _has_all(self, subscription: Subscription, followed: _Followed) -> bool:
        head = self.heads.get(followed.session, 0)
        return _reached(followed.after, followed.got) >= head and not subscription.statistics().lag

    def _check_idle(self, log: EventLog, subscription: Subscription) -> None:
        """Checks the statistics of a subscription that has delivered everything."""
        stands, whole = subscription.statistics(), log.statistics()
        require(
            self._failing() or (stands.lag, stands.buffered) == (0, 0),
            f"a subscription that has delivered all says so: {stands}",
        )
        require(
            self._failing()
            or (stands.position <= whole.position and stands in whole.subscriptions),
            "the log tells of its subscriptions",
        )

    # --- taps -------------------------------------------------------------------------------------

    def tap(self, log: EventLog, operation: Operation) -> None:
        """Begins to tap the log, or a session of it."""
        session = f"s{operation.session}" if operation.draw & 256 else None
        self._begin(self._tap(log, session, (1, 2, 5, 1000)[operation.draw >> 6 & 3]))

    async def _tap(self, log: EventLog, session: str | None, buffer: int) -> None:
        got: list[Record] = []
        async with log.tap(session=session, buffer=buffer) as tap:
            began = log.statistics().position
            slow = buffer < 1000
            taking = asyncio.get_running_loop().create_task(_drain(tap, got, buffer, slow=slow))
            try:
                await self._until(lambda: taking.done() or self._has_drained(tap, log))
                await asyncio.sleep(_PUBLISHED)  # some may still be on their way
                self._check_tap(log, tap, got)
                head = log.statistics().position
                late = self._failing() or head >= self.heads.get(None, 0)
                require(late, f"a tap alone has its log look for records of others: {head}")
                dropped = tap.statistics().dropped
                self._tapped.append(
                    _Tapped(began, head, session, dropped, got, isinstance(log, MemoryLog))
                )
            finally:
                taking.cancel()
                await asyncio.wait([taking])

    def _has_drained(self, tap: Tap, log: EventLog) -> bool:
        buffered = tap.statistics().buffered
        return not buffered and log.statistics().position >= self.heads.get(None, 0)

    def _check_tap(self, log: EventLog, tap: Tap, got: Sequence[Record]) -> None:
        stands, whole = tap.statistics(), log.statistics()
        require(stands.delivered == len(got), f"a tap counts what it delivers: {stands}")
        # If the file could not be opened, all are closed.
        require(self._failing() or stands in whole.taps, "the log tells of its taps")
        require(whole.dropped == sum(each.dropped for each in whole.taps), "and what they dropped")

    # --- copies -----------------------------------------------------------------------------------

    def copy(self, log: EventLog, operation: Operation) -> None:
        """Begins a copy that follows the log; it may stop in between and resume."""
        self._begin(self._copy(log, operation.draw >> 6 & 63))

    async def _copy(self, log: EventLog, steps: int) -> None:
        async with MemoryLog() as copy:
            if steps & 1:
                await self._copy_until(log, copy, partial_steps=steps)
            await self._copy_until(log, copy, partial_steps=None)
            if not self._failing():
                self._copies.append(await collect(copy.read_all()))

    async def _copy_until(
        self, log: EventLog, copy: MemoryLog, *, partial_steps: int | None
    ) -> None:
        told: list[int] = []
        work = copying.copy_log(log, _store(copy), follow=True, progress=told.append)
        task = asyncio.get_running_loop().create_task(_only(work))
        try:
            if partial_steps is not None:
                await _steps(partial_steps)
            else:
                await self._until(lambda: task.done() or self._is_copied(copy))
                if not task.done():
                    await asyncio.sleep(4 * copying._ERASURES)  # by then it has looked
        finally:
            task.cancel()
            await asyncio.wait([task])
        if not task.cancelled():
            task.result()
        require(told == sorted(set(told)), f"a copy tells how far it is: {told}")

    def _is_copied(self, copy: MemoryLog) -> bool:
        return copy.statistics().position >= self.heads.get(None, 0)

    # --- the end ----------------------------------------------------------------------------------

    def _begin(self, work: Awaitable[None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(self._guarded(work)))

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except (LogUnavailable, LogClosed) as error:
            if not self._failing():  # else nothing more is published here
                self._errors.append(error)
        except (DuologError, AssertionError) as error:
            self._errors.append(error)

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Waits until the workers are done, and then until something is so, or too late."""
        await self.done.wait()
        with anyio.move_on_after(self._latest):
            while not reached():  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.001)

    @property
    def any(self) -> bool:
        """Whether anybody follows, or has."""
        return bool(self._tasks)

    async def end(self, heads: dict[str | None, int]) -> None:
        """Waits for all followers, after the workers are done."""
        self.heads = heads
        self.done.set()
        for task in self._tasks:
            with anyio.CancelScope():
                await asyncio.wait([task])
        for task in self._tasks:
            task.result()
        self._tasks = []

    def check(self, records: Sequence[Record]) -> None:
        """Compares live deliveries with a read: they must be equal unless the disk failed meanwhile.

        Args:
            records: all of the log.
        """
        for after, session, left, gone, got in self._followed:
            wanted = [
                record
                for record in records
                if record.position > after and session in (None, record.session)
            ]
            where = [record.position for record in got]
            there = [record.position for record in wanted]
            for record in () if self._failing() else got:
                erased = record.body is None or record.session not in gone
                require(erased, f"what was forgotten before is not delivered: {record.position}")
            if self._failing() or left:
                there = there[: len(where)]
            require(where == there, f"live must equal replay: {where}, not {there}")
            for live, read in zip(got, wanted, strict=False):
                same = live == read or read.body is None
                require(same, f"live must equal replay at {read.position}")
        for tapped in self._tapped:
            self._check_tapped(tapped, records)
        for copied in self._copies:
            require(
                self._failing() or copied == list(records[: len(copied)]),
                "a copy holds what its source does",
            )
            require(len(copied) <= len(records), "a copy holds nothing else")
            complete = self._failing() or len(copied) >= self.heads.get(None, 0)
            require(complete, f"a copy that follows is complete: {len(copied)}")

    def _check_tapped(self, tapped: _Tapped, records: Sequence[Record]) -> None:
        where = [record.position for record in tapped.got]
        require(where == sorted(set(where)), f"a tap delivers in order: {where}")
        later = [
            record.position
            for record in records
            if tapped.began < record.position <= tapped.head
            and tapped.session in (None, record.session)
        ]
        missed = set(later) - set(where)
        require(
            self._failing() or len(missed) <= tapped.dropped,
            f"a tap counts what it drops: {missed}",
        )
        exact = not tapped.exact or tapped.dropped == len(missed)
        require(exact, f"a tap counts exactly what it drops: {tapped.dropped}, not {len(missed)}")
        require(
            all(tapped.session in (None, record.session) for record in tapped.got),
            "a tap of a session delivers only that",
        )


class _Followed(NamedTuple):
    """What was followed.

    Attributes:
        after: the position after which it began.
        session: the session; None for the log.
        left: whether the follower left early.
        gone: sessions that had been forgotten when it began.
        got: what was delivered.
    """

    after: int
    session: str | None
    left: bool
    gone: Collection[str]
    got: list[Record]


class _Tapped(NamedTuple):
    """The result of a tap: its session, the positions between which it ran, drops and deliveries."""

    began: int
    head: int
    session: str | None
    dropped: int
    got: list[Record]
    exact: bool  # nothing was published elsewhere


def _store(log: MemoryLog) -> Store:
    return log


async def _only(work: Awaitable[object]) -> None:
    await work


async def _steps(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def _reached(after: int, got: Sequence[Record]) -> int:
    return got[-1].position if got else after


async def _take(
    subscription: Subscription,
    got: list[Record],
    forgotten: Callable[[], Collection[str]],
    slow: int,
    most: int,
) -> None:
    """Takes delivered records, with some steps of the loop between two records."""
    async for each in subscription:
        got.append(each)
        buffered = subscription.statistics().buffered
        require(buffered <= most, f"a subscription buffers {most} records at most, not {buffered}")
        erased = each.body is None or each.session not in forgotten()
        require(erased, f"what was forgotten is not delivered: {each.position}")
        await _steps(slow)


async def _drain(tap: Tap, got: list[Record], most: int, *, slow: bool) -> None:
    """Takes what a tap gives, as fast as it comes or slower."""
    try:
        async for each in tap:
            got.append(each)
            buffered = tap.statistics().buffered
            require(buffered < most, f"a tap buffers {most} records at most, not {buffered + 1}")
            if slow:
                await _steps(3)
    except LogClosed:
        return
