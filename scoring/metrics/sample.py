"""Columns of numbers, one row per session: their means, formulas of these, and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Self, final

from .bootstrap import Resamples
from .numbers import mean, sem
from .results import Estimate

if TYPE_CHECKING:
    from .bootstrap_arrays import Floats

__all__ = ("Column", "Sample")

Column = Sequence[float | None]
"""A number per session; None where the session has none and stays out of the mean."""

_MANY_DRAWS = 1 << 18
"""So many draws of sessions are worth loading NumPy for, if it is installed."""


def _alone(value: float) -> float:
    return value


@final
class Sample:
    """The sessions of a group as columns, all in one order of sessions.

    The numbers are the same with NumPy and without, to the bit.

    Args:
        columns: the columns, all of one length.
        resamples: bootstrap resamples; 0 for no intervals.
        seed: what the resampling is seeded with.
    """

    def __init__(self, columns: Mapping[str, Column], resamples: int, seed: str) -> None:
        present = {
            name: [value for value in column if value is not None]
            for name, column in columns.items()
        }
        self._counts = {name: len(values) for name, values in present.items()}
        self._means = {name: mean(values) for name, values in present.items()}
        self._sem: Callable[[str], float | None] = lambda name: sem(present[name])
        # Each column has a lane for its values; and one for who has a value, unless all have.
        lanes: list[Sequence[float]] = []
        self._lanes: dict[str, tuple[int, int | None]] = {}
        for name, column in columns.items():
            counted = None
            if len(present[name]) < len(column):
                counted = len(lanes)
                lanes.append([float(value is not None) for value in column])
            self._lanes[name] = (len(lanes), counted)
            lanes.append([0.0 if value is None else float(value) for value in column])
        self._resamples = _resampled(lanes, resamples, seed)
        self._without: frozenset[str] = frozenset()

    @classmethod
    def of_arrays(
        cls,
        columns: Mapping[str, Floats],
        resamples: int,
        seed: str,
        *,
        intervals: Collection[str] | None = None,
    ) -> Self:
        """A sample of NumPy's arrays, for very many sessions; not a number is a missing value.

        Means may differ from those of lists in the last bits; draws do not.

        Args:
            columns: the columns, all of one length.
            resamples: as above.
            seed: as above.
            intervals: the columns that intervals are wanted of; None for all.
        """
        import numpy as np

        from .bootstrap_arrays import resampled_sums

        made = cls({}, 0, "")
        lanes: list[Floats] = []
        wanted: set[int] = set()
        for name, column in columns.items():
            missing = np.isnan(column)
            made._counts[name] = len(column) - int(missing.sum())
            counted = None
            if made._counts[name] < len(column):
                counted = len(lanes)
                lanes.append((~missing).astype(np.float64))
                column = np.where(missing, 0.0, column)
            made._lanes[name] = (len(lanes), counted)
            if intervals is None or name in intervals:
                wanted |= {len(lanes), len(lanes) if counted is None else counted}
            lanes.append(column)
            count = made._counts[name]
            made._means[name] = float(column.sum() / count) if count else None
        made._sem = lambda name: _array_sem(columns[name])
        n = len(lanes[0]) if lanes else 0
        if resamples and n > 1:
            sums = resampled_sums(lanes, resamples, seed, only=wanted).tolist()
            made._resamples = Resamples.of_sums(sums, n)
        made._without = frozenset(columns) - frozenset(columns if intervals is None else intervals)
        return made

    def count(self, name: str) -> int:
        """How many sessions have a value in a column."""
        return self._counts[name]

    def sem(self, name: str) -> float | None:
        """The standard error of a column's mean; None for fewer than two values."""
        return self._sem(name)

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
        if not self._without.isdisjoint(names):
            return Estimate(value=value, sessions=sessions)
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


def _resampled(lanes: Sequence[Sequence[float]], resamples: int, seed: str) -> Resamples:
    n = len(lanes[0]) if lanes else 0
    if n > 1 and n * resamples >= _MANY_DRAWS:
        try:
            import numpy as np

            from .bootstrap_arrays import resampled_sums
        except ModuleNotFoundError:
            pass  # the standard library gives the same numbers
        else:
            arrays = [np.array(lane, np.float64) for lane in lanes]
            return Resamples.of_sums(resampled_sums(arrays, resamples, seed).tolist(), n)
    return Resamples(list(zip(*lanes, strict=True)) if resamples else [], resamples, seed)


def _array_sem(column: Floats) -> float | None:
    import numpy as np

    present = column[~np.isnan(column)]
    return float(present.std(ddof=1) / math.sqrt(len(present))) if len(present) > 1 else None
