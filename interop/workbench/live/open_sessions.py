"""The open sessions of a log as they stand now, each folded on from where it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias, final

import anyio

from ....engine.errors import CodecError
from ....engine.events import ApprovalGiven
from ....engine.log.contract import EventLog, SessionSummary
from ....engine.log.session_states import SessionStates
from ....scoring.trajectory.fold import TrajectoryFold
from ....scoring.trajectory.options import Options
from ....scoring.trajectory.points import Point

__all__ = ("OpenSession", "OpenSessions", "Urgency")

_KEPT: Final = 1024
_GOOD: Final = 3  # the least rating that counts as progress

Urgency: TypeAlias = tuple[int, int, int]
"""What open sessions are sorted by, the greatest first: rounds in a row rated as without progress,
approvals that wait, and rounds since the utility last rose.
"""


class OpenSession(NamedTuple):
    """How an open session stands.

    Attributes:
        summary: of the session.
        points: its rounds.
        stall: rounds in a row, up to the last one rated, that were rated as without progress.
        flat: rounds since its utility last rose; 0 where it has none.
        approvals: how many approvals wait.
        stops: by tolerance τ that is used up, the round after which it was.
    """

    summary: SessionSummary
    points: tuple[Point, ...]
    stall: int
    flat: int
    approvals: int
    stops: Mapping[int, int]

    @property
    def urgency(self) -> Urgency:
        """How near its human is to giving up."""
        return (self.stall, self.approvals, self.flat)


@final
class OpenSessions:
    """Reads open sessions.

    Args:
        log: the log.
        options: how sessions are scored.
    """

    def __init__(self, log: EventLog, options: Options) -> None:
        self._log = log
        self._options = options
        self._held: SessionStates[_Fold] = SessionStates(_KEPT)

    async def of(self, summary: SessionSummary) -> OpenSession:
        """How a session stands now.

        Raises:
            LogError: the log cannot be read.
        """
        fold = self._held.get(summary.session) or _Fold(summary.session, self._options)
        self._held.keep(summary.session, fold)
        try:
            return await fold.read(self._log, summary)
        except BaseException:
            self._held.drop(summary.session)  # it may have taken only a part: it is folded anew
            raise


@final
class _Fold:
    def __init__(self, session: str, options: Options) -> None:
        self._session = session
        self._fold = TrajectoryFold(session, options, emit=False)
        self._position = 0
        self._asked: set[int] = set()
        self._lock = anyio.Lock()

    async def read(self, log: EventLog, summary: SessionSummary) -> OpenSession:
        async with self._lock:
            records = log.read_all(session=self._session, after_position=self._position)
            async for record in records:
                self._position = record.position
                try:
                    self._fold.feed(record)
                    if record.kind == "ApprovalAsked":
                        self._asked.add(record.version)
                    elif isinstance(record.event, ApprovalGiven):
                        self._asked.discard(record.event.asked)
                except CodecError:
                    continue  # its page says what is damaged
            points = self._fold.trajectory().points
            return OpenSession(
                summary=summary,
                points=points,
                stall=_stall(points),
                flat=_flat(points),
                approvals=len(self._asked),
                stops=dict(self._fold.stops),
            )


def _stall(points: tuple[Point, ...]) -> int:
    count = 0
    for point in points:
        if point.pending:
            continue
        count = count + 1 if point.rating is not None and point.rating < _GOOD else 0
    return count


def _flat(points: tuple[Point, ...]) -> int:
    best, since = 0.0, 0
    for point in points:
        utility = point.utility
        if utility is None:
            return 0
        since = 0 if utility > best else since + 1
        best = max(best, utility)
    return since
