"""The quantities of a session, and how two agents differ in them on the same instances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    "token_ratio",
    "unproductive",
    "utility",
    "utility_after",
)

Quantity: TypeAlias = Callable[[Trajectory], float | None]
Rule: TypeAlias = tuple[int, Missing]
"""A rating rule: the least rating that counts as progress, and the value of a missing one."""

RULES: Final[tuple[Rule, ...]] = tuple(
    [(least, missing) for least in (2, 3, 4) for missing in ("productive", "unproductive")]
)
"""Those of ``duolog report --sensitivity``."""


def utility(item: Trajectory) -> float | None:
    """Overall utility."""
    return _of(formal_values(Facts([item]), ()).overall)


def final(item: Trajectory) -> float | None:
    """The utility with which it ends."""
    return _of(formal_values(Facts([item]), ()).final)


def gain(item: Trajectory) -> float | None:
    """Overall utility less that of the first update."""
    values = formal_values(Facts([item]), ())
    return _of(values.overall - values.first)


def unproductive(least: int) -> Quantity:
    """The share of rated rounds that are rated below ``least``."""

    def share(item: Trajectory) -> float | None:
        return mean([float(p.rating < least) for p in counted(item) if p.rating is not None])

    return share


def token_ratio(item: Trajectory) -> float | None:
    """Tokens that the agent generated for each token of the human."""
    return item.points[-1].effort.get("token_ratio") if item.points else None


def utility_after(item: Trajectory, rounds: int) -> float | None:
    """The utility after a number of rounds; for a shorter session, its final utility."""
    facts = Facts([item])
    return _of(facts.at(np.minimum(facts.last, rounds))) if facts.valued[0] else None


def drop(tau: int, rule: Rule = (3, "productive")) -> Quantity:
    """D@τ under a rating rule."""

    def dropped(item: Trajectory) -> float | None:
        reading = Reading(rule[0], rule[1] == "unproductive")
        values = formal_values(Facts([item]), (tau,), reading)
        return _of(values.stops[tau] - values.reference)

    return dropped


def _of(column: Floats) -> float | None:
    """The number of the only session."""
    return None if np.isnan(column[0]) else float(column[0])


def minutes(item: Trajectory) -> float | None:
    """The human's time."""
    seconds = item.points[-1].effort.get("seconds") if item.points else None
    return None if seconds is None else seconds / 60.0


def rounds_to_first(item: Trajectory) -> float | None:
    """The round of the first update; the last round if no update was made."""
    points = counted(item)
    return float(next((one.round for one in points if one.updated), len(points)))


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
    return (
        column_of(_mean(quantity, (one[i] for one in first)) for i in instances),
        column_of(_mean(quantity, (one[i] for one in second)) for i in instances),
    )


def _mean(quantity: Quantity, items: Iterable[Trajectory]) -> float | None:
    return mean([value for item in items if (value := quantity(item)) is not None])
