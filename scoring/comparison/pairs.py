"""Agents compared in pairs: the same problem, played by each of them.

The difference of two agents on the same problem does not depend on how hard that problem is. Per quantity:

    d_i  = x_i(second) - x_i(first)             over the problems i that both played
    mean = 1/n Σ d_i                            with an interval over problems (``inference``)
    d_z  = mean / standard deviation of d_i     (Cohen 1988), the effect size

An agent that played a problem several times counts once, with the mean over its sessions. Differences whose
value is missing on either side are left out and counted.

Some quantities are declared as outcomes, overall utility if nothing else is said. Only these are tested: p is that
of the sign-flip test, adjusted by Holm's method (Holm 1979) over the agent pairs and outcomes of one task. All
other quantities are secondary, with intervals and without p.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
import numpy as np

from ...engine.errors import InvalidInput
from ...engine.log.summary import FORGOTTEN
from ...engine.text import suggestion
from ..columns.table import Coded, Columns, Floats, Integers
from ..metrics.formal import formal_values
from ..metrics.numbers import mean, sem
from ..metrics.results import Estimate
from ..metrics.values import Facts
from ..trajectory.labels import STAMPS
from ..trajectory.points import Trajectory
from ..trajectory.tolerance import check_taus
from .inference import FEWEST, mean_interval, sign_flip_p

__all__ = (
    "OUTCOME",
    "SIGNIFICANCE",
    "Comparison",
    "Difference",
    "PairBy",
    "compare",
    "holm",
    "paired_difference",
    "quantities_of",
)

SIGNIFICANCE: Final = 0.05

OUTCOME: Final = "overall"
"""What agents are compared by if nothing is declared: overall utility."""

PairBy: TypeAlias = Literal["problem", "instance"]
"""What two sessions have to share to be a pair: the problem by content, or the label of the instance."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How two agents differ in one quantity.

    Attributes:
        quantity: its name: ``overall``, ``first``, ``final``, ``gain``, ``drop@τ``, ``all_rounds``,
            ``agent_tokens`` or ``seconds``.
        outcome: it was declared as an outcome; else it is secondary, and not tested.
        pairs: problems with a value on both sides.
        first: mean of the first agent over these.
        second: mean of the second.
        difference: mean of second - first, with its interval; none exists below six pairs.
        differences: each difference, if there are fewer than six.
        p: p-value of the sign-flip test; None if it is secondary, or there are no two pairs.
        adjusted: the p-value adjusted by Holm's method.
        effect: d_z; None if the differences do not vary.
    """

    quantity: str
    outcome: bool = False
    pairs: int
    first: float | None
    second: float | None
    difference: Estimate
    differences: tuple[float, ...] = ()
    p: float | None = None
    adjusted: float | None = None
    effect: float | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two agents on the same problems, with everything else equal.

    Attributes:
        first: the label's value of the first agent.
        second: that of the second.
        label: the label that tells them apart, ``agent`` by default.
        group: the other labels, which both share.
        pair_by: what sessions are paired by.
        pairs: problems that both played.
        unpaired: sessions of either agent on problems that the other did not play, by agent.
        unknown: sessions whose problem is not known, by agent; they are in no pair.
        differences: one per quantity, outcomes first.
    """

    first: str
    second: str
    label: str
    group: Mapping[str, str]
    pair_by: PairBy = "problem"
    pairs: int
    unpaired: Mapping[str, int]
    unknown: Mapping[str, int] = {}
    differences: tuple[Difference, ...]


