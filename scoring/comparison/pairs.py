"""Agents compared in pairs: the same instance, played by each of them.

Instance i of a task is the same problem in every cell of an experiment, so the difference of two
agents on it is free of how hard it is. Per quantity:

    d_i  = x_i(second) - x_i(first)             over the instances i that both played
    mean = 1/n Σ d_i                            with a seeded percentile bootstrap over instances
    p    = a paired permutation test of it      (scipy.stats.permutation_test: signs of d_i flipped)
    d_z  = mean / standard deviation of d_i     (Cohen 1988), the effect size
    need = instances for 80 % power             (statsmodels TTestPower, two-sided, level 5 %)

The p-values of all that is printed together are adjusted by Holm's method (Holm 1979). Tests and power
need the extra ``analytics``; without it these values are missing, and the others are the same. A session
that plays an instance again is averaged with the others of its agent. Differences whose value is
missing on either side are left out and counted.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec

import msgspec
import numpy as np

from ...engine.errors import InvalidInput
from ...engine.installation import install_command
from ..columns.table import Coded, Columns, Floats, Integers
from ..metrics.formal import formal_values
from ..metrics.numbers import mean, sem
from ..metrics.results import Estimate
from ..metrics.sample import Sample
from ..metrics.values import Facts
from ..trajectory.points import Trajectory
from ..trajectory.tolerance import check_taus

__all__ = (
    "POWER",
    "SIGNIFICANCE",
    "Comparison",
    "Difference",
    "compare",
    "holm",
    "paired_difference",
)

POWER = 0.8
SIGNIFICANCE = 0.05

_RESAMPLES = 9999  # of the permutation test, where not all permutations can be tried


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How two agents differ in one quantity.

    Attributes:
        quantity: its name: ``overall``, ``first``, ``final``, ``gain``, ``drop@τ``, ``all_rounds``,
            ``agent_tokens`` or ``seconds``.
        pairs: instances with a value on both sides.
        first: mean of the first agent over these.
        second: mean of the second.
        difference: mean of second - first, with its interval.
        p: p-value of the permutation test; None where there are no two pairs, and without the extra
            ``analytics``, as are ``adjusted`` and ``needed``.
        adjusted: the p-value adjusted by Holm's method.
        effect: d_z; None where the differences do not vary.
        needed: instances that 80 % power takes if the effect is as large as seen; None where there
            is no effect to find.
    """

    quantity: str
    pairs: int
    first: float | None
    second: float | None
    difference: Estimate
    p: float | None = None
    adjusted: float | None = None
    effect: float | None = None
    needed: int | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two agents beside each other, where all else is the same.

    Attributes:
        first: the label's value of the first agent.
        second: that of the second.
        label: the label that tells them apart, ``agent`` by default.
        group: the other labels, which both share.
        pairs: instances that both played.
        unpaired: sessions of either agent on instances that the other did not play, by agent.
        differences: one per quantity.
        untested: why no difference was tested; None where they were.
    """

    first: str
    second: str
    label: str
    group: Mapping[str, str]
    pairs: int
    unpaired: Mapping[str, int]
    differences: tuple[Difference, ...]
    untested: str | None = None


def compare(
    source: Columns | Iterable[Trajectory],
    names: Sequence[str],
    *,
    label: str = "agent",
    taus: Sequence[int] = (1, 2, 3),
    bootstrap: int = 1000,
    seed: int = 0,
) -> tuple[Comparison, ...]:
    """Compares the named agents, each with each, in every group of sessions that has them.

    Args:
        source: the sessions; those without an instance are in no pair.
        names: values of the label, at least two; each is compared with those after it.
        label: the label that tells the agents apart.
        taus: tolerances τ to compare the drop at.
        bootstrap: resamples for the intervals; 0 for none.
        seed: seeds bootstrap and permutations.

    Returns:
        One comparison per pair of names and group, in this order.

    Raises:
        InvalidInput: fewer than two names, or one that no session has.
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
            known = ", ".join(sorted(there)) or "none"
            raise InvalidInput(f"no session has {label} {name!r} to compare; there are: {known}")
    assert coded is not None
    quantities = _quantities(facts, check_taus(taus))
    rows = np.flatnonzero(coded.codes >= 0)
    groups = columns.grouped(rows, sorted(name for name in columns.labels if name != label))
    untested = _untested()
    found = []
    for group, members in groups:
        agents = {
            name: members[coded.flags(name.__eq__)[members]] for name in ordered if name in there
        }
        found += [
            _compared(
                (first, agents[first]),
                (second, agents[second]),
                label,
                group,
                columns.instance,
                quantities,
                bootstrap,
                seed,
                untested,
            )
            for index, first in enumerate(ordered)
            for second in ordered[index + 1 :]
            if len(agents[first]) and len(agents[second])
        ]
    return _adjusted(found)


