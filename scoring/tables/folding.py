"""What the rounds of each session give, on NumPy's arrays: all rounds in a row, session after session.

Rounds of a session stand together in a file, and in order, and DuckDB keeps the order of files. So a
session is a stretch of the arrays, and what is asked of each (the first round with an update, the best
utility) is one pass over all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from ...engine.errors import InvalidInput
from .values import USUAL, Reading, reached_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
    Flags = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Integers = NDArray[np.int32]

__all__ = ("ROUNDS", "FoldedRounds")

_CLOSING, _UPDATED, _STALE, _VALUED, _SCORED = 1, 2, 4, 8, 16
_MISSING, _PENDING = 0, 9

ROUNDS: Final = f"""
SELECT key, coalesce(utility, 0) AS utility,
    if(pending, {_PENDING}, coalesce(rating, {_MISSING}))::UTINYINT AS rating,
    (closing::UTINYINT * {_CLOSING} + updated::UTINYINT * {_UPDATED} + stale::UTINYINT * {_STALE}
        + (value IS NOT NULL)::UTINYINT * {_VALUED}
        + (utility IS NOT NULL)::UTINYINT * {_SCORED})::UTINYINT AS flags
FROM rounds
"""
"""The query of the arrays."""


@final
class FoldedRounds:
    """All rounds of all sessions, folded by session.

    A session's place is its number among the sessions with rounds, from 0 and in the order of the
    arrays. Where a round that is asked for is not there, its number is 0.

    Args:
        columns: the arrays of the query ``ROUNDS``.

    Raises:
        InvalidInput: rounds of a session do not stand together.
    """

    def __init__(self, columns: Mapping[str, Array]) -> None:
        key, self._utility = columns["key"], columns["utility"]
        self._flags, self._rating = columns["flags"], columns["rating"]
        begins = np.ones(len(key), np.bool_)
        np.not_equal(key[1:], key[:-1], out=begins[1:])
        self._goes_on = ~begins
        self._starts = np.flatnonzero(begins)
        self._key = key[self._starts]
        if not np.diff(np.sort(self._key)).all():
            raise InvalidInput("rounds of a session do not stand together: export the log anew")
        self._n = np.diff(self._starts, append=len(key)).astype(np.int32)
        self._place = np.repeat(np.arange(len(self._n), dtype=np.int32), self._n)
        self._number = np.arange(1, len(key) + 1, dtype=np.int32)
        self._number -= np.repeat(self._starts.astype(np.int32), self._n)
        self._counts = ~self._has(_CLOSING)
        self._k = self._sum(self._counts)
        self._usual_runs = self._runs(self._bad(USUAL))

    def columns(self, taus: Sequence[int], *, formal: bool) -> dict[str, Array]:
        """What is asked of each session with rounds, by the names of columns.

        Args:
            taus: the tolerances; each has a column of k_τ.
            formal: whether k_τ is that of the formal convention; in the paper's, pending ratings count
                as satisfactory, and closing rounds count.
        """
        updated = self._has(_UPDATED) & self._counts
        valued, stale = self._has(_VALUED), self._has(_STALE)
        missing, pending = self._rating == _MISSING, self._rating == _PENDING
        k = self._k
        if formal:
            reached = self.reached(USUAL, taus)
        else:
            reached = {tau: self._first(self._usual_runs == tau) for tau in taus}
        last = self._starts + np.maximum(k, 1) - 1
        update_at = self._first(updated)
        update_stale = (update_at > 0) & stale[self._starts + np.maximum(update_at, 1) - 1]
        utilities = self._utility
        if not self._counts.all():
            utilities = np.where(self._counts, utilities, -np.inf)
        once = self._sum(valued & self._counts) == 1
        return {
            "key": self._key,
            "place": np.arange(len(self._n), dtype=np.int32),
            "n": self._n,
            "k": k,
            "last_utility": self._utility[last],
            "best": np.maximum.reduceat(utilities, self._starts),
            "update_at": update_at,
            "valued_at": self._first(valued),
            "update_stale": update_stale,
            "first_stale": np.where(update_at > 0, update_stale, stale[last]),
            "unscored": self._flags[self._starts] & _SCORED == 0,
            "result_only": (k > 1) & valued[last] & once & (update_at == 0),
            "rated": self._sum(~missing & ~pending & self._counts) > 0,
            "stale_points": self._sum(stale),
            "missing_ratings": self._sum(missing),
            "pending_ratings": self._sum(pending),
            "closing_rounds": self._n - k,
            **{reached_at(tau): at for tau, at in reached.items()},
        }

    def reached(self, reading: Reading, taus: Sequence[int]) -> dict[int, Integers]:
        """k_τ of each session: tolerance waits for a pending rating, and a closing round counts not."""
        going_on = self._bad(reading)
        lasting, length = going_on.copy(), 1
        going_on &= self._goes_on
        found: dict[int, Integers] = {}
        for tau in sorted(taus):
            while length < tau and lasting.any():
                lasting[1:] = lasting[:-1] & going_on[1:]
                lasting[:1] = False
                length += 1
            found[tau] = self._first(lasting & self._awaited)
        return found

    def judged(self, reading: Reading) -> Flags:
        """Whether each session has any rating."""
        rated = (self._rating != _PENDING) & self._counts
        if reading.missing:
            return self._rated_anywhere & (self._sum(rated) > 0)
        return self._sum(rated & (self._rating != _MISSING)) > 0

    def utility_at(self, place: Integers, number: Integers, without: Floats | float) -> Floats:
        """U_k of sessions, each at a round of its own; not a number where that is 0.

        Args:
            place: of each session; -1 for one without rounds.
            number: of its round.
            without: what stands for U_k where there are no rounds.
        """
        if not len(self._utility):
            return np.where(number > 0, without, np.nan)
        found = self._utility[self._starts[place] + number - 1]
        return np.where(number > 0, np.where(place >= 0, found, without), np.nan)

    def stalls(self, place: Integers) -> tuple[Integers, Integers]:
        """How many rounds without progress in a row end at the rounds of some sessions.

        Args:
            place: of each session; each has a round that counts.

        Returns:
            Of each round that counts; and of the last of each session.
        """
        chosen = np.zeros(len(self._n), np.bool_)
        chosen[place] = True
        rows = np.repeat(chosen, self._n) & self._counts
        return self._usual_runs[rows], self._usual_runs[self._starts[place] + self._k[place] - 1]

    def _has(self, flag: int) -> Flags:
        found: Flags = self._flags & flag != 0
        return found

    def _sum(self, which: Flags) -> Integers:
        """How many rounds of each session are among some."""
        before = np.zeros(len(which) + 1, np.int32)
        np.cumsum(which, out=before[1:])
        found: Integers = np.diff(before[np.append(self._starts, len(which))])
        return found

    def _first(self, which: Flags) -> Integers:
        """The first round of each session that is among some."""
        rows = np.flatnonzero(which)[::-1]
        found = np.zeros(len(self._n), np.int32)
        found[self._place[rows]] = self._number[rows]  # the first is the last that is written
        return found

    @cached_property
    def _awaited(self) -> Flags:
        """Which rounds count, and no rating is pending in them or before them."""
        pending = self._first(self._rating == _PENDING)
        if not pending.any():
            return self._counts
        end = np.where(pending == 0, self._n, pending)
        awaited: Flags = self._counts & (self._number <= np.repeat(end, self._n))
        return awaited

    @cached_property
    def _rated_anywhere(self) -> Flags:
        rated: Flags = (self._rating != _MISSING) & (self._rating != _PENDING)
        found: Flags = self._sum(rated) > 0
        return found

    def _bad(self, reading: Reading) -> Flags:
        """Which rounds lead nowhere."""
        bad: Flags = (self._rating < reading.least) & (self._rating != _MISSING)
        if reading.missing:
            bad |= (self._rating == _MISSING) & np.repeat(self._rated_anywhere, self._n)
        return bad

    def _runs(self, bad: Flags) -> Integers:
        """How many bad rounds in a row end at each round."""
        good = np.arange(1, len(bad) + 1, dtype=np.int32)
        runs = good.copy()
        good[bad] = 0
        good[self._starts] = np.maximum(good[self._starts], self._starts)
        runs -= np.maximum.accumulate(good, out=good)
        return runs
