"""Variance of overall utility between problems and within them, from problems that were played repeatedly.

One-way random effects (Searle, Casella and McCulloch 1992, section 3.6):

    x_ij    = μ + a_i + e_ij                 session j on problem i
    within  = MS_w                           variance of e: the same problem played again
    between = max(0, (MS_b - MS_w) / n_0)    variance of a: another problem
"""

from __future__ import annotations

import msgspec
import numpy as np

from ..columns.table import Floats, Integers

__all__ = ("Variance", "variance_components")


class Variance(msgspec.Struct, frozen=True, kw_only=True):
    """Both components.

    Attributes:
        between: variance between problems; None with fewer than two.
        within: variance within a problem, between sessions that repeat it.
        problems: how many problems there are.
        sessions: sessions with a value.
    """

    between: float | None
    within: float
    problems: int
    sessions: int


def variance_components(values: Floats, problems: Integers) -> Variance | None:
    """The components of a quantity; None if no problem was played more than once.

    Args:
        values: one per session, not a number if it is missing.
        problems: the problem of each session, as a number; below 0 if it is not known.
    """
    there = ~np.isnan(values) & (problems >= 0)
    x, at = values[there], np.unique(problems[there], return_inverse=True)[1]
    sizes = np.bincount(at) if len(x) else np.zeros(0, np.int64)
    n, k = len(x), len(sizes)
    if n == k:
        return None
    means = np.bincount(at, x) / sizes
    within = float(((x - means[at]) ** 2).sum()) / (n - k)
    between = None
    if k > 1:
        mean_square = float((sizes * (means - x.mean()) ** 2).sum()) / (k - 1)
        size = (n - float((sizes**2).sum()) / n) / (k - 1)
        between = max(0.0, (mean_square - within) / size)
    return Variance(between=between, within=within, problems=k, sessions=n)
