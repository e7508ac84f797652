"""Assignment of participants to conditions: the least used order of a balanced set."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from math import factorial

from ...engine.events import ConditionAssigned
from .plan import Study

__all__ = ("assign", "latin_square", "orders")

_ALL = 120  # orders that are listed at most: all of five conditions


def latin_square(names: Sequence[str]) -> list[tuple[str, ...]]:
    """The orders of a balanced Latin square (Williams 1949).

    Every condition is at every place equally often, and follows every other one equally often. There are as
    many orders as conditions, or twice as many if their number is odd.
    """
    count = len(names)
    first = [0]
    first += [(step + 1) // 2 if step % 2 else count - step // 2 for step in range(1, count)]
    rows = [[(place + shift) % count for place in first] for shift in range(count)]
    if count % 2 and count > 1:
        rows += [row[::-1] for row in rows]
    return [tuple(names[place] for place in row) for row in rows]


def orders(study: Study) -> list[tuple[str, ...]]:
    """The orders that participants are assigned to."""
    names = [one.name for one in study.condition]
    if study.design == "between":
        return [(name,) for name in names]
    if study.assignment == "random" and factorial(len(names)) <= _ALL:
        return list(permutations(names))
    return latin_square(names)


def assign(
    study: Study, participant: str, before: Sequence[ConditionAssigned]
) -> ConditionAssigned:
    """Assigns a participant to the order that was used least so far.

    Args:
        study: its instances are known, see ``resolved``.
        participant: the pseudonym; decides a random draw, with the study's seed.
        before: the assignments so far.
    """
    known = orders(study)
    used = Counter(one.conditions for one in before)
    least = min(used[order] for order in known)
    free = [order for order in known if used[order] == least]
    draw = random.Random(f"{study.seed} {participant}")
    chosen = draw.choice(free) if study.assignment == "random" else free[0]
    conditions = study.conditions()
    counted = Counter(
        pair for one in before for pair in zip(one.conditions, one.instances, strict=True)
    )
    instances: list[str] = []
    met: set[tuple[str, str]] = set()
    for name in chosen:
        condition = conditions[name]
        # One that they have not met yet in the same task, and that the condition had least often.
        fresh = [one for one in condition.instances if (condition.task, one) not in met]
        counts = {one: counted[name, one] for one in fresh or condition.instances}
        instance = min(counts, key=counts.__getitem__)
        met.add((condition.task, instance))
        instances.append(instance)
    return ConditionAssigned(study=study.name, conditions=chosen, instances=tuple(instances))
