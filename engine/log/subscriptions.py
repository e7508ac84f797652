"""Subscriptions and taps: how committed records reach those who follow a log.

A store publishes each group of records once, in order of position, on the event loop. A
subscription buffers what is published; where its reader is slow and the buffer is full, it drops
the rest and later reads it from the store, so it neither holds up writers nor loses a record. A
tap keeps the newest records and counts what it dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from types import TracebackType
from typing import Self, TypeAlias, final

from ..errors import InvalidInput, LogClosed, LogError
from ..records import Record
from .append import erased
from .contract import LogStatistics, SubscriptionStatistics, TapStatistics

__all__ = ("BUFFER", "Feed", "FeedSubscription", "FeedTap", "Fetch")

BUFFER = 1024
"""Records that a subscription buffers before it falls back to reading."""

Fetch: TypeAlias = Callable[[str | None, int, int], Awaitable[tuple[list[Record], bool]]]
"""``fetch(session, after, upto)``: a batch of records in order, and whether it is the last one."""


@final
class Feed:
    """Hands committed records to subscriptions and taps, in order of position, once.

    Args:
        fetch: reads a batch from the store.
        head: last position that is committed.
        followed: called whenever somebody begins to follow the log.
    """

    def __init__(
        self, fetch: Fetch, head: int = 0, followed: Callable[[Feed], None] | None = None
    ) -> None:
        self.fetch = fetch
        self.head = head
        self.closed = False
        self.failure: LogError | None = None
        self.subscriptions: dict[FeedSubscription, None] = {}
        self.taps: dict[FeedTap, None] = {}
        self._all: dict[FeedSubscription, None] = {}
        self._one: dict[str, dict[FeedSubscription, None]] = {}
        self._followed = followed

    @property
    def followed(self) -> bool:
        """Whether anybody follows the log."""
        return bool(self.subscriptions or self.taps)

    def publish(self, records: Sequence[Record]) -> None:
        """Takes committed records; those known already are left out, a gap is read by all."""
        if records and records[0].position <= self.head:
            records = [record for record in records if record.position > self.head]
        if not records:
            return
        if records[0].position > self.head + 1:
            self.skip(records[0].position - 1)
        self.head = records[-1].position
        for follower in self._all:
            follower.offer(records)
        if self._one:
            parts: dict[str, list[Record]] = {}
            for record in records:
                if record.session in self._one:
                    parts.setdefault(record.session, []).append(record)
            for session, part in parts.items():
                for follower in self._one[session]:
                    follower.offer(part)
        for tap in self.taps:
            tap.offer(records)

    def skip(self, head: int) -> None:
        """Learns that the log has grown to ``head`` by records that nobody published."""
        if head <= self.head:
            return
        missed, self.head = head - self.head, head
        for follower in self.subscriptions:
            follower.fall_back()
        for tap in self.taps:
            tap.miss(missed)

    def erase(self, sessions: Collection[str]) -> None:
        """Has the records of forgotten sessions that still wait for a reader forgotten too."""
        for follower in self.subscriptions:
            follower.erase(sessions)
        for tap in self.taps:
            tap.erase(sessions)

    def subscribe(self, session: str | None, after: int) -> FeedSubscription:
        """A lossless subscription from after a position on."""
        if after < 0:
            raise InvalidInput(f"after_position must not be negative, not {after}")
        return FeedSubscription(self, session, after)

    def tap(self, session: str | None, buffer: int) -> FeedTap:
        """A lossy tap."""
        if buffer < 1:
            raise InvalidInput(f"a tap's buffer must hold at least one record, not {buffer}")
        return FeedTap(self, session, buffer)

    def add(self, follower: FeedSubscription) -> None:
        """Begins to publish to a subscription."""
        self.subscriptions[follower] = None
        if follower.session is None:
            self._all[follower] = None
        else:
            self._one.setdefault(follower.session, {})[follower] = None
        if self._followed is not None:
            self._followed(self)

    def discard(self, follower: FeedSubscription) -> None:
        """Publishes to a subscription no longer."""
        self.subscriptions.pop(follower, None)
        if follower.session is None:
            self._all.pop(follower, None)
        elif (others := self._one.get(follower.session)) is not None:
            others.pop(follower, None)
            if not others:
                del self._one[follower.session]

    def add_tap(self, tap: FeedTap) -> None:
        """Begins to publish to a tap."""
        self.taps[tap] = None
        if self._followed is not None:
            self._followed(self)

    def statistics(self, *, waiting: int, groups: int, events: int) -> LogStatistics:
        """How the log and its followers stand."""
        return LogStatistics(
            position=self.head,
            waiting=waiting,
            groups=groups,
            events=events,
            subscriptions=tuple(follower.statistics() for follower in self.subscriptions),
            taps=tuple(tap.statistics() for tap in self.taps),
            dropped=sum(tap.dropped for tap in self.taps),
        )

    def close(self, failure: LogError | None = None) -> None:
        """Ends all subscriptions and taps: their readers get the failure, or ``LogClosed``."""
        self.closed = True
        self.failure = failure
        for follower in tuple(self.subscriptions):
            follower.close()
        for tap in tuple(self.taps):
            tap.close()


def _erased(records: Iterable[Record], sessions: Collection[str]) -> Iterator[Record]:
    for record in records:
        yield erased(record) if record.session in sessions else record


class _Waiter:
    """Where the one reader of a buffer waits for news."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: asyncio.Future[None] | None = None

    def wake(self) -> None:
        future = self._future
        if future is not None and not future.done():
            future.set_result(None)

    async def wait(self) -> None:
        self._future = asyncio.get_running_loop().create_future()
        try:
            await self._future
        finally:
            self._future = None


