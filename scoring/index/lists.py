"""Lists of sessions: those that a query finds, in an order, page by page, and as they change."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, final

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from ...engine.errors import InvalidInput
from ...engine.log.contract import SessionSummary
from ...engine.log.ranked import Arrangement, Ranked
from ...engine.log.session_states import SessionStates
from ...engine.text import natural
from .lines import AT_ONCE, Measured, SessionLine, SessionLines
from .order import BEGUN, SessionOrder, Sortable
from .query import SessionQuery
from .sessions import SessionIndex

__all__ = ("Key", "ListChange", "Page", "SessionList", "SessionLists", "parse_key")

Key: TypeAlias = tuple[Sortable | None, int]
"""The rank of a session in a list: the value that it is sorted by, and its place in the index."""

_PATIENCE: Final = 0.2  # seconds that a page waits for a list that takes longer
_KEPT: Final = 12  # lists
_TURN: Final = 2000  # sessions that are taken between two turns of other tasks
_MOST: Final = 300  # sessions in one message: if more have changed, the page is loaded again
_KEY: Final = msgspec.json.Decoder(tuple[tuple[str | int, ...] | float | None, int])


class Page(NamedTuple):
    """A part of a list.

    Attributes:
        sessions: in order.
        first: key of the first one; None if the page is empty.
        last: key of the last one.
        before: whether others come before.
        after: whether others follow.
    """

    sessions: Sequence[SessionSummary]
    first: Key | None
    last: Key | None
    before: bool
    after: bool


class ListChange(NamedTuple):
    """The changes of a list.

    Attributes:
        position: the position of the log, up to which this is so.
        rows: the sessions in the list that have changed, and their keys.
        gone: the sessions that have changed and are not in it.
        reload: whether too much has changed to name it.
        found: how many sessions the list holds.
        total: how many sessions the log holds.
        looked: how many were looked at.
        complete: whether these are all.
        loaded: whether the index has read all sessions.
    """

    position: int
    rows: list[tuple[str, Key]]
    gone: list[str]
    reload: bool
    found: int
    total: int
    looked: int
    complete: bool
    loaded: bool


@final
class SessionList:
    """The sessions of an index that meet a query, in an order.

    A store that orders and selects sessions (``Ranked``) finds those that may meet the query, and the values that
    they are sorted by. The list of all sessions in the order in which they began holds nothing.

    Args:
        index: the sessions.
        lines: their lines, which are read only if the query or the order is about measurements.
        query: what the sessions have to meet.
        order: their order.

    Attributes:
        looked: how many sessions have been looked at.
        complete: whether these are all.
        position: the position of the log: changes up to it have been looked at.
        revision: grows with each change of the list.
    """

    def __init__(
        self,
        index: SessionIndex,
        lines: SessionLines,
        query: SessionQuery | None = None,
        order: SessionOrder = BEGUN,
    ) -> None:
        self.query = query or SessionQuery()
        self.order = order
        self.looked = 0
        self.complete = False
        self.position = 0
        self.revision = 0
        self._index = index
        self._lines = lines
        self._needs_lines = self.query.needs_lines or order.needs_lines
        self._sign = -1 if order.descending else 1
        self._whole = not self.query and not order.key
        self._begun = False
        self._noticed = 0  # position of the log: what changed up to it is looked at, or due
        self._due: dict[int, None] = {}  # places to be looked at
        self._having: list[tuple[Sortable, int]] = []
        self._lacking: list[int] = []
        self._keys: dict[int, Sortable | None] = {}
        self._sorted = True
        self._lock = anyio.Lock()

    def __len__(self) -> int:
        return self.looked if self._whole else len(self._keys)

    # --- keeping up -------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Looks at all sessions that are new to the list or have changed.

        Raises:
            LogError: the log cannot be read.
        """
        async with self._lock:
            index, reached = self._index, self._index.position
            if not index.loaded:
                return
            if self._whole:
                self.looked = self.revision = len(index)
            elif not self._begun and isinstance(index.log, Ranked):
                # One query: each page that does not wait for it would otherwise begin it again.
                with anyio.CancelScope(shield=True):
                    await self._ask(index.log)
            elif self._begun:
                changed = await index.changed_since(self._noticed) or ()
                self._due |= dict.fromkeys(place for place in changed if place < self.looked)
            self._begun, self._noticed = True, reached
            while self._due:
                await self._look_at([*self._due][:AT_ONCE])
                await checkpoint()
            self.position = reached
            while self.looked < len(index):
                await self._look_at(range(self.looked, min(self.looked + AT_ONCE, len(index))))
                await checkpoint()
            self.complete = True

    async def _ask(self, log: Ranked) -> None:
        """Has the store find the sessions that may be in the list; some of them are to be looked at."""
        index, query, order, rows = self._index, self.query, self.order, self._lines.rows
        until, filtered = len(index), bool(query)
        wanted = Arrangement(by=order.column, conditions=query.conditions, rows=rows)
        late: set[str] = set()
        if order.needs_lines and not filtered:
            late.update(await log.outdated(*rows) if rows else index.names)
        for at, (session, value) in enumerate(await log.arranged(wanted)):
            place = index.place(session)
            if place is None or place >= until:
                continue  # it is new, and looked at as such
            if filtered or session in late:
                self._due[place] = None
                continue
            known = natural(value) if isinstance(value, str) else value
            self._keys[place] = known
            if known is None:
                self._lacking.append(place)
            else:
                self._having.append((known, self._sign * place))
            if at % _TURN == 0:
                await checkpoint()
        self._sorted = False
        self._lacking.sort()
        self.looked = until
        self.revision += 1

    async def soon(self) -> None:
        """As ``refresh``, but for a moment only: the rest is left for the next time."""
        with anyio.move_on_after(_PATIENCE):
            await self.refresh()

    async def _look_at(self, places: Sequence[int]) -> None:
        """Looks at sessions; if it is cancelled, those that it has looked at count."""
        query, lines = self.query, self._lines
        summaries = await self._index.read(places)
        measured: Mapping[str, Measured] = {}
        if self._needs_lines:
            met = [summary for summary in summaries if query.admits(summary)]
            if query.asks_reviews:
                await lines.prefetch(met)
            else:
                measured = await lines.measured(met)
        for place, summary in zip(places, summaries, strict=True):
            line: SessionLine | Measured | None = None
            listed = query.admits(summary)
            if listed and self._needs_lines:
                numbers = measured.get(summary.session)
                if numbers is not None and numbers.position >= summary.position:
                    line, listed = numbers, query.admits_numbers(numbers)
                else:
                    line = await lines.line(summary)
                    listed = query.admits_line(line)
            self._drop(place)
            if listed:
                self._put(place, self._value(place, summary, line))
            self._due.pop(place, None)
            self.looked = max(self.looked, place + 1)

    def _value(
        self, place: int, summary: SessionSummary, line: SessionLine | Measured | None
    ) -> Sortable | None:
        return self.order.value(summary, line) if self.order.key else place

    def _put(self, place: int, value: Sortable | None) -> None:
        self._keys[place] = value
        self.revision += 1
        if value is None:
            insort(self._lacking, place)
        elif place < self.looked:
            self._sort()
            insort(self._having, (value, self._sign * place))
        else:
            self._having.append((value, self._sign * place))
            self._sorted = False

    def _drop(self, place: int) -> None:
        if place not in self._keys:
            return
        value = self._keys.pop(place)
        self.revision += 1
        if value is None:
            del self._lacking[bisect_left(self._lacking, place)]
        else:
            self._sort()
            del self._having[bisect_left(self._having, (value, self._sign * place))]

    def _sort(self) -> None:
        if not self._sorted:
            self._having.sort()
            self._sorted = True

    # --- what it holds ----------------------------------------------------------------------------

    def key(self, place: int) -> Key | None:
        """The key of a session by its place in the index; None if it is not in the list."""
        if self._whole:
            return (place, place) if place < self.looked else None
        return (self._keys[place], place) if place in self._keys else None

    def rank(self, place: int) -> int | None:
        """How many sessions come before one in the list; None if it is not in the list."""
        key = self.key(place)
        return None if key is None else self._rank(key, behind=False)

    def places(self, start: int = 0, end: int | None = None) -> Iterator[int]:
        """The places in the index of the sessions from one rank to before another."""
        if self._whole:
            ranks = range(start, len(self) if end is None else min(end, len(self)))
            yield from (len(self) - 1 - rank for rank in ranks) if self.order.descending else ranks
            return
        self._sort()
        count = len(self._having)
        for rank in range(start, len(self) if end is None else min(end, len(self))):
            if rank >= count:
                yield self._lacking[rank - count]
            else:
                yield abs(self._having[count - 1 - rank if self.order.descending else rank][1])

    async def page(self, size: int, *, after: Key | None = None, before: Key | None = None) -> Page:
        """The sessions that follow a key, or the last ones before one; else the first.

        If sessions come, go or move meanwhile, no other session is shown twice or left out.

        Raises:
            InvalidInput: the key belongs to another order.
            LogError: the log cannot be read.
        """
        start = 0 if after is None else self._rank(after, behind=True)
        end = start + size
        if before is not None:
            end = self._rank(before, behind=False)
            start = max(end - size, 0)
        places = [*self.places(start, end)]
        first, last = (
            [self.key(place) for place in (places[0], places[-1])] if places else [None] * 2
        )
        more = end < len(self)
        return Page(await self._index.read(places), first, last, start > 0, more)

    def _rank(self, key: Key, *, behind: bool) -> int:
        """How many sessions come before a key; ``behind`` it, with the key's own session."""
        value, place = key
        if self._whole:
            if value != place:
                raise InvalidInput("this page belongs to another order: begin at the first")
            passed = place + (behind != self.order.descending)
            before = len(self) - passed if self.order.descending else passed
            return min(max(before, 0), len(self))
        self._sort()
        if value is None:
            return len(self._having) + bisect_left(self._lacking, place + behind)
        try:
            if self.order.descending:
                after = bisect_left(self._having, (value, self._sign * place + (not behind)))
                return len(self._having) - after
            return bisect_left(self._having, (value, place + behind))
        except TypeError as error:  # a key of another order
            raise InvalidInput("this page belongs to another order: begin at the first") from error


