"""One session in a list: its rounds, utility, effort and stops, folded from its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, final

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from ...engine.log.contract import Derived, EventLog, SessionSummary
from ...engine.log.ranked import Ranked, Rows
from ...engine.log.session_states import SessionStates
from ...engine.log.summary import FORGOTTEN
from ...engine.rounds import is_unproductive
from ..columns.kept import (
    COST,
    LATENCY,
    LOST,
    MISSING,
    ROUNDS,
    TOLERANCE,
    UTILITY,
    WHY_MISSING,
    counted_ratings,
    kind_of,
    pack,
    unpack,
)
from ..columns.rows import FOLD_VERSION, Folded, RoundRow, SessionFold, SessionRow
from ..trajectory.options import Options
from ..trajectory.points import NOT_EVALUATED
from ..trajectory.tolerance import stop_rounds

__all__ = ("AT_ONCE", "ListedSession", "Measured", "SessionLine", "SessionLines", "listed")

AT_ONCE: Final = 500
"""How many sessions ``prefetch`` is to be given at once."""

_KEPT: Final = 512
_READ: Final = 2000  # rows of the log that are held
_BATCH: Final = 100  # rows that are written to the log at once


@final
class SessionLine:
    """The measurements of a session, as of some moment.

    Args:
        folded: its rows, or what a log has kept of them.
        position: the position of the last record that they rest on.
        until: position of the first record that they leave out; None if they rest on all.
    """

    __slots__ = ("_folded", "_kept", "position", "until")

    def __init__(
        self, folded: Folded | Derived, position: int = 0, until: int | None = None
    ) -> None:
        self.position = position
        self.until = until
        self._kept = folded if isinstance(folded, Derived) else None
        self._folded = folded if isinstance(folded, Folded) else None

    @property
    def folded(self) -> Folded:
        """The rows; they are decoded when they are first asked for."""
        if self._folded is None:
            assert self._kept is not None
            self._folded = unpack(self._kept)
        return self._folded

    @property
    def row(self) -> SessionRow:
        """Its row of the session table."""
        return self.folded.session

    @property
    def points(self) -> Sequence[RoundRow]:
        """Its rounds."""
        return self.folded.rounds

    @property
    def rounds(self) -> int:
        """How many rounds have begun."""
        return len(self.points) if self._kept is None else int(self._kept.numbers[ROUNDS] or 0)

    @property
    def utility(self) -> float | None:
        """The utility after the last round; None if it is missing."""
        return self.folded.utility if self._kept is None else self._kept.numbers[UTILITY]

    @property
    def missing(self) -> str | None:
        """Why its utility is missing; None if it has one."""
        code = None if self._kept is None else self._kept.numbers[WHY_MISSING]
        return self.folded.utility_missing if code is None else MISSING[int(code)]

    @property
    def evaluated(self) -> bool:
        """Whether its utility was measured, or was to be."""
        code = None if self._kept is None else self._kept.numbers[WHY_MISSING]
        return self.row.evaluated if code is None else MISSING[int(code)] != NOT_EVALUATED

    @property
    def lost(self) -> int:
        """How many of its events could not be recorded."""
        return self.row.lost if self._kept is None else int(self._kept.numbers[LOST] or 0)

    @property
    def cost(self) -> float | None:
        """US dollars for the agent's model calls; None if no price is known."""
        return self.row.cost if self._kept is None else self._kept.numbers[COST]

    @property
    def latency(self) -> float | None:
        """Median seconds until the agent answers; None if unknown."""
        return self.row.latency if self._kept is None else self._kept.numbers[LATENCY]

    @property
    def utilities(self) -> tuple[float | None, ...]:
        """U_k by round; None before the first score."""
        first = next((n for n, one in enumerate(self.points) if one.value is not None), self.rounds)
        return (None,) * first + tuple(point.utility for point in self.points[first:])

    def efforts(self, measure: str) -> tuple[float | None, ...]:
        """The effort of each round by itself; None if the measure does not apply.

        Args:
            measure: see ``scoring.trajectory.effort.MEASURES``.
        """
        found: list[float | None] = []
        before = 0.0
        for point in self.points:
            value = point.effort.get(measure)
            found.append(None if value is None else max(value - before, 0.0))
            before = before if value is None else value
        return tuple(found)

    def stops(self, taus: Sequence[int] = Options().taus) -> Mapping[int, int]:
        """By tolerance τ that is used up, the round after which it is."""
        found = stop_rounds(counted_ratings(self.points), taus)
        return {tau: number for tau, number in found.items() if number is not None}

    @property
    def stall(self) -> int:
        """Unproductive rounds in a row, up to the last round that was rated."""
        count = found = 0
        for point in self.points:
            if not point.pending:
                count = count + 1 if is_unproductive(point.rating) else 0
            if point.rating is not None:
                found = count  # an open round without a rating resets nothing
        return found

    @property
    def flat(self) -> int:
        """Rounds since the utility last rose; 0 without a utility."""
        best, since = 0.0, 0
        for point in self.points:
            if point.utility is None:
                return 0
            since = 0 if point.utility > best else since + 1
            best = max(best, point.utility)
        return since

    def holds_at(self, position: int) -> bool:
        """Whether the session was like this at a position of the log."""
        return self.position <= position and (self.until is None or position < self.until)


