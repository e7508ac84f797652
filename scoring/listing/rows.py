"""A session's row in the list: how it stood at some moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

import msgspec

from ...engine.errors import CodecError
from ...engine.log.contract import EventLog
from ...engine.log.summary import FORGOTTEN
from ..trajectory.fold import TrajectoryFold
from ..trajectory.options import Options
from ..trajectory.points import Point

__all__ = ("RowFold", "SessionRow", "row_at", "utilities")


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session's line in the list.

    Attributes:
        session: session id.
        state: ``open``, the reason why it was closed, or ``forgotten``.
        rounds: how many have begun.
        utility: what stands after the last round; None where nothing was scored.
        utilities: U_k by round; None before the first score.
        efforts: of each round by itself; None where the measure does not apply.
        stops: by tolerance τ, the round after which it is used up.
        since: position of the last record that it rests on.
        until: position of the first one that it leaves out; None where it rests on all.
        problem: why it says no more.
    """

    session: str
    state: str = "open"
    rounds: int = 0
    utility: float | None = None
    utilities: tuple[float | None, ...] = ()
    efforts: tuple[float | None, ...] = ()
    stops: Mapping[int, int] = {}
    since: int = 0
    until: int | None = None
    problem: str = ""

    def holds_at(self, position: int) -> bool:
        """Whether this is how the session stood at a position of the log."""
        return self.since <= position and (self.until is None or position < self.until)


@final
class RowFold:
    """Folds a session into its row, and goes on where it was when the session grows.

    Args:
        session: session id.
        options: how to score.
        measure: of the effort, see ``scoring.trajectory.effort.MEASURES``.
    """

    def __init__(self, session: str, options: Options, measure: str) -> None:
        self._fold = TrajectoryFold(session, options, emit=False)
        self._measure = measure
        self._position = 0
        self._problem = ""
        self._forgotten = False

    async def read(self, log: EventLog, upto: int | None = None) -> SessionRow:
        """The row as of now, or as of a position, from what the log holds beyond the last one.

        Raises:
            LogError: the log cannot be read.
        """
        until: int | None = None
        records = log.read_all(session=self._fold.session, after_position=self._position)
        async for record in records:
            if upto is not None and record.position > upto:
                until = record.position
                break
            self._position = record.position
            self._forgotten = record.body is None
            try:
                self._fold.feed(record)
            except CodecError as error:
                self._problem = str(error)
        return self._row(until)

    def _row(self, until: int | None) -> SessionRow:
        trajectory = self._fold.trajectory()
        points = trajectory.points
        values = utilities(points)
        return SessionRow(
            session=self._fold.session,
            state=FORGOTTEN if self._forgotten else trajectory.state,
            rounds=len(points),
            utility=values[-1] if values else None,
            utilities=values,
            efforts=_efforts(points, self._measure),
            stops=dict(self._fold.stops),
            since=self._position,
            until=until,
            problem=self._problem,
        )


async def row_at(
    log: EventLog, session: str, position: int, options: Options, measure: str
) -> SessionRow:
    """The row of a session as the log was at a position.

    Raises:
        LogError: the log cannot be read.
    """
    return await RowFold(session, options, measure).read(log, position)


def utilities(points: Sequence[Point]) -> tuple[float | None, ...]:
    """U_k by round; None before the first score."""
    found: list[float | None] = []
    scored = False
    for point in points:
        scored = scored or point.value is not None
        found.append(point.utility if scored else None)
    return tuple(found)


def _efforts(points: tuple[Point, ...], measure: str) -> tuple[float | None, ...]:
    found: list[float | None] = []
    before = 0.0
    for point in points:
        value = point.effort.get(measure)
        found.append(None if value is None else max(value - before, 0.0))
        before = before if value is None else value
    return tuple(found)
