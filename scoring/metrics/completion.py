"""How sessions ended: shares of each outcome, survival by round, and the hazard of being left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ..trajectory.points import Trajectory, counted
from ..trajectory.tolerance import SATISFACTORY
from .results import SessionOutcomes, Share
from .survival import LEFT, hazard_by_stall, survival_curve, wilson

__all__ = ("OUTCOMES", "completion_of", "outcome_shares")

OUTCOMES = (
    "finished",
    "abandoned",
    "tolerance",
    "ended",
    "limit",
    "stalled",
    "failed",
    "cancelled",
    "open",
)
"""The outcomes of a session: its close reason, or that it is open; in the order of a report."""


def completion_of(members: Sequence[Trajectory]) -> SessionOutcomes:
    """The outcomes of a group's sessions.

    Shares are of all sessions, with Wilson intervals. Survival and hazard are of sessions with a
    round that counts; who is still at work, and whatever ended otherwise, is censored.
    """
    total = Counter(item.state for item in members)
    lengths = [(len(counted(item)), item.state in LEFT) for item in members]
    return SessionOutcomes(
        outcomes=outcome_shares(total),
        survival=survival_curve(lengths),
        hazard=hazard_by_stall(members, least=SATISFACTORY),
    )


def outcome_shares(total: Mapping[str, int]) -> Mapping[str, Share]:
    """The share of each outcome, from how often each occurs."""
    sessions = sum(total.values())
    return {name: _share(total, name, sessions) for name in _names(total)}


def _names(total: Mapping[str, int]) -> list[str]:
    """Outcomes that occur, and after those that are known whatever else a file of others names."""
    return [name for name in OUTCOMES if total.get(name)] + sorted(total.keys() - {*OUTCOMES})


def _share(total: Mapping[str, int], name: str, sessions: int) -> Share:
    low, high = wilson(total[name], sessions)
    return Share(count=total[name], share=total[name] / sessions, low=low, high=high)
