"""The quantities of a session, and how two agents differ in them on the same instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from duolog.scoring.columns.table import Floats, column_of
from duolog.scoring.comparison.pairs import Difference, paired_difference
from duolog.scoring.comparison.sensitivity import Missing
from duolog.scoring.metrics.formal import formal_values
from duolog.scoring.metrics.numbers import mean
from duolog.scoring.metrics.values import Facts, Reading
from duolog.scoring.trajectory.points import Trajectory, counted

__all__ = (
    "RULES",
    "Quantity",
    "Rule",
    "difference",
    "drop",
    "final",
    "gain",
    "means",
    "minutes",
    "rounds_to_first",
    "row_means",
    "token_ratio",
    "unproductive",
    "utility",
    "utility_after",
)

Quantity: TypeAlias = Callable[[Sequence[Trajectory]], Floats]
"""Gives a number for each session; not a number if it is missing."""

Rule: TypeAlias = tuple[int, Missing]
"""A rating rule: the least rating that counts as progress, and the value of a missing one."""

RULES: Final[tuple[Rule, ...]] = tuple(
    [(least, missing) for least in (2, 3, 4) for missing in ("productive", "unproductive")]
)
"""Those of ``duolog report --sensitivity``."""


def utility(items: Sequence[Trajectory]) -> Floats:
    """Overall utility."""
    return formal_values(Facts(items), ()).overall


def final(items: Sequence[Trajectory]) -> Floats:
    """The utility with which they end."""
    return formal_values(Facts(items), ()).final


def gain(items: Sequence[Trajectory]) -> Floats:
    """Overall utility less that of the first update."""
    return formal_values(Facts(items), ()).gain


def unproductive(least: int) -> Quantity:
    """The share of rated rounds that are rated below ``least``."""

    def share(item: Trajectory) -> float | None:
        return mean([float(p.rating < least) for p in counted(item) if p.rating is not None])

    return lambda items: column_of(map(share, items))


def token_ratio(items: Sequence[Trajectory]) -> Floats:
    """Tokens that the agent generated for each token of the human."""
    return _spent("token_ratio", items)


def utility_after(items: Sequence[Trajectory], rounds: int) -> Floats:
    """The utility after a number of rounds; for a shorter session, its final utility."""
    facts = Facts(items)
    return np.where(facts.valued, facts.at(np.minimum(facts.last, rounds)), np.nan)


def drop(tau: int, rule: Rule = (3, "productive")) -> Quantity:
    """D@τ under a rating rule."""

    def dropped(items: Sequence[Trajectory]) -> Floats:
        reading = Reading(rule[0], rule[1] == "unproductive")
        values = formal_values(Facts(items), (tau,), reading)
        lost: Floats = values.stops[tau] - values.reference
        return lost

    return dropped


def minutes(items: Sequence[Trajectory]) -> Floats:
    """The human's time."""
    return _spent("seconds", items) / 60.0


def rounds_to_first(items: Sequence[Trajectory]) -> Floats:
    """The round of the first update; the last round if no update was made."""

    def first(item: Trajectory) -> float:
        points = counted(item)
        return float(next((one.round for one in points if one.updated), len(points)))

    return column_of(map(first, items))


def _spent(measure: str, items: Sequence[Trajectory]) -> Floats:
    """The effort of each session by its end."""
    return column_of(item.points[-1].effort.get(measure) if item.points else None for item in items)


def difference(
    name: str,
    quantity: Quantity,
    first: Sequence[Mapping[str, Trajectory]],
    second: Sequence[Mapping[str, Trajectory]],
    *,
    resamples: int,
) -> Difference:
    """How the second sessions differ from the first: by instance, averaged over people.

    Args:
        name: of what is compared, which seeds the resampling.
        quantity: what is compared.
        first: sessions of one agent by instance, for each person.
        second: those of the other, for the same people.
        resamples: for the interval.
    """
    return paired_difference(name, *means(quantity, first, second), bootstrap=resamples, seed=name)


def means(
    quantity: Quantity,
    first: Sequence[Mapping[str, Trajectory]],
    second: Sequence[Mapping[str, Trajectory]],
) -> tuple[Floats, Floats]:
    """The means over people of two agents, one for each instance that all of them played."""
    instances = sorted(
        set.intersection(*(set(one) for one in first), *(set(one) for one in second))
    )
    return _means(quantity, first, instances), _means(quantity, second, instances)


def _means(
    quantity: Quantity, people: Sequence[Mapping[str, Trajectory]], instances: Sequence[str]
) -> Floats:
    values = quantity([one[instance] for instance in instances for one in people])
    return row_means(values.reshape(len(instances), len(people)))


def row_means(values: Floats) -> Floats:
    """The mean of each row, without what is missing."""
    return column_of(mean(row[~np.isnan(row)].tolist()) for row in values)
