"""Messages as the conventions show them: a role and parts, written as JSON into one attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from ...engine.events import JSON

__all__ = ("message", "text_part", "written")

_encode = msgspec.json.Encoder().encode


def written(value: JSON) -> str:
    """A value as the JSON text that an attribute can hold."""
    return _encode(value).decode()


def text_part(text: str) -> Mapping[str, JSON]:
    """A part of a message that is text."""
    return {"type": "text", "content": text}


def message(
    role: Literal["user", "assistant"], parts: Sequence[JSON], finish: JSON = None
) -> Mapping[str, JSON]:
    """A message; with why the model ended it, if a model did."""
    made: dict[str, JSON] = {"role": role, "parts": parts}
    if finish is not None:
        made["finish_reason"] = finish
    return made
