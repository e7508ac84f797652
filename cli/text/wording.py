"""How values out of a log are put into words for a person: briefly, and harmless to a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from rich.text import Text

from ...engine.events import JSON, ActionResolved
from .terminal import clean, shorten

__all__ = ("because", "call", "count", "cut", "listed", "outcome", "plain")

_NAME = 200  # characters of a name
_VALUE = 40  # of an argument
_FOUND = 60  # of an observation
_LINE = 200  # of a line of an output


def plain(text: str) -> str:
    """A name on one line."""
    return shorten(text, _NAME)


def count(number: int, what: str) -> str:
    """So many of something."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def because(text: str, reason: str | None) -> str:
    """A text with its reason, if there is one."""
    return f"{text}: {clean(reason)}" if reason else text


def cut(line: str, *, full: bool) -> str:
    """A line of an output, its end left out if it is very long, unless all of it is wanted."""
    return clean(line) if full or len(line) <= _LINE else clean(line[: _LINE - 1]) + "…"


def call(name: str, arguments: Mapping[str, JSON]) -> Text:
    """An action with its arguments, as one would write a call."""
    told = ", ".join(f"{plain(key)}={_value(value)}" for key, value in arguments.items())
    return Text(f"{plain(name)}({told})", style="dim")


def outcome(event: ActionResolved, seconds: float) -> Text:
    """How an action came out, and how long it took."""
    if event.outcome == "failed":
        return Text(because("failed", event.error or "no reason given"), style="red")
    if event.outcome == "cancelled":
        return Text("cancelled, since the session was closed", style="dim")
    took = f" ({seconds:.1f} s)" if seconds >= 0.05 else ""
    return Text(f"{_found(event.observation)}{took}", style="dim")


def listed(values: Mapping[str, JSON]) -> str:
    """Names with their values."""
    return ", ".join(f"{plain(name)} {_value(value)}" for name, value in values.items())


def _value(value: JSON) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return shorten(text, _VALUE)


def _found(observation: JSON) -> str:
    """An observation in a few words: how much of what, or the beginning of a text."""
    if observation is None:
        return "done"
    if isinstance(observation, str):
        return shorten(observation, _FOUND) or "done"
    if isinstance(observation, Mapping):
        rows = observation.get("rows")
        if isinstance(rows, Sequence) and not isinstance(rows, str):
            return count(len(rows), "row")
        return shorten(listed(observation), _FOUND) or "done"
    if isinstance(observation, Sequence):
        return count(len(observation), "item")
    return _value(observation)
