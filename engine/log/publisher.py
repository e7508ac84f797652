"""Publishes committed records to the subscriptions and taps of one process.

A store publishes each group of records once, in order of position, on the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import final

from ..errors import InvalidInput, LogError
from ..records import Record
from .append import erased
from .contract import LogStatistics
from .subscriptions import BufferedSubscription, BufferedTap, Fetch

__all__ = ("Publisher",)


@final
class Publisher:
    """Passes committed records on to subscriptions and taps, in order of position, once.

    Args:
        fetch: reads a batch from the store.
        head: last position that is committed.
        on_reader: called whenever a subscription or a tap is added.
    """

    def __init__(
        self, fetch: Fetch, head: int = 0, on_reader: Callable[[Publisher], None] | None = None
    ) -> None:
        self.fetch = fetch
        self.head = head
        self.end = head
        self.closed = False
        self.failure: LogError | None = None
        self.erased: set[str] = set()
        self.subscriptions: dict[BufferedSubscription, None] = {}
        self.taps: dict[BufferedTap, None] = {}
        self._all: dict[BufferedSubscription, None] = {}
        self._one: dict[str, dict[BufferedSubscription, None]] = {}
        self._on_reader = on_reader

    @property
    def has_readers(self) -> bool:
        """Whether there are subscriptions or taps."""
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
        self.end = max(self.end, self.head)
        if self.erased:  # records may have been read before their session was forgotten
            records = [erased(r) if r.session in self.erased else r for r in records]
        for subscription in self._all:
            subscription.offer(records)
        if self._one:
            parts: dict[str, list[Record]] = {}
            for record in records:
                if record.session in self._one:
                    parts.setdefault(record.session, []).append(record)
            for session, part in parts.items():
                for subscription in self._one[session]:
                    subscription.offer(part)
        for tap in self.taps:
            tap.offer(records)

    def skip(self, head: int) -> None:
        """Learns that the log has grown to ``head`` by records that were not published here."""
        if head <= self.head:
            return
        missed, self.head = head - self.head, head
        self.end = max(self.end, head)
        for subscription in self.subscriptions:
            subscription.fall_back()
        for tap in self.taps:
            tap.miss(missed)

    def grow(self, end: int) -> None:
        """Learns that the log has grown to ``end`` by records that are still to be published."""
        self.end = max(self.end, end)

    def erase(self, sessions: Collection[str]) -> None:
        """Erases the records of forgotten sessions that still wait for a reader."""
        self.erased.update(sessions)
        for subscription in self.subscriptions:
            subscription.erase(sessions)
        for tap in self.taps:
            tap.erase(sessions)

    def subscribe(self, session: str | None, after: int) -> BufferedSubscription:
        """A lossless subscription from after a position on."""
        if after < 0:
            raise InvalidInput(f"after_position must not be negative, not {after}")
        return BufferedSubscription(self, session, after)

    def tap(self, session: str | None, buffer: int) -> BufferedTap:
        """A lossy tap."""
        if buffer < 1:
            raise InvalidInput(f"a tap's buffer must hold at least one record, not {buffer}")
        return BufferedTap(self, session, buffer)

    def add(self, subscription: BufferedSubscription) -> None:
        """Begins to publish to a subscription."""
        self.subscriptions[subscription] = None
        if subscription.session is None:
            self._all[subscription] = None
        else:
            self._one.setdefault(subscription.session, {})[subscription] = None
        if self._on_reader is not None:
            self._on_reader(self)

    def discard(self, subscription: BufferedSubscription) -> None:
        """Ends publishing to a subscription."""
        self.subscriptions.pop(subscription, None)
        if subscription.session is None:
            self._all.pop(subscription, None)
        elif (others := self._one.get(subscription.session)) is not None:
            others.pop(subscription, None)
            if not others:
                del self._one[subscription.session]

    def add_tap(self, tap: BufferedTap) -> None:
        """Begins to publish to a tap."""
        self.taps[tap] = None
        if self._on_reader is not None:
            self._on_reader(self)

    def statistics(self, *, waiting: int, groups: int, events: int) -> LogStatistics:
        """State of the log, its subscriptions and its taps."""
        return LogStatistics(
            position=self.end,
            waiting=waiting,
            groups=groups,
            events=events,
            subscriptions=tuple(subscription.statistics() for subscription in self.subscriptions),
            taps=tuple(tap.statistics() for tap in self.taps),
            dropped=sum(tap.dropped for tap in self.taps),
        )

    def discard_tap(self, tap: BufferedTap) -> None:
        """Ends publishing to a tap."""
        self.taps.pop(tap, None)

    def close(self, failure: LogError | None = None) -> None:
        """Ends all subscriptions and taps: their readers get the failure, or ``LogClosed``."""
        self.closed = True
        self.failure = failure
        self.interrupt(failure)

    def interrupt(self, failure: LogError | None) -> None:
        """Ends the subscriptions and taps that there are, as ``close`` does; others may follow."""
        for subscription in tuple(self.subscriptions):
            subscription.close(failure)
        for tap in tuple(self.taps):
            tap.close(failure)
