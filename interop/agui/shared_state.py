"""The shared state of a thread, and the part of it that is the shared output."""

from __future__ import annotations

from typing import NamedTuple, final

from ...engine import codec
from ...engine.events import JSON
from .json_patch import parse_pointer, set_at, value_at, without

__all__ = ("Change", "SharedState", "is_blank")


def is_blank(value: JSON) -> bool:
    """Whether there is nothing in a value yet."""
    return value is None or (isinstance(value, (str, dict, list)) and not value)


class Change(NamedTuple):
    """The output and the rest of a state, and whether each of them differs from before."""

    part: JSON
    rest: JSON
    edited: bool
    moved: bool


@final
class SharedState:
    """The state that an app and its front end share.

    A log holds the shared output as snapshots, and the rest of the state separately.

    Args:
        output: where the shared output is in it, as a JSON Pointer; empty for all of it.

    Raises:
        InvalidInput: ``output`` is not a pointer.
    """

    def __init__(self, output: str = "") -> None:
        self.tokens = parse_pointer(output)
        self.output = output
        self.part: JSON = None
        self.rest: JSON = {} if self.tokens else None
        self._digests = (codec.digest(self.part), codec.digest(self.rest))

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

    def change_to(self, whole: JSON) -> Change:
        """The changes between the held state and a new one."""
        part, rest = self.split(whole)
        digests = (codec.digest(part), codec.digest(rest))
        edited, moved = (new != old for new, old in zip(digests, self._digests, strict=True))
        return Change(part, rest, edited, moved)

    def take_part(self, part: JSON) -> None:
        """Sets the output."""
        self.part = part
        self._digests = (codec.digest(part), self._digests[1])

    def take_rest(self, rest: JSON) -> None:
        """The rest is this now."""
        self.rest = rest
        self._digests = (self._digests[0], codec.digest(rest))
