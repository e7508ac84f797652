"""The ``paper`` convention: as the published analysis of the paper's experiments computes.

It differs from the formulas of section 3 (see ``formal``) in these choices:

- k' is the first *evaluated* round, round 1 where there is none.
- The drop is taken on trajectories cut to ``max_step`` rounds: the greatest of the sorted lengths
  [int(0.05 n) : int(0.95 n)] of the group's n sessions in which the user spoke. Utility and gain
  are taken on whole trajectories.
- A human who stops at the τ-th unsatisfactory round in a row is left with the row *before* that
  round. A session of which no row is left (τ = 1, first round unsatisfactory) is absent from the
  mean at that τ, and yet present in the mean of those who never stop:

      D@τ = mean_τ - mean_∞                           relative: D@τ / mean_∞

- "Never" is a tolerance of 100 rounds.
- A session whose every score failed is worth 0 throughout.
- A missing rating is 5, one still pending likewise. A session in which the user never spoke, or
  took no turn after the request, has one round without a rating, worth its final performance.
- Where fewer than two sessions have user interaction, the slice of lengths is empty, the
  analysis stops with an error, and the group has no numbers here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..trajectory.points import Trajectory
from ..trajectory.tolerance import stop_rounds
from .values import SessionValues, utilities

__all__ = ("NEVER", "TOO_FEW", "cut_length", "is_silent", "middle_length", "paper_values")

NEVER = 100
"""The tolerance, in rounds, that stands for a human who never stops."""

TOO_FEW = "fewer than two sessions with user interaction, so no length to cut trajectories to"


def is_silent(trajectory: Trajectory) -> bool:
    """Whether the published analysis finds no rounds in a session."""
    return trajectory.silent or not trajectory.points


def cut_length(trajectories: Iterable[Trajectory]) -> int | None:
    """The length max_step to which a group's trajectories are cut; None where it has none."""
    return middle_length(sorted(len(item.points) for item in trajectories if not is_silent(item)))


def middle_length(lengths: Sequence[int]) -> int | None:
    """The greatest of the middle nine tenths of lengths in ascending order."""
    n = len(lengths)
    return max(lengths[int(n * 0.05) : int(n * 0.95)], default=None)


def paper_values(
    trajectory: Trajectory, taus: Sequence[int], max_step: int
) -> SessionValues | None:
    """One session's numbers under ``paper``; None for one without any round or performance.

    Args:
        trajectory: the session.
        taus: the tolerances, ascending.
        max_step: the length to which trajectories of its group are cut.
    """
    values = utilities(trajectory)
    if not values:
        return None
    points = () if is_silent(trajectory) else trajectory.points
    evaluated = next((k for k, point in enumerate(points, start=1) if point.value is not None), 1)
    cut = values[:max_step]
    stops = stop_rounds([point.rating for point in points[:max_step]], {*taus, NEVER})
    rows = {tau: len(cut) if stop is None else stop - 1 for tau, stop in stops.items()}
    return SessionValues(
        utilities=values,
        first=values[evaluated - 1],
        final=values[-1],
        overall=max(values),
        reference=cut[rows[NEVER] - 1],
        stops=tuple([cut[rows[tau] - 1] if rows[tau] else None for tau in taus]),
        stopped=tuple([stops[tau] is not None for tau in taus]),
    )
