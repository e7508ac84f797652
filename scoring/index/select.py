"""The sessions of a log that meet a query, once: for commands that print them and end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import Final, TypeVar, final

from ...engine.log.contract import EventLog, SessionSummary
from ...engine.log.ranked import Arrangement, Ranked, Rows
from ...engine.text import suggestion
from ..columns.kept import kind_of
from ..columns.log import LARGE, Shared, folded
from ..columns.rows import FOLD_VERSION
from ..trajectory.options import Options
from .lines import AT_ONCE, ListedSession, SessionLines, listed
from .order import BEGUN, SessionOrder, Sortable
from .query import SessionQuery

__all__ = ("check_labels", "select", "unmet")

_FACTOR: Final = 8  # how many times more sessions to read next if too few met the query

_T = TypeVar("_T")


async def select(
    log: EventLog,
    query: SessionQuery,
    order: SessionOrder | None = None,
    *,
    limit: int | None = None,
    options: Options | None = None,
    reading: Callable[[int], object] | None = None,
    shared: Shared | None = None,
) -> AsyncIterator[ListedSession]:
    """The sessions of a log that meet a query, in an order.

    The store orders and selects them, if it can: then only those are read that are given, and some that the
    store cannot decide of. Rows of sessions that are new are folded as far as the query or the order needs.

    Args:
        log: the log.
        query: what the sessions have to meet.
        order: None for the order in which they began.
        limit: give at most this many; None for all.
        options: how sessions are scored.
        reading: called with the number of sessions read so far, for a progress bar.
        shared: other processes that may fold sessions of which the log keeps nothing yet; None for this
            one alone.

    Raises:
        InvalidInput: the query or the order names a label that no session of the log has.
        LogError: the log cannot be read.
    """
    await check_labels(log, query, order)
    search = _Search(log, query, order or BEGUN, options or Options(), reading, shared)
    found = search.ranked(log, limit) if isinstance(log, Ranked) else search.read(limit)
    count = 0
    async for line in found:
        yield line
        count += 1
        if count == limit:
            return


@final
class _Search:
    """Finds the sessions that meet a query, in an order.

    Args:
        log: the log.
        query: what they have to meet.
        order: their order.
        options: how sessions are scored.
        reading: called with the number of sessions read so far.
        shared: other processes that may fold sessions.
    """

    def __init__(
        self,
        log: EventLog,
        query: SessionQuery,
        order: SessionOrder,
        options: Options,
        reading: Callable[[int], object] | None,
        shared: Shared | None,
    ) -> None:
        self._log = log
        self._query = query
        self._order = order
        self._options = options
        self._reading = reading
        self._shared = shared
        self._lines = SessionLines(log, options, most=1)
        self._kind = kind_of(options)
        self._looked = 0

    async def ranked(self, log: Ranked, limit: int | None) -> AsyncIterator[ListedSession]:
        """The sessions, of a store that can order and select them: it names those that are read."""
        query, order = self._query, self._order
        if order.needs_lines and not await self._fold_all(log):
            async for one in self.read(limit):
                yield one
            return
        if limit is None:
            await self._fold_many(log)
        wanted = partial(
            Arrangement,
            by=order.column,
            descending=order.descending,
            conditions=query.conditions,
            rows=Rows(self._kind, FOLD_VERSION) if self._kind else None,
        )
        size = max(limit, AT_ONCE) if limit is not None and query else limit
        given: set[str] = set()
        offset = 0
        while True:
            found = await log.arranged(wanted(limit=size, offset=offset))
            names = [one.session for one in found]
            for at in range(0, len(names), AT_ONCE):
                batch = [one for one in names[at : at + AT_ONCE] if one not in given]
                admitted = filter(query.admits, await log.summaries(batch))
                async for one in self._measured([*admitted], limit):
                    yield one
            if size is None or len(names) < size:
                return
            first, given = not given, given.union(names)
            if first and query.needs_lines and (await self._fold_many(log))[1]:
                continue  # the store knows more sessions now, so far fewer have to be read
            offset += size
            size *= _FACTOR

    async def read(self, limit: int | None) -> AsyncIterator[ListedSession]:
        """The sessions, of any store: all summaries are read."""
        order = self._order
        found = [one async for one in self._log.sessions() if self._query.admits(one)]
        if order.key and not order.needs_lines:
            found = _sorted([(order.value(one), one) for one in found], order)
        batches = (found[at : at + AT_ONCE] for at in range(0, len(found), AT_ONCE))
        measured: AsyncIterator[ListedSession] = (
            one for batch in batches async for one in self._measured(batch, limit)
        )
        if order.needs_lines:
            values = [(order.value(one, one), one) async for one in measured]
            measured = _each(_sorted(values, order))
        async for one in measured:
            yield one

    async def _measured(
        self, summaries: Sequence[SessionSummary], limit: int | None
    ) -> AsyncIterator[ListedSession]:
        """Those of some sessions that meet the whole query."""
        query, lines = self._query, self._lines
        few = limit is not None and not (query.needs_lines or self._order.needs_lines)
        size = min(limit, AT_ONCE) if few and limit is not None else AT_ONCE
        taus = query.taus
        for at in range(0, len(summaries), size):
            batch = summaries[at : at + size]
            await lines.prefetch(batch)
            for summary in batch:
                line = await lines.line(summary)
                self._looked += 1
                if self._reading is not None:
                    self._reading(self._looked)
                if query.admits_line(line):
                    yield listed(summary, line, taus)
        await lines.keep()

    async def _fold_many(self, log: Ranked) -> tuple[Sequence[str], bool]:
        """Folds sessions that have no numbers in the log in several processes, if there are many.

        Returns:
            The sessions that still have no numbers in the log, and whether there were more.
        """
        if not self._kind:
            return (), False
        new = await log.outdated(self._kind, FOLD_VERSION)
        if len(new) < LARGE or self._shared is None:
            return new, False
        async for _ in folded(self._log, self._options, sessions=new, shared=self._shared):
            pass
        left = await log.outdated(self._kind, FOLD_VERSION)
        return left, len(left) < len(new)

    async def _fold_all(self, log: Ranked) -> bool:
        """Makes the log keep rows of all sessions; returns whether it does."""
        new, _ = await self._fold_many(log)
        if not self._kind or len(new) >= LARGE:
            return False
        for session in new:
            await self._lines.line(await self._log.summary(session))
        await self._lines.keep()
        # Damaged sessions lack rows, and read-only logs keep none.
        return not new or not await log.outdated(self._kind, FOLD_VERSION)


async def _each(items: Iterable[_T]) -> AsyncIterator[_T]:
    for item in items:
        yield item


def _sorted(items: Iterable[tuple[Sortable | None, _T]], order: SessionOrder) -> list[_T]:
    """Items in the order of their values; equal ones stay in theirs, those without a value come last."""
    having: list[tuple[Sortable, _T]] = []
    lacking: list[_T] = []
    for value, item in items:
        if value is None:
            lacking.append(item)
        else:
            having.append((value, item))
    having.sort(key=lambda pair: pair[0], reverse=order.descending)
    return [item for _, item in having] + lacking


async def unmet(log: EventLog, query: SessionQuery) -> str:
    """A hint at the labels of a query whose values no session of a log has; empty if there is none.

    Raises:
        LogError: the log cannot be read.
    """
    values: dict[str, set[str]] = {key: set() for key in query.labels}
    async for summary in log.sessions():
        for key in values.keys() & summary.group.keys():
            values[key].add(summary.group[key])
    hints = [
        f"; {text.key} is never {pattern!r}{suggestion(pattern, values[text.key])}"
        for text in query.texts
        if text.key in values and not text.negated
        for pattern in text.patterns
        if not text.holds(values[text.key])
    ]
    return "".join(hints)


async def check_labels(log: EventLog, query: SessionQuery, order: SessionOrder | None) -> None:
    """Checks that sessions of a log have the labels that a query and an order name.

    An empty log has any label, since there is nothing to compare with.

    Raises:
        InvalidInput: no session has one of them.
        LogError: the log cannot be read.
    """
    wanted = query.labels | (order.labels if order is not None else frozenset())
    if not wanted:
        return
    known: set[str] = set()
    empty = True
    async for summary in log.sessions():
        empty = False
        known.update(summary.group)
        if wanted <= known:
            return
    if not empty:
        query.check_labels(known)
        if order is not None:
            order.check_label(known)
