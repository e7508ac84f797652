"""Counts the steps of a computation, so that a test can bound its cost without looking at a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from _typeshed import TraceFunction

P = ParamSpec("P")
T = TypeVar("T")


def count_lines(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[int, T]:
    """The number of Python lines that a call runs, in all functions together, and its result.

    A C function within one line counts once; for comparisons use ``Counted``.
    """
    lines = 0

    def trace(frame: FrameType, event: str, arg: object) -> TraceFunction:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = call(*args, **kwargs)
    finally:
        sys.settrace(before)
    return lines, result


class Counted(str):
    """A text that counts how often texts of its kind were compared or hashed.

    Attributes:
        steps: how often, since it was set to 0.
    """

    steps = 0

    def __eq__(self, other: object) -> bool:
        Counted.steps += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        Counted.steps += 1
        return str.__hash__(self)
