"""A list of sessions: those that meet a query, in an order, page by page, and kept up to date."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias, final

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from ....engine.errors import InvalidInput
from ....engine.log.contract import EventLog, SessionSummary
from ....engine.log.session_states import SessionStates
from ....engine.log.summary import FORGOTTEN
from ....scoring.listing.order import SessionOrder, Sortable
from ....scoring.listing.query import SessionQuery
from ....scoring.listing.sessions import ListedFold, ListedSession
from .table import SessionTable

__all__ = ("Key", "Listing", "Page", "parse_key")

Key: TypeAlias = tuple[Sortable | None, int]
"""Where a session stands in a list: what it is sorted by, and its place in the log."""

_AT_ONCE: Final = 2000  # sessions between two turns of everybody else
_FOLDS: Final = 256  # of sessions that grow, or whose reading was cut off
_PATIENCE: Final = 0.2  # seconds that a page waits for a list that takes longer
_TEXT: Final = msgspec.json.Decoder(tuple[tuple[tuple[str, int], ...] | float | None, int])


class Page(NamedTuple):
    """A part of a list.

    Attributes:
        sessions: in order.
        first: key of the first one; None where the page is empty.
        last: key of the last one.
        before: whether others come before.
        after: whether others follow.
    """

    sessions: Sequence[ListedSession]
    first: Key | None
    last: Key | None
    before: bool
    after: bool


@final
class Listing:
    """The sessions that meet a query, in an order.

    Args:
        log: the log; records of it are read only where a query asks for tolerances, or for the
            utility of sessions that were to be evaluated and have no score.
        table: its sessions.
        query: what they meet.
        order: their order.

    Attributes:
        looked: how many sessions have been looked at.
        complete: whether all have been.
        position: of the log, up to which what has changed was looked at again.
    """

    def __init__(
        self, log: EventLog, table: SessionTable, query: SessionQuery, order: SessionOrder
    ) -> None:
        self.query = query
        self.order = order
        self.looked = 0
        self.complete = False
        self.position = 0
        self._log = log
        self._table = table
        self._admit = query.admission()
        self._taus = query.taus
        self._by_measures = bool(query.utility or query.tolerances)
        self._by_utility = bool(query.utility) or order.key == "utility"
        self._sign = -1 if order.descending else 1
        self._having: list[tuple[Sortable, int]] = []
        self._lacking: list[int] = []
        self._keys: dict[int, Sortable | None] = {}
        self._measured: dict[int, ListedSession] = {}
        self._folds: SessionStates[ListedFold] = SessionStates(_FOLDS)
        self._settled = True
        self._lock = anyio.Lock()

    def __len__(self) -> int:
        return len(self._keys)

    # --- keeping up -------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Looks at all sessions that it has not looked at, or that have changed since.

        Raises:
            LogError: the log cannot be read.
        """
        async with self._lock:
            reached = self._table.position
            if self.looked and self._table.loaded:
                for place in self._table.changed_since(self.position, len(self._table)) or ():
                    if place < self.looked:
                        await self._look(place, anew=True)
            self.position = reached
            await self._look_on()
            self.complete = self._table.loaded

    async def soon(self) -> None:
        """As ``refresh``, but for a moment only: the rest is left for the next time."""
        with anyio.move_on_after(_PATIENCE):
            await self.refresh()

    async def _look_on(self) -> None:
        summaries, admit = self._table.summaries, self._admit
        measured = bool(self._taus) or self._by_utility or self._by_measures
        while self.looked < len(summaries):
            end = min(self.looked + _AT_ONCE, len(summaries))
            for place in range(self.looked, end):
                summary = summaries[place]
                if admit(summary):
                    if measured and self._needs_records(summary):
                        await self._look(place, anew=False)
                    elif not measured or self._admits_utility(summary.utility):
                        self._put(place, self.order.value(summary), anew=False)
                self.looked = place + 1
            await checkpoint()

    async def _look(self, place: int, *, anew: bool) -> None:
        summary = self._table.summaries[place]
        met = self._admit(summary)
        if met and self._needs_records(summary):
            line = await self._measure(place, summary)
            summary = line.summary
            met = self.query.admits_measures(summary.utility, line.stops or {})
        elif met:
            met = self._admits_utility(summary.utility)
        if anew:
            self._drop(place)
        if met:
            self._put(place, self.order.value(summary), anew=anew)

    def _admits_utility(self, utility: float | None) -> bool:
        return not self._by_measures or self.query.admits_measures(utility, {})

    def _needs_records(self, summary: SessionSummary) -> bool:
        """Whether its summary does not say enough: the rules of ``listed_session``."""
        taus = self._taus
        if taus and summary.rounds >= taus[0] and summary.state != FORGOTTEN:
            return True
        return self._by_utility and summary.utility is None and summary.evaluated

    async def _measure(self, place: int, summary: SessionSummary) -> ListedSession:
        known = self._measured.get(place)
        if known is None or known.summary.position != summary.position:
            fold = self._folds.get(summary.session) or ListedFold(summary.session, self._taus)
            self._folds.keep(summary.session, fold)
            known = await fold.read(self._log, summary)
            self._measured[place] = known
            if summary.state != "open":  # it does not grow
                self._folds.drop(summary.session)
        return known

    def _put(self, place: int, value: Sortable | None, *, anew: bool) -> None:
        self._keys[place] = value
        if value is None:
            insort(self._lacking, place)
        elif anew:
            self._settle()
            insort(self._having, (value, self._sign * place))
        else:
            self._having.append((value, self._sign * place))
            self._settled = False

    def _drop(self, place: int) -> None:
        if place not in self._keys:
            return
        value = self._keys.pop(place)
        if value is None:
            del self._lacking[bisect_left(self._lacking, place)]
        else:
            self._settle()
            del self._having[bisect_left(self._having, (value, self._sign * place))]

    def _settle(self) -> None:
        if not self._settled:
            self._having.sort()
            self._settled = True

    # --- pages ------------------------------------------------------------------------------------

    def key(self, place: int) -> Key | None:
        """The key of a session; None where it is not in the list."""
        return (self._keys[place], place) if place in self._keys else None

    def stops(self, place: int) -> Mapping[int, int]:
        """The tolerances that a session has used up, where the query asks for them."""
        line = self._measured.get(place)
        return {} if line is None else line.stops or {}

    def page(self, size: int, *, after: Key | None = None, before: Key | None = None) -> Page:
        """The sessions that follow a key, or the last ones before one; else the first.

        Sessions that come, go or move meanwhile are neither shown twice nor left out by that.
        """
        self._settle()
        start = 0 if after is None else self._rank(after, behind=True)
        end = start + size
        if before is not None:
            end = self._rank(before, behind=False)
            start = max(end - size, 0)
        places = [self._at(rank) for rank in range(start, min(end, len(self)))]
        lines = [self._line(place) for place in places]
        return Page(
            lines,
            self.key(places[0]) if places else None,
            self.key(places[-1]) if places else None,
            start > 0,
            end < len(self),
        )

    def _line(self, place: int) -> ListedSession:
        known = self._measured.get(place)
        return known or ListedSession(self._table.summaries[place], None)

    def _at(self, rank: int) -> int:
        count = len(self._having)
        if rank >= count:
            return self._lacking[rank - count]
        return abs(self._having[count - 1 - rank if self.order.descending else rank][1])

    def _rank(self, key: Key, *, behind: bool) -> int:
        """How many sessions come before a key; ``behind`` it, with the key's own one."""
        value, place = key
        if value is None:
            return len(self._having) + bisect_left(self._lacking, place + behind)
        try:
            if self.order.descending:
                found = bisect_left(self._having, (value, -place + (not behind)))
                return len(self._having) - found
            return bisect_left(self._having, (value, place + behind))
        except TypeError as error:  # a key of another order
            raise InvalidInput("this page belongs to another order: begin at the first") from error


def parse_key(text: str) -> Key:
    """A key from an address.

    Raises:
        InvalidInput: it is none.
    """
    try:
        return _TEXT.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise InvalidInput(f"no page begins at {text[:40]!r}") from error
