"""Distances of two distributions: Wasserstein's of order 1, and that of Kolmogorov and Smirnov.

    W1 = ∫ |F(x) - G(x)| dx        in the unit of x: how far the mass has to be moved
    KS = max_x |F(x) - G(x)|       0 to 1

F and G are the empirical distribution functions. Of lengths of sessions, which may be cut off, they are
1 - S, with S the product-limit estimate of Kaplan and Meier, up to the last round that both have. A test holds
the former to scipy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..metrics.survival import survival_curve

__all__ = ("Distances", "distances", "survival_distances")


class Distances(NamedTuple):
    """How far two distributions are apart.

    Attributes:
        first: mean of the first.
        second: mean of the second.
        wasserstein: W1.
        ks: the largest difference of the distribution functions.
    """

    first: float
    second: float
    wasserstein: float
    ks: float


def distances(first: Mapping[float, int], second: Mapping[float, int]) -> Distances | None:
    """The distances of two histograms, of counts by value; None if either is empty."""
    m, n = sum(first.values()), sum(second.values())
    if not m or not n:
        return None
    below_first = below_second = 0.0
    moved = largest = 0.0
    before: float | None = None
    for value in sorted(first.keys() | second.keys()):
        if before is not None:
            moved += abs(below_first - below_second) * (value - before)
        below_first += first.get(value, 0) / m
        below_second += second.get(value, 0) / n
        largest = max(largest, abs(below_first - below_second))
        before = value
    return Distances(
        sum(value * count for value, count in first.items()) / m,
        sum(value * count for value, count in second.items()) / n,
        moved,
        largest,
    )


def survival_distances(
    first: Sequence[tuple[int, bool]], second: Sequence[tuple[int, bool]]
) -> Distances | None:
    """The distances of two survival functions by round; None if either lacks sessions with rounds.

    Args:
        first: the last round of each session, and whether the human left there.
        second: likewise.

    Returns:
        The means are restricted to the rounds that both have: Σ_k S(k), with S(0) = 1.
    """
    one = [1.0, *(point.survival for point in survival_curve(first))]
    other = [1.0, *(point.survival for point in survival_curve(second))]
    shared = min(len(one), len(other))
    if shared == 1:
        return None
    gaps = [abs(a - b) for a, b in zip(one[:shared], other[:shared], strict=True)]
    return Distances(sum(one[:shared]), sum(other[:shared]), sum(gaps), max(gaps))
