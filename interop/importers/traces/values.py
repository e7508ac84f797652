"""Values in spans, which may be JSON in a string."""

from __future__ import annotations

from typing import Final

import msgspec

from ....engine.events import JSON

__all__ = ("value_of",)

_DEPTH: Final = 3  # how often one value may be JSON in a string


def value_of(held: JSON) -> JSON:
    """A value, which may be JSON in a string, and that in a string again."""
    for _ in range(_DEPTH):
        if not isinstance(held, str) or held[:1] not in ('"', "{", "["):
            break
        try:
            held = msgspec.json.decode(held)
        except (msgspec.DecodeError, RecursionError):
            break
    return held
