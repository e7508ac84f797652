"""Final performance by quintile of the ratio of agent tokens to human tokens (paper, section 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from ..columns.table import Floats
from .numbers import quantile
from .results import Bucket, Buckets, Convention
from .sample import Sample

__all__ = ("make_buckets", "token_ratio", "token_ratios")

QUANTILES = (0.2, 0.4, 0.6, 0.8)


def token_ratios(agent: Floats, human: Floats, convention: Convention) -> Floats:
    """Agent tokens over human tokens; infinite if the human wrote nothing, not a number if undefined.

    Under ``paper`` a missing human count is 0, as in the published analysis; under ``formal`` the
    ratio is missing too. It is undefined without agent tokens, and if both are 0.
    """
    if convention == "paper":
        human = np.nan_to_num(human, nan=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Floats = agent / human
    return ratios


def token_ratio(agent: int | None, human: int | None, convention: Convention) -> float | None:
    """The ratio of one session; None if it is undefined."""
    ratios = token_ratios(np.array([agent], float), np.array([human], float), convention)
    return None if np.isnan(ratios[0]) else float(ratios[0])


def make_buckets(
    group: Mapping[str, str], ratios: Floats, performance: Floats, resamples: int, seed: str
) -> Buckets:
    """Sorts collaborating sessions into quintiles of their token ratio.

    The edges are 0, the quantiles .2 .4 .6 .8 of the ratios (linear interpolation, infinite
    ratios included) rounded to one decimal, and infinity. Intervals are open below and closed
    above, so that a ratio of exactly 0 lies in none. A session without final performance counts
    for the edges, and lies in no bucket.

    Args:
        group: the labels that the sessions share.
        ratios: the ratios of each session; not a number if it has none.
        performance: the final performance of each, likewise.
        resamples: for the intervals.
        seed: what the resampling is seeded with.
    """
    rated = ~np.isnan(ratios)
    ratios, performance = ratios[rated], performance[rated]
    n = len(ratios)
    if not n:
        reason = "no session has a token ratio"
        return Buckets(group=group, edges=None, stats=None, sessions=0, reason=reason)
    if np.isnan(performance).all():
        reason = "no session with a token ratio has a final performance"
        return Buckets(group=group, edges=None, stats=None, sessions=n, reason=reason)
    ordered = np.sort(ratios)
    inner = [quantile(ordered, q) for q in QUANTILES]
    rounded = [edge if math.isnan(edge) else round(edge, 1) for edge in inner]
    edges = [0.0, *rounded, math.inf]
    if any(not low < high for low, high in pairwise(edges)):
        shown = ", ".join(f"{edge:g}" for edge in edges)
        reason = f"the quintile edges are not distinct ({shown})"
        return Buckets(group=group, edges=None, stats=None, sessions=n, reason=reason)
    of = np.where((ratios > 0) & ~np.isnan(performance), np.searchsorted(rounded, ratios), -1)
    stats = []
    for index, low in enumerate(edges[:-1]):
        columns = {"performance": performance[of == index]}
        sample = Sample(columns, resamples, f"{seed}/bucket/{index}")
        high = edges[index + 1]
        stats.append(
            Bucket(
                low=low,
                high=None if math.isinf(high) else high,
                mean=sample.estimate("performance", absent="no session lies in this interval"),
                sem=sample.sem("performance"),
            )
        )
    return Buckets(group=group, edges=(*edges[:-1], None), stats=tuple(stats), sessions=n)
