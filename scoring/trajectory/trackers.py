"""Keeps the ratings and the utility of a session's rounds, and emits updates when they change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from ...engine.events import ProgressRated, UtilityScored
from ...engine.records import TRACE
from .options import Options
from .ratings import Changed, RatingBook
from .round_index import RoundIndex
from .tolerance import PENDING, Rating, Stop, Tolerance, is_known_unproductive
from .updates import RatingUpdated, StopAdvice, StopWithdrawn, Trigger, Update, UtilityUpdated
from .utilities import Scored, UtilityBook, utility_of

__all__ = ("RatingTracker", "UtilityTracker")

_UNSCORED: Scored = (None, False)


@final
class RatingTracker:
    """Keeps the rating of each round and the tolerance up to date.

    Args:
        options: the judge and the tolerances.
        index: the rounds of the session.
    """

    def __init__(self, options: Options, index: RoundIndex) -> None:
        self.book = RatingBook(options.judge, index)
        self.tolerance = Tolerance(options.taus)
        self._index = index
        self._known: dict[int, Rating] = {}

    def of(self, number: int) -> tuple[int | None, bool]:
        """A round's rating, and whether it is pending."""
        rating = self.book.rating(number)
        if rating is PENDING:
            return None, self.book.configured
        return rating, False

    def refresh(
        self,
        trigger: Trigger,
        numbers: Iterable[int],
        *,
        about: int = 0,
        event: ProgressRated | None = None,
    ) -> list[Update]:
        """Looks at the ratings of some rounds again, and returns what is new.

        Args:
            trigger: what brought this about.
            numbers: the rounds, in order.
            about: the round that ``event`` is about.
            event: the rating in the record, if it holds one.
        """
        updates: list[Update] = []
        changed = False
        counted: list[int] = []  # rounds that were counted, and count otherwise now
        for number in numbers:
            before = self._known.get(number, PENDING)
            rating = self.book.rating(number)
            if rating == before:
                continue
            self._known[number] = rating
            changed = True
            if number < self.tolerance.next and (
                rating is PENDING or is_known_unproductive(rating) != is_known_unproductive(before)
            ):
                counted.append(number)
            absent = rating is None and before is PENDING and number != about
            if absent and not self.book.configured:
                continue  # no judge was configured, so this is not news
            cause = event if number == about else None
            updates.append(self._updated(trigger, number, rating, cause))
        if counted:
            updates += self._recount(trigger, counted)
        elif changed:
            for stop in self.tolerance.advance(self._rating):
                updates.append(self._advice(trigger, stop))
        return updates

    def leave_out_closing(self, trigger: Trigger) -> list[Update]:
        """Counts all over, if a round was counted that turned out to be a closing one."""
        closing = self._index.closing
        return (
            self._recount(trigger, [closing]) if closing and closing < self.tolerance.next else []
        )

    def _updated(
        self, trigger: Trigger, number: int, rating: Rating, cause: ProgressRated | None
    ) -> RatingUpdated:
        missing = None
        if rating is None:
            missing = self.book.why_missing(number) if cause is None else cause.missing or ""
        record = trigger.record
        by = record.actor if record.stream == TRACE else record.stream
        return RatingUpdated(
            *trigger.about(number),
            rating=None if rating is PENDING else rating,
            pending=rating is PENDING,
            missing=missing,
            explanation="" if cause is None else cause.explanation,
            by="" if cause is None else by,
        )

    def _rating(self, number: int) -> Rating:
        return PENDING if number == self._index.closing else self._known.get(number, PENDING)

    def _recount(self, trigger: Trigger, numbers: Sequence[int]) -> list[Update]:
        """Counts rounds again that had been counted: all of them, unless only one got worse."""
        before = self.tolerance.stops
        if len(numbers) == 1 and is_known_unproductive(self._rating(numbers[0])):
            self.tolerance.worsen(numbers[0], self._rating)
        else:
            self.tolerance = Tolerance(self.tolerance.taus)
        self.tolerance.advance(self._rating)
        now = self.tolerance.stops
        updates: list[Update] = [
            StopWithdrawn(
                *trigger.about(number),
                tau=tau,
            )
            for tau, number in before.items()
            if now.get(tau) != number
        ]
        updates += [
            self._advice(trigger, Stop(tau, number))
            for tau, number in now.items()
            if before.get(tau) != number
        ]
        return updates

    def _advice(self, trigger: Trigger, stop: Stop) -> StopAdvice:
        ratings = [rating for n in stop.rounds if isinstance(rating := self._rating(n), int)]
        return StopAdvice(
            *trigger.about(stop.round),
            tau=stop.tau,
            rounds=stop.rounds,
            ratings=tuple(ratings),
        )


