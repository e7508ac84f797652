"""The settings of an agent's variant, as they were recorded."""

from __future__ import annotations

import pytest
from duolog.agents.settings import agent_settings
from duolog.engine.errors import InvalidInput
from duolog.engine.task import AgentVariant, Cell, Setting


def settings_of(first: str) -> object:
    name = "adaptive:mine"
    variant = AgentVariant(settings={"rules": {"first": first}})
    cell = Cell(agent=name, user="lazy", instance="1", seed=1)
    found = agent_settings(cell, Setting(variants={name: variant}))
    assert found.rules is not None
    return found.rules.first


def test_an_agent_that_deferred_in_an_older_log_yields() -> None:
    assert [settings_of(first) for first in ("defer", "yield", "ask")] == ["yield", "yield", "ask"]


def test_another_word_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match=r"settings of agent adaptive:mine are not valid: .*first"
    ):
        settings_of("wait")
