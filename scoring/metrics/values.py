"""Facts about the rounds of each session, computed for all sessions at once.

A session is a stretch of the round table. Each fact (the first round with an update, the best
utility, the round at which a tolerance is reached) takes one pass over all rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final, NamedTuple, final

import numpy as np

from ...engine.errors import InvalidInput
from ...engine.rounds import PRODUCTIVE
from ..columns.table import Columns, Flags, Floats, Integers, columns_of
from ..trajectory.points import NO_ROUND, NO_SCORE, NOT_EVALUATED, UNDECIDED, Trajectory
from .survival import LEFT

__all__ = (
    "BROKEN_OFF",
    "MISSING",
    "USUAL",
    "Facts",
    "Reading",
    "Values",
    "facts_of",
)

MISSING: Final = (None, NOT_EVALUATED, NO_ROUND, NO_SCORE, UNDECIDED)
"""Why a session's utility is missing, by the code in ``Facts.missing``; None if it has one."""

BROKEN_OFF: Final = frozenset({"failed", "cancelled", "open"})
"""States of a session that did not come to its end."""


class Reading(NamedTuple):
    """What counts as an unproductive round.

    Attributes:
        least: the least rating that counts as productive.
        missing: whether a missing rating counts as unproductive, in a session that was rated.
    """

    least: int = PRODUCTIVE
    missing: bool = False


USUAL: Final = Reading()
"""As the definitions have it."""


class Values(NamedTuple):
    """The numbers of all sessions under a convention; not a number if one is missing.

    Attributes:
        valued: sessions that have numbers.
        walked: sessions that have a part in the curve.
        last: K, the number of utilities of each session.
        first: U_k', the utility at the first update; 0 under ``formal`` if an output is posed, and no
            agent updated it.
        first_round: k'; 0 if there is none.
        final: U_K.
        overall: the greatest U_k.
        gain: the greatest utility less the first.
        kept: the round whose utility is compared with that at a stop.
        reference: that utility.
        reached: per τ, the round at which it is reached; 0 if it is not.
        stops: per τ, the utility when the human stops; not a number if the convention leaves
            nothing of the session, or if it is not known.
    """

    valued: Flags
    walked: Flags
    last: Integers
    first: Floats
    first_round: Integers
    final: Floats
    overall: Floats
    gain: Floats
    kept: Integers
    reference: Floats
    reached: Mapping[int, Integers]
    stops: Mapping[int, Floats]


