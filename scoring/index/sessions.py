"""The sessions of a log, held by one follower for all who list them.

A summary knows the position of its session's last record, so what has changed since a position follows
from the summaries. A page that comes back later, or to another server, asks by position and misses
nothing.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from itertools import islice
from time import time
from typing import Final, final

import anyio
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from ...engine.log.contract import EventLog, SessionSummary
from ...engine.log.follower import Follower

__all__ = ("FACETS", "SessionIndex")

FACETS: Final = ("task", "state")
"""What sessions can be filtered by a choice of, apart from their labels."""

_AT_ONCE: Final = 2000  # sessions that are read between two turns of other tasks
_PACE: Final = 0.1  # seconds between two looks at what has changed
_TAIL: Final = 2048  # records in which the latest sessions are looked for while the index is read
_VALUES: Final = 2000  # values of one label that are counted


@final
class SessionIndex:
    """The sessions of a log. ``run`` reads and follows; all other methods answer from memory.

    A session's *place* is its number in the order of first records, from 0.

    Args:
        log: the log, open.

    Attributes:
        summaries: by place.
        position: the position of the log, up to which the summaries that have been read are right.
        arrived: when the latest record of a session came, in seconds since 1970, of those sessions that
            changed since the log was opened here.
        loaded: whether all sessions have been read that were there at first.
    """

    def __init__(self, log: EventLog) -> None:
        self.summaries: list[SessionSummary] = []
        self.position = 0
        self.arrived: dict[str, float] = {}
        self.loaded = False
        self._log = log
        self._places: dict[str, int] = {}
        self._recent: OrderedDict[int, int] = OrderedDict()  # place to position, the latest last
        self._values: dict[str, Counter[str]] = {}
        self._groups: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
        self._firsts: dict[int, int] = {}  # position of the first record by place, if it is known
        self._touched: dict[str, int] = {}  # sessions whose summaries have to be read again
        self._due = anyio.Event()
        self._news = anyio.Event()

    def __len__(self) -> int:
        return len(self.summaries)

    # --- reading ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Reads the sessions and follows the log, until it is cancelled or the log ends.

        Raises:
            LogError: the log cannot be read any more.
        """
        self.position = self._log.statistics().position
        follower = Follower(self._log, after_position=self.position)
        async with follower, anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow, follower)
            await follower.retry(self._load)
            while True:
                await self._due.wait()
                self._due = anyio.Event()
                await follower.retry(self._refresh)
                await anyio.sleep(_PACE)

    async def _load(self) -> None:
        async for summary in self._log.sessions():
            self._put(summary)
            if len(self.summaries) % _AT_ONCE == 0:
                self._notify()
                await checkpoint()
        by_position = sorted(range(len(self)), key=lambda place: self.summaries[place].position)
        self._recent = OrderedDict((place, self.summaries[place].position) for place in by_position)
        self.loaded = True
        self._notify()

    async def _follow(self, follower: Follower) -> None:
        async for record in follower:
            self._touched[record.session] = record.position
            self._due.set()
            follower.done(record.position)

    async def _refresh(self) -> None:
        touched = dict(self._touched)
        for session in touched:
            self._put(await self._log.summary(session))
            self.arrived[session] = time()
        for session, position in touched.items():
            if self._touched[session] == position:
                del self._touched[session]
        self.position = max(self.position, *touched.values())
        self._notify()

    def _put(self, summary: SessionSummary) -> None:
        if summary.group:  # most sessions share their labels with others, so these are held once
            group = self._groups.setdefault(tuple(summary.group.items()), summary.group)
            summary = replace(summary, group=group)
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
        """The place of a session; None if it is not known."""
        return self._places.get(session)

    @property
    def labels(self) -> Sequence[str]:
        """The labels that sessions have."""
        return sorted(key for key, values in self._values.items() if values and key not in FACETS)

    def values(self, key: str) -> Mapping[str, int]:
        """The values of the task, the state or a label, each with how many sessions have it."""
        return self._values.get(key, {})

    def changed_since(self, position: int, most: int | None = None) -> list[int] | None:
        """The places of sessions with records after a position, the latest first.

        Returns:
            None if they are more than ``most``.
        """
        found: list[int] = []
        for place in reversed(self._recent):
            if self._recent[place] <= position:
                break
            if len(found) == most:
                return None
            found.append(place)
        return found

    @property
    def settled(self) -> bool:
        """Whether all sessions have been read, and no change is known that has not been."""
        return self.loaded and not self._touched

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
        """The sessions with the latest records, the very latest first.

        While the index is being read, they are looked for at the end of the log.

        Raises:
            LogError: the log cannot be read.
        """
        if self.loaded:
            return [self.summaries[place] for place in islice(reversed(self._recent), most)]
        head = self._log.statistics().position
        found: dict[str, None] = {}
        async for record in self._log.read_all(after_position=max(head - _TAIL, 0)):
            found.pop(record.session, None)
            found[record.session] = None
        return [await self._log.summary(one) for one in islice(reversed(found), most)]

    async def count_at(self, position: int) -> int:
        """How many sessions had begun at a position of the log: these are the first ones.

        Reads the beginnings of a few sessions, as many as a binary search takes.

        Raises:
            LogError: the log cannot be read.
        """
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if await self._first(middle) <= position:
                low = middle + 1
            else:
                high = middle
        return low

    async def _first(self, place: int) -> int:
        if place not in self._firsts:
            async for record in self._log.read_all(session=self.summaries[place].session):
                self._firsts[place] = record.position
                break
        return self._firsts[place]
