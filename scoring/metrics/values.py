"""What one session contributes to the means, whatever the convention."""

from __future__ import annotations

from typing import NamedTuple

from ..trajectory.points import Trajectory

__all__ = ("SessionValues", "performance", "utilities")


class SessionValues(NamedTuple):
    """One session's numbers under some convention and some tolerances.

    Attributes:
        utilities: U_1..U_K, the whole trajectory.
        first: U_k', the utility at the first update.
        final: U_K.
        overall: the greatest U_k.
        reference: the utility with which those at a stop are compared.
        stops: per τ, the utility that stands where the human stops; None where the convention
            leaves nothing of the session.
        stopped: per τ, whether the tolerance was reached.
    """

    utilities: tuple[float, ...]
    first: float
    final: float
    overall: float
    reference: float
    stops: tuple[float | None, ...]
    stopped: tuple[bool, ...]


def utilities(trajectory: Trajectory) -> tuple[float, ...]:
    """U_1..U_K, carried forward, with U_0 = 0 (paper, section 4.1, second footnote).

    A session in which the user never spoke has one pseudo-round, worth its final performance;
    without even that it has no utility at all.
    """
    if trajectory.points:
        return tuple([point.utility for point in trajectory.points])
    return () if trajectory.final is None else (trajectory.final,)


def performance(trajectory: Trajectory) -> float | None:
    """The final performance: as stated, else the utility of the last round."""
    if trajectory.final is not None:
        return trajectory.final
    return trajectory.points[-1].utility if trajectory.points else None
