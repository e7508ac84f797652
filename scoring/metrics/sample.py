"""Columns of numbers, one row per session: their means, formulas of these, and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import final

from .bootstrap import Resamples
from .numbers import mean
from .results import Estimate

__all__ = ("Column", "Sample")

Column = Sequence[float | None]
"""A number per session; None where the session has none and stays out of the mean."""


def _alone(value: float) -> float:
    return value


@final
class Sample:
    """The sessions of a group as columns, all in one order of sessions.

    Args:
        columns: the columns, all of one length.
        resamples: bootstrap resamples; 0 for no intervals.
        seed: what the resampling is seeded with.
    """

    def __init__(self, columns: Mapping[str, Column], resamples: int, seed: str) -> None:
        self._present = {
            name: [value for value in column if value is not None]
            for name, column in columns.items()
        }
        self._means = {name: mean(values) for name, values in self._present.items()}
        # Each column has a lane for its values; and one for who has a value, unless all have.
        lanes: list[Sequence[float]] = []
        self._lanes: dict[str, tuple[int, int | None]] = {}
        for name, column in columns.items():
            counted = None
            if len(self._present[name]) < len(column):
                counted = len(lanes)
                lanes.append([float(value is not None) for value in column])
            self._lanes[name] = (len(lanes), counted)
            lanes.append([0.0 if value is None else float(value) for value in column])
        rows = list(zip(*lanes, strict=True)) if resamples else []
        self._resamples = Resamples(rows, resamples, seed)

    def count(self, name: str) -> int:
        """How many sessions have a value in a column."""
        return len(self._present[name])

    def values(self, name: str) -> Sequence[float]:
        """The values of a column, of the sessions that have one."""
        return self._present[name]

    def estimate(
        self,
        *names: str,
        formula: Callable[..., float | None] = _alone,
        absent: str = "no session has a value",
        undefined: str = "the formula is undefined",
    ) -> Estimate:
        """Estimates a formula of column means.

        Args:
            names: the columns whose means the formula takes, in order.
            formula: the formula; gives None (or infinity) where it is undefined. By default, the
                mean itself.
            absent: the reason to give where a column holds no value.
            undefined: the reason to give where the formula is undefined.
        """
        means = [self._means[name] for name in names]
        sessions = min(self.count(name) for name in names)
        if any(value is None for value in means):
            return Estimate(sessions=sessions, reason=absent)
        value = formula(*means)
        if value is None or not math.isfinite(value):
            return Estimate(sessions=sessions, reason=undefined)
        lanes = [self._lanes[name] for name in names]
        n = self._resamples.sessions

        def resampled(sums: Sequence[float]) -> float | None:
            again = []
            for lane, counted in lanes:
                size = n if counted is None else sums[counted]
                if not size:
                    return None
                again.append(sums[lane] / size)
            value = formula(*again)
            return None if value is None or not math.isfinite(value) else value

        low, high = self._resamples.interval(resampled) or (None, None)
        return Estimate(value=value, low=low, high=high, sessions=sessions)
