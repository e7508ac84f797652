"""The player of a cell's human: rules, a model, or rules in a model's place."""

from __future__ import annotations

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.models import Models
from duolog.engine.models.rehearsal import Rehearsal
from duolog.engine.task import Brief, Cell, Setting
from duolog.users.players import user_player

BRIEF = Brief(description="A toast.", output="Two sentences.")
REHEARSAL = Rehearsal()


def test_a_task_without_rules_needs_a_model() -> None:
    cell = Cell(agent="one-stage", user="lazy", instance="0", seed=1)
    with pytest.raises(InvalidInput, match="ships no rules for users: name a model for them"):
        user_player("s", cell, Setting(), brief=BRIEF)


def test_a_model_is_recorded_as_who_plays() -> None:
    cell = Cell(agent="one-stage", user="lazy", instance="0", seed=1, user_model="m")
    player = user_player("s", cell, Setting(models=Models(REHEARSAL)), brief=BRIEF)
    assert (player.participant.model, player.participant.policy) == ("m", "model")
    assert player.participant.prompt


def test_without_rules_nothing_can_be_rehearsed() -> None:
    cell = Cell(agent="one-stage", user="lazy", instance="0", seed=1, user_model="m")
    setting = Setting(models=Models(REHEARSAL), rehearsal=REHEARSAL)
    with pytest.raises(InvalidInput, match=r"no rules for users that could play .* model 'm'"):
        user_player("s", cell, setting, brief=BRIEF)
