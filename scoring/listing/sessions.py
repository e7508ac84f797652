"""The sessions of a log as they are listed: which, in which order, and why one has no utility."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar, final

from msgspec.structs import replace

from ...engine.errors import CodecError
from ...engine.log.contract import EventLog, SessionSummary
from ...engine.log.summary import FORGOTTEN
from ...engine.text import suggestion
from ..trajectory.fold import TrajectoryFold
from ..trajectory.options import Options
from ..trajectory.points import NOT_EVALUATED
from .order import SessionOrder
from .query import SessionQuery

__all__ = (
    "ERASED",
    "ListedFold",
    "ListedSession",
    "check_labels",
    "list_sessions",
    "listed_session",
    "log_labels",
    "unmet",
)

_T = TypeVar("_T")

ERASED = "erased: what was measured is gone"
"""Why a forgotten session has no utility."""


class ListedSession(NamedTuple):
    """A line of the list.

    Attributes:
        summary: of the session.
        missing: why it has no utility; None where it has one.
        stops: by tolerance τ that is used up, the round after which it is; None where no tolerance
            was asked for.
    """

    summary: SessionSummary
    missing: str | None
    stops: Mapping[int, int] | None = None


async def listed_session(
    log: EventLog, summary: SessionSummary, taus: Sequence[int] = ()
) -> ListedSession:
    """A session as it is listed.

    Its records are read only where its summary does not say enough: it was to be evaluated and has
    no score (it may have no output, which is worth 0, or a score that failed), or a tolerance is
    asked for that it has rounds enough to use up.

    Args:
        log: the log.
        summary: of the session.
        taus: the tolerances to follow; empty for none.

    Raises:
        LogError: the log cannot be read.
    """
    return await ListedFold(summary.session, taus).read(log, summary)


@final
class ListedFold:
    """Folds a session's records into its line, and goes on where it was: where the session has grown,
    or where reading was cut off.

    Args:
        session: session id.
        taus: the tolerances to follow; empty for none.
    """

    def __init__(self, session: str, taus: Sequence[int] = ()) -> None:
        self._taus = taus
        self._fold = TrajectoryFold(session, Options(taus=tuple(taus)), emit=False)
        self._position = 0
        self._problem = ""

    async def read(self, log: EventLog, summary: SessionSummary) -> ListedSession:
        """The line as of now, of which the summary says all that it can.

        Raises:
            LogError: the log cannot be read.
        """
        if (known := _by_summary(summary, self._taus)) is not None:
            return known
        fold = self._fold
        if not self._problem:
            try:
                async for record in log.read_all(
                    session=summary.session, after_position=self._position
                ):
                    self._position = record.position
                    fold.feed(record)
            except CodecError as error:
                self._problem = str(error)
        if self._problem:
            return ListedSession(summary, self._problem, {} if self._taus else None)
        stops = dict(fold.stops) if self._taus else None
        if (
            summary.utility is not None or not summary.evaluated
        ):  # what the summary says of it stays
            missing = None if summary.utility is not None else NOT_EVALUATED
            return ListedSession(summary, missing, stops)
        points = fold.trajectory().points
        utility = points[-1].utility if points else None
        return ListedSession(replace(summary, utility=utility), fold.utility_missing, stops)


def _by_summary(summary: SessionSummary, taus: Sequence[int]) -> ListedSession | None:
    """A session as it is listed, where its summary says enough."""
    if summary.utility is None and summary.evaluated:
        return None
    if taus and summary.rounds >= min(taus) and summary.state != FORGOTTEN:
        return None
    missing = ERASED if summary.state == FORGOTTEN else NOT_EVALUATED
    known = None if summary.utility is not None else missing
    return ListedSession(summary, known, {} if taus else None)


async def list_sessions(
    log: EventLog,
    query: SessionQuery,
    order: SessionOrder | None = None,
    *,
    limit: int | None = None,
    reading: Callable[[int], object] | None = None,
) -> AsyncIterator[ListedSession]:
    """The sessions that meet a query, in an order.

    Summaries decide as far as they can. Records are read of the sessions that are left, for a
    condition on ``tau``, and for the utility of those that were to be evaluated and have no score.

    Args:
        log: the log.
        query: what the sessions have to meet.
        order: None for the order in which they began.
        limit: give at most this many; None for all.
        reading: called with the number of sessions looked at so far, for a progress bar.

    Raises:
        InvalidInput: the query or the order names a label that no session of the log has.
        LogError: the log cannot be read.
    """
    await check_labels(log, query, order)
    candidates: AsyncIterator[SessionSummary] = (
        summary async for summary in log.sessions() if query.admits(summary)
    )
    late = order is not None and order.key == "utility"
    if order is not None and not late:
        candidates = _each(order.sorted([summary async for summary in candidates]))
    found = _measured(log, query, candidates, reading)
    if order is not None and late:
        lines = {line.summary.session: line async for line in found}
        ordered = order.sorted([line.summary for line in lines.values()])
        found = _each([lines[summary.session] for summary in ordered])
    count = 0
    async for line in found:
        yield line
        count += 1
        if count == limit:
            return


async def log_labels(log: EventLog, wanted: frozenset[str]) -> set[str]:
    """The labels of a log's sessions; reads no further than until all wanted ones were seen.

    An empty log has any label, since there is nothing to compare with.

    Raises:
        LogError: the log cannot be read.
    """
    known: set[str] = set()
    empty = True
    async for summary in log.sessions():
        empty = False
        known.update(summary.group)
        if wanted <= known:
            break
    return set(wanted) if empty else known


async def unmet(log: EventLog, query: SessionQuery) -> str:
    """A hint at the labels of a query whose values no session of a log has; empty for none.

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

    Raises:
        InvalidInput: none has one of them.
        LogError: the log cannot be read.
    """
    wanted = query.labels | (order.labels if order is not None else frozenset())
    if not wanted:
        return
    known = await log_labels(log, wanted)
    query.check_labels(known)
    if order is not None:
        order.check_label(known)


async def _measured(
    log: EventLog,
    query: SessionQuery,
    candidates: AsyncIterator[SessionSummary],
    reading: Callable[[int], object] | None,
) -> AsyncIterator[ListedSession]:
    taus = query.taus
    looked = 0
    async for summary in candidates:
        line = _by_summary(summary, taus) or await listed_session(log, summary, taus)
        looked += 1
        if reading is not None:
            reading(looked)
        if query.admits_measures(line.summary.utility, line.stops or {}):
            yield line


async def _each(items: Iterable[_T]) -> AsyncIterator[_T]:
    for item in items:
        yield item
