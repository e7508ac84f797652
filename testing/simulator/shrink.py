"""Cuts a failing scenario down to the operations and faults without which it does not fail."""

from __future__ import annotations

from collections.abc import Callable

from .scenario import Scenario

__all__ = ("shrink",)


def shrink(scenario: Scenario, fails: Callable[[Scenario], bool], *, most: int = 400) -> Scenario:
    """The smallest scenario that was found to fail.

    Halves, then single operations and faults are left out for as long as it fails without them.

    Args:
        scenario: one that fails.
        fails: runs one, and says whether it fails.
        most: runs that this may take.
    """
    size = max(len(scenario.operations), len(scenario.faults)) // 2 or 1
    while True:
        smaller = None
        for candidate in _without(scenario, size):
            if most <= 0:
                return scenario
            most -= 1
            if fails(candidate):
                smaller = candidate
                break
        if smaller is not None:
            scenario = smaller
        elif size > 1:
            size //= 2
        else:
            return scenario


def _without(scenario: Scenario, size: int) -> list[Scenario]:
    """The scenario without each stretch of a number of operations or faults."""
    numbers = [each.number for each in scenario.operations]
    indices = list(range(len(scenario.faults)))
    fewer_faults = [
        scenario.only(numbers, indices[:at] + indices[at + size :])
        for at in range(0, len(indices), size)
    ]
    return fewer_faults + [
        scenario.only(numbers[:at] + numbers[at + size :], indices)
        for at in range(0, len(numbers), size)
    ]
