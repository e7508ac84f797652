"""Subscriptions and taps: how committed records reach the readers of a growing log.

A subscription buffers what is published; where its reader is slow and the buffer is full, it drops
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
from typing import Protocol, Self, TypeAlias, final

from ..errors import LogClosed, LogError
from ..records import Record
from .append import erased
from .contract import SubscriptionStatistics, TapStatistics

__all__ = ("BUFFER", "BufferedSubscription", "BufferedTap", "Fetch", "RecordSource")

BUFFER = 1024
"""Records that a subscription buffers before it falls back to reading."""

Fetch: TypeAlias = Callable[[str | None, int, int], Awaitable[tuple[list[Record], bool]]]
"""``fetch(session, after, upto)``: a batch of records in order, and whether it is the last one."""


class RecordSource(Protocol):
    """Where subscriptions and taps get records from, see ``Publisher``.

    Attributes:
        fetch: reads a batch from the store.
        head: last position that was published, or is known not to be.
        end: last position that is known to be committed.
        closed: whether nothing more will be published.
        failure: why, where that was an error.
        erased: sessions that were forgotten since the log was opened.
    """

    erased: set[str]
    fetch: Fetch
    head: int
    end: int
    closed: bool
    failure: LogError | None

    def add(self, subscription: BufferedSubscription, /) -> None:
        """Begins to publish to a subscription."""
        ...

    def discard(self, subscription: BufferedSubscription, /) -> None:
        """Ends publishing to a subscription."""
        ...

    def add_tap(self, tap: BufferedTap, /) -> None:
        """Begins to publish to a tap."""
        ...

    def discard_tap(self, tap: BufferedTap, /) -> None:
        """Ends publishing to a tap."""
        ...


def _erased(records: Iterable[Record], sessions: Collection[str]) -> Iterator[Record]:
    for record in records:
        yield erased(record) if record.session in sessions else record


class _Waiter:
    """Lets the one reader of a buffer wait for records."""

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
class BufferedSubscription:
    """A lossless subscription; see ``duolog.engine.log.contract.Subscription``."""

    def __init__(self, source: RecordSource, session: str | None, after: int) -> None:
        self.session = session
        self._source = source
        self._buffer: deque[Record] = deque()
        self._ahead: list[Record] = []  # published while the store is still being read
        self._position = after  # delivered
        self._cursor = after  # in the buffer or delivered: reading would resume here
        self._target: int | None = None  # reading up to here; beyond it lies ``_ahead``
        self._live = False
        self._fallbacks = 0
        self._open = False
        self._closed = False
        self._failure: LogError | None = None
        self._waiter = _Waiter()

    def offer(self, records: Sequence[Record]) -> None:
        """Takes published records, or falls back to reading if there are too many."""
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
        """Reads from the store again, from the end of the buffer."""
        if self._live or self._target is not None:
            self._fallbacks += 1
        self._live = False
        self._target = None
        self._ahead.clear()
        self._waiter.wake()

    async def _fill(self) -> None:
        """Waits for records if the subscription is live, else reads a batch from the store."""
        source = self._source
        if self._live:
            await self._waiter.wait()
            return
        if self._target is None:
            # From here on it keeps published records; it reads the earlier ones from the store.
            self._target = source.head
        upto = self._target
        records: list[Record] = []
        last = True
        if self._cursor < upto:
            records, last = await source.fetch(self.session, self._cursor, upto)
        # The batch may be older than an erasure that was made meanwhile.
        self._buffer.extend(_erased(records, source.erased))
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
            if self._closed or self._source.closed:
                raise self._why()
            if not self._open:
                raise LogClosed("enter the subscription with 'async with' before reading it")
            await self._fill()
        record = self._buffer.popleft()
        self._position = record.position
        return record

    async def __aenter__(self) -> Self:
        if self._closed or self._source.closed:
            raise self._why()
        self._open = True
        self._source.add(self)
        self._live = self._cursor >= self._source.head  # nothing to catch up with
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        self._buffer.clear()

    def close(self, failure: LogError | None = None) -> None:
        """Ends the subscription; its reader gets the failure, or ``LogClosed``."""
        self._failure = self._failure or failure
        self._closed = True
        self._source.discard(self)
        self._waiter.wake()

    def _why(self) -> LogError:
        """Why there is nothing more to read."""
        failure = self._failure or self._source.failure
        return failure or LogClosed("the subscription is closed, or its log is")

    def statistics(self) -> SubscriptionStatistics:
        """Its current state."""
        idle = self._live and not self._buffer
        position = self._source.head if idle else self._position
        return SubscriptionStatistics(
            position=position,
            lag=max(0, self._source.end - position),
            buffered=len(self._buffer) + len(self._ahead),
            fallbacks=self._fallbacks,
        )


@final
class BufferedTap:
    """A lossy live tap; see ``duolog.engine.log.contract.Tap``."""

    def __init__(self, source: RecordSource, session: str | None, buffer: int) -> None:
        self.session = session
        self._source = source
        self._buffer: deque[Record] = deque()
        self._limit = buffer
        self._delivered = 0
        self._dropped = 0
        self._open = False
        self._closed = False
        self._failure: LogError | None = None
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
            if self._closed or self._source.closed:
                raise self._why()
            if not self._open:
                raise LogClosed("enter the tap with 'async with' before reading it")
            await self._waiter.wait()
        self._delivered += 1
        return self._buffer.popleft()

    async def __aenter__(self) -> Self:
        if self._closed or self._source.closed:
            raise self._why()
        self._open = True
        self._source.add_tap(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        self._buffer.clear()

    def close(self, failure: LogError | None = None) -> None:
        """Ends the tap; its reader gets the failure, or ``LogClosed``."""
        self._failure = self._failure or failure
        self._closed = True
        self._source.discard_tap(self)
        self._waiter.wake()

    def _why(self) -> LogError:
        """Why there is nothing more to read."""
        failure = self._failure or self._source.failure
        return failure or LogClosed("the tap is closed, or its log is")

    def statistics(self) -> TapStatistics:
        """Its current state."""
        return TapStatistics(
            delivered=self._delivered, buffered=len(self._buffer), dropped=self._dropped
        )
