"""The sessions of a group as columns of numbers: means, formulas of these, and their intervals.

Intervals are seeded percentile bootstraps over sessions, or over problems if problems repeat: sessions on one
problem are then drawn together. A session is drawn whole: all columns are
resampled together, so that a ratio of means is resampled as such. A resample is kept as how often each
session was drawn; the sums of all columns are then one product. The draws do not depend on the order
of the sessions: rows are put in order by their contents first.

For more than ``LARGE`` sessions, intervals are linearised: the variance of a formula is that of its
first-order expansion at the means (the delta method), and the interval is symmetric. At that size it
agrees with the bootstrap to within the error of the resampling.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Final, NamedTuple, TypeAlias, final

import numpy as np

from ..columns.table import Array, Floats, Integers
from .numbers import mean, quantile, sem
from .results import Estimate

__all__ = (
    "LARGE",
    "LEVEL",
    "Column",
    "Sample",
    "change",
    "difference",
    "draws",
    "interval",
    "ratio",
)

LEVEL: Final = 0.95
"""Coverage of the intervals."""

LARGE: Final = 20_000
"""Sessions of a group above which intervals are linearised."""

_LEAST_DEFINED: Final = 0.95
"""Share of resamples in which a formula has to be defined for an interval."""

_CHUNK: Final = 1 << 21
"""Counts of draws that are held at once."""

_DRAWN: Final = 1 << 14
"""Sessions that are drawn at once."""

_STEP: Final = 1e-30
"""Imaginary step of a derivative: exact, since no two close numbers are subtracted."""

Column: TypeAlias = Floats | Callable[[], Floats]
"""A number per session, not a number if it is missing; or a function that gives it."""

Formula: TypeAlias = Callable[..., Array]
"""A formula of means, on arrays of them; not a number if it is undefined."""


def ratio(part: Array, whole: Array) -> Array:
    """A part relative to a whole."""
    return part / whole


def difference(at: Array, final: Array) -> Array:
    """A number less another one."""
    return at - final


def change(at: Array, final: Array) -> Array:
    """A difference relative to the second number."""
    return (at - final) / final


def _alone(value: Array) -> Array:
    return value


class _Summary(NamedTuple):
    sessions: int
    mean: float
    sem: float | None


@final
class Sample:
    """The sessions of a group as columns, all in one order of sessions.

    Args:
        columns: the columns, all of one length.
        resamples: bootstrap resamples; 0 for no intervals.
        seed: what the resampling is seeded with.
        clusters: which sessions are drawn together, as numbers: those on one problem, if problems repeat;
            -1 for a session that is drawn by itself. None if each is.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        resamples: int,
        seed: str,
        clusters: Integers | None = None,
    ) -> None:
        self._columns = dict(columns)
        self._clusters = None if clusters is None else _numbered(clusters)
        self._resamples = resamples
        self._summaries: dict[str, _Summary] = {}
        self._resampled: dict[str, tuple[Floats, Floats]] = {}
        n = len(self._of(next(iter(columns)))) if columns else 0
        self._sessions = n
        if resamples and 1 < n <= LARGE:
            self._resample(seed)

    def count(self, name: str) -> int:
        """How many sessions have a value in a column."""
        return self._summary(name).sessions

    def sem(self, name: str) -> float | None:
        """The standard error of a column's mean; None for fewer than two values."""
        return self._summary(name).sem

    def estimate(
        self,
        *names: str,
        formula: Formula = _alone,
        absent: str = "no session has a value",
        undefined: str = "the formula is undefined",
    ) -> Estimate:
        """Estimates a formula of column means.

        Args:
            names: the columns whose means the formula takes, in order.
            formula: the formula. By default, the mean itself.
            absent: the reason to give if a column holds no value.
            undefined: the reason to give if the formula is undefined.
        """
        found = [self._summary(name) for name in names]
        sessions = min(one.sessions for one in found)
        if not sessions:
            return Estimate(sessions=sessions, reason=absent)
        means = np.array([one.mean for one in found])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = float(formula(*means))
        if not np.isfinite(value):
            return Estimate(sessions=sessions, reason=undefined)
        low, high = self._interval(names, formula, means, value) or (None, None)
        return Estimate(value=value, low=low, high=high, sessions=sessions)

    def _of(self, name: str) -> Floats:
        column = self._columns[name]
        return np.asarray(column() if callable(column) else column, np.float64)

    def _summary(self, name: str) -> _Summary:
        found = self._summaries.get(name)
        if found is None:
            column = self._of(name)
            present = column[~np.isnan(column)]
            if len(present) > LARGE:
                spread = float(present.std(ddof=1) / np.sqrt(len(present)))
                found = _Summary(len(present), float(present.mean()), spread)
            else:
                values = present.tolist()
                centre = mean(values)
                found = _Summary(len(values), np.nan if centre is None else centre, sem(present))
            self._summaries[name] = found
        return found

    def _interval(
        self, names: Sequence[str], formula: Formula, means: Floats, value: float
    ) -> tuple[float, float] | None:
        if not self._resamples or self._sessions < 2:
            return None
        if self._sessions > LARGE:
            width = NormalDist().inv_cdf((1 + LEVEL) / 2) * self._error(names, formula, means)
            return value - width, value + width
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            again = formula(
                *[sums / counts for sums, counts in map(self._resampled.__getitem__, names)]
            )
        return interval(again)

    def _error(self, names: Sequence[str], formula: Formula, means: Floats) -> float:
        """The standard error of a formula, by its slopes at the means."""
        influence = np.zeros(self._sessions)
        for at, name in enumerate(names):
            stepped = means.astype(complex)
            stepped[at] += 1j * _STEP
            slope = float(np.imag(formula(*stepped)) / _STEP)
            column = self._of(name) - means[at]
            influence += (
                slope / self._summary(name).sessions * np.where(np.isnan(column), 0.0, column)
            )
        if self._clusters is not None:
            influence = np.bincount(self._clusters, influence).astype(np.float64)
        return float(np.sqrt((influence**2).sum()))

    def _resample(self, seed: str) -> None:
        """Sums of each column over resamples, and how many of the drawn sessions have a value."""
        summands: list[Floats] = []
        known: dict[bytes, int] = {}
        places: dict[str, tuple[int, int | None]] = {}
        if (
            self._clusters is not None
        ):  # how many sessions are drawn differs from resample to resample
            known[np.ones(self._sessions, np.bool_).tobytes()] = 0
            summands.append(np.ones(self._sessions))
        for name in self._columns:
            column = self._of(name)
            present = ~np.isnan(column)
            counted = None
            if self._clusters is not None or not present.all():
                counted = known.setdefault(present.tobytes(), len(summands))
                if counted == len(summands):
                    summands.append(present.astype(np.float64))
            places[name] = len(summands), counted
            summands.append(np.where(present, column, 0.0))
        if self._clusters is not None:
            summands = [
                np.bincount(self._clusters, summand).astype(np.float64) for summand in summands
            ]
        rows = np.ascontiguousarray(np.stack(summands, axis=1)) + 0.0  # no negative zero
        rows = rows[np.argsort(rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel())]
        sums = np.concatenate([counts @ rows for counts in draws(len(rows), self._resamples, seed)])
        whole = np.full(len(sums), float(len(rows)))
        self._resampled = {
            name: (sums[:, at], whole if counted is None else sums[:, counted])
            for name, (at, counted) in places.items()
        }


