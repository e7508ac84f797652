"""The settings of an agent that cells name as ``KIND:SETTING``: its rules of control, and its habits."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..engine.errors import InvalidInput
from ..engine.events import JSON
from ..engine.settings import mismatch
from ..engine.task import Cell, Setting
from ..scoring.control_rules import ControlRules
from .habits import Habits

__all__ = ("AgentSettings", "agent_settings")


class AgentSettings(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The settings of a variant of a kind of agent.

    Attributes:
        rules: the adaptive agent's rules; None for the task's rules.
        habits: the habits to switch on or off, by name; the task decides the others.
    """

    rules: ControlRules | None = None
    habits: Mapping[str, bool] = {}

    def over(self, rules: ControlRules | None, habits: Habits) -> tuple[ControlRules, Habits]:
        """The rules and habits of an agent in a task with the given rules and habits.

        Raises:
            InvalidInput: there is no such habit.
        """
        return self.rules or rules or ControlRules(), habits.changed(self.habits)


def agent_settings(cell: Cell, setting: Setting) -> AgentSettings:
    """The settings of a cell's agent.

    Raises:
        InvalidInput: the setting says something else there.
    """
    variant = setting.variants.get(cell.agent)
    if variant is None:
        return AgentSettings()
    try:
        return msgspec.convert(_renamed(variant.settings), AgentSettings)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"the settings of agent {cell.agent} are not valid: {mismatch(error)}"
        ) from None


def _renamed(settings: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The settings under their present names: older logs call it *defer* if the agent yields."""
    rules = settings.get("rules")
    if isinstance(rules, Mapping) and rules.get("first") == "defer":
        return {**settings, "rules": {**rules, "first": "yield"}}
    return settings
