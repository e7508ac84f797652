"""The numbers of one group, from its columns and from what was counted of its sessions.

Whoever folds sessions counts them: ``aggregate`` over trajectories, ``scoring.tables`` over tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...engine.text import quantity
from .curves import round_curve
from .effort import effort_of
from .numbers import quotient
from .process import PROCESS_MEASURES, process_of
from .results import Counts, Drop, Estimate, Group, SessionOutcomes
from .sample import Sample
from .values import NO_ROUND

__all__ = (
    "BASELINE_ITSELF",
    "NO_BASELINE",
    "Cell",
    "Stops",
    "absent_utility",
    "baseline_group",
    "collaboration_group",
    "sample_seed",
)

BASELINE_ITSELF = Estimate(reason="an automated run itself")
NO_BASELINE = "no automated run to compare with"

_NO_FIRST = "the first update of every session has no score"
_RESULTS = "only the results of these sessions were measured, and no output before them"
_UNRATED = "no round of these sessions was rated"
_EARLY = "every session is unrated, or its human left before τ could be reached"


class Stops(NamedTuple):
    """Sessions with a utility, at one tolerance.

    Attributes:
        stopped: those in which it was reached.
        unrated: those left out since none of their rounds is rated.
        cut_short: those left out since their human left before it could be reached.
    """

    stopped: int
    unrated: int
    cut_short: int


class Cell(NamedTuple):
    """What was counted of a group's sessions.

    Attributes:
        labels: the labels that they share.
        sessions: how many there are.
        absent: why none of them has a utility, where none has.
        counts: how complete the data are.
        completion: how they ended.
        measures: the measures of effort that any of them has.
        valued: sessions with a utility.
        results: those of them of which only the result was measured.
        unrated: those of them without any rating.
        stops: one per tolerance.
        reached: sessions that reach each round of the curve by themselves.
        max_step: the length to which trajectories were cut, under ``paper``.
    """

    labels: Mapping[str, str]
    sessions: int
    absent: str
    counts: Counts
    completion: SessionOutcomes
    measures: Sequence[str]
    valued: int = 0
    results: int = 0
    unrated: int = 0
    stops: tuple[Stops, ...] = ()
    reached: tuple[int, ...] = ()
    max_step: int | None = None


def sample_seed(seed: int, kind: str, labels: Mapping[str, str]) -> str:
    """What the resampling of a group is seeded with."""
    return f"{seed}/{kind}/{sorted(labels.items())}"


def absent_utility(reasons: Mapping[str | None, int]) -> str:
    """Why no session of a group has a utility.

    Args:
        reasons: sessions by why they have none; None stands for automated runs that broke off.
    """
    known = {why or NO_ROUND: 0 for why in reasons}
    for why, count in reasons.items():
        known[why or NO_ROUND] += count
    if len(known) == 1:
        return next(iter(known))
    return "; ".join(f"{quantity(count, 'session')}: {why}" for why, count in sorted(known.items()))


def baseline_group(cell: Cell, sample: Sample, reference: Estimate, taus: Sequence[int]) -> Group:
    """The numbers of automated runs, from columns of performance and effort."""
    none = Estimate(reason="automated runs: there is no collaboration to measure")
    return Group(
        group=cell.labels,
        sessions=cell.sessions,
        baseline=True,
        first=none,
        final=sample.estimate("performance", absent=cell.absent),
        overall=none,
        gain_abs=none,
        gain_rel=none,
        drops=tuple([Drop(tau=tau, abs=none, rel=none, sessions=0, stopped=0) for tau in taus]),
        curve=(),
        effort=effort_of(sample, cell.measures),
        counts=cell.counts,
        completion=cell.completion,
        reference=reference,
        process=dict.fromkeys(PROCESS_MEASURES, none),
    )


def collaboration_group(
    cell: Cell, sample: Sample, reference: Estimate, taus: Sequence[int], *, formal: bool
) -> Group:
    """The numbers of sessions with a human, from the columns of ``aggregate``."""
    unscored = _no_first(cell) if cell.valued else cell.absent
    return Group(
        group=cell.labels,
        sessions=cell.sessions,
        baseline=False,
        first=sample.estimate("first", absent=unscored),
        final=sample.estimate("final", absent=cell.absent),
        overall=sample.estimate("overall", absent=cell.absent),
        gain_abs=sample.estimate("gain", absent=unscored),
        gain_rel=sample.estimate(
            "gain",
            "first",
            formula=quotient,
            absent=unscored,
            undefined="the utility at the first update, to which it relates, is 0",
        ),
        drops=tuple(
            [
                _drop(cell, sample, tau, stops, formal=formal)
                for tau, stops in zip(taus, cell.stops, strict=True)
            ]
        ),
        curve=round_curve(sample, cell.reached),
        effort=effort_of(sample, cell.measures),
        counts=cell.counts,
        completion=cell.completion,
        reference=reference,
        max_step=cell.max_step,
        process=process_of(sample),
    )


def _no_first(cell: Cell) -> str:
    """Why no session of a group that has utilities has a first one."""
    if 0 < cell.results < cell.valued:
        return f"{_NO_FIRST}, or only its result was measured"
    return _RESULTS if cell.results else _NO_FIRST


def _drop(cell: Cell, sample: Sample, tau: int, stops: Stops, *, formal: bool) -> Drop:
    """D@τ of a group: missing where no round of it was rated."""
    names = (f"stop {tau}", f"reference {tau}")
    if not cell.valued:
        why = cell.absent
    elif cell.unrated == cell.valued:
        none = Estimate(reason=_UNRATED)
        return Drop(tau=tau, abs=none, rel=none, sessions=0, stopped=0, unrated=cell.valued)
    elif formal and cell.results == cell.valued:
        why = _RESULTS
    else:
        why = _EARLY if formal else f"no session has a round left at τ = {tau}"
    zero = "the final utility to which it relates is 0"
    return Drop(
        tau=tau,
        abs=sample.estimate(*names, formula=_difference, absent=why),
        rel=sample.estimate(*names, formula=_change, absent=why, undefined=zero),
        sessions=sample.count(names[0]),
        stopped=stops.stopped,
        unrated=stops.unrated,
        cut_short=stops.cut_short,
    )


def _difference(at: float, final: float) -> float:
    return at - final


def _change(at: float, final: float) -> float | None:
    return (at - final) / final if final else None
