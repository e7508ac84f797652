"""The habits of agents: read from a name, and told to agents on models."""

from __future__ import annotations

import pytest
from duolog.agents.habits import HABITS, USUAL, Habits, read_habits
from duolog.agents.model_mind import habit_lines, prompt_digest
from duolog.engine.errors import InvalidInput
from duolog.engine.task import Brief


def test_habits_are_switched_on_and_off_by_name() -> None:
    changes = read_habits("no-assumptions+goals")
    assert changes == {"assumptions": False, "goals": True}
    assert Habits(goals=False).changed(changes) == Habits(assumptions=False)
    assert USUAL.changed({}) == USUAL
    with pytest.raises(InvalidInput, match=r"unknown habit 'golas'.*goals"):
        read_habits("golas")


def test_each_habit_is_a_line_of_what_models_are_told() -> None:
    lines = habit_lines(USUAL).splitlines()
    assert len(lines) == len(HABITS)
    for name in HABITS:
        without = habit_lines(USUAL.changed({name: False})).splitlines()
        assert len(without) == len(HABITS) - 1
        assert set(without) < set(lines)


def test_the_digest_of_what_models_are_told_covers_habits() -> None:
    brief = Brief(description="a trip", output="a plan")
    assert prompt_digest(brief) == prompt_digest(brief, USUAL)
    assert prompt_digest(brief) != prompt_digest(brief, Habits(level=False))
