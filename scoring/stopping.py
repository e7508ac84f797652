"""Stops at a tolerance: an advice as the log holds it, and the rule by which the engine enforces one."""

from __future__ import annotations

from typing import Final, final

import msgspec

from ..engine.events import ScorerRef, StopAdvised
from ..engine.records import Record
from ..engine.rounds import PRODUCTIVE
from .trajectory.fold import TrajectoryFold
from .trajectory.options import Options
from .trajectory.updates import StopAdvice

__all__ = ("STOPPER", "ToleranceStop", "stop_advised")

STOPPER: Final = ScorerRef(name="tolerance", version="1", config="")
"""The scorer that the log names as the advisor."""


def stop_advised(advice: StopAdvice, *, enforced: bool = False) -> StopAdvised:
    """An advice to stop as the log holds it."""
    return StopAdvised(
        round=advice.round,
        tau=advice.tau,
        rule=f"{advice.tau} rounds in a row rated below {PRODUCTIVE}",
        enforced=enforced,
        scorer=STOPPER,
    )


@final
class ToleranceStop:
    """Advises to stop a session once a tolerance is used up; a rule for the engine to enforce.

    It begins again with each opening: the session may be run again, or as a fork with another id.

    Args:
        session: session id.
        tau: the tolerance τ.
        options: how to score; its own tolerances do not matter.

    Raises:
        InvalidInput: the tolerance is below 1.
    """

    def __init__(self, session: str, tau: int, options: Options | None = None) -> None:
        self._options = msgspec.structs.replace(options or Options(), taus=(tau,))
        self._fold = TrajectoryFold(session, self._options)

    def feed(self, record: Record) -> StopAdvised | None:
        """Takes the next record, in order of position; advises the stop the moment it is due."""
        if record.kind == "SessionOpened":
            self._fold = TrajectoryFold(record.session, self._options)
        for update in self._fold.feed(record):
            if isinstance(update, StopAdvice):
                return stop_advised(update, enforced=True)
        return None
