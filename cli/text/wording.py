"""Short texts for values from a log, safe to print on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from rich.text import Text

from ...engine.display import clean, shorten
from ...engine.events import JSON, ActionResolved
from ...engine.text import quantity

__all__ = (
    "call_text",
    "one_line",
    "outcome_text",
    "pairs_text",
    "truncated",
    "with_reason",
)

_NAME = 200  # characters of a name
_VALUE = 40  # of an argument
_OBSERVATION = 60  # of an observation
_LINE = 200  # of a line of an output


def one_line(text: str) -> str:
    """A name on one line."""
    return shorten(text, _NAME)


def with_reason(text: str, reason: str | None) -> str:
    """A text, followed by its reason if there is one."""
    return f"{text}: {clean(reason)}" if reason else text


def truncated(line: str, *, full: bool) -> str:
    """A line of an output, truncated if it is very long and ``full`` is not set."""
    return clean(line) if full or len(line) <= _LINE else clean(line[: _LINE - 1]) + "…"


def call_text(name: str, arguments: Mapping[str, JSON]) -> Text:
    """An action with its arguments, in the form of a call."""
    values = ", ".join(f"{one_line(key)}={_value(value)}" for key, value in arguments.items())
    return Text(f"{one_line(name)}({values})", style="dim")


def outcome_text(event: ActionResolved, seconds: float) -> Text:
    """The outcome of an action, and how long it took."""
    if event.outcome == "failed":
        return Text(with_reason("failed", event.error or "no reason given"), style="red")
    if event.outcome == "cancelled":
        return Text("cancelled, since the session was closed", style="dim")
    took = f" ({seconds:.1f} s)" if seconds >= 0.05 else ""
    return Text(f"{_observation(event.observation)}{took}", style="dim")


def pairs_text(values: Mapping[str, JSON]) -> str:
    """Names with their values, separated by commas."""
    return ", ".join(f"{one_line(name)} {_value(value)}" for name, value in values.items())


def _value(value: JSON) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return shorten(text, _VALUE)


def _observation(observation: JSON) -> str:
    """A summary of an observation: how many rows or items, or the beginning of a text."""
    if observation is None:
        return "done"
    if isinstance(observation, str):
        return shorten(observation, _OBSERVATION) or "done"
    if isinstance(observation, Mapping):
        rows = observation.get("rows")
        if isinstance(rows, Sequence) and not isinstance(rows, str):
            return quantity(len(rows), "row")
        return shorten(pairs_text(observation), _OBSERVATION) or "done"
    if isinstance(observation, Sequence):
        return quantity(len(observation), "item")
    return _value(observation)