@final
class FeedSubscription:
    """A lossless subscription; see ``duolog.engine.log.contract.Subscription``."""

    def __init__(self, feed: Feed, session: str | None, after: int) -> None:
        self.session = session
        self._feed = feed
        self._buffer: deque[Record] = deque()
        self._ahead: list[Record] = []  # published while the store is still being read
        self._position = after  # delivered
        self._cursor = after  # in the buffer or delivered: where reading would go on
        self._target: int | None = None  # reading up to here; beyond it lies ``_ahead``
        self._live = False
        self._fallbacks = 0
        self._open = False
        self._closed = False
        self._waiter = _Waiter()

    def offer(self, records: Sequence[Record]) -> None:
        """Takes published records, or falls back to reading where they are too many."""
        if records[0].position <= self._cursor:  # it starts at a position still to come
            records = [record for record in records if record.position > self._cursor]
            if not records:
                return
        if self._live:
            if len(self._buffer) + len(records) > BUFFER:
                self.fall_back()
                return
            self._buffer.extend(records)
            self._cursor = records[-1].position
            self._waiter.wake()
        elif self._target is not None:
            if len(self._ahead) + len(records) > BUFFER:
                self.fall_back()
            else:
                self._ahead.extend(records)
        else:
            self._waiter.wake()

    def erase(self, sessions: Collection[str]) -> None:
        """Empties the bodies of these sessions' records."""
        self._buffer = deque(_erased(self._buffer, sessions))
        self._ahead = list(_erased(self._ahead, sessions))

    def fall_back(self) -> None:
        """Reads from the store again, from where the buffer ends."""
        if self._live or self._target is not None:
            self._fallbacks += 1
        self._live = False
        self._target = None
        self._ahead.clear()
        self._waiter.wake()

    async def _fill(self) -> None:
        """Waits for news where the subscription is live, else reads a batch from the store."""
        feed = self._feed
        if self._live:
            await self._waiter.wait()
            return
        if self._target is None:
            # From here on, what is published is kept; what is there already is read.
            self._target = feed.head
        upto = self._target
        records: list[Record] = []
        last = True
        if self._cursor < upto:
            records, last = await feed.fetch(self.session, self._cursor, upto)
        self._buffer.extend(records)
        if not last:
            self._cursor = records[-1].position
            return
        self._cursor = max(self._cursor, upto)
        if self._target is not None:  # else: fell back meanwhile; read on
            self._target = None
            self._live = True
            for record in self._ahead:
                if record.position > self._cursor:
                    self._buffer.append(record)
                    self._cursor = record.position
            self._ahead.clear()

    def __aiter__(self) -> AsyncIterator[Record]:
        return self

    async def __anext__(self) -> Record:
        while not self._buffer:
            if self._closed or self._feed.closed:
                raise self._feed.failure or LogClosed("the subscription is closed, or its log is")
            if not self._open:
                raise LogClosed("enter the subscription with 'async with' before reading it")
            await self._fill()
        record = self._buffer.popleft()
        self._position = record.position
        return record

    async def __aenter__(self) -> Self:
        if self._closed or self._feed.closed:
            raise LogClosed("the subscription is closed, or its log is")
        self._open = True
        self._feed.add(self)
        self._live = self._cursor >= self._feed.head  # nothing to catch up with
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        self._buffer.clear()

    def close(self) -> None:
        """Ends the subscription."""
        self._closed = True
        self._feed.discard(self)
        self._waiter.wake()

    def statistics(self) -> SubscriptionStatistics:
        """How it stands."""
        idle = self._live and not self._buffer
        position = self._feed.head if idle else self._position
        return SubscriptionStatistics(
            position=position,
            lag=max(0, self._feed.head - position),
            buffered=len(self._buffer) + len(self._ahead),
            fallbacks=self._fallbacks,
        )


