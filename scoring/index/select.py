"""The sessions of a log that meet a query, once: for commands that print them and end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import TypeVar, final

from ...engine.log.contract import EventLog, SessionSummary
from ...engine.log.ranked import Ranked
from ...engine.text import suggestion
from ..columns.kept import UTILITY, kind_of
from ..columns.log import LARGE, Shared, folded
from ..columns.rows import FOLD_VERSION
from ..trajectory.options import Options
from .lines import AT_ONCE, ListedSession, SessionLines, listed
from .order import SessionOrder, Sortable
from .query import SessionQuery

__all__ = ("check_labels", "select", "unmet")

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

    Summaries decide as far as they can. Rounds and utility are read only for the sessions that are given,
    and for those for which the query or the order needs them.

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
    candidates = _candidates(log, query)
    lines = SessionLines(log, options, most=1)
    rows = _Rows(log, options or Options())
    if limit is None or query.needs_lines or (order is not None and order.needs_lines):
        await rows.fold_many(shared)
    if order is None:
        found = _measured(candidates, lines, query, limit, reading)
    elif not order.needs_lines:
        summaries = _sorted([(order.value(one), one) async for one in candidates], order)
        found = _measured(_each(summaries), lines, query, limit, reading)
    elif (
        order.key == "utility"
        and limit is not None
        and query == SessionQuery()
        and (best := await rows.best(lines, order, limit)) is not None
    ):
        found = _measured(_each(best), lines, query, limit, reading)
    else:
        measured = _measured(candidates, lines, query, None, reading)
        found = _each(_sorted([(order.value(one, one), one) async for one in measured], order))
    count = 0
    async for line in found:
        yield line
        count += 1
        if count == limit:
            return


async def _candidates(log: EventLog, query: SessionQuery) -> AsyncIterator[SessionSummary]:
    async for summary in log.sessions():
        if query.admits(summary):
            yield summary


@final
class _Rows:
    """The rows that a log keeps, where its store can order sessions by their numbers."""

    def __init__(self, log: EventLog, options: Options) -> None:
        self._log = log
        self._ranked = log if isinstance(log, Ranked) else None
        self._options = options
        self._kind = kind_of(options)

    async def fold_many(self, shared: Shared | None) -> None:
        """Has the sessions folded by several processes of which the log keeps nothing, if they are many."""
        if self._ranked is None or not self._kind or shared is None:
            return
        new = await self._ranked.outdated(self._kind, FOLD_VERSION)
        if len(new) >= LARGE:
            async for _ in folded(self._log, self._options, sessions=new, shared=shared):
                pass

    async def best(
        self, lines: SessionLines, order: SessionOrder, limit: int
    ) -> list[SessionSummary] | None:
        """The first sessions by utility; None if the log does not keep rows of all of them."""
        log, ranked, kind = self._log, self._ranked, self._kind
        if ranked is None or not kind:
            return None
        new = await ranked.outdated(kind, FOLD_VERSION)
        if len(new) >= LARGE:
            return None
        for session in new:
            await lines.line(await log.summary(session))
        await lines.keep()
        if new and await ranked.outdated(kind, FOLD_VERSION):
            return None  # damaged sessions lack rows, and read-only logs keep none
        descending = order.descending
        names = await ranked.ranked(kind, FOLD_VERSION, UTILITY, descending=descending, limit=limit)
        return [await log.summary(session) for session in names]


async def _measured(
    candidates: AsyncIterator[SessionSummary],
    lines: SessionLines,
    query: SessionQuery,
    limit: int | None,
    reading: Callable[[int], object] | None,
) -> AsyncIterator[ListedSession]:
    """The sessions out of some that meet the whole query."""
    taus, size, looked = query.taus, min(limit or AT_ONCE, AT_ONCE), 0
    async for batch in _batches(candidates, size):
        await lines.prefetch(batch)
        for summary in batch:
            line = await lines.line(summary)
            looked += 1
            if reading is not None:
                reading(looked)
            if query.admits_line(line):
                yield listed(summary, line, taus)
    await lines.keep()


async def _batches(
    candidates: AsyncIterator[SessionSummary], size: int
) -> AsyncIterator[list[SessionSummary]]:
    batch: list[SessionSummary] = []
    async for summary in candidates:
        batch.append(summary)
        if len(batch) == size:
            yield batch
            batch = []
    yield batch


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