def compare(
    source: Columns | Iterable[Trajectory],
    names: Sequence[str],
    *,
    label: str = "agent",
    taus: Sequence[int] = (1, 2, 3),
    outcomes: Sequence[str] = (OUTCOME,),
    pair_by: PairBy = "problem",
    bootstrap: int = 1000,
    seed: int = 0,
) -> tuple[Comparison, ...]:
    """Compares the named agents, each with each, in every group of sessions that has them.

    Args:
        source: the sessions.
        names: values of the label, at least two; each is compared with those after it.
        label: the label that tells the agents apart.
        taus: tolerances τ to compare the drop at.
        outcomes: the quantities that are tested; the others are secondary.
        pair_by: ``problem``, or ``instance`` for sessions whose problems are not known.
        bootstrap: resamples for the intervals; 0 for none.
        seed: seeds bootstrap and sign flips.

    Returns:
        One comparison per pair of names and group, in this order.

    Raises:
        InvalidInput: fewer than two names, one that no session has, an unknown outcome, or sessions
            whose problem is unknown.
    """
    ordered = tuple(dict.fromkeys(names))
    if len(ordered) < 2:
        raise InvalidInput("a comparison takes at least two different names, separated by commas")
    facts = Facts(source)
    columns = facts.columns
    coded = columns.labels.get(label)
    there = {} if coded is None else coded.counts(np.arange(len(columns)))
    for name in ordered:
        if name not in there:
            known = suggestion(name, there)
            raise InvalidInput(f"no session has {label} {name!r} to compare{known}")
    assert coded is not None
    quantities = quantities_of(facts, check_taus(taus))
    for outcome in outcomes:
        if outcome not in quantities:
            raise InvalidInput(f"unknown outcome {outcome!r}{suggestion(outcome, quantities)}")
    first_ones = dict.fromkeys(outcomes)
    quantities = {name: quantities[name] for name in [*first_ones, *quantities]}
    problems = columns.problem if pair_by == "problem" else columns.instance
    rows = np.flatnonzero((coded.codes >= 0) & ~columns.state.flags(FORGOTTEN.__eq__))
    groups = columns.grouped(rows, held_labels(columns, label))
    found = []
    for group, members in groups:
        agents = {name: members[coded.flags(name.__eq__)[members]] for name in ordered}
        found += [
            _compared(
                (first, agents[first]),
                (second, agents[second]),
                label,
                group,
                problems,
                quantities,
                first_ones,
                bootstrap,
                seed,
                pair_by,
            )
            for index, first in enumerate(ordered)
            for second in ordered[index + 1 :]
            if len(agents[first]) and len(agents[second])
        ]
    if found and not any(one.pairs for one in found) and any(one.unknown for one in found):
        unknown = max(sum(one.unknown.values()) for one in found)
        if pair_by == "instance":
            raise InvalidInput(f"cannot pair agents: {unknown} of their sessions name no instance")
        raise InvalidInput(
            f"cannot pair agents: {unknown} of their sessions do not record which problem they were about. "
            "If equal instance names mean equal problems, pair by these: --pair-by instance"
        )
    return _adjusted(found)


def held_labels(columns: Columns, label: str) -> list[str]:
    """The labels that two sessions of a pair share: all but the one that is compared.

    Different simulated users are never paired; experiments of different designs may be.
    """
    design, simulator = STAMPS
    left_out = {label, design}
    stamps = columns.labels.get(simulator)
    if stamps is not None and len(stamps.values) < 2:
        left_out.add(simulator)
    return sorted(set(columns.labels) - left_out)


def quantities_of(facts: Facts, taus: Sequence[int]) -> dict[str, Floats]:
    """The quantities in which agents are compared, a value per session, not a number if it has none."""
    columns, values = facts.columns, formal_values(facts, taus)
    return {
        "overall": values.overall,
        "first": values.first,
        "final": values.final,
        "gain": values.gain,
        **{f"drop@{tau}": stops - values.reference for tau, stops in values.stops.items()},
        "all_rounds": facts.rounds.astype(np.float64),
        "agent_tokens": columns.agent_tokens,
        "seconds": columns.effort.get("seconds", np.full(len(columns), np.nan)),
    }


