"""Values of events as HTML: arguments and observations in JSON, and the named parts of a score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ....engine.display import shorten
from ....engine.events import JSON
from ....engine.text import text_of
from ..markup.html import Html, tag
from ..markup.text import plain

__all__ = ("arguments_text", "facts", "parts_text", "value_block")

_SHORT: Final = 120
_PART: Final = 60


def arguments_text(arguments: Mapping[str, JSON]) -> str:
    """Arguments on one line, shortened."""
    return shorten(", ".join(f"{key} {_short(value)}" for key, value in arguments.items()), _SHORT)


def _short(value: JSON) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def value_block(value: JSON) -> Html:
    """A value in full: a text as it is, else as JSON."""
    return plain(text_of(value))


def facts(value: JSON, depth: int = 3) -> Html:
    """A value for people to read: names with what they stand for, lists as lists, and texts."""
    if isinstance(value, Mapping) and value and depth:
        rows = [
            (tag("dt", shorten(key.replace("_", " "), _PART)), tag("dd", facts(one, depth - 1)))
            for key, one in value.items()
        ]
        return tag("dl", rows)
    if isinstance(value, list | tuple) and value and depth:
        return tag("ul", [tag("li", facts(one, depth - 1)) for one in value], class_="facts")
    if isinstance(value, str | int | float) and len(str(value)) <= _SHORT:
        return tag("span", shorten(str(value), _SHORT), dir="auto")
    return value_block(value)


def parts_text(parts: Mapping[str, float | None]) -> Html | None:
    """The named parts of a score; None where there are none."""
    if not parts:
        return None
    rows = [
        tag(
            "tr",
            tag("th", shorten(name, _PART), scope="row", dir="auto"),
            tag("td", "missing" if value is None else f"{value:.3f}", class_="number"),
        )
        for name, value in parts.items()
    ]
    return tag("table", tag("tbody", rows), class_="parts")
