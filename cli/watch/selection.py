"""Which sessions the list of ``duolog watch`` shows, and in which order: filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, final

import anyio

from ...engine.errors import InvalidInput
from ...engine.log.contract import EventLog, SessionSummary
from ...engine.log.follower import Follower
from ...engine.log.session_states import SessionStates
from ...scoring.listing.order import SessionOrder, parse_order
from ...scoring.listing.query import SessionQuery, parse_query, split_query
from ...scoring.listing.sessions import ListedFold, list_sessions
from .index import SessionIndex

__all__ = ("Selection",)

_ORDERS: Final = (None, "-written", "utility", "-rounds", "-lasted", "state", "session")
"""What ``next_order`` goes through; None is the newest first."""

_FOLDS = 256
_SHARE = 20  # of the time, one part at most goes into sorting


@final
class Selection:
    """The sessions that meet a query, in an order; all, the newest first, where neither is set.

    It goes by how sessions are now, whatever moment is shown. Summaries are held of those that are
    listed, as long as there is a query or an order.

    Args:
        log: the log.
        index: its sessions.
        changed: called whenever there is something new.

    Attributes:
        text: the query that the list meets, as it was typed.
        problem: why what was typed last is no query; empty where it is one.
        searching: whether sessions are still being looked through.
        version: of the list, one more with every change.
    """

    def __init__(self, log: EventLog, index: SessionIndex, changed: Callable[[], None]) -> None:
        self.text = ""
        self.problem = ""
        self.searching = False
        self.version = 0
        self._log = log
        self._index = index
        self._changed = changed
        self._typed = ""
        self._query = SessionQuery()  # what is wanted
        self._order: SessionOrder | None = None
        self._refused: tuple[SessionQuery | None, str] = None, ""  # by what the log holds
        self._met = SessionQuery()  # what the list meets
        self._sorted_by: SessionOrder | None = None
        self._listed: list[str] = []  # the last one is shown first
        self._places: dict[str, int] = {}
        self._found: dict[str, SessionSummary] = {}
        self._touched: set[str] = set()
        self._folds: SessionStates[ListedFold] = SessionStates(_FOLDS)  # of what changes
        self._renewed = True  # the sessions have to be looked through again
        self._wanted = anyio.Event()
        self._scan: anyio.CancelScope | None = None
        self._sorted_at = self._sorting = 0.0

    @property
    def active(self) -> bool:
        """Whether the list is filtered or sorted."""
        return bool(self._met) or self._sorted_by is not None

    @property
    def order(self) -> str:
        """The order in words; empty for the newest first."""
        order = self._order
        return "" if order is None else f"{order.key} {'↓' if order.descending else '↑'}"

    @property
    def settled(self) -> bool:
        """Whether the list is as it should be."""
        return not (self.searching or self._wanted.is_set())

    @property
    def sessions(self) -> list[str]:
        """The ids in order; the last one is shown first."""
        return self._listed if self.active else self._index.sessions

    def place(self, session: str) -> int | None:
        """Where a session is in that order, from 0; None where it is not in the list."""
        return (self._places.get if self.active else self._index.place)(session)

    # --- what somebody wants ----------------------------------------------------------------------

    def search(self, text: str) -> None:
        """Sets the query; one that makes no sense leaves the list as it is, with a problem."""
        try:
            query = parse_query(split_query(text))
        except InvalidInput as error:
            self.problem = str(error)
        else:
            refused, why = self._refused
            self.problem = why if query == refused else ""
            self._typed = text.strip()
            if query != self._query:
                self._query = query
                self._renew()
        self._changed()

    def sort(self, key: str | None) -> None:
        """Sets the order: ``KEY`` or ``-KEY``; None for the newest first.

        Raises:
            InvalidInput: it names nothing.
        """
        self._order = None if key is None else parse_order(key)
        self._renew()
        self._changed()

    def next_order(self) -> None:
        """Goes on to the next of some orders."""
        order = self._order
        now = None if order is None else f"{'-' if order.descending else ''}{order.key}"
        known = [None if key is None else key.removeprefix("-") for key in _ORDERS]
        at = known.index(now.removeprefix("-") if now else None) if now is not None else 0
        self.sort(_ORDERS[(at + 1) % len(_ORDERS)])

    def reverse(self) -> None:
        """Turns the order round."""
        order = self._order or SessionOrder("opened", descending=True)
        self._order = SessionOrder(order.key, not order.descending)
        self._renew()
        self._changed()

    def note_change(self, session: str) -> None:
        """Notes that a session has changed."""
        if self.active:
            self._touched.add(session)
            self._wanted.set()

    def _renew(self) -> None:
        self._renewed = True
        if self._scan is not None:
            self._scan.cancel()
        self._wanted.set()

    # --- reading ----------------------------------------------------------------------------------

    async def run(self, follower: Follower, pace: float) -> None:
        """Keeps the list up to date.

        Args:
            follower: knows how to wait while the log is unavailable.
            pace: seconds between two looks at what has changed.
        """
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            if self._renewed:
                with anyio.CancelScope() as self._scan:
                    self._renewed = False
                    await follower.retry(self._look_through)
                self._scan = None
            else:
                await follower.retry(self._look_again)
            self.searching = False
            self._changed()
            await anyio.sleep(pace)

    async def _look_through(self) -> None:
        """Looks through all sessions; until that is done the list stays as it is."""
        self._touched.clear()
        query, order, typed = self._query, self._order, self._typed
        found: dict[str, SessionSummary] = {}
        if query or order is not None:
            self.searching = True
            self._changed()
            try:
                async for line in list_sessions(self._log, query, self._labelled):
                    found[line.summary.session] = line.summary
            except InvalidInput as error:
                self.problem = str(error)
                self._refused = query, self.problem
                return
        self.text, self._met, self._sorted_by, self._found = typed, query, order, found
        self._folds = SessionStates(_FOLDS)
        self._publish()

    @property
    def _labelled(self) -> SessionOrder | None:
        """The order where it is by a label, which is to be checked; sorting is done here."""
        return self._order if self._order is not None and self._order.labels else None

    async def _look_again(self) -> None:
        """Looks at the sessions that have changed."""
        touched, self._touched = self._touched, set()
        try:
            await self._look_at(touched)
        except BaseException:
            self._touched |= touched  # for the next attempt
            raise
        # So that a large list that changes all the time leaves time for everything else.
        if anyio.current_time() - self._sorted_at >= self._sorting * _SHARE:
            self._publish()
        else:
            self._touched |= touched
            self._wanted.set()

    async def _look_at(self, sessions: Iterable[str]) -> None:
        """Finds out which of these sessions meet the query now."""
        for session in sessions:
            summary = await self._log.summary(session)
            met = self._met.admits(summary)
            if met and (self._met.utility or self._met.tolerances):
                fold = self._folds.get(session) or ListedFold(session, self._met.taus)
                self._folds.keep(session, fold)
                line = await fold.read(self._log, summary)
                summary = line.summary
                met = self._met.admits_measures(summary.utility, line.stops or {})
            if met:
                self._found[session] = summary
            else:
                self._found.pop(session, None)

    def _publish(self) -> None:
        began = anyio.current_time()
        if self._sorted_by is None:
            end = len(self._index)
            places = {name: self._index.place(name) for name in self._found}
            self._listed = sorted(places, key=lambda name: _or(places[name], end))
        else:
            self._listed = [s.session for s in self._sorted_by.sorted(self._found.values())][::-1]
        self._places = {name: place for place, name in enumerate(self._listed)}
        self.version += 1
        self._sorted_at = anyio.current_time()
        self._sorting = self._sorted_at - began


def _or(place: int | None, other: int) -> int:
    return other if place is None else place