def _numbered(clusters: Integers) -> Integers:
    """Clusters numbered from 0, with one for each session that is drawn by itself."""
    alone = clusters < 0
    own = np.where(alone, clusters.max(initial=0) + 1 + np.cumsum(alone), clusters)
    return np.unique(own, return_inverse=True)[1]


def draws(n: int, resamples: int, seed: str) -> Iterator[Floats]:
    """How often each of n rows is drawn, by resample: seeded, some resamples at a time."""
    chance = np.random.default_rng(
        int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big")
    )
    together = max(1, _CHUNK // n)
    for begin in range(0, resamples, together):
        many = min(together, resamples - begin)
        counts = np.empty((many, n))
        step = max(1, _DRAWN // n)  # few enough numbers that they stay in the caches
        for at in range(0, many, step):
            part = counts[at : at + step]
            drawn = chance.integers(0, n, part.shape, dtype=np.int32)
            drawn += (np.arange(len(part), dtype=np.int32) * n)[:, None]
            part[:] = np.bincount(drawn.ravel(), minlength=part.size).reshape(part.shape)
        yield counts


def interval(values: Floats) -> tuple[float, float] | None:
    """The percentile interval of a statistic over resamples.

    None if the statistic is undefined (not finite) in more than one resample of twenty.
    """
    found = np.sort(values[np.isfinite(values)])
    if not len(found) or len(found) < _LEAST_DEFINED * len(values):
        return None
    return quantile(found, (1 - LEVEL) / 2), quantile(found, (1 + LEVEL) / 2)
