"""How far judges or reviewers agree who rated the same things: Cohen's weighted κ and Krippendorff's α.

    κ_w = 1 - Σ w_ij o_ij / Σ w_ij e_ij        w_ij = (i - j)²   (Cohen 1968, quadratic weights)
    α   = 1 - D_o / D_e                        with the distance (i - j)²   (Krippendorff 2011)

κ compares two judges on the rounds that both rated. α takes any number of judges, and rounds that
some of them left out; with the squared distance it treats the scale of 1 to 5 as an interval scale.
Intervals are seeded bootstraps over sessions, since rounds of one session are not independent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Final, TypeAlias

import msgspec
import numpy as np

from ..columns.table import Floats
from ..metrics.results import Estimate
from ..metrics.sample import draws, interval
from ..reviews import SCALE, Reviews, units_of

__all__ = (
    "PRESENCE",
    "SCALE",
    "Agreement",
    "Pair",
    "ReviewAgreement",
    "Rounds",
    "agreement",
    "alpha",
    "review_agreement",
    "weighted_kappa",
)

PRESENCE: Final = (1, 2)
"""A tag of a reviewer: absent, present. On two values weighted κ and α are the nominal ones."""

Ratings: TypeAlias = Mapping[str, int]
"""The ratings of one round, by judge; a judge that gave none is absent."""

Rounds: TypeAlias = Mapping[str, Sequence[Ratings]]
"""The rated rounds of each session, by its id."""


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of two judges.

    Attributes:
        first: a judge.
        second: the other.
        rounds: rounds that both rated.
        kappa: weighted κ; its value is None if it is undefined.
        equal: share of rounds with the same rating; None if there are no rounds.
        confusion: how often the first gave the row's rating and the second the column's, in the order
            of the scale.
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
        alpha: Krippendorff's α over all judges; its value is None if it is undefined.
        pairs: each two judges.
    """

    judges: tuple[str, ...]
    rounds: int
    sessions: int
    alpha: Estimate
    pairs: tuple[Pair, ...]


class ReviewAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Agreement of reviewers.

    Attributes:
        ratings: of their ratings; the unit is a session, a round or a record.
        tags: the agreement on each tag of whole sessions; the unit is a session.
    """

    ratings: Agreement
    tags: Mapping[str, Agreement]


def review_agreement(
    reviews: Mapping[str, Reviews], *, resamples: int = 1000, seed: int = 0
) -> ReviewAgreement:
    """The agreement of all reviewers who reviewed the same sessions.

    Args:
        reviews: the reviews of each session, by its id.
        resamples: bootstrap resamples; 0 for no intervals.
        seed: seeds the resampling.
    """
    ratings, tags = units_of(reviews)
    return ReviewAgreement(
        ratings=agreement(ratings, resamples=resamples, seed=seed),
        tags={
            tag: agreement(units, resamples=resamples, seed=seed, scale=PRESENCE)
            for tag, units in tags.items()
        },
    )


def weighted_kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Cohen's κ with quadratic weights of two judges' ratings of the same rounds.

    None if it is undefined: without rounds, and if both give the same rating throughout.
    """
    return _defined(_kappa(_pair_sums(pairs)))


def alpha(rounds: Sequence[Sequence[int]]) -> float | None:
    """Krippendorff's α for interval data.

    Args:
        rounds: the ratings of each round, whoever gave them; rounds with fewer than two say
            nothing.

    Returns:
        None if it is undefined: without two ratings of a round, and if all ratings are equal.
    """
    return _defined(_alpha(_round_sums(rounds)))


def agreement(
    rounds: Rounds, *, resamples: int = 1000, seed: int = 0, scale: Sequence[int] = SCALE
) -> Agreement:
    """The agreement of all judges who rated the same rounds.

    Args:
        rounds: the ratings of each session's rounds, by judge.
        resamples: bootstrap resamples; 0 for no intervals.
        seed: seeds the resampling.
        scale: the values that ratings can have.
    """
    sessions = {
        name: [ratings for ratings in found if len(ratings) > 1] for name, found in rounds.items()
    }
    sessions = {name: found for name, found in sorted(sessions.items()) if found}
    judges = sorted({judge for found in sessions.values() for each in found for judge in each})
    sums = [_round_sums([[*each.values()] for each in found]) for found in sessions.values()]
    return Agreement(
        judges=tuple(judges),
        rounds=sum(map(len, sessions.values())),
        sessions=len(sessions),
        alpha=_estimate(_alpha, sums, resamples, f"{seed}/alpha", "no round has two ratings"),
        pairs=tuple(
            [
                _pair(sessions, first, second, resamples, seed, scale)
                for first, second in combinations(judges, 2)
            ]
        ),
    )


def _pair(
    sessions: Rounds, first: str, second: str, resamples: int, seed: int, scale: Sequence[int]
) -> Pair:
    shared = [
        [(each[first], each[second]) for each in found if first in each and second in each]
        for found in sessions.values()
    ]
    shared = [found for found in shared if found]
    flat = [pair for found in shared for pair in found]
    table = Counter(flat)
    return Pair(
        first=first,
        second=second,
        rounds=len(flat),
        kappa=_estimate(
            _kappa,
            list(map(_pair_sums, shared)),
            resamples,
            f"{seed}/{first}/{second}",
            "no round was rated by both",
        ),
        equal=sum(a == b for a, b in flat) / len(flat) if flat else None,
        confusion=tuple([tuple([table[a, b] for b in scale]) for a in scale]),
    )


def _pair_sums(pairs: Sequence[tuple[int, int]]) -> Floats:
    """Of pairs of ratings: how many, (a - b)², a, b, a² and b², each added up."""
    a, b = np.array(pairs, np.float64).reshape(-1, 2).T
    return np.array([len(a), ((a - b) ** 2).sum(), a.sum(), b.sum(), (a**2).sum(), (b**2).sum()])


def _kappa(sums: Floats) -> Floats:
    n, observed, a, b, aa, bb = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa: Floats = 1 - observed * n / (n * (aa + bb) - 2 * a * b)
    return kappa


def _round_sums(rounds: Sequence[Sequence[int]]) -> Floats:
    """Of rounds with several ratings: how many, the observed differences, ratings and their squares."""
    sums = np.zeros(4)
    for ratings in rounds:
        m, a, aa = len(ratings), sum(ratings), sum(rating**2 for rating in ratings)
        if m > 1:
            sums += (m, 2 * (m * aa - a**2) / (m - 1), a, aa)
    return sums


def _alpha(sums: Floats) -> Floats:
    n, observed, a, aa = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = 1 - observed * (n - 1) / (2 * (n * aa - a**2))
    return found


def _defined(value: Floats) -> float | None:
    return float(value) if np.isfinite(value) else None


def _estimate(
    statistic: Callable[[Floats], Floats],
    sessions: Sequence[Floats],
    resamples: int,
    seed: str,
    absent: str,
) -> Estimate:
    """A statistic of sums over sessions, with its percentile bootstrap interval over them."""
    n = len(sessions)
    if not n:
        return Estimate(reason=absent)
    sums = np.stack(sessions)
    value = _defined(statistic(sums.sum(axis=0)))
    if value is None:
        return Estimate(sessions=n, reason="all ratings are equal, so chance cannot err")
    bounds = None
    if n > 1 and resamples:
        bounds = interval(
            np.concatenate([statistic(counts @ sums) for counts in draws(n, resamples, seed)])
        )
    low, high = bounds or (None, None)
    return Estimate(value=value, low=low, high=high, sessions=n)
