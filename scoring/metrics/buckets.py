"""Final performance by quintile of the ratio of agent tokens to human tokens (paper, section 4)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise

from .numbers import quantile, sem
from .results import Bucket, Buckets, Convention
from .sample import Sample

__all__ = ("make_buckets", "token_ratio")

QUANTILES = (0.2, 0.4, 0.6, 0.8)


def token_ratio(agent: int | None, human: int | None, convention: Convention) -> float | None:
    """Agent tokens over human tokens; infinite if the human wrote nothing, None if undefined.

    Under ``paper`` a missing human count is 0, as in the published analysis; under ``formal`` the
    ratio is missing too. It is undefined without agent tokens, and where both are 0.
    """
    if human is None and convention == "paper":
        human = 0
    if agent is None or human is None or (agent == 0 and human == 0):
        return None
    return agent / human if human else math.inf


def make_buckets(
    group: Mapping[str, str],
    rated: Sequence[tuple[float, float | None]],
    resamples: int,
    seed: str,
) -> Buckets:
    """Sorts collaborating sessions into quintiles of their token ratio.

    The edges are 0, the quantiles .2 .4 .6 .8 of the ratios (linear interpolation, infinite
    ratios included) rounded to one decimal, and infinity. Intervals are open below and closed
    above, so that a ratio of exactly 0 lies in none. A session without final performance counts
    for the edges, and lies in no bucket.

    Args:
        group: the labels that the sessions share.
        rated: of those that have a ratio, the ratio and the final performance.
        resamples: for the intervals.
        seed: what the resampling is seeded with.
    """
    n = len(rated)
    if not rated:
        reason = "no session has a token ratio"
        return Buckets(group=group, edges=None, stats=None, sessions=0, reason=reason)
    if all(value is None for _, value in rated):
        reason = "no session with a token ratio has a final performance"
        return Buckets(group=group, edges=None, stats=None, sessions=n, reason=reason)
    ordered = sorted(ratio for ratio, _ in rated)
    inner = [quantile(ordered, q) for q in QUANTILES]
    rounded = [edge if math.isnan(edge) else round(edge, 1) for edge in inner]
    edges = [0.0, *rounded, math.inf]
    if any(not low < high for low, high in pairwise(edges)):
        shown = ", ".join(f"{edge:g}" for edge in edges)
        reason = f"the quintile edges are not distinct ({shown})"
        return Buckets(group=group, edges=None, stats=None, sessions=n, reason=reason)
    members: list[list[float]] = [[] for _ in range(len(edges) - 1)]
    for ratio, value in rated:
        if ratio > 0 and value is not None:
            members[bisect_left(rounded, ratio)].append(value)
    stats = []
    for index, values in enumerate(members):
        sample = Sample({"performance": values}, resamples, f"{seed}/bucket/{index}")
        high = edges[index + 1]
        stats.append(
            Bucket(
                low=edges[index],
                high=None if math.isinf(high) else high,
                mean=sample.estimate("performance", absent="no session lies in this interval"),
                sem=sem(values),
            )
        )
    return Buckets(group=group, edges=(*edges[:-1], None), stats=tuple(stats), sessions=n)
