"""Agents with settings of their own, named ``KIND:SETTING``: a file of rules, or habits switched on and off."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from ..agents.habits import HABITS, read_habits
from ..agents.kinds import KINDS
from ..agents.rules_file import read_rules
from ..agents.settings import AgentSettings
from ..engine import codec
from ..engine.errors import InvalidInput
from ..engine.events import SessionOpened
from ..engine.loading import LoadedFrom
from ..engine.task import AgentVariant, Cell, Task, kind_of_agent

__all__ = ("names_variant", "recorded_variants", "variant_name", "variants_of")

_TUNED: Final = "adaptive"


def names_variant(name: str) -> bool:
    """Whether a name is that of a kind of agent with settings of its own."""
    return ":" in name and kind_of_agent(name) in KINDS


def variant_name(name: str) -> str:
    """What cells and reports call it: a file by its name without folders and ending."""
    kind, _, setting = name.partition(":")
    return f"{kind}:{Path(setting).stem}" if _is_file(kind, setting) else name


def variants_of(names: Sequence[str] | None, task: Task) -> dict[str, AgentVariant]:
    """The variants among the names of agents.

    Args:
        names: as they were given on the command line; None where none was.
        task: what they are to play in.

    Raises:
        InvalidInput: a file holds no rules for this task, there is no such habit, or the task has no
            such agent.
    """
    found: dict[str, AgentVariant] = {}
    for name in names or ():
        if names_variant(name):
            kind = kind_of_agent(name)
            if kind not in task.agents:
                known = ", ".join(task.agents)
                raise InvalidInput(f"there is no agent {kind!r} to vary; there are: {known}")
            found[variant_name(name)] = _variant(name, task)
    return found


def recorded_variants(opened: SessionOpened) -> dict[str, AgentVariant]:
    """The variant that played in a recorded session, by its name; empty where none did.

    Raises:
        InvalidInput: the log says something else there.
    """
    config = opened.config
    if "variant" not in config:
        return {}
    try:
        cell = msgspec.convert(config.get("cell"), Cell)
        return {cell.agent: msgspec.convert(config["variant"], AgentVariant)}
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the session does not say which agent played: {error}") from error


def _variant(name: str, task: Task) -> AgentVariant:
    kind, _, setting = name.partition(":")
    if not _is_file(kind, setting):
        try:
            habits = read_habits(setting)
        except InvalidInput as error:
            raise InvalidInput(f"{name}: {error}") from None
        return _recorded(AgentSettings(habits=habits))
    path = Path(setting)
    settings = AgentSettings(rules=read_rules(path, task=task.name).rules)
    return _recorded(
        settings, LoadedFrom(path.name, codec.digest(path.read_text(encoding="utf-8")))
    )


def _recorded(settings: AgentSettings, origin: LoadedFrom | None = None) -> AgentVariant:
    return AgentVariant(settings=msgspec.to_builtins(settings), origin=origin)


def _is_file(kind: str, setting: str) -> bool:
    """Whether what stands behind the colon is a file; only the adaptive agent takes one."""
    habits = {part.removeprefix("no-") for part in setting.split("+")}
    return kind == _TUNED and not habits <= HABITS.keys()
