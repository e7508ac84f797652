"""Tests and intervals of a mean of paired differences.

The test flips signs: if two agents do equally well, each difference could as well have had the other sign
(Fisher 1935). It assumes nothing of how differences are distributed. Its smallest p of n differences is
2 / 2^n, so that below six differences nothing is significant at 5 %, and no 95 % interval exists.

From six to nine differences, the interval holds the shifts that this test does not reject (Tukey's inversion; the
bounds are means of subsets of the differences). From ten on it is the bootstrap's BCa interval (Efron 1987).
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np

from ..columns.table import Floats
from ..metrics.sample import LARGE, LEVEL, draws

__all__ = ("FEWEST", "bca_interval", "mean_interval", "sign_flip_interval", "sign_flip_p")

FEWEST: Final = 6
"""The fewest differences that have a 95 % interval."""

_EXACT: Final = 9
"""Differences up to which the interval is that of the exact test."""

_ALL_FLIPS: Final = 13
"""Differences up to which all sign flips are tried."""

_FLIPS: Final = 9999
"""Sign flips that are drawn if there are more differences."""

_CHUNK: Final = 1 << 22
"""Signs that are held at once."""

_TIE: Final = 1e-14
"""What sums of the same differences in another order may differ by, relative to the sum."""


def sign_flip_p(differences: Floats, seed: str) -> float | None:
    """P of the sign-flip test of the mean, two-sided; None for fewer than two differences.

    Args:
        differences: one for each pair.
        seed: the seed of the drawn flips, if there are too many to try all.
    """
    n = len(differences)
    if n < 2:
        return None
    observed = abs(float(differences.sum())) * (1 - _TIE)
    if n <= _ALL_FLIPS:
        flipped = np.abs((1 - 2 * _subsets(n)) @ differences)
        return float(np.mean(flipped >= observed))
    chance = np.random.default_rng(zlib.crc32(seed.encode()))
    together = max(1, _CHUNK // n)
    beyond = 0
    for begin in range(0, _FLIPS, together):
        signs = chance.integers(0, 2, (min(together, _FLIPS - begin), n), np.int8)
        beyond += int((np.abs((1.0 - 2.0 * signs) @ differences) >= observed).sum())
    return (beyond + 1) / (_FLIPS + 1)


def sign_flip_interval(differences: Floats) -> tuple[float, float] | None:
    """The shifts of the mean that the exact sign-flip test does not reject at 5 %.

    None below six differences: the test rejects nothing. Meant for few differences, since all subsets of
    them are looked at.
    """
    n = len(differences)
    if n < FEWEST:
        return None
    subsets = _subsets(n)[1:]
    means = np.sort(subsets @ differences / subsets.sum(axis=1))
    outside = int((1 - LEVEL) / 2 * 2**n)  # means on each side whose shifts are rejected, and one
    return float(means[outside - 1]), float(means[-outside])


def bca_interval(differences: Floats, resamples: int, seed: str) -> tuple[float, float] | None:
    """The bias-corrected and accelerated bootstrap interval of the mean; None without resamples.

    Args:
        differences: at least two.
        resamples: how often they are resampled.
        seed: the seed of the draws.
    """
    n = len(differences)
    if not resamples or n < 2:
        return None
    ordered = np.sort(differences)
    centre = float(ordered.mean())
    normal = NormalDist()
    if n > LARGE:
        width = normal.inv_cdf((1 + LEVEL) / 2) * float(ordered.std(ddof=1)) / n**0.5
        return centre - width, centre + width
    means = np.sort(np.concatenate([counts @ ordered for counts in draws(n, resamples, seed)]) / n)
    near = abs(centre) * _TIE
    below = int(np.searchsorted(means, centre - near)), int(np.searchsorted(means, centre + near))
    share = sum(below) / (2 * resamples)
    if not 0 < share < 1:  # all resamples are alike
        return float(means[0]), float(means[-1])
    bias = normal.inv_cdf(share)
    influence = ordered - centre
    squares = float((influence**2).sum())
    skew = float((influence**3).sum()) / (6 * squares**1.5) if squares > 0 else 0.0

    def bound(level: float) -> float:
        shifted = bias + normal.inv_cdf(level)
        return float(np.quantile(means, normal.cdf(bias + shifted / (1 - skew * shifted))))

    return bound((1 - LEVEL) / 2), bound((1 + LEVEL) / 2)


def mean_interval(differences: Floats, resamples: int, seed: str) -> tuple[float, float] | None:
    """The 95 % interval of the mean of paired differences; None below six, and without resamples."""
    if not resamples or len(differences) < FEWEST:
        return None
    if len(differences) <= _EXACT:
        return sign_flip_interval(differences)
    return bca_interval(differences, resamples, seed)


@lru_cache(maxsize=2)
def _subsets(n: int) -> Floats:
    """All subsets of n things, the empty one first: 1 for what is in it."""
    places = np.arange(n)
    return ((np.arange(2**n)[:, None] >> places) & 1).astype(np.float64)