def _compared(
    one: tuple[str, Integers],
    other: tuple[str, Integers],
    label: str,
    group: Mapping[str, str],
    problems: Coded[str],
    quantities: Mapping[str, Floats],
    outcomes: Mapping[str, None],
    bootstrap: int,
    seed: int,
    pair_by: PairBy,
) -> Comparison:
    (first, ones), (second, others) = one, other
    both = problems.counts(ones).keys() & problems.counts(others).keys()
    shared = sorted(both - {""})
    place = {problem: at for at, problem in enumerate(shared)}
    known = np.array([problem != "" for problem in problems.values] + [False])
    at = np.array([place.get(problem, -1) for problem in problems.values] + [-1])
    sides = {
        name: (at[problems.codes[rows]], known[problems.codes[rows]]) for name, rows in (one, other)
    }
    unknown = {name: int((~known_).sum()) for name, (_, known_) in sides.items()}
    return Comparison(
        first=first,
        second=second,
        label=label,
        group=group,
        pair_by=pair_by,
        pairs=len(shared),
        unpaired={
            name: int(((places < 0) & known_).sum()) for name, (places, known_) in sides.items()
        },
        unknown={name: count for name, count in unknown.items() if count},
        differences=tuple(
            [
                paired_difference(
                    name,
                    _means(quantity[ones], sides[first][0], len(shared)),
                    _means(quantity[others], sides[second][0], len(shared)),
                    bootstrap=bootstrap,
                    seed=f"{seed}/{name}/{first}/{second}/{sorted(group.items())}",
                    outcome=name in outcomes,
                )
                for name, quantity in quantities.items()
            ]
        ),
    )


def _means(values: Floats, problem: Integers, count: int) -> Floats:
    """A quantity by problem: the mean over its sessions that have it."""
    there = (problem >= 0) & ~np.isnan(values)
    sums = np.bincount(problem[there], values[there], count)
    with np.errstate(invalid="ignore"):
        return sums / np.bincount(problem[there], minlength=count)


def paired_difference(
    quantity: str,
    ones: Floats,
    others: Floats,
    *,
    bootstrap: int,
    seed: str,
    outcome: bool = True,
) -> Difference:
    """How two agents differ in one quantity; the p-value is not adjusted.

    Args:
        quantity: its name.
        ones: values of the first agent, one for each problem; not a number if there is none.
        others: values of the second, in the same order.
        bootstrap: resamples for the interval; 0 for none.
        seed: seeds bootstrap and sign flips.
        outcome: whether it is tested.
    """
    both = ~np.isnan(ones) & ~np.isnan(others)
    column = (others - ones)[both]
    values = column.tolist()
    centre = mean(values)
    spread = (sem(values) or 0.0) * math.sqrt(len(values))
    effect = centre / spread if centre is not None and spread > 1e-12 else None
    low, high = mean_interval(column, bootstrap, seed) or (None, None)
    return Difference(
        quantity=quantity,
        outcome=outcome,
        pairs=len(values),
        first=mean(ones[both].tolist()),
        second=mean(others[both].tolist()),
        difference=Estimate(value=centre, low=low, high=high, sessions=len(values))
        if values
        else Estimate(reason="no problem has a value on both sides of the pair"),
        differences=tuple(values) if len(values) < FEWEST else (),
        p=sign_flip_p(column, seed) if outcome else None,
        effect=effect,
    )


def holm(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    """The differences with their p-values adjusted by Holm's method, all of them together."""
    tested = sorted((each.p, at) for at, each in enumerate(differences) if each.p is not None)
    adjusted: dict[int, float] = {}
    least = 0.0
    for rank, (p, at) in enumerate(tested):
        adjusted[at] = least = max(least, min(1.0, p * (len(tested) - rank)))
    return tuple(
        [
            msgspec.structs.replace(each, adjusted=adjusted[at]) if at in adjusted else each
            for at, each in enumerate(differences)
        ]
    )


def _adjusted(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons with the p-values of each task adjusted together."""
    tasks = dict.fromkeys(one.group.get("task") for one in comparisons)
    adjusted = {
        task: iter(
            holm(
                [
                    each
                    for one in comparisons
                    if one.group.get("task") == task
                    for each in one.differences
                ]
            )
        )
        for task in tasks
    }
    return tuple(
        [
            msgspec.structs.replace(
                one,
                differences=tuple([next(adjusted[one.group.get("task")]) for _ in one.differences]),
            )
            for one in comparisons
        ]
    )
