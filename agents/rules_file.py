"""The adaptive agent's rules file, as ``duolog tune`` writes it: readable, and with its origin."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from ..engine.errors import InvalidInput
from ..engine.events import JSON
from ..engine.settings import mismatch, settings_in, settings_text
from ..scoring.control_rules import ControlRules

__all__ = ("FittedRules", "Fitting", "read_rules", "rules_text", "shipped_rules")

_SHIPPED: Final = "control.toml"


class Fitting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How rules were fitted.

    Attributes:
        task: the task they were fitted on.
        scorer: whose utility counted, as ``name@version``.
        duolog: version of the package.
        users: kinds of users.
        seeds: the seeds of the worlds.
        sessions: instances of each seed, with each kind of user.
        trials: rules that were tried.
        optimiser: by what, and its version.
        seed: the seed of the optimiser.
        drop: weight of the drop at τ = 2.
        price: utility that a minute of the human's time is worth.
        behind: weight of being worse than one of the other agents in one quantity.
        score: the score of these rules; see ``experiments.tuning``.
        utility: mean overall utility, by kind of user.
    """

    task: str
    scorer: str
    duolog: str
    users: tuple[str, ...]
    seeds: tuple[int, ...]
    sessions: int
    trials: int
    optimiser: str
    seed: int
    drop: float
    price: float
    behind: float = 0.0
    score: float
    utility: Mapping[str, float]


class FittedRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file's content: the rules and how they were fitted; the latter is missing if written by hand."""

    rules: ControlRules
    fitted: Fitting | None = None


def read_rules(path: Path, *, task: str | None = None) -> FittedRules:
    """The rules in a file.

    Args:
        path: the path of the file.
        task: that they are for; None for whichever.

    Raises:
        InvalidInput: it cannot be read, is no such file, or was fitted on another task.
    """
    found = _read(settings_text(path), str(path))
    if task is not None and found.fitted is not None and found.fitted.task != task:
        raise InvalidInput(f"the rules in {path} were fitted on {found.fitted.task}, not on {task}")
    return found


def shipped_rules(package: str) -> ControlRules:
    """The rules in ``control.toml`` in a task's package; read them when the package is imported.

    Args:
        package: the package of the task: ``__package__``.
    """
    return _read((files(package) / _SHIPPED).read_text(encoding="utf-8"), _SHIPPED).rules


def rules_text(fitted: FittedRules) -> str:
    """The text of a file."""
    task = fitted.fitted.task if fitted.fitted is not None else "a task"
    parts: list[tuple[str, Mapping[str, JSON]]] = [
        ("rules", {k: v for k, v in msgspec.to_builtins(fitted.rules).items() if v is not None})
    ]
    if fitted.fitted is not None:
        how = msgspec.to_builtins(fitted.fitted)
        parts += [("fitted", how), ("fitted.utility", how.pop("utility"))]
    lines = [f"# Rules of the adaptive agent in {task}; see docs/agents.md."]
    for name, table in parts:
        lines += ["", f"[{name}]", *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _read(text: str, name: str) -> FittedRules:
    settings = settings_in(text, name)
    try:
        return msgspec.convert(settings, FittedRules)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{name} holds invalid rules: {mismatch(error)}") from None
    except InvalidInput as error:
        raise InvalidInput(f"{name} holds invalid rules: {error}") from None


def _value(value: JSON) -> str:
    """A number, text or list in TOML, which writes these as JSON does."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return msgspec.json.encode(value).decode()
