"""How many problems a comparison of two agents takes, from the variance that a log shows.

The mean difference over n problems, each played R times by both agents, has the variance

    (between + within / R) / n

between: of the true difference from problem to problem; within: of one session of each agent on the same problem,
both added. For a two-sided test at 5 % with 80 % power (Guenther 1981, within one pair of a paired t-test):

    n = ((z_.975 + z_.8) / δ)² (between + within / R) + z_.975² / 2,   and at least 6

The observed difference plays no part in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Final

import msgspec
import numpy as np

from ...engine.errors import InvalidInput
from ...engine.log.summary import FORGOTTEN
from ...engine.text import suggestion
from ..columns.table import Columns, Floats, Integers
from ..metrics.values import Facts
from ..metrics.variance import variance_components
from ..trajectory.points import Trajectory
from .inference import FEWEST
from .pairs import OUTCOME, SIGNIFICANCE, PairBy, held_labels, quantities_of

__all__ = ("POWER", "REPEATS", "Needed", "Power", "detectable", "needed", "power")

POWER: Final = 0.8

REPEATS: Final = (1, 2, 3, 5, 10)
"""Sessions per problem for which the table lists the problems needed."""


class Needed(msgspec.Struct, frozen=True, kw_only=True):
    """The problems that 80 % power takes.

    Attributes:
        repeats: how often each agent plays a problem.
        problems: how many problems.
    """

    repeats: int
    problems: int


class Power(msgspec.Struct, frozen=True, kw_only=True):
    """The differences that a comparison of two agents can detect.

    Attributes:
        first: an agent.
        second: the other one.
        group: the other labels, which both share.
        outcome: the quantity.
        problems: problems with a value of both.
        sessions: sessions on these.
        effect: the difference to be found.
        between: variance of the true difference between problems; None if no problem was repeated.
        within: variance within problems, of both agents together; likewise.
        spread: variance of the differences as observed; None below two problems.
        detectable: the difference that the problems and repeats of the log find with 80 % power; None below
            six problems, since nothing is significant there.
        needed: the problems needed, by repeats; one entry if repeats cannot be told from other variance.
        reason: why there is no number.
    """

    first: str
    second: str
    group: Mapping[str, str]
    outcome: str
    problems: int
    sessions: int
    effect: float
    between: float | None = None
    within: float | None = None
    spread: float | None = None
    detectable: float | None = None
    needed: tuple[Needed, ...] = ()
    reason: str | None = None


def needed(variance: float, effect: float) -> int:
    """Problems for 80 % power, given the variance of the difference on one problem."""
    return max(FEWEST, math.ceil(_z() ** 2 * variance / effect**2 + _level() ** 2 / 2))


def detectable(variance: float, problems: int) -> float | None:
    """The difference that is found with 80 % power; None below six problems."""
    if problems < FEWEST:
        return None
    return _z() * math.sqrt(variance / (problems - _level() ** 2 / 2))


def power(
    source: Columns | Iterable[Trajectory],
    effect: float,
    *,
    names: Sequence[str] = (),
    label: str = "agent",
    outcome: str = OUTCOME,
    taus: Sequence[int] = (1, 2, 3),
    pair_by: PairBy = "problem",
) -> tuple[Power, ...]:
    """What comparisons of agents can find, for each two agents of each group.

    Args:
        source: the sessions.
        effect: the difference to be found, in the unit of the outcome.
        names: the agents; all that work with a human if empty.
        label: the label that tells the agents apart.
        outcome: the quantity.
        taus: tolerances τ of drops.
        pair_by: as for ``compare``.

    Raises:
        InvalidInput: the effect is not above 0, or an agent or an outcome is unknown.
    """
    if not 0 < effect < math.inf:
        raise InvalidInput(f"effect must be more than 0, got {effect:g}")
    facts = Facts(source)
    columns = facts.columns
    quantities = quantities_of(facts, taus)
    if outcome not in quantities:
        raise InvalidInput(f"unknown outcome {outcome!r}{suggestion(outcome, quantities)}")
    coded = columns.labels.get(label)
    rows = np.flatnonzero(~columns.baseline & ~columns.state.flags(FORGOTTEN.__eq__))
    there = sorted({} if coded is None else coded.counts(rows))
    for name in names:
        if name not in there:
            raise InvalidInput(f"unknown {label} {name!r}{suggestion(name, there)}")
    chosen = list(dict.fromkeys(names)) or there
    if coded is None or len(chosen) < 2:
        raise InvalidInput(
            f"power compares two agents; the sessions have {', '.join(there) or 'none'}"
        )
    problems = columns.problem if pair_by == "problem" else columns.instance
    empty = np.array([value == "" for value in problems.values] + [True])
    keys = np.where(empty[problems.codes], -1, problems.codes)
    values = quantities[outcome]
    found = []
    for group, members in columns.grouped(rows, held_labels(columns, label)):
        of = {name: members[coded.flags(name.__eq__)[members]] for name in chosen}
        found += [
            _power(
                (first, values[of[first]], keys[of[first]]),
                (second, values[of[second]], keys[of[second]]),
                group,
                outcome,
                effect,
            )
            for index, first in enumerate(chosen)
            for second in chosen[index + 1 :]
            if len(of[first]) and len(of[second])
        ]
    return tuple(found)


def _power(
    one: tuple[str, Floats, Integers],
    other: tuple[str, Floats, Integers],
    group: Mapping[str, str],
    outcome: str,
    effect: float,
) -> Power:
    sides = [_side(values, problems) for _, values, problems in (one, other)]
    shared = sorted(sides[0].keys() & sides[1].keys())
    at = [[side[problem] for problem in shared] for side in sides]
    empty = Power(
        first=one[0],
        second=other[0],
        group=group,
        outcome=outcome,
        problems=len(shared),
        sessions=sum(len(some) for side in at for some in side),
        effect=effect,
    )
    if len(shared) < 2:
        unknown = any((problems < 0).any() for _, _, problems in (one, other))
        reason = "fewer than two problems were played by both"
        if unknown:
            reason += "; of some sessions the problem is not known (--pair-by instance)"
        return msgspec.structs.replace(empty, reason=reason)
    means = [np.array([some.mean() for some in side]) for side in at]
    spread = float((means[1] - means[0]).var(ddof=1))
    parts = [
        variance_components(
            np.concatenate(side), np.repeat(np.arange(len(side)), [len(some) for some in side])
        )
        for side in at
    ]
    found = msgspec.structs.replace(
        empty, spread=spread, detectable=detectable(spread, len(shared))
    )
    if parts[0] is None or parts[1] is None:
        return msgspec.structs.replace(
            found, needed=(Needed(repeats=1, problems=needed(spread, effect)),)
        )
    within = parts[0].within + parts[1].within
    averaged = sum(
        part.within * float(np.mean([1 / len(some) for some in side]))
        for part, side in zip(parts, at, strict=True)
        if part is not None
    )
    between = max(0.0, spread - averaged)
    return msgspec.structs.replace(
        found,
        between=between,
        within=within,
        needed=tuple(
            [Needed(repeats=r, problems=needed(between + within / r, effect)) for r in REPEATS]
        ),
    )


def _side(values: Floats, problems: Integers) -> dict[int, Floats]:
    """The values of each problem that is known."""
    rows = np.flatnonzero(~np.isnan(values) & (problems >= 0))
    rows = rows[np.argsort(problems[rows], kind="stable")]
    starts = np.flatnonzero(np.diff(problems[rows])) + 1
    return {int(problems[some[0]]): values[some] for some in np.split(rows, starts) if len(some)}


def _z() -> float:
    return _level() + NormalDist().inv_cdf(POWER)


def _level() -> float:
    return NormalDist().inv_cdf(1 - SIGNIFICANCE / 2)
