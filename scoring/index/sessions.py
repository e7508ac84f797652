"""The sessions of a log, followed once for all who list them.

The index holds the ids of all sessions, and how many have which labels; their summaries are read from the log when
they are needed. A session that has changed since a position is found by the position of its last record. So a page
that comes back later, or to another server, asks by position and misses nothing.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from itertools import islice, takewhile
from math import inf
from time import time
from typing import Final, final

import anyio

from ...engine.log.contract import EventLog, SessionSummary
from ...engine.log.follower import Follower
from ...engine.log.ranked import Arrangement, Condition, Ranked, SessionGroup

__all__ = ("FACETS", "SessionIndex")

FACETS: Final = ("task", "state")
"""What sessions can be filtered by a choice of, apart from their labels."""

_PACE: Final = 0.1  # seconds between two looks at what has changed
_AT_ONCE: Final = 500  # summaries that are read at once
_VALUES: Final = 2000  # values of one label that are counted
_OPENED: Final = "SessionOpened"
_CLOSED: Final = "SessionClosed"


@final
class SessionIndex:
    """The sessions of a log. ``run`` reads and follows.

    A session's *place* is its number in the order of first records, from 0.

    Args:
        log: the log, open.

    Attributes:
        log: the log.
        names: the ids of the sessions, by place.
        position: the position of the log, up to which changes are known.
        arrived: when the latest record of a session came, in seconds since 1970, of those sessions that
            changed since the log was opened here.
        loaded: whether all sessions are known that were there at first.
    """

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.names: list[str] = []
        self.position = 0
        self.arrived: dict[str, float] = {}
        self.loaded = False
        self._places: dict[str, int] = {}
        self._recent: OrderedDict[int, int] = OrderedDict()  # place to position, the latest last
        self._began = 0  # position after which changes are in there
        self._values: dict[str, Counter[str]] = {}
        self._counted = 0  # how many of the first sessions are in the values
        self._upto = 0  # position of the log when they were counted
        self._firsts: dict[int, int] = {}  # position of the first record by place, if it is known
        self._touched: dict[str, int] = {}  # sessions whose summaries have to be read again
        # Positions at which they were opened or closed, by kind.
        self._turned: dict[str, dict[str, int]] = {}
        self._due = anyio.Event()
        self._news = anyio.Event()

    def __len__(self) -> int:
        return len(self.names)

    # --- reading ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Reads which sessions there are and follows the log, until it is cancelled or the log ends.

        Raises:
            LogError: the log cannot be read any more.
        """
        self.position = self._began = self._upto = self.log.statistics().position
        follower = Follower(self.log, after_position=self.position)
        async with follower, anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow, follower)
            await follower.retry(self._load)
            while True:
                await self._due.wait()
                self._due = anyio.Event()
                await follower.retry(self._refresh)
                await anyio.sleep(_PACE)

    async def _load(self) -> None:
        groups: Sequence[SessionGroup]
        if isinstance(self.log, Ranked):
            groups = await self.log.groups()  # before the names: none is counted that is not named
            names = [one.session for one in await self.log.arranged(Arrangement())]
        else:
            found = [one async for one in self.log.sessions()]
            groups = [SessionGroup(s.task, s.state, s.group, 1, s.position) for s in found]
            names = [one.session for one in found]
        for group in groups:
            self._count(("state", group.state), group.sessions)
            self._describe(group.task, group.labels, group.sessions)
            self._upto = max(self._upto, group.position)
        self._counted = sum(group.sessions for group in groups)
        for name in names:
            self._places[name] = len(self.names)
            self.names.append(name)
        self.loaded = True
        self._notify()

    async def _follow(self, follower: Follower) -> None:
        async for record in follower:
            self._touched[record.session] = record.position
            if record.kind in (_OPENED, _CLOSED):
                self._turned.setdefault(record.session, {})[record.kind] = record.position
            self._due.set()
            follower.done(record.position)

    async def _refresh(self) -> None:
        touched = dict(self._touched)
        turned = {name: dict(self._turned[name]) for name in touched if name in self._turned}
        summaries = await self._read([*touched])
        for summary in summaries:
            kinds = turned.get(summary.session, {})
            self._take(summary, [kind for kind, at in kinds.items() if at > self._upto])
            self.arrived[summary.session] = time()
        for summary in sorted(summaries, key=lambda one: one.position):
            place = self._places[summary.session]
            self._recent[place] = summary.position
            self._recent.move_to_end(place)
        for session, position in touched.items():
            if self._touched[session] == position:
                del self._touched[session]
            for kind in turned.get(session, ()):
                del self._turned[session][kind]
            if not self._turned.get(session, True):
                del self._turned[session]
        self.position = max(self.position, *touched.values())
        self._notify()

    def _take(self, summary: SessionSummary, turned: Collection[str]) -> None:
        """Counts a session that is new, was opened or was closed."""
        session = summary.session
        place = self._places.setdefault(session, len(self.names))
        if place == len(self.names):
            self.names.append(session)
        if place >= self._counted:
            self._counted += 1
            self._count(("state", "open"), 1)
        if _OPENED in turned:
            self._describe(summary.task, summary.group, 1)
        if _CLOSED in turned:
            self._count(("state", "open"), -1)
            self._count(("state", summary.state), 1)

    def _describe(self, task: str, labels: Mapping[str, str], by: int) -> None:
        for one in (("task", task), *labels.items()):
            self._count(one, by)

    def _count(self, one: tuple[str, str], by: int) -> None:
        key, value = one
        values = self._values.setdefault(key, Counter())
        if value in values or len(values) < _VALUES:
            values[value] += by
            if not values[value]:
                del values[value]

    def _notify(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def _read(self, names: Sequence[str]) -> list[SessionSummary]:
        if not isinstance(self.log, Ranked):
            return [await self.log.summary(name) for name in names]
        found: list[SessionSummary] = []
        for at in range(0, len(names), _AT_ONCE):
            found += await self.log.summaries(names[at : at + _AT_ONCE])
        return found

    # --- what there is ----------------------------------------------------------------------------

    async def read(self, places: Sequence[int]) -> list[SessionSummary]:
        """The summaries of sessions, as they are now.

        Raises:
            LogError: the log cannot be read.
        """
        return await self._read([self.names[place] for place in places])

    async def newest(self, *conditions: Condition) -> AsyncIterator[SessionSummary]:
        """The sessions that may meet all conditions, the newest first; see ``Condition``.

        Raises:
            LogError: the log cannot be read.
        """
        if isinstance(self.log, Ranked):
            wanted = Arrangement(conditions=conditions)
            names = [one.session for one in reversed(await self.log.arranged(wanted))]
        else:
            names = self.names[::-1]
        for at in range(0, len(names), _AT_ONCE):
            for summary in await self._read(names[at : at + _AT_ONCE]):
                yield summary

    async def labels_of(self, task: str) -> list[Mapping[str, str]]:
        """The labels of the sessions of a task, those that several sessions share once if the store can say so.

        Raises:
            LogError: the log cannot be read.
        """
        if isinstance(self.log, Ranked):
            return [group.labels for group in await self.log.groups() if group.task == task]
        return [one.group async for one in self.log.sessions() if one.task == task]

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

    async def changed_since(self, position: int, most: int | None = None) -> list[int] | None:
        """The places of sessions with records after a position, the latest first.

        Returns:
            None if they are more than ``most``.

        Raises:
            LogError: the log cannot be read.
        """
        wanted = None if most is None else most + 1
        if position < self._began:
            names = await self._latest(wanted, position)
            found = [self._places[name] for name in names if name in self._places]
        else:
            changed = takewhile(lambda one: self._recent[one] > position, reversed(self._recent))
            found = [*islice(changed, wanted)]
        return None if most is not None and len(found) > most else found

    async def _latest(self, most: int | None, after: int = 0) -> list[str]:
        """The sessions with the latest records after a position, the very latest first."""
        if not isinstance(self.log, Ranked):
            found = [(one.position, one.session) async for one in self.log.sessions()]
            return [name for at, name in sorted(found, reverse=True) if at > after][:most]
        since = Condition(by=("position",), ranges=((after + 1, inf),))
        wanted = Arrangement(by="position", descending=True, limit=most, conditions=(since,))
        return [one.session for one in await self.log.arranged(wanted)]

    @property
    def settled(self) -> bool:
        """Whether all sessions are known, and no change is known that has not been looked at."""
        return self.loaded and not self._touched

    def has_news(self, session: str, position: int) -> bool:
        """Whether a session is known to have records after a position, of those that came meanwhile."""
        if self._touched.get(session, 0) > position:
            return True
        place = self._places.get(session)
        return place is not None and self._recent.get(place, 0) > position

    async def wait(self) -> None:
        """Waits until something is new: a session has changed, or all of them are known."""
        await self._news.wait()

    async def latest(self, most: int) -> list[SessionSummary]:
        """The sessions with the latest records, the very latest first.

        Raises:
            LogError: the log cannot be read.
        """
        return await self._read(await self._latest(most))

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
            async for record in self.log.read_all(session=self.names[place]):
                self._firsts[place] = record.position
                break
        return self._firsts[place]
