"""The shared state of a thread, and the part of it that is the shared output."""

from __future__ import annotations

from typing import final

from ...engine import codec
from ...engine.events import JSON
from .json_patch import parse_pointer, set_at, value_at, without

__all__ = ("SharedState", "is_blank")


def is_blank(value: JSON) -> bool:
    """Whether there is nothing in a value yet."""
    return value is None or (isinstance(value, (str, dict, list)) and not value)


@final
class SharedState:
    """The state that an app and its front end share.

    A log holds the shared output as snapshots, and what else there is of the state beside it.

    Args:
        output: where the shared output is in it, as a JSON Pointer; empty for all of it.

    Raises:
        InvalidInput: ``output`` is no pointer.
    """

    def __init__(self, output: str = "") -> None:
        self.tokens = parse_pointer(output)
        self.output = output
        self.part: JSON = None
        self.rest: JSON = {} if self.tokens else None

    @property
    def whole(self) -> JSON:
        """All of it; an empty object before anything is in it."""
        if not self.tokens:
            return {} if self.part is None else self.part
        return self.rest if self.part is None else set_at(self.rest, self.tokens, self.part)

    def split(self, whole: JSON) -> tuple[JSON, JSON]:
        """The output and the rest of another state."""
        if not self.tokens:
            return whole, None
        return value_at(whole, self.tokens), without(whole, self.tokens)

    def changes(self, whole: JSON) -> tuple[bool, bool]:
        """Whether the output, and the rest, of another state differ from these."""
        part, rest = self.split(whole)
        return _differ(part, self.part), _differ(rest, self.rest)

    def take_part(self, part: JSON) -> None:
        """The output is this now."""
        self.part = part

    def take_rest(self, rest: JSON) -> None:
        """The rest is this now."""
        self.rest = rest


def _differ(one: JSON, other: JSON) -> bool:
    return codec.digest(one) != codec.digest(other)
