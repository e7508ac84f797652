"""Tolerance: after which round a human who puts up with τ unproductive rounds in a row would stop.

A round is unproductive if its rating is below 3. A missing rating counts as productive. A
pending one holds everything up that comes after it, since ratings count in the order of rounds:
k_τ is the first round at which τ unproductive rounds in a row are reached (paper, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final, Literal, TypeAlias, final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.rounds import is_unproductive

__all__ = (
    "PENDING",
    "Pending",
    "Rating",
    "Stop",
    "Tolerance",
    "check_taus",
    "is_known_unproductive",
    "longest_run",
    "stop_rounds",
)


class Pending(Enum):
    """The type of ``PENDING``."""

    PENDING = "pending"


PENDING: Final = Pending.PENDING
"""Stands for a rating that is not recorded yet, neither as a value nor as missing."""

Rating: TypeAlias = int | Literal[Pending.PENDING] | None
"""A rating of 1 to 5; None for a missing one; ``PENDING``."""


def check_taus(taus: Iterable[int]) -> tuple[int, ...]:
    """Tolerances in ascending order, each once.

    Raises:
        InvalidInput: one is below 1.
    """
    ordered = tuple(sorted(set(taus)))
    if ordered and ordered[0] < 1:
        raise InvalidInput(f"a tolerance τ counts rounds and must be at least 1, not {ordered[0]}")
    return ordered


class Stop(msgspec.Struct, frozen=True):
    """The human would stop: ``tau`` unproductive rounds in a row, of which ``round`` is the last.

    Attributes:
        tau: the tolerance τ that is used up.
        round: k_τ.
    """

    tau: int
    round: int

    @property
    def rounds(self) -> tuple[int, ...]:
        """The rounds that it rests on, in order."""
        return tuple(range(self.round - self.tau + 1, self.round + 1))


@final
class Tolerance:
    """Follows the ratings of a session, for any number of τ at once, in constant memory.

    Args:
        taus: the tolerances, each at least 1.

    Raises:
        InvalidInput: a tolerance is below 1.
    """

    def __init__(self, taus: Iterable[int]) -> None:
        self.taus = check_taus(taus)
        self._open = list(self.taus)
        self._stops: dict[int, int] = {}
        self._next = 1
        self._run = 0

    @property
    def next(self) -> int:
        """The first round whose rating has not been counted yet."""
        return self._next

    @property
    def stops(self) -> Mapping[int, int]:
        """k_τ by τ, of those that were reached."""
        return dict(self._stops)

    def advance(self, rating: Callable[[int], Rating]) -> list[Stop]:
        """Counts ratings, in order of rounds, up to the first that is pending.

        Args:
            rating: gives a round's rating by its number; ``PENDING`` for rounds yet to come.

        Returns:
            The stops that this reached, in order of round and τ.
        """
        reached: list[Stop] = []
        while (current := rating(self._next)) is not PENDING:
            self._run = self._run + 1 if is_unproductive(current) else 0
            while self._open and self._run >= self._open[0]:
                stop = Stop(self._open.pop(0), self._next)
                self._stops[stop.tau] = stop.round
                reached.append(stop)
            self._next += 1
        return reached

    def worsen(self, number: int, rating: Callable[[int], Rating]) -> None:
        """Counts a round as unproductive that was counted as productive.

        It looks no further to either side than the greatest τ: what is reached beyond was reached
        without this round.

        Args:
            number: the number of the round.
            rating: as above; it gives the new rating of the round.
        """
        most = max(self.taus, default=1)
        first = last = number
        while number - first < most and first > 1 and is_known_unproductive(rating(first - 1)):
            first -= 1
        while (
            last - first + 1 < most
            and last + 1 < self._next
            and is_known_unproductive(rating(last + 1))
        ):
            last += 1
        run = last - first + 1
        if last + 1 == self._next:
            self._run = run
        for tau in self.taus:
            if tau <= run and first + tau - 1 < self._stops.get(tau, self._next):
                self._stops[tau] = first + tau - 1
        self._open = [tau for tau in self._open if tau not in self._stops]


def is_known_unproductive(rating: Rating) -> bool:
    """Whether a rating is known to be unproductive."""
    return rating is not PENDING and is_unproductive(rating)


def stop_rounds(ratings: Iterable[Rating], taus: Iterable[int]) -> dict[int, int | None]:
    """k_τ by τ for the ratings r_1, r_2, ... of a session; None if τ is not reached.

    Raises:
        InvalidInput: a tolerance is below 1.
    """
    tolerance = Tolerance(taus)
    listed = [*ratings, PENDING]
    tolerance.advance(lambda number: listed[number - 1])
    stops = tolerance.stops
    return {tau: stops.get(tau) for tau in tolerance.taus}


def longest_run(ratings: Iterable[Rating]) -> int:
    """The greatest τ that the ratings r_1, r_2, ... of a session use up; 0 for none."""
    longest = run = 0
    for rating in ratings:
        if rating is PENDING:
            break
        run = run + 1 if is_unproductive(rating) else 0
        longest = max(longest, run)
    return longest