def _untested() -> str | None:
    """Why differences cannot be tested here; None where they can."""
    if all(find_spec(name) for name in ("scipy", "statsmodels")):
        return None
    return f"tests and power need an extra: {install_command('analytics')}"


def _quantities(facts: Facts, taus: Sequence[int]) -> dict[str, Floats]:
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
    instances: Coded[str],
    quantities: Mapping[str, Floats],
    bootstrap: int,
    seed: int,
    untested: str | None,
) -> Comparison:
    (first, ones), (second, others) = one, other
    both = instances.counts(ones).keys() & instances.counts(others).keys()
    shared = sorted(both - {""})
    place = {instance: at for at, instance in enumerate(shared)}
    at = np.array([place.get(instance, -1) for instance in instances.values])
    return Comparison(
        first=first,
        second=second,
        label=label,
        group=group,
        pairs=len(shared),
        unpaired={name: int((at[instances.codes[rows]] < 0).sum()) for name, rows in (one, other)},
        differences=tuple(
            [
                paired_difference(
                    name,
                    _means(quantity[ones], at[instances.codes[ones]], len(shared)),
                    _means(quantity[others], at[instances.codes[others]], len(shared)),
                    bootstrap=bootstrap,
                    seed=f"{seed}/{name}/{first}/{second}/{sorted(group.items())}",
                    tested=untested is None,
                )
                for name, quantity in quantities.items()
            ]
        ),
        untested=untested,
    )


def _means(values: Floats, instance: Integers, count: int) -> Floats:
    """A quantity by instance: the mean over its sessions that have it."""
    there = (instance >= 0) & ~np.isnan(values)
    sums = np.bincount(instance[there], values[there], count)
    with np.errstate(invalid="ignore"):
        return sums / np.bincount(instance[there], minlength=count)


def paired_difference(
    quantity: str,
    ones: Floats,
    others: Floats,
    *,
    bootstrap: int,
    seed: str,
    tested: bool = True,
) -> Difference:
    """How two agents differ in one quantity; the p-value is not adjusted.

    Args:
        quantity: its name.
        ones: values of the first agent, one for each instance; not a number if there is none.
        others: values of the second, in the same order.
        bootstrap: resamples for the interval; 0 for none.
        seed: seeds bootstrap and permutations.
        tested: whether there is to be a p-value, which needs the extra ``analytics``.
    """
    both = ~np.isnan(ones) & ~np.isnan(others)
    column = (others - ones)[both].tolist()
    sample = Sample({"difference": np.array(column)}, bootstrap, seed)
    centre = mean(column)
    spread = (sem(column) or 0.0) * math.sqrt(len(column))
    effect = centre / spread if centre is not None and spread > 1e-12 else None
    return Difference(
        quantity=quantity,
        pairs=len(column),
        first=mean(ones[both].tolist()),
        second=mean(others[both].tolist()),
        difference=sample.estimate(
            "difference", absent="no instance has a value on both sides of the pair"
        ),
        p=_permuted(column, seed) if tested else None,
        effect=effect,
        needed=_needed(effect) if tested else None,
    )


def _permuted(column: Sequence[float], seed: str) -> float | None:
    """P of a paired permutation test, two-sided: exact where all sign flips can be tried."""
    if len(column) < 2:
        return None
    if not any(column):
        return 1.0
    stats = import_module("scipy.stats")
    result = stats.permutation_test(
        (np.asarray(column), np.zeros(len(column))),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=_RESAMPLES,
        rng=np.random.default_rng(zlib.crc32(seed.encode())),
    )
    return min(1.0, float(result.pvalue))


def _needed(effect: float | None) -> int | None:
    """Instances for 80 % power of a paired t-test of this effect size."""
    if not effect or not math.isfinite(effect):
        return None
    power = import_module("statsmodels.stats.power")
    if abs(effect) > 5:
        return 3  # the solver leaves its range; three pairs are the fewest with such an effect
    found = power.TTestPower().solve_power(abs(effect), alpha=SIGNIFICANCE, power=POWER)
    return math.ceil(float(found if isinstance(found, float) else found.item()))


def holm(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    """The differences with their p-values adjusted by Holm's method, all of them together."""
    raw = [each.p for each in differences if each.p is not None]
    if not raw:
        return tuple(differences)
    multitest = import_module("statsmodels.stats.multitest")
    values = iter([float(p) for p in multitest.multipletests(raw, method="holm")[1]])
    return tuple(
        [
            each if each.p is None else msgspec.structs.replace(each, adjusted=next(values))
            for each in differences
        ]
    )


def _adjusted(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons with the p-values of all of them adjusted together."""
    adjusted = iter(holm([each for found in comparisons for each in found.differences]))
    return tuple(
        [
            msgspec.structs.replace(
                found, differences=tuple([next(adjusted) for _ in found.differences])
            )
            for found in comparisons
        ]
    )
