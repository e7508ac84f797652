"""Means, standard errors and quantiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ("known", "mean", "quantile", "sem", "whole")


def known(value: float) -> float | None:
    """A value of a column; None if it is missing."""
    return None if math.isnan(value) else float(value)


def whole(value: float) -> int | None:
    """A value of a column of whole numbers; None if it is missing."""
    return None if math.isnan(value) else int(value)


def mean(values: Iterable[float]) -> float | None:
    """The mean, rounded once; None of nothing.

    It is the same for any order of the values, and for any number of copies of all of them: what
    ``math.fsum`` rounds away is added again before the division.
    """
    items = list(values)
    if not items:
        return None
    total = math.fsum(items)
    rest = math.fsum([*items, -total])
    return float((Fraction(total) + Fraction(rest)) / len(items))


def sem(values: Sequence[float] | NDArray[np.float64]) -> float | None:
    """The standard error of the mean, s / √n with s of ddof 1; None for fewer than two values."""
    import numpy as np

    n = len(values)
    if n < 2:
        return None
    found = np.asarray(values, np.float64)
    centre = math.fsum(found.tolist()) / n
    with np.errstate(invalid="ignore", over="ignore"):  # of values that are not finite
        variance = math.fsum(np.square(found - centre).tolist()) / (n - 1)
    return math.sqrt(variance) / math.sqrt(n)


def quantile(ordered: Sequence[float] | NDArray[np.float64], q: float) -> float:
    """The q-quantile of sorted values, by linear interpolation between neighbours.

    Interpolates from the nearer neighbour, as numpy does, so that an edge rounded to one decimal
    falls on the same side as in the published analysis. Next to an infinite value it may be not
    a number, as there.

    Raises:
        ValueError: there are no values.
    """
    if not len(ordered):
        raise ValueError("no values to take a quantile of")
    at = (len(ordered) - 1) * q
    below = math.floor(at)
    low = float(ordered[below])
    high = float(ordered[min(below + 1, len(ordered) - 1)])
    weight = at - below
    step = high - low
    return high - step * (1 - weight) if weight >= 0.5 else low + step * weight
