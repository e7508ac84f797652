"""How far judges agree who rated the same rounds: Cohen's weighted κ and Krippendorff's α.

    κ_w = 1 - Σ w_ij o_ij / Σ w_ij e_ij        w_ij = (i - j)²   (Cohen 1968, quadratic weights)
    α   = 1 - D_o / D_e                        with the distance (i - j)²   (Krippendorff 2011)

κ compares two judges on the rounds that both rated. α takes any number of judges, and rounds that
some of them left out; with the squared distance it treats the scale of 1 to 5 as an interval scale.
Intervals are seeded bootstraps over sessions, since rounds of one session are not independent.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

import msgspec

from ..metrics.bootstrap import LEVEL
from ..metrics.numbers import quantile
from ..metrics.results import Estimate

__all__ = ("Agreement", "Pair", "Rounds", "agreement", "alpha", "weighted_kappa")

SCALE = (1, 2, 3, 4, 5)
"""Likert ratings."""

Ratings: TypeAlias = Mapping[str, int]
"""The ratings of one round, by judge; who gave none is absent."""

Rounds: TypeAlias = Mapping[str, Sequence[Ratings]]
"""The rated rounds of each session, by its id."""

_LEAST_DEFINED = 0.95


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two judges beside each other.

    Attributes:
        first: a judge.
        second: the other.
        rounds: rounds that both rated.
        kappa: weighted κ; its value is None where it is undefined.
        equal: share of rounds with the same rating; None where there are no rounds.
        confusion: how often the first gave the row's rating and the second the column's, 1 to 5.
    """

    first: str
    second: str
    rounds: int
    kappa: Estimate
    equal: float | None
    confusion: tuple[tuple[int, ...], ...]


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Agreement of all judges of a set of sessions.

    Attributes:
        judges: their names, in order.
        rounds: rounds that at least two judges rated.
        sessions: sessions with such a round.
        alpha: Krippendorff's α over all judges; its value is None where it is undefined.
        pairs: each two judges.
    """

    judges: tuple[str, ...]
    rounds: int
    sessions: int
    alpha: Estimate
    pairs: tuple[Pair, ...]


def weighted_kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Cohen's κ with quadratic weights of two judges' ratings of the same rounds.

    None where it is undefined: without rounds, and where both give the same rating throughout.
    """
    n = len(pairs)
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    observed = sum((a - b) ** 2 for a, b in pairs)
    expected = sum(
        (a - b) ** 2 * count * other for a, count in first.items() for b, other in second.items()
    )
    return 1 - observed * n / expected if expected else None


def alpha(rounds: Sequence[Sequence[int]]) -> float | None:
    """Krippendorff's α for interval data.

    Args:
        rounds: the ratings of each round, whoever gave them; rounds with fewer than two say
            nothing.

    Returns:
        None where it is undefined: without two ratings of a round, and where all ratings are equal.
    """
    paired = [ratings for ratings in rounds if len(ratings) > 1]
    values = Counter(rating for ratings in paired for rating in ratings)
    n = values.total()
    observed = sum(
        2 * sum((a - b) ** 2 for a, b in combinations(ratings, 2)) / (len(ratings) - 1)
        for ratings in paired
    )
    expected = sum(
        2 * (a - b) ** 2 * values[a] * values[b] for a, b in combinations(sorted(values), 2)
    )
    return 1 - observed * (n - 1) / expected if expected else None


def agreement(rounds: Rounds, *, resamples: int = 1000, seed: int = 0) -> Agreement:
    """The agreement of all judges who rated the same rounds.

    Args:
        rounds: the ratings of each session's rounds, by judge.
        resamples: bootstrap resamples; 0 for no intervals.
        seed: seeds the resampling.
    """
    sessions = {
        name: [ratings for ratings in found if len(ratings) > 1] for name, found in rounds.items()
    }
    sessions = {name: found for name, found in sorted(sessions.items()) if found}
    judges = sorted({judge for found in sessions.values() for each in found for judge in each})

    def all_values(chosen: Sequence[str]) -> float | None:
        return alpha([list(each.values()) for name in chosen for each in sessions[name]])

    return Agreement(
        judges=tuple(judges),
        rounds=sum(map(len, sessions.values())),
        sessions=len(sessions),
        alpha=_estimate(
            all_values, list(sessions), resamples, f"{seed}/alpha", "no round has two ratings"
        ),
        pairs=tuple(
            [
                _pair(sessions, first, second, resamples, seed)
                for first, second in combinations(judges, 2)
            ]
        ),
    )


def _pair(sessions: Rounds, first: str, second: str, resamples: int, seed: int) -> Pair:
    shared = {
        name: [(each[first], each[second]) for each in found if first in each and second in each]
        for name, found in sessions.items()
    }
    shared = {name: found for name, found in shared.items() if found}
    flat = [pair for found in shared.values() for pair in found]
    table = Counter(flat)

    def kappa(chosen: Sequence[str]) -> float | None:
        return weighted_kappa([pair for name in chosen for pair in shared[name]])

    return Pair(
        first=first,
        second=second,
        rounds=len(flat),
        kappa=_estimate(
            kappa,
            list(shared),
            resamples,
            f"{seed}/{first}/{second}",
            "no round was rated by both",
        ),
        equal=sum(a == b for a, b in flat) / len(flat) if flat else None,
        confusion=tuple([tuple([table[a, b] for b in SCALE]) for a in SCALE]),
    )


def _estimate(
    statistic: Callable[[Sequence[str]], float | None],
    names: Sequence[str],
    resamples: int,
    seed: str,
    absent: str,
) -> Estimate:
    """A statistic of sessions, with its percentile bootstrap interval over them."""
    if not names:
        return Estimate(reason=absent)
    value = statistic(names)
    if value is None:
        return Estimate(sessions=len(names), reason="all ratings are equal, so chance cannot err")
    chance = random.Random(seed)
    drawn = [statistic(chance.choices(names, k=len(names))) for _ in range(resamples)]
    found = sorted(each for each in drawn if each is not None)
    if len(names) < 2 or not found or len(found) < _LEAST_DEFINED * resamples:
        return Estimate(value=value, sessions=len(names))
    low, high = (quantile(found, q) for q in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Estimate(value=value, low=low, high=high, sessions=len(names))
