"""D@τ of groups of sessions under any reading of the ratings, on NumPy's arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, final

import numpy as np

from .values import Reading

if TYPE_CHECKING:
    from .folding import Array, Flags, FoldedRounds

__all__ = ("DropsOfGroups",)

_SAME: Final = 12
"""Digits to which drops are compared: their parts are not added up in the order of the fold."""


@final
class DropsOfGroups:
    """D@τ of several groups at once, as often as ratings are read in another way.

    Args:
        rounds: of all sessions.
        sessions: those with a utility: the columns ``in_group`` (its number), ``place`` (-1 without
            rounds), ``final``, ``last``, ``left_early`` and ``result_only``.
        groups: how many groups there are.
    """

    def __init__(self, rounds: FoldedRounds, sessions: Mapping[str, Array], groups: int) -> None:
        self._rounds = rounds
        self._groups = groups
        self._group, self._place = sessions["in_group"], sessions["place"]
        self._final, self._last = sessions["final"], sessions["last"]
        self._whole = ~sessions["result_only"]
        self._stays = self._whole & ~sessions["left_early"]

    def under(self, reading: Reading, taus: Sequence[int]) -> dict[int, list[float | None]]:
        """By tolerance, D@τ of each group where ratings are read in some way; None where it is missing."""
        reached = self._rounds.reached(reading, taus)
        rated = self._of_each(self._rounds.judged(reading))
        judged = self._count(rated)
        drops: dict[int, list[float | None]] = {}
        for tau in taus:
            at = self._of_each(reached[tau])
            stops = np.flatnonzero(self._whole & (at > 0))
            known = self._count(
                self._whole & (at > 0) | self._stays & (rated | (self._last <= tau))
            )
            lost = self._rounds.utility_at(self._place[stops], at[stops], math.nan)
            lost -= self._final[stops]
            sums = np.bincount(self._group[stops], lost, self._groups)
            drops[tau] = [
                round(total / count, _SAME) if some and count else None
                for total, count, some in zip(sums.tolist(), known, judged, strict=True)
            ]
        return drops

    def _of_each(self, column: Array) -> Array:
        """What rounds give, by session; 0 for one without rounds, whose place is -1."""
        return np.append(column, np.zeros(1, column.dtype))[self._place]

    def _count(self, which: Flags) -> list[int]:
        """How many sessions of each group are among some."""
        counts: list[int] = np.bincount(self._group[which], minlength=self._groups).tolist()
        return counts
