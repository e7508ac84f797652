"""What is compared of a session, and how two agents differ in it on the same instances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from duolog.scoring.comparison.pairs import Difference, paired_difference
from duolog.scoring.comparison.sensitivity import Missing, ratings_as
from duolog.scoring.metrics.formal import formal_values
from duolog.scoring.metrics.numbers import mean
from duolog.scoring.trajectory.points import Trajectory, counted

__all__ = (
    "RULES",
    "Quantity",
    "Rule",
    "difference",
    "drop",
    "final",
    "minutes",
    "rounds_to_first",
    "utility",
    "utility_after",
)

Quantity: TypeAlias = Callable[[Trajectory], float | None]
Rule: TypeAlias = tuple[int, Missing]
"""A rating rule: the least rating that counts as progress, and what a missing one counts as."""

RULES: Final[tuple[Rule, ...]] = tuple(
    [(least, missing) for least in (2, 3, 4) for missing in ("satisfactory", "unsatisfactory")]
)
"""Those of ``duolog report --sensitivity``."""


def utility(item: Trajectory) -> float | None:
    """Overall utility."""
    values = formal_values(item, ())
    return None if values is None else values.overall


def final(item: Trajectory) -> float | None:
    """The utility with which it ends."""
    values = formal_values(item, ())
    return None if values is None else values.final


def utility_after(item: Trajectory, rounds: int) -> float | None:
    """The utility that stands after so many rounds; of a shorter session, that with which it ends."""
    values = formal_values(item, ())
    if values is None:
        return None
    return values.utilities[min(rounds, len(values.utilities)) - 1]


def drop(tau: int, rule: Rule = (3, "satisfactory")) -> Quantity:
    """D@τ under a rating rule."""

    def dropped(item: Trajectory) -> float | None:
        values = formal_values(ratings_as(item, *rule), (tau,))
        return None if values is None else values.drop(0)

    return dropped


def minutes(item: Trajectory) -> float | None:
    """The human's time."""
    seconds = item.points[-1].effort.get("seconds") if item.points else None
    return None if seconds is None else seconds / 60.0


def rounds_to_first(item: Trajectory) -> float | None:
    """The round of the first update; the last one where there is none."""
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
    instances = sorted(
        set.intersection(*(set(one) for one in first), *(set(one) for one in second))
    )
    return paired_difference(
        name,
        [_mean(quantity, (one[i] for one in first)) for i in instances],
        [_mean(quantity, (one[i] for one in second)) for i in instances],
        bootstrap=resamples,
        seed=name,
    )


def _mean(quantity: Quantity, items: Iterable[Trajectory]) -> float | None:
    return mean([value for item in items if (value := quantity(item)) is not None])
