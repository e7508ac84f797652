"""Which tests run first, and in which process, so that no core is idle at the end.

pytest-xdist gives each process an equal part of the list, in order, and a process without work then takes half of
what another one has left. So each part begins with its share of the long and the slow tests, and ends with quick
ones, which are easily shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import pytest

__all__ = ("dealt",)

FIRST = ("long", "slow")
"""Markers of tests that run before the others, in this order."""

LAST = "late"
"""The marker of tests that run after all others."""

COSTLY = "litellm_at_work"
"""A fixture that costs seconds in each process that needs it: its tests stay together."""


def dealt(tests: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """The tests in the order in which they are to be given to this many processes.

    Tests of one file stay together, since they may share what is expensive to set up. Of the long tests, each is
    dealt alone.
    """
    parts: list[list[pytest.Item]] = [[] for _ in range(processes)]
    ends: list[list[pytest.Item]] = [[] for _ in range(processes)]
    quick: list[pytest.Item] = []
    place_of: dict[str, int] = {}
    for place, test in sorted(((_place(test), test) for test in tests), key=itemgetter(0)):
        if place == len(FIRST):
            quick.append(test)
            continue
        emptiest = min(range(processes), key=lambda at: len(parts[at]))
        at = place_of.setdefault(_together(test), emptiest)
        (parts if place < len(FIRST) else ends)[at].append(test)
    left, ordered = len(tests), list[pytest.Item]()
    for at, (part, end) in enumerate(zip(parts, ends, strict=True)):
        room = left // (processes - at)  # as pytest-xdist divides them
        filling = max(0, room - len(part) - len(end)) if at < processes - 1 else len(quick)
        ordered += [*part, *quick[:filling], *end]
        del quick[:filling]
        left -= room
    return ordered


def _place(test: pytest.Item) -> int:
    marks = {mark.name for mark in test.iter_markers()}
    if LAST in marks:
        return len(FIRST) + 1
    found = next((at for at, name in enumerate(FIRST) if name in marks), len(FIRST))
    return min(found, FIRST.index("slow")) if _is_costly(test) else found


def _is_costly(test: pytest.Item) -> bool:
    return COSTLY in getattr(test, "fixturenames", ())


def _together(test: pytest.Item) -> str:
    """The key that tests of one process share."""
    if _is_costly(test):
        return COSTLY
    return test.nodeid if test.get_closest_marker("long") else str(test.path)
