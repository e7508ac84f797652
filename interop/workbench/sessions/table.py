"""The summaries of all sessions of a log, kept up to date by one follower for all who look at them.

What has changed since a position is derived from the summaries, each of which knows the position of
its last record. So a page that comes back after a while, or to a server that was restarted, asks by
position and misses nothing.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, final

import anyio
from anyio.lowlevel import checkpoint

from ....engine.log.contract import EventLog, SessionSummary
from ....engine.log.follower import Follower

__all__ = ("FACETS", "SessionTable")

FACETS: Final = ("task", "state")
"""What sessions can be filtered by a choice of, besides their labels."""

_AT_ONCE: Final = 2000  # sessions between two turns of everybody else
_PACE: Final = 0.1  # seconds between two looks at what has changed
_TAIL: Final = 2048  # records in which the latest sessions are looked for, before the list is read
_FIRST: Final = 100  # sessions that are looked for there
_VALUES: Final = 2000  # different values of a label that are counted


@final
class SessionTable:
    """The sessions of a log. ``run`` reads; all else is for pages and streams.

    A session's *place* is its number in the order of first records, from 0.

    Args:
        log: the log, open.

    Attributes:
        summaries: by place.
        position: of the log, up to which the summaries that have been read are right.
        loaded: whether all sessions that were there at first have been read.
    """

    def __init__(self, log: EventLog) -> None:
        self.summaries: list[SessionSummary] = []
        self.position = 0
        self.loaded = False
        self._log = log
        self._places: dict[str, int] = {}
        self._recent: OrderedDict[int, int] = OrderedDict()  # place to position, the latest last
        self._values: dict[str, Counter[str]] = {}
        self._tail: list[SessionSummary] = []
        self._looked = False
        self._touched: dict[str, int] = {}
        self._news = anyio.Event()

    def __len__(self) -> int:
        return len(self.summaries)

    # --- reading ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Reads the sessions and follows the log, until it is cancelled or the log ends.

        Raises:
            LogError: the log cannot be read any more.
        """
        head = self.position = self._log.statistics().position
        follower = Follower(self._log, after_position=head)
        async with follower, anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow, follower)
            await follower.retry(self._look_at_tail)
            await follower.retry(self._load)
            self._sort_recent()
            self.loaded = True
            self._notify()
            while True:
                await follower.retry(self._refresh)
                await anyio.sleep(_PACE)

    async def _look_at_tail(self) -> None:
        """Reads the latest sessions, so that a page can show them while all are being read."""
        head = self._log.statistics().position
        found: dict[str, None] = {}
        async for record in self._log.read_all(after_position=max(head - _TAIL, 0)):
            found.pop(record.session, None)
            found[record.session] = None
        sessions = list(reversed(found))[:_FIRST]
        self._tail = [await self._log.summary(session) for session in sessions]
        self._looked = True
        self._notify()

    async def _load(self) -> None:
        async for summary in self._log.sessions():
            self._put(summary)
            if len(self.summaries) % _AT_ONCE == 0:
                self._notify()
                await checkpoint()

    def _sort_recent(self) -> None:
        by_position = sorted(range(len(self)), key=lambda place: self.summaries[place].position)
        self._recent = OrderedDict((place, self.summaries[place].position) for place in by_position)

    async def _follow(self, follower: Follower) -> None:
        async for record in follower:
            self._touched[record.session] = record.position
            follower.done(record.position)

    async def _refresh(self) -> None:
        touched, self._touched = self._touched, {}
        if not touched:
            return
        try:
            for session in touched:
                self._put(await self._log.summary(session))
        except BaseException:
            self._touched = touched | self._touched
            raise
        self.position = max(self.position, *touched.values())
        self._notify()

    def _put(self, summary: SessionSummary) -> None:
        place = self._places.get(summary.session)
        if place is None:
            place = self._places[summary.session] = len(self.summaries)
            self.summaries.append(summary)
        else:
            self._count(self.summaries[place], -1)
            self.summaries[place] = summary
        self._count(summary, 1)
        self._recent[place] = summary.position
        self._recent.move_to_end(place)

    def _count(self, summary: SessionSummary, by: int) -> None:
        for key, value in (
            ("task", summary.task),
            ("state", summary.state),
            *summary.group.items(),
        ):
            values = self._values.setdefault(key, Counter())
            if value in values or len(values) < _VALUES:
                values[value] += by
                if not values[value]:
                    del values[value]

    def _notify(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    # --- what there is ----------------------------------------------------------------------------

    def place(self, session: str) -> int | None:
        """The place of a session; None where it is not known."""
        return self._places.get(session)

    @property
    def labels(self) -> Sequence[str]:
        """The labels that sessions have."""
        return sorted(key for key, values in self._values.items() if values and key not in FACETS)

    def values(self, key: str) -> Mapping[str, int]:
        """The values of the task, the state or a label, each with how many sessions have it."""
        return self._values.get(key, {})

    def changed_since(self, position: int, most: int) -> list[int] | None:
        """The places of sessions with records after a position, the latest first.

        Returns:
            None where they are more than ``most``.
        """
        found: list[int] = []
        for place in self._latest():
            if self._recent[place] <= position:
                break
            if len(found) == most:
                return None
            found.append(place)
        return found

    def _latest(self) -> Iterator[int]:
        return reversed(self._recent)

    def has_news(self, session: str, position: int) -> bool:
        """Whether a session is known to have records after a position."""
        if self._touched.get(session, 0) > position:
            return True
        place = self._places.get(session)
        return place is not None and self.summaries[place].position > position

    async def wait(self) -> None:
        """Waits until something is new: a session has changed, or more of them have been read."""
        await self._news.wait()

    async def latest(self, most: int) -> list[SessionSummary]:
        """The sessions with the latest records, of which the last one comes first.

        While the list is still being read, they are those at the end of the log, as it was.
        """
        while not self._looked:
            await self.wait()
        if not self.loaded:
            return self._tail[:most]
        return [self.summaries[place] for place in islice(self._latest(), most)]
