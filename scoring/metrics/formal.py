"""The ``formal`` convention: the paper's formulas (section 3) read to the letter.

With N sessions i, K_i the last round of session i, k'_i its first round with an update (K_i where
there is none), and U_k^(i) the utility that stands after round k (U_0 = 0, carried forward):

    overall   U    = 1/N Σ_i max_k U_k^(i)
    first          = 1/N Σ_i U_k'_i^(i)
    final          = 1/N Σ_i U_K_i^(i)
    gain      G    = 1/N Σ_i (max_k U_k^(i) - U_k'_i^(i))            relative: G / first
    drop      D@τ  = 1/N Σ_i (U_k_i,τ^(i) - U_K_i^(i))               relative: D@τ / final

Choices that the formulas leave open:

- A round with an update is one in which the agent submitted an output that is not blank and
  differs from the one before, whether or not its score is known. A stale point keeps the utility
  before it.
- A round is unsatisfactory where its rating is below 3. A missing rating counts as satisfactory,
  and so ends a run of unsatisfactory ones.
- k_τ is the round at which τ unsatisfactory rounds in a row are reached, and U_k_τ what stands
  when the human leaves *after* that round; where τ is never reached, k_τ = K, so the session
  contributes 0. Stopping in round 1 counts as stopping in any other.
- A rating still pending holds the tolerance up: later rounds do not count until it is there.
- A session in which the user never spoke has one round, worth its final performance.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..trajectory.points import Point, Trajectory
from ..trajectory.tolerance import PENDING, Rating, stop_rounds
from .values import SessionValues, utilities

__all__ = ("formal_ratings", "formal_values")


def formal_ratings(points: Sequence[Point]) -> list[Rating]:
    """The ratings of a session's rounds, as tolerance counts them."""
    return [PENDING if point.pending else point.rating for point in points]


def formal_values(trajectory: Trajectory, taus: Sequence[int]) -> SessionValues | None:
    """One session's numbers under ``formal``; None for one without any round or performance.

    Args:
        trajectory: the session.
        taus: the tolerances, ascending.
    """
    values = utilities(trajectory)
    if not values:
        return None
    points = trajectory.points
    last = len(values)
    update = next((k for k, point in enumerate(points, start=1) if point.updated), last)
    stops = list(stop_rounds(formal_ratings(points), taus).values())
    return SessionValues(
        utilities=values,
        first=values[update - 1],
        final=values[-1],
        overall=max(values),
        reference=values[-1],
        stops=tuple([values[(stop or last) - 1] for stop in stops]),
        stopped=tuple([stop is not None for stop in stops]),
    )
