"""Which sessions the list of ``duolog watch`` shows, and in which order: filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

import anyio

from ...engine.errors import InvalidInput
from ...engine.log.follower import Follower
from ...scoring.index.lines import SessionLines
from ...scoring.index.lists import SessionList
from ...scoring.index.order import SessionOrder, parse_order
from ...scoring.index.query import SessionQuery, parse_query, split_query
from ...scoring.index.sessions import SessionIndex

__all__ = ("Selection",)

_NEWEST: Final = SessionOrder("", descending=True)
_ORDERS: Final = (None, "-written", "utility", "-rounds", "-lasted", "state", "session")
"""What ``next_order`` goes through; None is the newest first."""


@final
class Selection:
    """The sessions that meet a query, in an order; at first all of them, the newest first.

    It looks at how sessions are now, even if an earlier moment is shown.

    Args:
        index: the sessions.
        lines: what was measured of them.
        changed: called whenever there is something new.

    Attributes:
        text: the query that the list meets, as it was typed.
        problem: why the text that was typed last is not a query; empty if it is one.
        list: the list that is shown.
    """

    def __init__(
        self, index: SessionIndex, lines: SessionLines, changed: Callable[[], None]
    ) -> None:
        self.text = ""
        self.problem = ""
        self.list = SessionList(index, lines, order=_NEWEST)
        self._index = index
        self._lines = lines
        self._changed = changed
        self._typed = ""
        self._query = SessionQuery()  # what is wanted
        self._order = _NEWEST
        self._refused = ""  # why the log has nothing that could meet it
        self._asked = anyio.Event()
        self._scan = anyio.CancelScope()

    @property
    def active(self) -> bool:
        """Whether the list is filtered or sorted."""
        return bool(self.list.query) or self.list.order != _NEWEST

    @property
    def order(self) -> str:
        """The order in words; empty for the newest first."""
        order = self._order
        if order == _NEWEST:
            return ""
        return f"{order.key or 'opened'} {'↓' if order.descending else '↑'}"

    @property
    def searching(self) -> bool:
        """Whether sessions are still being looked through for what is wanted."""
        return not self._refused and (self.list.query, self.list.order) != self._wanted

    @property
    def _wanted(self) -> tuple[SessionQuery, SessionOrder]:
        return self._query, self._order

    @property
    def settled(self) -> bool:
        """Whether the list is as it should be."""
        index, shown = self._index, self.list
        current = shown.complete and shown.position >= index.position
        return index.settled and current and not (self.searching or self._asked.is_set())

    # --- what the user wants ----------------------------------------------------------------------

    def search(self, text: str) -> None:
        """Sets the query; a text that is not a query leaves the list as it is, with a problem."""
        try:
            query = parse_query(split_query(text))
        except InvalidInput as error:
            self.problem = str(error)
            self._changed()
        else:
            self._typed = text.strip()
            self._want(query, self._order)

    def sort(self, key: str | None) -> None:
        """Sets the order: ``KEY`` or ``-KEY``; None for the newest first.

        Raises:
            InvalidInput: it names nothing.
        """
        self._want(self._query, _NEWEST if key is None else parse_order(key))

    def next_order(self) -> None:
        """Goes to the next of some orders."""
        known = ["" if key is None else key.removeprefix("-") for key in _ORDERS]
        at = known.index(self._order.key) if self._order.key in known else -1
        self.sort(_ORDERS[(at + 1) % len(_ORDERS)])

    def reverse(self) -> None:
        """Turns the order round."""
        self._want(self._query, SessionOrder(self._order.key, not self._order.descending))

    def _want(self, query: SessionQuery, order: SessionOrder) -> None:
        if (query, order) != self._wanted:
            self._query, self._order, self._refused = query, order, ""
            self._scan.cancel()
        self.problem = self._refused
        self._asked.set()
        self._changed()

    # --- reading ----------------------------------------------------------------------------------

    async def run(self, follower: Follower) -> None:
        """Keeps the list up to date.

        Args:
            follower: knows how to wait while the log is unavailable.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._notice)
            while True:
                self._asked = anyio.Event()
                with anyio.CancelScope() as self._scan:
                    await follower.retry(self._look)
                self._changed()
                await self._asked.wait()

    async def _notice(self) -> None:
        while True:
            await self._index.wait()
            self._asked.set()

    async def _look(self) -> None:
        """Looks for what is wanted; until all sessions were looked at, the list stays as it is."""
        typed = self._typed
        while not self._index.loaded:
            await self._index.wait()
        if (self.list.query, self.list.order) != self._wanted:
            found = SessionList(self._index, self._lines, *self._wanted)
            try:
                await self._check(found)
            except InvalidInput as error:
                self._refused = self.problem = str(error)
            else:
                await found.refresh()
                self.list = found
        if not self._refused:
            self.text = typed
        await self.list.refresh()

    async def _check(self, found: SessionList) -> None:
        """Checks that sessions have the labels that are named."""
        if len(self._index):
            found.query.check_labels(self._index.labels)
            found.order.check_label(self._index.labels)
