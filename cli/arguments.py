"""Reads the values of options, and formats the examples below a command's help."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

from ..engine.errors import InvalidInput

__all__ = (
    "CONCURRENCY",
    "FILTERS",
    "MOST_RESAMPLES",
    "choices",
    "example",
    "for_model",
    "numbers",
    "one_of",
    "only_one",
    "seconds_in",
)

FILTERS = """\b
Filters, of which a session has to meet all:
  agent=auto,two-stage   a label is one of these; != for none of them
  session=menu-1*        also task, instance; * matches anything
  state=open,failed      open, finished, abandoned, ended, limit, tolerance,
                         stalled, failed, cancelled, forgotten
  utility=0.5..0.8       also ..0.3, 0.5.., none, or '>=0.5' in quotes
  rounds=5..             also events, and lasted in seconds
  cost=..0.5             the agent's cost in dollars; also latency, the median
                         seconds until it answers; none if it is not known
  tau=2                  this tolerance is used up; tau alone: any of 1 to 3
  tag=wrong-goal         a tag by a reviewer; also reviewer=anna, rated=..2;
                         none for sessions without one
  dinner                 a text in id, task, instance, state or labels"""
"""What filters there are, for the help."""

CONCURRENCY = 32
"""Sessions at the same time, if an option or a file says nothing else."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}

MOST_RESAMPLES = 100_000
"""Of a bootstrap: a minute or two for a hundred sessions, and intervals that move no more."""

_Name = TypeVar("_Name", bound=str)


def example(*commands: str, note: str = "") -> str:
    """The epilog of a command's help: example commands, a line each, and a note."""
    lines = ["\b", "Example:" if len(commands) == 1 else "Examples:"]
    text = "\n".join([*lines, *(f"  {command}" for command in commands)])
    return f"{text}\n\n{note}" if note else text


def choices(text: str, what: str) -> list[str]:
    """The names in a comma-separated option, each once, in order.

    Raises:
        InvalidInput: there is none.
    """
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise InvalidInput(f"{what} is empty: name at least one, separated by commas")
    return names


def only_one(given: Mapping[_Name, bool]) -> _Name | None:
    """The option that is given, if any.

    Raises:
        InvalidInput: several are.
    """
    chosen = [name for name, wanted in given.items() if wanted]
    if len(chosen) > 1:
        raise InvalidInput(f"{' and '.join(f'--{name}' for name in chosen)} cannot be combined")
    return chosen[0] if chosen else None


def one_of(text: str, what: str, known: Iterable[str]) -> list[str]:
    """The names in a comma-separated option, all of which have to be known.

    Raises:
        InvalidInput: there is none, or one that is not known.
    """
    names = choices(text, what)
    from ..engine.text import suggestion  # here, since a help needs none of what it loads

    listed = list(known)
    for name in names:
        if name not in listed:
            raise InvalidInput(f"{what}: unknown value {name!r}{suggestion(name, listed)}")
    return names


def for_model(text: str | None, model: str | None) -> bool:
    """Whether ``--text-actions`` names the one model that a command has.

    Raises:
        InvalidInput: it names another.
    """
    if text is None:
        return False
    for name in choices(text, "--text-actions"):
        if name != model:
            asked = "no model is named" if model is None else f"the model is {model!r}"
            raise InvalidInput(f"--text-actions names {name!r}, but {asked}; name the same in both")
    return True


def numbers(text: str, what: str) -> tuple[int, ...]:
    """The whole numbers in a comma-separated option, each at least 1, each once, in order.

    Raises:
        InvalidInput: there is none, or something else.
    """
    found = []
    for name in choices(text, what):
        if not name.isdecimal() or int(name) < 1:
            raise InvalidInput(
                f"{what} expects whole numbers from 1, separated by commas, got {name!r}"
            )
        found.append(int(name))
    return tuple(dict.fromkeys(found))


def seconds_in(text: str, what: str) -> float:
    """A duration such as ``90s``, ``30m``, ``12h``, ``7d`` or ``2w``, in seconds.

    Raises:
        InvalidInput: it is something else, or not above 0.
    """
    number, unit = text.strip()[:-1], _UNITS.get(text.strip()[-1:])
    try:
        seconds = float(number) * unit if unit is not None else math.nan
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InvalidInput(
            f"{what} expects a duration such as 90s, 30m, 12h, 90d or 2w, got {text!r}"
        )
    return seconds
