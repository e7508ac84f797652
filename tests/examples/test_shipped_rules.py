"""The rules of control that tasks ship: fitted on seeds 1 to 5 alone, on the task's scorer as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from duolog import examples
from duolog.agents.rules_file import read_rules, rules_text, shipped_rules
from duolog.engine.task import Cell, Setting, find_task

TASKS = ("data", "finance", "proof", "travel", "tutoring")


@pytest.mark.parametrize("name", TASKS)
def test_shipped_rules_say_what_they_were_fitted_on(name: str) -> None:
    path = Path(str(examples.__path__[0])) / name / "control.toml"
    found = read_rules(path, task=name)
    assert found.fitted is not None
    assert set(found.fitted.seeds) <= {1, 2, 3, 4, 5}
    assert {"proactive", "feedback", "lazy"} <= set(found.fitted.users)
    assert rules_text(found) == path.read_text(encoding="utf-8")
    assert shipped_rules(f"duolog.examples.{name}") == found.rules
    cell = Cell(agent="adaptive", user="lazy", instance="0", seed=1)
    scorers = find_task(name).session(cell, Setting()).scorers
    scorer = scorers[0].ref
    assert found.fitted.scorer == f"{scorer.name}@{scorer.version}"