def parse_key(text: str) -> Key:
    """A key from an address.

    Raises:
        InvalidInput: it is not a key.
    """
    try:
        return _KEY.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise InvalidInput(f"no page begins at {text[:40]!r}") from error


@final
class SessionLists:
    """The lists of an index that are looked at: one for each query and order, for all who look at it.

    Args:
        index: the sessions.
        lines: their lines.
    """

    def __init__(self, index: SessionIndex, lines: SessionLines) -> None:
        self.index = index
        self.lines = lines
        self._held: SessionStates[SessionList] = SessionStates(_KEPT)

    def of(self, query: SessionQuery, order: SessionOrder) -> SessionList:
        """A list, to be refreshed. The lists that were not used for the longest time are dropped."""
        name = repr((query, order))
        held = self._held.get(name)
        if held is None:  # an empty list is false
            held = SessionList(self.index, self.lines, query, order)
        self._held.keep(name, held)
        return held

    async def follow(
        self, query: SessionQuery, order: SessionOrder, after: int, pace: float
    ) -> AsyncIterator[ListChange]:
        """The changes of a list after a position of the log, in messages at a pace.

        Raises:
            LogError: the log cannot be read.
        """
        index = self.index
        position = after
        was_loaded = index.loaded
        before: ListChange | None = None
        shown = self.of(query, order)  # held here, however many others are looked at
        while True:
            await shown.soon()
            reached = shown.position  # the list may not have had the time for all changes
            places = await index.changed_since(position, _MOST) if index.loaded else []
            keys = [(index.names[place], shown.key(place)) for place in places or ()]
            change = ListChange(
                position=max(reached, position) if index.loaded else position,
                rows=[(session, key) for session, key in keys if key is not None],
                gone=[session for session, key in keys if key is None],
                reload=places is None or (index.loaded and not was_loaded),
                found=len(shown),
                total=len(index),
                looked=shown.looked,
                complete=shown.complete,
                loaded=index.loaded,
            )
            was_loaded = index.loaded
            if change != before:
                yield change
            before = change._replace(rows=[], gone=[], reload=False)
            position = change.position
            if shown.complete and index.position <= position:
                await index.wait()
            await anyio.sleep(pace)