@final
class FeedTap:
    """A lossy live tap; see ``duolog.engine.log.contract.Tap``."""

    def __init__(self, feed: Feed, session: str | None, buffer: int) -> None:
        self.session = session
        self._feed = feed
        self._buffer: deque[Record] = deque()
        self._limit = buffer
        self._delivered = 0
        self._dropped = 0
        self._open = False
        self._closed = False
        self._waiter = _Waiter()

    @property
    def dropped(self) -> int:
        """Records dropped so far."""
        return self._dropped

    def offer(self, records: Sequence[Record]) -> None:
        """Takes published records; the oldest make room for the newest."""
        if self.session is not None:
            records = [record for record in records if record.session == self.session]
            if not records:
                return
        self._buffer.extend(records)
        while len(self._buffer) > self._limit:
            self._buffer.popleft()
            self._dropped += 1
        self._waiter.wake()

    def erase(self, sessions: Collection[str]) -> None:
        """Empties the bodies of these sessions' records."""
        self._buffer = deque(_erased(self._buffer, sessions))

    def miss(self, count: int) -> None:
        """Counts records that were never published here as dropped."""
        self._dropped += count

    def __aiter__(self) -> AsyncIterator[Record]:
        return self

    async def __anext__(self) -> Record:
        while not self._buffer:
            if self._closed or self._feed.closed:
                raise self._feed.failure or LogClosed("the tap is closed, or its log is")
            if not self._open:
                raise LogClosed("enter the tap with 'async with' before reading it")
            await self._waiter.wait()
        self._delivered += 1
        return self._buffer.popleft()

    async def __aenter__(self) -> Self:
        if self._closed or self._feed.closed:
            raise LogClosed("the tap is closed, or its log is")
        self._open = True
        self._feed.add_tap(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        self._buffer.clear()

    def close(self) -> None:
        """Ends the tap."""
        self._closed = True
        self._feed.taps.pop(self, None)
        self._waiter.wake()

    def statistics(self) -> TapStatistics:
        """How it stands."""
        return TapStatistics(
            delivered=self._delivered, buffered=len(self._buffer), dropped=self._dropped
        )
