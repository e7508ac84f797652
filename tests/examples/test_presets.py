"""The presets of the paper's experiment: each is read whole, and says who plays on which model."""

from __future__ import annotations

from pathlib import Path

import pytest
from duolog.engine.task import find_task
from duolog.experiments.spec import read_experiments

PRESETS = sorted((Path(__file__).parents[2] / "examples" / "presets").glob("*.toml"))


def test_there_is_one_for_each_model_of_the_paper() -> None:
    assert [path.stem for path in PRESETS] == [
        "paper-claude-3-5-sonnet",
        "paper-claude-sonnet-4",
        "paper-gpt-4o",
        "paper-llama-3-1-70b",
    ]


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_a_preset_is_the_setting_of_the_paper(path: Path) -> None:
    [preset] = read_experiments(str(path))
    task = find_task(preset.task)
    preset.check(task)
    assert preset.agents == ("auto", "one-stage", "two-stage")
    assert preset.user_model == preset.judge_model == "openai/gpt-4o-2024-08-06"
    assert (preset.limits.rounds, preset.patience, preset.stop_at) == (30, "off", None)
    assert len(list(preset.cells(task))) == 3 * 100
    uses = preset.setting().uses
    assert {use.temperature for use in uses.values()} == {0.0}
    assert preset.log == f"{path.stem}.db"
    assert f"duolog run examples/presets/{path.name} " in path.read_text(encoding="utf-8")
