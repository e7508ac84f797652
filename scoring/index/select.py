"""The sessions of a log that meet a query, once: for commands that print them and end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar, final

from ...engine.log.contract import EventLog, SessionSummary
from ...engine.log.ranked import Ranked
from ...engine.text import suggestion
from ..columns.kept import kind_of
from ..columns.log import LARGE, Shared, folded
from ..columns.rows import FOLD_VERSION
from ..trajectory.options import Options
from .lines import AT_ONCE, ListedSession, SessionLines, listed
from .order import NUMBERED, SessionOrder, Sortable
from .query import SessionQuery

__all__ = ("check_labels", "select", "unmet")

_LOOKED_AT: Final = 2000  # of the first sessions, for those that meet a query

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
    rows = _Rows(log, options or Options(), shared)
    if order is not None and order.needs_lines:
        best = await rows.first(lines, query, order, limit)
        if best is None:
            measured = _measured(candidates, lines, query, None, reading)
            values = [(order.value(one, one), one) async for one in measured]
            best = _sorted(values, order)[:limit]
        found = _each(best)
    else:
        if limit is None:
            await rows.fold_many()
        if order is not None and limit is not None and isinstance(log, Ranked):
            candidates = _arranged(log, log, query, order, limit)
        elif order is not None:
            candidates = _each(
                await _first(candidates, order, None if query.needs_lines else limit)
            )
        found = _measured(candidates, lines, query, limit, reading, rows.fold_many)
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


async def _arranged(
    log: EventLog, ranked: Ranked, query: SessionQuery, order: SessionOrder, limit: int
) -> AsyncIterator[SessionSummary]:
    """The sessions that the summaries admit, in an order: the store finds the first ones.

    All summaries are read only if those that meet the query are few, or lie far back.
    """
    most = max(limit, _LOOKED_AT) if query else limit
    names = await ranked.arranged(order.column, descending=order.descending, limit=most)
    for at in range(0, len(names), AT_ONCE):
        for summary in await ranked.summaries(names[at : at + AT_ONCE]):
            if query.admits(summary):
                yield summary
    if len(names) == most:
        given = frozenset(names)
        others = (one async for one in _candidates(log, query) if one.session not in given)
        for summary in await _first(others, order, None if query.needs_lines else limit):
            yield summary


@final
class _Rows:
    """The rows that a log keeps, where its store can order sessions by their numbers."""

    def __init__(self, log: EventLog, options: Options, shared: Shared | None) -> None:
        self._log = log
        self._ranked = log if isinstance(log, Ranked) else None
        self._options = options
        self._kind = kind_of(options)
        self._shared = shared

    async def fold_many(self) -> Sequence[str]:
        """Has the sessions folded by several processes of which the log keeps nothing, if they are many.

        Returns:
            The sessions of which the log still keeps nothing.
        """
        if self._ranked is None or not self._kind:
            return ()
        new = await self._ranked.outdated(self._kind, FOLD_VERSION)
        if len(new) < LARGE or self._shared is None:
            return new
        async for _ in folded(self._log, self._options, sessions=new, shared=self._shared):
            pass
        return await self._ranked.outdated(self._kind, FOLD_VERSION)

    async def first(
        self, lines: SessionLines, query: SessionQuery, order: SessionOrder, limit: int | None
    ) -> list[ListedSession] | None:
        """The first sessions by a number of their rows that meet a query.

        None if the log does not keep rows of all sessions, or if too few of the first ones meet it.
        """
        log, ranked, kind = self._log, self._ranked, self._kind
        new = await self.fold_many()
        number = NUMBERED.get(order.key)
        if ranked is None or not kind or limit is None or number is None or len(new) >= LARGE:
            return None
        for session in new:
            await lines.line(await log.summary(session))
        await lines.keep()
        if new and await ranked.outdated(kind, FOLD_VERSION):
            return None  # damaged sessions lack rows, and read-only logs keep none
        most = limit if query == SessionQuery() else max(limit, AT_ONCE)
        names = await ranked.ranked(
            kind, FOLD_VERSION, number, descending=order.descending, limit=most
        )
        admitted = _each(one for one in await ranked.summaries(names) if query.admits(one))
        found = [one async for one in _measured(admitted, lines, query, limit, None)]
        return found[:limit] if len(found) >= limit or len(names) < most else None


async def _measured(
    candidates: AsyncIterator[SessionSummary],
    lines: SessionLines,
    query: SessionQuery,
    limit: int | None,
    reading: Callable[[int], object] | None,
    fold_many: Callable[[], Awaitable[object]] | None = None,
) -> AsyncIterator[ListedSession]:
    """The sessions out of some that meet the whole query.

    ``fold_many`` is called if many are read because few of them meet it.
    """
    size = AT_ONCE if query.needs_lines else min(limit or AT_ONCE, AT_ONCE)
    taus, looked = query.taus, 0
    async for batch in _batches(candidates, size):
        if looked == AT_ONCE and limit is not None and fold_many is not None:
            await fold_many()
        await lines.prefetch(batch)
        for summary in batch:
            line = await lines.line(summary)
            looked += 1
            if reading is not None:
                reading(looked)
            if query.admits_line(line):
                yield listed(summary, line, taus)
    await lines.keep()


async def _first(
    candidates: AsyncIterator[SessionSummary], order: SessionOrder, limit: int | None
) -> list[SessionSummary]:
    """The first of some sessions in an order; no more of them are held than that takes."""
    found: list[tuple[Sortable | None, SessionSummary]] = []
    most = None if limit is None else 2 * max(limit, AT_ONCE)
    async for one in candidates:
        found.append((order.value(one), one))
        if len(found) == most:
            found = [(order.value(best), best) for best in _sorted(found, order)[:limit]]
    return _sorted(found, order)[:limit]


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