class Measured(NamedTuple):
    """The numbers of a session that lists are ordered and filtered by, as the log keeps them.

    Attributes:
        position: the position of the last record that they rest on.
        numbers: see ``columns.kept``.
    """

    position: int
    numbers: tuple[float | None, ...]

    @property
    def rounds(self) -> int:
        """How many rounds have begun."""
        return int(self.numbers[ROUNDS] or 0)

    @property
    def utility(self) -> float | None:
        """The utility after the last round; None if it is missing."""
        return self.numbers[UTILITY]

    @property
    def cost(self) -> float | None:
        """US dollars for the agent's model calls; None if no price is known."""
        return self.numbers[COST]

    @property
    def latency(self) -> float | None:
        """Median seconds until the agent answers; None if unknown."""
        return self.numbers[LATENCY]

    @property
    def tolerance(self) -> int:
        """The greatest tolerance that is used up; 0 for none."""
        return int(self.numbers[TOLERANCE] or 0)


class ListedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session as lists show it, and as programs read it.

    Attributes:
        session: session id.
        task: from ``SessionOpened``; empty if the session was never opened.
        instance: from ``SessionOpened``.
        group: its labels, e.g. agent, user, model.
        state: ``open``, the reason why it was closed, or ``forgotten``.
        events: number of records, of all streams.
        version: version of the trace.
        rounds: number of rounds so far.
        utility: the utility after the last round; None if it is missing.
        scorer: whose utility it is, ``name@version``; None if there is none.
        evaluated: utility was measured, or a scorer was configured to measure it.
        opened: time of the first trace record, by the session's clock.
        last: time of the last trace record.
        position: position of its last record.
        utility_missing: why its utility is missing; None if it has one.
        stops: by tolerance τ that is used up, the round after which it is; unset if no tolerance was
            asked for.
        lost: events that could not be recorded, so that rounds and effort are incomplete.
        cost: US dollars for the agent's model calls with a known price; None if no call has one.
        unpriced: model calls of the agent without a known price, which ``cost`` leaves out.
        latency: median seconds until the agent answers; None if unknown.
        tags: the tags by reviewers.
        reviewers: who has reviewed it.
        rated: the mean rating by reviewers; None without a rating.
        snippet: the text around the first match of a search in its contents; unset without a search.
    """

    session: str
    task: str
    instance: str
    group: dict[str, str]
    state: str
    events: int
    version: int
    rounds: int
    utility: float | None
    scorer: str | None
    evaluated: bool
    opened: float
    last: float
    position: int
    utility_missing: str | None
    stops: Mapping[int, int] | UnsetType = UNSET
    lost: int = 0
    cost: float | None = None
    unpriced: int = 0
    latency: float | None = None
    tags: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    rated: float | None = None
    snippet: str | UnsetType = UNSET


def listed(summary: SessionSummary, line: SessionLine, taus: Sequence[int] = ()) -> ListedSession:
    """A session as it is listed.

    Args:
        summary: the summary of the session.
        line: what was measured of it.
        taus: the tolerances to look at; empty for none.
    """
    return ListedSession(
        session=summary.session,
        task=summary.task,
        instance=summary.instance,
        group=summary.group,
        state=summary.state,
        events=summary.events,
        version=summary.version,
        rounds=line.rounds,
        utility=line.utility,
        scorer=None if line.utility is None else line.row.scorer,
        evaluated=line.evaluated,
        opened=summary.opened,
        last=summary.last,
        position=summary.position,
        utility_missing=line.missing,
        stops=line.stops(taus) if taus else UNSET,
        lost=line.lost,
        cost=line.cost,
        unpriced=line.row.unpriced,
        latency=line.latency,
        tags=line.row.tags,
        reviewers=line.row.reviewers,
        rated=line.row.review_rating,
    )


@final
class SessionLines:
    """Reads the lines of sessions.

    A line is taken from what the log keeps, if that is current. Otherwise the session's records are
    folded, and the fold is continued when the session grows.

    Args:
        log: the log.
        options: how sessions are scored.
        most: folds that are held in memory, the latest used ones.
    """

    def __init__(self, log: EventLog, options: Options | None = None, *, most: int = _KEPT) -> None:
        self._log = log
        self._options = options or Options()
        self._kind = kind_of(self._options)
        self._folds: SessionStates[_LineFold] = SessionStates(most)
        self._kept: SessionStates[SessionLine] = SessionStates(_READ)
        self._fresh: list[Derived] = []  # rows that the log does not keep yet

    @property
    def rows(self) -> Rows | None:
        """Which rows the log keeps for these lines; None if it keeps none."""
        return Rows(self._kind, FOLD_VERSION) if self._kind else None

    async def prefetch(self, summaries: Sequence[SessionSummary]) -> None:
        """Reads what the log keeps of sessions whose lines are asked for next.

        Args:
            summaries: the summaries of the sessions, some hundred at most.

        Raises:
            LogError: the log cannot be read.
        """
        await self.keep()
        wanted = [one.session for one in summaries if self.at_hand(one) is None]
        if self._kind and wanted:
            async for row in self._log.derived(self._kind, FOLD_VERSION, sessions=wanted):
                self._kept.keep(row.session, SessionLine(row, row.position))

    async def measured(self, summaries: Sequence[SessionSummary]) -> Mapping[str, Measured]:
        """The numbers that the log keeps, for sessions whose numbers are up to date.

        A list of many sessions takes a quarter of the time by this that it takes by ``prefetch``.

        Args:
            summaries: the summaries of the sessions, some hundred at most.

        Raises:
            LogError: the log cannot be read.
        """
        log = self._log
        rows = self.rows
        if rows is None or not isinstance(log, Ranked):
            return {}
        await self.keep()
        last = {one.session: one.position for one in summaries if self.at_hand(one) is None}
        found = await log.numbers(rows, [*last]) if last else ()
        return {
            one.session: Measured(one.position, one.numbers)
            for one in found
            if one.position >= last[one.session]
        }

    async def keep(self) -> None:
        """Makes the log keep what was folded and not kept yet.

        Raises:
            LogError: the log is closed.
        """
        fresh, self._fresh = self._fresh, []
        if fresh:
            await self._log.keep_derived(fresh)

    def at_hand(self, summary: SessionSummary) -> SessionLine | None:
        """The line of a session, no older than its summary; None if records have to be read for it."""
        fold = self._folds.get(summary.session)
        line = self._kept.get(summary.session) if fold is None else fold.line
        return line if line is not None and line.position >= summary.position else None

    async def line(self, summary: SessionSummary) -> SessionLine:
        """The line of a session, no older than its summary. However many ask, it is read once.

        Raises:
            LogError: the log cannot be read.
        """
        if (line := self.at_hand(summary)) is not None:
            return line
        session = summary.session
        fold = self._folds.get(session) or _LineFold(session, self._options)
        self._folds.keep(session, fold)
        async with fold.lock:
            known = fold.line.position
            if known < summary.position:
                await fold.read(self._log)
                # A session that grows while it is looked at is kept once it is closed.
                row = fold.line.row
                if self._kind and not row.unreadable and (not known or row.state != "open"):
                    self._fresh.append(pack(fold.line.folded, fold.line.position, self._kind))
        if len(self._fresh) >= _BATCH:
            await self.keep()
        return fold.line

    async def at(self, session: str, position: int) -> SessionLine:
        """The line of a session as it was at a position of the log.

        Raises:
            LogError: the log cannot be read.
        """
        fold = _LineFold(session, self._options)
        await fold.read(self._log, position)
        return fold.line


@final
class _LineFold:
    """Folds the records of a session; a read that was cut off is continued by the next one."""

    def __init__(self, session: str, options: Options) -> None:
        self.line = SessionLine(Folded(SessionRow(session=session)))
        self.lock = anyio.Lock()
        self._session = session
        self._fold = SessionFold(session, options)
        self._forgotten = False

    async def read(self, log: EventLog, upto: int | None = None) -> None:
        fold, until = self._fold, None
        async for record in log.read_all(session=self._session, after_position=fold.position):
            if upto is not None and record.position > upto:
                until = record.position
                break
            self._forgotten = record.body is None
            fold.feed(record)
        folded = fold.folded()
        if self._forgotten:
            row = msgspec.structs.replace(folded.session, state=FORGOTTEN, evaluated=False)
            folded = Folded(row, folded.rounds)
        self.line = SessionLine(folded, fold.position, until)
