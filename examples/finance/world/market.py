"""Monte Carlo projections of savings in stocks and bonds, with fixed draws.

All projections use the same 200 sequences of returns. So two plans differ only by their content, and
repeated calls give the same result. The sequences come in pairs of opposites (antithetic variates),
which makes 200 worth many more. For each share of stocks, the results of a single payment and of a
yearly payment are computed once; every later projection is one multiplication per sequence.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, sqrt
from operator import itemgetter
from random import Random
from typing import Final

__all__ = ("HORIZON", "PATHS", "STEP", "bad_year", "chance", "needed", "outcome", "quantile")

PATHS: Final = 200
HORIZON: Final = 45
"""Most years that a projection takes."""

STEP: Final = 5
"""Shares of stocks are taken in steps of this many per cent."""

_STOCKS: Final = (0.052, 0.19)
_BONDS: Final = (0.012, 0.04)
_TOGETHER: Final = 0.1
_SEED: Final = "duolog/finance/market"


@lru_cache(maxsize=1)
def _draws() -> tuple[tuple[tuple[float, float], ...], ...]:
    """Logarithmic returns of stocks and of bonds: for each year, one pair for each sequence."""
    random = Random(_SEED)
    aside = sqrt(1 - _TOGETHER**2)
    years = []
    for _ in range(HORIZON):
        shocks = []
        for _ in range(PATHS // 2):
            a, b = random.gauss(0.0, 1.0), random.gauss(0.0, 1.0)
            shocks.append((a, _TOGETHER * a + aside * b))
        year = [
            (_STOCKS[0] + sign * _STOCKS[1] * a, _BONDS[0] + sign * _BONDS[1] * b)
            for sign in (1, -1)
            for a, b in shocks
        ]
        years.append(tuple(year))
    return tuple(years)


@lru_cache(maxsize=64)
def _growth(stocks: int) -> tuple[tuple[tuple[float, float], ...], ...]:
    """By years from 0: what each sequence makes of 1 paid in at once, and of 1 paid in each year."""
    share = stocks / 100
    once, yearly = [1.0] * PATHS, [0.0] * PATHS
    by_year = [tuple(zip(once, yearly, strict=True))]
    for year in _draws():
        returns = [share * exp(a) + (1 - share) * exp(b) for a, b in year]
        once = [sum_ * r for sum_, r in zip(once, returns, strict=True)]
        yearly = [(sum_ + 1.0) * r for sum_, r in zip(yearly, returns, strict=True)]
        by_year.append(tuple(zip(once, yearly, strict=True)))
    return tuple(by_year)


def rounded(stocks: float) -> int:
    """The share of stocks that is projected for another: the nearest step from 0 to 100."""
    return STEP * max(0, min(100 // STEP, round(stocks / STEP)))


@lru_cache(maxsize=64)
def _bad_year(stocks: int) -> float:
    share = stocks / 100
    returns = sorted(share * exp(a) + (1 - share) * exp(b) for year in _draws() for a, b in year)
    return max(0.0, 1.0 - returns[len(returns) // 20])


def bad_year(stocks: float) -> float:
    """The share of invested money that is lost in one year out of twenty, or more."""
    return _bad_year(rounded(stocks))


def outcome(stocks: float, years: int, once: float, monthly: float) -> list[float]:
    """The final savings in all sequences, ascending.

    Args:
        stocks: share of stocks in per cent; the rest is in bonds.
        years: until the money is needed, from 0 to `HORIZON`.
        once: invested today.
        monthly: invested each month.
    """
    yearly = 12 * monthly
    after = _growth(rounded(stocks))[max(0, min(years, HORIZON))]
    return sorted(once * a + yearly * b for a, b in after)


@lru_cache(maxsize=2048)
def chance(stocks: float, years: int, once: float, monthly: float, target: float) -> float:
    """The share of the sequences in which savings reach a target."""
    yearly = 12 * monthly
    after = _growth(rounded(stocks))[max(0, min(years, HORIZON))]
    return sum(once * a + yearly * b >= target for a, b in after) / PATHS


def quantile(ascending: list[float], share: float) -> float:
    """The value that a share of the outcomes stays below."""
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


@lru_cache(maxsize=512)
def _yearly(stocks: int, years: int, confidence: int) -> float:
    paid = sorted(map(itemgetter(1), _growth(stocks)[years]))
    return quantile(paid, 1 - confidence / 100)


def needed(stocks: float, years: int, once: float, target: float, confidence: int) -> float:
    """The monthly saving that reaches a target with a confidence in per cent.

    It treats the initial sum and the monthly payments separately, each at that confidence. That is exact
    without an initial sum, and close otherwise.
    """
    years = max(1, min(years, HORIZON))
    grown = [a for a, _ in _growth(rounded(stocks))[years]]
    missing = target - once * quantile(sorted(grown), 1 - confidence / 100)
    return max(0.0, missing / (12 * _yearly(rounded(stocks), years, confidence)))