@final
class Facts:
    """What follows from columns, whatever the convention.

    Arrays are by session. The number of a round that there is not is 0.

    Args:
        source: the columns, or trajectories.

    Attributes:
        columns: the columns.
        rounds: how many rounds each session has.
        counted: how many of them count for K, utility and tolerance: all but a closing one.
        last: K; 1 for a session without rounds that has a final performance.
    """

    def __init__(self, source: Columns | Iterable[Trajectory]) -> None:
        self.columns = columns = columns_of(source)
        self._starts = columns.starts[:-1]
        self.rounds = np.diff(columns.starts)
        table = columns.rounds
        self._session = np.repeat(np.arange(len(columns), dtype=np.int32), self.rounds)
        self._number = np.arange(1, len(self._session) + 1, dtype=np.int32)
        self._number -= self._starts.astype(np.int32)[self._session]
        self._counts: Flags = ~table.closing | (self._number == 1)
        self.counted = self.sum(self._counts)
        silent = (self.rounds == 0) & ~np.isnan(columns.final)
        self.last = np.where(columns.evaluated, np.where(silent, 1, self.counted), 0)
        unknown = np.isnan(table.utility)
        self._known = np.where(unknown, 0.0, table.utility) if unknown.any() else table.utility

    def take(self, kept: Flags) -> Facts:
        """The facts of some sessions."""
        return self if kept.all() else Facts(self.columns.take(np.flatnonzero(kept)))

    # --- of rounds, by session -------------------------------------------------------------------

    def sum(self, which: Flags) -> Integers:
        """How many rounds of each session are among some."""
        if not which.any():
            return np.zeros(len(self.columns), np.int64)
        before = np.zeros(len(which) + 1, np.int32)
        np.cumsum(which, out=before[1:])
        found: Integers = np.diff(before[self.columns.starts]).astype(np.int64)
        return found

    def first(self, which: Flags) -> Integers:
        """The first round of each session that is among some."""
        rows = np.flatnonzero(which)[::-1]
        found = np.zeros(len(self.columns), np.int64)
        found[self._session[rows]] = self._number[rows]  # the first is written last
        return found

    def at(self, number: Integers, rows: Integers | None = None) -> Floats:
        """U_k of sessions, each at its own round; not a number if that is 0.

        Args:
            number: the number of the round of each session.
            rows: the sessions; None for all.
        """
        final, starts, rounds = self.columns.final, self._starts, self.rounds
        if rows is not None:
            final, starts, rounds = final[rows], starts[rows], rounds[rows]
        if not len(self._known):
            return np.where(number > 0, final, np.nan)
        found = self._known[np.minimum(starts + np.maximum(number, 1), len(self._known)) - 1]
        return np.where(number > 0, np.where(rounds > 0, found, final), np.nan)

    def flag_at(self, which: Flags, number: Integers) -> Flags:
        """Whether the round of each session with that number is among some."""
        found = np.zeros(len(number), np.bool_)
        there = number > 0
        found[there] = which[(self._starts + number - 1)[there]]
        return found

    def runs(self, reading: Reading = USUAL, *, closing: bool = False) -> Integers:
        """How many unproductive rounds in a row end at each round.

        Args:
            reading: what counts as unproductive.
            closing: a closing round counts like any other.
        """
        unproductive = self._unproductive(reading)
        if not closing:
            unproductive &= self._counts
        good = np.arange(1, len(unproductive) + 1, dtype=np.int32)
        runs = good.copy()
        good[unproductive] = 0
        some = self._starts[self.rounds > 0]
        good[some] = np.maximum(good[some], some)
        runs -= np.maximum.accumulate(good, out=good)
        return runs

    def reached(self, taus: Iterable[int], reading: Reading = USUAL) -> dict[int, Integers]:
        """k_τ of each session. Tolerance waits for a pending rating."""
        runs = self._runs if reading == USUAL else self.runs(reading)
        return {tau: self.first((runs == tau) & self._awaited) for tau in taus}

    def rated(self, reading: Reading = USUAL) -> Flags:
        """Whether a rating says anything of a session."""
        return self._judged if reading.missing else self.is_rated

    def stalls(self, rows: Integers) -> tuple[Integers, Integers]:
        """How many unproductive rounds in a row the human has had by the rounds of some sessions.

        A round without a rating leaves the number as it is: people who leave seldom rate the round in
        which they do so, and what they had before is what they leave after.

        Returns:
            Of each round that counts; and of the round in which a human left.
        """
        counted = self.counted[rows]
        before = np.cumsum(counted) - counted
        at = np.repeat(self._starts[rows] - before, counted) + np.arange(counted.sum())
        gone = self.left[rows] & (counted > 0)
        runs = self._rated_runs
        return runs[at], runs[(self._starts[rows] + counted - 1)[gone]]

    def walks(self, measure: str, which: Flags) -> tuple[Floats, Floats, Integers]:
        """The rounds of some sessions that have a measure of effort.

        Args:
            measure: its name.
            which: the sessions; those without such a round are left out.

        Returns:
            Of each round, the effort spent by then and the utility; and where each session begins. An
            estimate of tokens may be corrected to less: what was reached once stays reached.
        """
        spent = self.columns.rounds.effort(measure)
        rows = np.flatnonzero(self._counts & which[self._session] & ~np.isnan(spent))
        session, spent = self._session[rows], spent[rows]
        begins = np.diff(session, prepend=-1) != 0
        starts = np.flatnonzero(begins)
        within = np.arange(len(rows)) - starts[np.cumsum(begins) - 1]
        shift = 1
        while (within >= shift).any():
            before = np.where(within >= shift, np.roll(spent, shift), -np.inf)
            spent = np.maximum(spent, before)
            shift *= 2
        return spent, self._known[rows], starts

    @cached_property
    def deferred(self) -> Floats:
        """Deferrals of each session in rounds that follow an unproductive one; not a number if unrated."""
        spent = self.columns.rounds.effort("deferrals")
        if not len(spent):
            return np.full(len(self.columns), np.nan)
        later = self._number > 1
        made = spent - np.where(later, np.roll(spent, 1), 0.0)
        after = later & np.roll(self._unproductive(USUAL), 1)
        found = np.bincount(self._session, np.where(after, made, 0.0), len(self.columns))
        return np.where(self.is_rated, found, np.nan)

    def _unproductive(self, reading: Reading) -> Flags:
        rating, pending = self.columns.rounds.rating, self.columns.rounds.pending
        unproductive: Flags = (rating < reading.least) & (rating > 0)
        if reading.missing:
            unproductive |= (rating == 0) & ~pending & self._rated_anywhere[self._session]
        return unproductive

    @cached_property
    def _rated_anywhere(self) -> Flags:
        return self.sum(self.columns.rounds.rating > 0) > 0

    @cached_property
    def _awaited(self) -> Flags:
        """Which rounds count, with no rating pending before them."""
        pending = self.first(self.columns.rounds.pending)
        if not pending.any():
            return self._counts
        end = np.where(pending == 0, self.rounds, pending)
        awaited: Flags = self._counts & (self._number <= end[self._session])
        return awaited

    @cached_property
    def _runs(self) -> Integers:
        return self.runs()

    @cached_property
    def _rated_runs(self) -> Integers:
        """How many of the rounds rated last were unproductive, in a row, by each round."""
        rated = (self.columns.rounds.rating > 0) & self._counts
        productive = rated & ~self._unproductive(USUAL)
        so_far = np.zeros(len(rated) + 1, np.int32)
        np.cumsum(rated, out=so_far[1:])
        # How many were rated up to the last productive round, or up to the session's beginning.
        ended = np.where(productive, so_far[1:], 0)
        some = self._starts[self.rounds > 0]
        ended[some] = np.maximum(ended[some], so_far[some])
        found: Integers = so_far[1:] - np.maximum.accumulate(ended)
        return found

    # --- of sessions -----------------------------------------------------------------------------

    @cached_property
    def missing(self) -> Integers:
        """Why each session's utility is missing, as a code of ``MISSING``."""
        begun = self.rounds > 0
        first = np.zeros(len(self.columns), np.int64)
        first[begun] = self._starts[begun]
        unscored = begun.copy()
        unscored[begun] = np.isnan(self.columns.rounds.utility[first[begun]])
        none = np.where(begun, self.counted == 0, np.isnan(self.columns.final))
        undecided = self.columns.candidates.flags(bool)
        not_evaluated = ~self.columns.evaluated
        return np.select([undecided, not_evaluated, none, unscored], [4, 1, 2, 3], 0)

    @cached_property
    def valued(self) -> Flags:
        """Sessions that have a utility."""
        found: Flags = self.missing == 0
        return found

    @cached_property
    def final(self) -> Floats:
        """U_K of each session that has any utility at all; 0 if every score failed."""
        return self.at(self.last)

    @cached_property
    def overall(self) -> Floats:
        """The greatest utility of each session."""
        found = self.at(np.minimum(self.last, 1))
        some = np.flatnonzero(self.rounds > 0)
        if len(some):
            counted = np.where(self._counts, self._known, -np.inf)
            best = np.maximum.reduceat(counted, self._starts[some])
            found[some] = np.where(self.last[some] > 0, best, np.nan)
        return found

    @cached_property
    def update_at(self) -> Integers:
        """The first round with an update."""
        return self.first(self.columns.rounds.updated & self._counts)

    @cached_property
    def result_only(self) -> Flags:
        """Sessions of which only the result was measured.

        They pose no output, and only the last of several rounds was evaluated, so the utility of
        the rounds before it is unknown.
        """
        valued = ~np.isnan(self.columns.rounds.value)
        only: Flags = (
            ~self.columns.output
            & (self.counted > 1)
            & self.flag_at(valued, self.counted)
            & (self.sum(valued & self._counts) == 1)
            & (self.update_at == 0)
        )
        return only

    @cached_property
    def is_rated(self) -> Flags:
        """Sessions with a rating, so that a tolerance can say something of them."""
        return self.sum((self.columns.rounds.rating > 0) & self._counts) > 0

    @cached_property
    def _judged(self) -> Flags:
        """The same if a missing rating counts as unproductive in a session that was rated."""
        pending = self.columns.rounds.pending
        return self._rated_anywhere & (self.sum(~pending & self._counts) > 0)

    @cached_property
    def left(self) -> Flags:
        """Sessions whose human left before the end."""
        return self.columns.state.flags(LEFT.__contains__)

    @cached_property
    def performance(self) -> Floats:
        """The final performance: as stated, else the utility of the last round that counts.

        It is missing if the session was not evaluated, or if the source says so; and for an automated
        run that broke off, since what it had by then was not its result.
        """
        columns = self.columns
        broken = columns.baseline & columns.state.flags(BROKEN_OFF.__contains__)
        none = columns.final_missing | broken | ~columns.evaluated | (self.counted == 0)
        found = np.where(none, np.nan, self.at(self.counted))
        last = np.flatnonzero(self.counted > 0)
        unknown = np.isnan(columns.rounds.utility[self._starts[last] + self.counted[last] - 1])
        found[last[unknown]] = np.nan
        return np.where(np.isnan(columns.final), found, columns.final)

    def check_range(self) -> None:
        """Refuses sessions with a utility that is not one.

        Raises:
            InvalidInput: one is not within 0 and 1.
        """
        columns = self.columns
        for values, session in (
            (columns.final, np.arange(len(columns))),
            (columns.rounds.utility, self._session),
        ):
            wrong = np.flatnonzero((values < 0.0) | (values > 1.0))
            if len(wrong):
                name, value = columns.session[int(session[wrong[0]])], float(values[wrong[0]])
                raise InvalidInput(
                    f"session {name!r}: a utility lies in [0, 1], and {value!r} does not"
                )


def facts_of(source: Facts | Columns | Iterable[Trajectory]) -> Facts:
    """The facts of columns or trajectories; facts stay as they are."""
    return source if isinstance(source, Facts) else Facts(source)
