"""Sparklines: a row of bars, one per round, or several rounds to a bar where there is no room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

__all__ = ("BARS", "last", "sparkline")

BARS = "▁▂▃▄▅▆▇█"
_NONE = "·"


def last(values: Sequence[float | None]) -> float | None:
    """The last value: how several rounds share a bar where the last one counts."""
    return values[-1]


def sparkline(
    values: Sequence[float | None],
    width: int,
    *,
    top: float | None = None,
    several: Callable[[Sequence[float | None]], float | None] = last,
) -> str:
    """Values as bars, at most ``width`` of them; a dot where there is no value.

    Args:
        values: in order, from 0 up.
        width: the most bars; at least 1.
        top: what a full bar stands for; None for the greatest value.
        several: what stands for several values that share a bar.
    """
    if len(values) > width:
        cuts = [round(index * len(values) / width) for index in range(width + 1)]
        values = [several(values[a:b]) for a, b in pairwise(cuts)]
    most = max((value for value in values if value is not None), default=0.0)
    most = most if top is None else top
    return "".join(_NONE if value is None else _bar(value, most) for value in values)


def _bar(value: float, most: float) -> str:
    share = min(max(value / most, 0.0), 1.0) if most > 0 else 0.0
    return BARS[min(int(share * len(BARS)), len(BARS) - 1)]
