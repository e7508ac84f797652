"""The rating of each round: a value, missing, or pending; for any judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias, final

from ...engine.events import ProgressRated
from ...engine.rounds import Rounds
from ...engine.scorers.choice import preferred
from .round_index import RoundIndex
from .tolerance import PENDING, Rating

__all__ = ("Changed", "RatingBook")

Changed: TypeAlias = tuple[int, Sequence[int]]
"""The round that a measurement is about, and all those that it may have changed, in order."""

_AUTO = "auto"
_HUMAN = "human"
_NONE = "none"


_NOBODY: Final = frozenset(("",))
"""The human raters of a round that a scorer rates: none."""


class _Value(NamedTuple):
    """A rating of a round, as scoring counts rounds.

    Attributes:
        until: the trace version that it was given at, or that names its round; 0 for none.
        rating: the value; None for a missing one.
        counted: the round as its source counts.
        raters: the actors that have rated the round.
    """

    until: int
    rating: int | None
    counted: tuple[Rounds, int]
    raters: frozenset[str]


@final
class _Given:
    """The ratings of one source, by round.

    A second rating of a round replaces the first. If a source counts rounds differently, two of its
    rounds may fall into one of ours: then the rating of the later one counts.
    """

    __slots__ = ("_ends", "_next", "covered", "failed", "values")

    def __init__(self) -> None:
        self.values: dict[int, _Value] = {}
        self.failed = False
        self.covered = 0
        self._ends: dict[int, int] = {}
        self._next = 1

    def put(self, number: int, event: ProgressRated, by: str = "") -> None:
        counted = (event.rounds, event.round)
        before = self.values.get(number)
        if before is None:
            raters = frozenset((by,)) if by else _NOBODY
            self.values[number] = _Value(event.until or 0, event.rating, counted, raters)
            return
        until = before.until if event.until is None else event.until
        if counted == before.counted or until >= before.until:
            self.values[number] = _Value(until, event.rating, counted, before.raters | {by})

    def has_rated(self, number: int, by: str) -> bool:
        """Whether a rater has rated a round."""
        value = self.values.get(number)
        return value is not None and by in value.raters

    def cover(self, number: int, until: int) -> None:
        """Notes how far a source that counts rounds otherwise has come without a gap."""
        self._ends[number] = until
        while self._next in self._ends:
            self.covered = max(self.covered, self._ends.pop(self._next))
            self._next += 1


@final
class RatingBook:
    """Collects the ratings of one session from all sources, and says which count.

    A rating is due at the first human message after its round, or when the session closes. The
    human's rating that is not there when it is due is missing; one that is there may be corrected
    later. A scorer's stays pending until it is
    recorded, as a value or as missing; once the scorer has failed, what it has not rated is missing
    when due. Where no judge is configured, a round that nobody has rated is missing at its end. If
    a scorer counts rounds otherwise than we do, a round of ours in which no round of its ends is
    missing as soon as it has rated what comes after.

    Args:
        judge: as in ``Options.judge``.
        index: the rounds of the session.
    """

    def __init__(self, judge: str, index: RoundIndex) -> None:
        self._judge = judge
        self._index = index
        self._trace = _Given()
        self._streams: dict[str, _Given] = {}
        self._chosen: _Given | None = None
        self._stream: str | None = None
        self.due = 0

    @property
    def configured(self) -> bool:
        """Whether a judge is configured, so that scoring waits for its ratings."""
        return self._judge not in (_AUTO, _NONE)

    @property
    def judges(self) -> tuple[str, ...]:
        """Whose ratings count, of those who rated anything: ``human``, or a scorer's stream."""
        found: list[str] = []
        if self._judge in (_HUMAN, _AUTO) and self._trace.values:
            found.append(_HUMAN)
        if self._judge not in (_HUMAN, _NONE) and self._chosen is not None and self._chosen.values:
            found.append(self._stream or "")
        return tuple(found)

    def configure(self, judge: str) -> None:
        """Takes the judge that the session's own configuration names."""
        if self._judge == _AUTO:
            self._judge = judge
            self._choose()

    def rating(self, number: int) -> Rating:
        """The rating of a round by its number; ``PENDING`` for one that has not begun."""
        judge = self._judge
        if judge in (_HUMAN, _AUTO):
            given = self._trace.values.get(number)
            if given is not None:
                return given.rating
        if judge not in (_HUMAN, _NONE) and self._chosen is not None:
            given = self._chosen.values.get(number)
            if given is not None:
                return given.rating
        return None if self._absent(number) else PENDING

    def fall_due(self, number: int) -> Sequence[int]:
        """Ratings of all rounds up to this one are due now; gives those that become so."""
        fresh = range(self.due + 1, number + 1)
        self.due = max(self.due, number)
        return fresh

    def by_human(self, event: ProgressRated, latest: int, by: str) -> Changed | None:
        """Takes a rating from the trace.

        A person who has rated a round in time may correct the rating at any time.

        Args:
            event: the rating.
            latest: the last trace version known.
            by: the rater.

        Returns:
            The round it is about, and those whose rating may have changed. None if it comes too
            late, is about no round, or is not asked for.
        """
        if self._judge not in (_HUMAN, _AUTO):
            return None
        number = self._index.of_place(event.round, event.rounds, event.until, latest)
        if number is None:
            return None
        if number <= self.due and not self._trace.has_rated(number, by):
            return None
        self._trace.put(number, event, by)
        return (number, (number,))

    def by_scorer(self, stream: str, event: ProgressRated, latest: int) -> Changed | None:
        """Takes a rating from a scorer's stream; returns as ``by_human`` does."""
        number = self._index.of_place(event.round, event.rounds, event.until, latest)
        if number is None:
            return None
        given = self._given(stream)
        unknown = not given.values
        before = given.covered
        given.put(number, event)
        if event.rounds != self._index.convention and event.until is not None:
            given.cover(event.round, event.until)
        if unknown:
            self._choose()
            return (number, range(1, self._index.number + 1))
        if given is not self._chosen:
            return (number, ())
        if given.covered == before:
            return (number, (number,))
        # Ratings of unrated rounds between these versions are missing now.
        first, last = (
            self._index.of_version(version, latest) or 1 for version in (before, given.covered)
        )
        return (number, range(min(first, number), max(last, number) + 1))

    def fail(self, stream: str) -> Sequence[int]:
        """A scorer has failed, and rates no more; gives rounds whose rating may have changed."""
        self._given(stream).failed = True
        self._choose()
        return range(1, self.due + 1)

    def why_missing(self, number: int) -> str:
        """Why an unrecorded rating is missing."""
        if self._chosen is not None and self._chosen.failed:
            return "the judge failed"
        if number > self.due:
            return "the judge counts rounds otherwise, and no round of its ends here"
        return "not there when it was due"

    def _given(self, stream: str) -> _Given:
        given = self._streams.get(stream)
        if given is None:
            given = self._streams[stream] = _Given()
        return given

    def _choose(self) -> None:
        """Chooses the stream that counts; one that failed before it rated at all comes last."""
        wanted = self._judge if self.configured and self._judge != _HUMAN else None
        rated = [stream for stream, given in self._streams.items() if given.values]
        chosen = preferred(rated, wanted) or preferred(self._streams, wanted)
        self._chosen = self._streams[chosen] if chosen is not None else None
        self._stream = chosen

    def _absent(self, number: int) -> bool:
        """Whether a round without a rating has a missing one, and not one still to come."""
        if not self.configured:
            return number <= len(self._index.rounds)
        if number > self.due:
            return self._covered(number)
        if self._judge == _HUMAN:
            return True
        chosen = self._chosen
        return chosen is not None and (chosen.failed or self._covered(number))

    def _covered(self, number: int) -> bool:
        if self._chosen is None or self._judge == _HUMAN or number > len(self._index.rounds):
            return False
        over = self._index.rounds[number - 1]
        return (over.last_act or over.first) <= self._chosen.covered
