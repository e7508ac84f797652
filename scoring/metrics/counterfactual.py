"""The drop at a tolerance as an experiment: the session's utility with and without the stop.

For session i and tolerance τ, k = k_i,τ is the round at which the human would stop. From the last act
of that round, J_i continuations are run with fresh seeds and without any stop; V_ij is the final
utility of the j-th one. With I sessions, and the sums over all of them:

    observed  D@τ = 1/I Σ_i (U_k^(i) - U_K^(i))                  from the session as it happened
    real      D@τ = 1/I Σ_i d_i     with d_i = U_k^(i) - 1/J_i Σ_j V_ij
    difference    = 1/I Σ_i (d_i - (U_k^(i) - U_K^(i)))          paired by session

A session in which τ is never reached contributes 0 to both. A session that was never rated, was not
evaluated, or whose human left before τ could be reached is in neither, and is counted.
Continuations without a final utility are left out and counted, and so is a session without any
others. Intervals are percentile bootstraps over sessions, with the same resamples for all numbers.

A one-way random-effects model, d_ij = μ + a_i + e_ij, decomposes the variance of d_ij = U_k^(i) -
V_ij over the I' sessions that reached τ. With N = Σ_i J_i, the ANOVA estimators (Searle, Casella
and McCulloch 1992, chapter 3) are:

    within    σ_e² = Σ_i Σ_j (d_ij - d_i)² / (N - I')                          chance, in one session
    between   σ_a² = max(0, (MSB - σ_e²) / n_0)                                sessions, beyond chance
              MSB  = Σ_i J_i (d_i - d)² / (I' - 1)      with d = 1/N Σ_i J_i d_i
              n_0  = (N - Σ_i J_i² / N) / (I' - 1)

``within`` is missing unless a session has two continuations. ``between`` also needs two sessions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from ..columns.table import Columns
from ..trajectory.points import Trajectory
from ..trajectory.tolerance import check_taus
from .aggregate import LABELS
from .formal import formal_values
from .numbers import known, mean
from .results import Estimate
from .sample import Sample
from .values import MISSING, Facts, Values

__all__ = (
    "Continued",
    "CounterfactualDrop",
    "CounterfactualReport",
    "Variance",
    "counterfactual_drops",
    "stops_of",
    "variance_components",
)

_UNKNOWN = "nobody rated a round, or the human left before τ could be reached"
_NO_CONTINUATION = "no continuation has a final utility"


class Continued(msgspec.Struct, frozen=True, kw_only=True):
    """One session at one tolerance.

    Attributes:
        session: its id.
        tau: the tolerance τ.
        round: k_τ; None if τ was not reached.
        stopped: the utility if the human leaves there.
        final: the final utility of the session itself.
        continuations: final utilities of the continuations, in order; None if one has none.
        real: ``stopped`` less the mean of the continuations; 0 if τ was not reached.
        observed: ``stopped`` less ``final``.
        reason: why ``real`` is missing; None if it is not.
    """

    session: str
    tau: int
    round: int | None = None
    stopped: float | None = None
    final: float | None = None
    continuations: tuple[float | None, ...] = ()
    real: float | None = None
    observed: float | None = None
    reason: str | None = None


class Variance(NamedTuple):
    """Variance components of the drop; None if there are too few values.

    Attributes:
        within: between the continuations of a session.
        between: between sessions.
    """

    within: float | None
    between: float | None


class CounterfactualDrop(msgspec.Struct, frozen=True, kw_only=True):
    """D@τ of a group of sessions, as an experiment and as observed.

    Attributes:
        group: the labels that the sessions share.
        tau: the tolerance τ.
        sessions: sessions that have both numbers.
        reached: how many of them reached τ.
        left_out: sessions that have neither number, by the reason.
        continuations: continuations with a final utility.
        without_utility: continuations without one.
        real: D@τ against continuations.
        observed: D@τ against what happened, of the same sessions.
        difference: ``real`` less ``observed``, paired by session.
        within: variance between continuations of a session.
        between: variance between sessions, beyond that.
    """

    group: Mapping[str, str]
    tau: int
    sessions: int
    reached: int
    left_out: Mapping[str, int]
    continuations: int
    without_utility: int
    real: Estimate
    observed: Estimate
    difference: Estimate
    within: float | None
    between: float | None


class CounterfactualReport(msgspec.Struct, frozen=True, kw_only=True):
    """The drops of all groups, and what every session contributes."""

    taus: tuple[int, ...]
    drops: tuple[CounterfactualDrop, ...]
    sessions: tuple[Continued, ...]


def stops_of(
    source: Columns | Iterable[Trajectory], taus: Sequence[int]
) -> list[Mapping[int, int]]:
    """k_τ by τ for the tolerances that each session reaches; empty if its utility is missing."""
    facts = Facts(source)
    reached = {tau: at.tolist() for tau, at in facts.reached(check_taus(taus)).items()}
    return [
        {tau: at[row] for tau, at in reached.items() if valued and at[row]}
        for row, valued in enumerate(facts.valued.tolist())
    ]


def counterfactual_drops(
    source: Columns | Iterable[Trajectory],
    continuations: Mapping[tuple[str, int], Sequence[Trajectory]],
    *,
    taus: Sequence[int] = (1, 2, 3),
    bootstrap: int = 1000,
    seed: int = 0,
) -> CounterfactualReport:
    """Computes the drop against continuations, along with the observed one.

    Args:
        source: the sessions, without their continuations.
        continuations: trajectories of the continuations, by session and round k_τ.
        taus: the tolerances.
        bootstrap: resamples for the intervals (percentile, 95 %); 0 for none.
        seed: seeds the resampling.

    Raises:
        InvalidInput: a tolerance is below 1.
    """
    ordered = check_taus(taus)
    facts = Facts(source)
    values = formal_values(facts, ordered)
    ends = {
        place: tuple([known(end) for end in Facts(others).performance])
        for place, others in continuations.items()
    }
    drops: list[CounterfactualDrop] = []
    sessions: list[Continued] = []
    for labels, rows in facts.columns.grouped(np.arange(len(facts.columns)), LABELS):
        for tau in ordered:
            found = [_continued(facts, values, row, tau, ends) for row in rows.tolist()]
            sessions += found
            name = tuple(labels.items())
            drops.append(_drop(labels, tau, found, bootstrap, f"{seed}/{name}/{tau}"))
    return CounterfactualReport(taus=ordered, drops=tuple(drops), sessions=tuple(sessions))


def variance_components(values: Sequence[Sequence[float]]) -> Variance:
    """The variance within and between groups, by the formulas above.

    Args:
        values: the values of each group; empty groups do not count.
    """
    groups = [list(group) for group in values if group]
    sizes = [len(group) for group in groups]
    total = sum(sizes)
    spare = total - len(groups)
    if spare < 1:
        return Variance(None, None)
    means = [math.fsum(group) / len(group) for group in groups]
    within = (
        math.fsum((x - m) ** 2 for group, m in zip(groups, means, strict=True) for x in group)
        / spare
    )
    if len(groups) < 2:
        return Variance(within, None)
    grand = math.fsum(n * m for n, m in zip(sizes, means, strict=True)) / total
    among = math.fsum(n * (m - grand) ** 2 for n, m in zip(sizes, means, strict=True))
    size = (total - sum(n * n for n in sizes) / total) / (len(groups) - 1)
    return Variance(within, max(0.0, (among / (len(groups) - 1) - within) / size))


def _continued(
    facts: Facts,
    values: Values,
    row: int,
    tau: int,
    continuations: Mapping[tuple[str, int], tuple[float | None, ...]],
) -> Continued:
    session = facts.columns.session[row]
    if not facts.valued[row]:
        return Continued(session=session, tau=tau, reason=MISSING[int(facts.missing[row])])
    final = float(values.final[row])
    stopped = known(values.stops[tau][row])
    if stopped is None:
        return Continued(session=session, tau=tau, final=final, reason=_UNKNOWN)
    observed = stopped - final
    at = int(values.reached[tau][row])
    if not at:
        return Continued(
            session=session, tau=tau, stopped=stopped, final=final, real=0.0, observed=observed
        )
    ends = continuations.get((session, at), ())
    without = mean([value for value in ends if value is not None])
    return Continued(
        session=session,
        tau=tau,
        round=at,
        stopped=stopped,
        final=final,
        continuations=ends,
        real=None if without is None else stopped - without,
        observed=observed,
        reason=_NO_CONTINUATION if without is None else None,
    )


def _drop(
    group: Mapping[str, str], tau: int, found: Sequence[Continued], resamples: int, seed: str
) -> CounterfactualDrop:
    paired = [
        (one.real, one.observed, one)
        for one in found
        if one.real is not None and one.observed is not None
    ]
    left_out: dict[str, int] = {}
    for one in found:
        if one.reason is not None:
            left_out[one.reason] = left_out.get(one.reason, 0) + 1
    reached = [one for _, _, one in paired if one.round is not None]
    sample = Sample(
        {
            "real": np.array([real for real, _, _ in paired]),
            "observed": np.array([observed for _, observed, _ in paired]),
            "difference": np.array([real - observed for real, observed, _ in paired]),
        },
        resamples,
        seed,
    )
    values = [
        [one.stopped - end for end in one.continuations if end is not None]
        for one in reached
        if one.stopped is not None
    ]
    variance = variance_components(values)
    ends = [end for one in found for end in one.continuations]
    return CounterfactualDrop(
        group=group,
        tau=tau,
        sessions=len(paired),
        reached=len(reached),
        left_out=left_out,
        continuations=sum(end is not None for end in ends),
        without_utility=sum(end is None for end in ends),
        real=sample.estimate("real"),
        observed=sample.estimate("observed"),
        difference=sample.estimate("difference"),
        within=variance.within,
        between=variance.between,
    )
