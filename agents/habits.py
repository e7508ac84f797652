"""Habits of an ideal agent, as switches (paper, section 2.1).

Each switch controls a habit in a task's rules and a line in the prompts of agents on models. The task's
rules define what the habit means in that task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ..engine.errors import InvalidInput
from ..engine.text import suggestion

__all__ = ("HABITS", "USUAL", "Habits", "read_habits")

HABITS: Mapping[str, str] = {
    "assumptions": "says what it takes for granted",
    "doubts": "says what it is not sure of",
    "goals": "asks about goals again",
    "level": "adapts to what the human follows",
}
"""The habits, each with the behaviour of an agent that has it."""

_OFF = "no-"


class Habits(msgspec.Struct, frozen=True, kw_only=True):
    """Which habits an agent has.

    Attributes:
        assumptions: exposes its assumptions, so that they can be corrected.
        doubts: flags what it is not certain of, or could not do.
        goals: asks about goals again once something has been seen.
        level: adapts what it says to what the human follows.
    """

    assumptions: bool = True
    doubts: bool = True
    goals: bool = True
    level: bool = True

    def changed(self, changes: Mapping[str, bool]) -> Habits:
        """These habits with some of them changed.

        Raises:
            InvalidInput: there is no such habit.
        """
        for name in changes:
            _check(name)
        return msgspec.structs.replace(self, **changes)


USUAL: Final = Habits()
"""All of them."""


def read_habits(text: str) -> dict[str, bool]:
    """The changes in a text such as ``no-assumptions+goals``.

    Raises:
        InvalidInput: there is no such habit.
    """
    found = {part.removeprefix(_OFF): not part.startswith(_OFF) for part in text.split("+")}
    for name in found:
        _check(name)
    return found


def _check(name: str) -> None:
    if name not in HABITS:
        raise InvalidInput(f"unknown habit {name!r}{suggestion(name, HABITS)}")
