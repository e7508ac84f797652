"""Trajectories of the sessions that a list shows, folded once and kept while nothing is added."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, NamedTuple, final

from anyio.lowlevel import checkpoint

from ....engine.errors import CodecError
from ....engine.log.contract import SessionSummary
from ....engine.log.session_states import SessionStates
from ....scoring.trajectory.fold import TrajectoryFold
from ....scoring.trajectory.points import Trajectory
from ..bench import Bench

__all__ = ("MOST", "Reading", "Trajectories")

MOST: Final = 2000
"""Sessions in a report at most: the first ones of the list."""

_STEP: Final = 25  # sessions between two messages
_RECORDS: Final = 64  # records between two turns of everybody else


class Reading(NamedTuple):
    """How far sessions have been read, and their trajectories once all have been."""

    read: int
    total: int
    trajectories: list[Trajectory] | None = None


@final
class Trajectories:
    """Folds sessions into their trajectories.

    Args:
        bench: what the parts of the workbench share.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._held: SessionStates[tuple[int, Trajectory]] = SessionStates(MOST)

    async def of(self, sessions: list[SessionSummary]) -> AsyncIterator[Reading]:
        """The trajectories of sessions; says how far it has come.

        Raises:
            LogError: the log cannot be read.
        """
        found: list[Trajectory] = []
        for number, summary in enumerate(sessions):
            if number % _STEP == 0:
                yield Reading(number, len(sessions))
            trajectory = await self._one(summary)
            if trajectory is not None:
                found.append(trajectory)
        yield Reading(len(sessions), len(sessions), found)

    async def _one(self, summary: SessionSummary) -> Trajectory | None:
        held = self._held.get(summary.session)
        if held is None or held[0] != summary.position:
            fold = TrajectoryFold(summary.session, self._bench.options, emit=False)
            count = 0
            async for record in self._bench.log.read_all(session=summary.session):
                count += 1
                if count % _RECORDS == 0:
                    await checkpoint()
                try:
                    fold.feed(record)
                except CodecError:
                    return None  # the page says how many
            held = (summary.position, fold.trajectory())
        self._held.keep(summary.session, held)
        return held[1]
