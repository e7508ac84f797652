"""The scorer of travel plans for recorded sessions, as ``duolog.scorers`` offers it."""

from __future__ import annotations

from ..kit.scorer import TaskScorer
from .task import travel_task

__all__ = ("travel_scorer",)


def travel_scorer() -> TaskScorer:
    """Scores the plans of travel sessions that Duolog ran."""
    return TaskScorer(
        travel_task(),
        "duolog travel evaluate judges plans beside TravelPlanner's own data, and duolog import takes "
        "the results of a published evaluation",
    )