@final
class UtilityTracker:
    """Keeps the utility of each round up to date, carried forward from U_0 = 0.

    Args:
        options: the scorer that counts.
        index: the rounds of the session.

    Attributes:
        before: U_k of the last round that is closed; None where utility is missing.
    """

    def __init__(self, options: Options, index: RoundIndex) -> None:
        self.book = UtilityBook(options.utility, index)
        self.before = self.book.base
        self._index = index
        self._known: dict[int, Scored] = {}
        self._base = self.before

    def configure(self, wanted: str) -> None:
        """Takes the scorer that the session's own configuration names."""
        self.book.configure(wanted)
        self.before = self._base = self.book.base

    def refresh(
        self,
        trigger: Trigger,
        changed: Changed,
        event: UtilityScored,
        snapshot: int | None,
    ) -> list[Update]:
        """Adds a score, and returns what is new.

        Args:
            trigger: the record that holds the score.
            changed: the rounds that may have changed.
            event: the score.
            snapshot: trace version of the last snapshot of the round that is open.
        """
        about, numbers = changed
        updates: list[Update] = []
        closed = len(self._index.rounds)
        if numbers and numbers[0] <= closed:
            self.before = self._standing(closed, snapshot)
        updates += self.turn(trigger, snapshot, about=about)
        for number in numbers:
            scored = self._scored(number, snapshot)
            if number == about:
                updates.append(self._updated(trigger, number, scored, snapshot, event))
            elif scored != self._known.get(number, _UNSCORED):
                updates.append(self._updated(trigger, number, scored, snapshot))
            self._known[number] = scored
        return updates

    def close(self, trigger: Trigger) -> list[Update]:
        """Emits the utility of the last round that counts, if a closing round follows it."""
        last = (self._index.closing or 0) - 1
        if last < 1:
            return []
        scored = self._scored(last, None)
        if scored == self._known.get(last, _UNSCORED):
            return []
        self._known[last] = scored
        return [self._updated(trigger, last, scored, None)]

    def turn(self, trigger: Trigger, snapshot: int | None, *, about: int = 0) -> list[Update]:
        """Where utility turned out to be missing, or not to be: says so from round 1 on.

        Args:
            trigger: what brought this about.
            snapshot: trace version of the last snapshot of the round that is open.
            about: a round of which there is an update in any case.
        """
        base, self._base = self._base, self.book.base
        if base == self._base:
            return []
        self.before = self._standing(len(self._index.rounds), snapshot)
        first = self._scored(1, snapshot)
        if about == 1 or first[0] is not None:
            return []
        self._known[1] = first
        return [self._updated(trigger, 1, first, snapshot)]

    def _scored(self, number: int, snapshot: int | None) -> Scored:
        rounds = self._index.rounds
        last = rounds[number - 1].snapshot if number <= len(rounds) else snapshot
        return self.book.of(number, last)

    def _standing(self, number: int, snapshot: int | None) -> float | None:
        """U_k: the utility of the last round for which one was measured."""
        last = self.book.last_valued(number)
        return self._scored(last, snapshot)[0] if last else self.book.base

    def _updated(
        self,
        trigger: Trigger,
        number: int,
        scored: Scored,
        snapshot: int | None,
        cause: UtilityScored | None = None,
    ) -> UtilityUpdated:
        value, stale = scored
        following = self.book.next_valued(number)
        through = self._index.number if following is None else following - 1
        utility: float | None
        if value is not None:
            utility = value
        elif number > len(self._index.rounds):
            utility = self.before
        else:
            utility = self._standing(number - 1, snapshot)
        missing = None if cause is None else cause.missing
        if cause is not None and cause.value is not None and utility_of(cause) is None:
            missing = f"a utility lies in [0, 1], and {cause.value!r} does not"
        return UtilityUpdated(
            *trigger.about(number),
            value=value,
            utility=utility,
            through=through,
            stale=stale,
            parts={} if cause is None else cause.parts,
            missing=missing or self.book.missing,
            scorer="" if trigger.record.stream == TRACE else trigger.record.stream,
        )
