"""Patience: the number of unproductive rounds in a row after which a human gives up.

The human's own ratings count. A judge's ratings belong to the tolerance, which ``--stop-at``
enforces. Patience is a setting of the run, not a trait of a simulated user, so that the same users
can be run with it and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from ..events import ACTS, ProgressRated
from ..records import Draft, Record
from ..rounds import is_unproductive
from ..text import quantity
from .state import TraceState

__all__ = ("Patience",)


@final
class Patience:
    """Follows the humans' own ratings, and decides when one gives up instead of acting again.

    A round rated 1 or 2 is unproductive. A round that the human did not rate ends a row, like a round
    rated 3 or more. If a round has several ratings, the latest counts.

    Args:
        limit: unproductive rounds in a row after which a human gives up, at least 1; None if they
            never give up.
    """

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._ratings: dict[tuple[str, int], int] = {}

    def feed(self, record: Record) -> None:
        """Takes the next record of the trace."""
        if self._limit is not None and record.kind == "ProgressRated" and record.role == "human":
            self._rate(self._ratings, record.actor, record.event)

    def leaver(self, drafts: Sequence[Draft], state: TraceState) -> tuple[int, str] | None:
        """The human that gives up instead of acting.

        Args:
            drafts: an actor's next events.
            state: the trace before them.

        Returns:
            How many of the drafts are still recorded (those before the act), and the human's name;
            None if no human gives up.
        """
        if self._limit is None:
            return None
        ratings = self._ratings
        for index, draft in enumerate(drafts):
            if draft.role != "human":
                continue
            if isinstance(draft.event, ProgressRated):
                ratings = {**ratings}
                self._rate(ratings, draft.actor, draft.event)
            elif type(draft.event).__name__ in ACTS and self._is_used_up(
                ratings, draft.actor, state
            ):
                return index, draft.actor
        return None

    @property
    def detail(self) -> str:
        """The detail recorded with a close."""
        return f"patience: {quantity(self._limit or 0, 'unproductive round')}"

    @staticmethod
    def _rate(ratings: dict[tuple[str, int], int], actor: str, event: object) -> None:
        if isinstance(event, ProgressRated) and event.rounds == "handoff":
            if event.rating is None:
                ratings.pop((actor, event.round), None)
            else:
                ratings[actor, event.round] = event.rating

    def _is_used_up(
        self, ratings: dict[tuple[str, int], int], actor: str, state: TraceState
    ) -> bool:
        """Whether the latest rounds in which an agent acted were all unproductive."""
        rounds = state.rounds
        last = rounds.number if rounds.opens("MessageSent", "human") else rounds.number - 1
        latest = range(last, last - (self._limit or 0), -1)
        return all(is_unproductive(ratings.get((actor, k))) for k in latest)
