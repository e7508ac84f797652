"""The utility of each round, as the scorer that counts recorded it."""

from __future__ import annotations

from bisect import bisect_right
from typing import TypeAlias, final

from ...engine.events import UtilityScored
from ...engine.scorers.choice import candidates, chosen_utility, split_stream
from .points import NO_SCORE, NOT_EVALUATED, undecided
from .ratings import Changed
from .round_index import RoundIndex

__all__ = ("Scored", "UtilityBook", "utility_of")


Scored: TypeAlias = tuple[float | None, bool]
"""A round's own utility, and whether it is stale.

The utility is that of its last scored snapshot, or of the round itself; None if there is neither.
Stale: the round has something newer, whose score is missing or not recorded yet.
"""


def utility_of(event: UtilityScored) -> float | None:
    """The value of a score; None if it is missing or outside [0, 1], so not a utility."""
    value = event.value
    return value if value is not None and 0.0 <= value <= 1.0 else None


@final
class _ScorerStream:
    """The scores of one scorer, by round: the trace version scored, and the value.

    ``rounds`` are scores of rounds as such, None where missing; ``by_snapshot`` says whether the
    scorer scores snapshots, so that one without a score makes a round stale; ``valued`` are the
    numbers of the rounds with a value of either kind, in order. A value is never taken back.
    """

    __slots__ = ("by_snapshot", "failed", "rounds", "snapshots", "valued")

    def __init__(self) -> None:
        self.snapshots: dict[int, tuple[int, float]] = {}
        self.rounds: dict[int, tuple[int, float | None]] = {}
        self.valued: list[int] = []
        self.by_snapshot = False
        self.failed = False

    def put(self, number: int, event: UtilityScored) -> None:
        """Takes a score of a round, or of a snapshot in it."""
        value = utility_of(event)
        self.failed = self.failed or value is None
        if event.snapshot is None:
            until = event.until or 0
            whole = self.rounds.get(number)
            if whole is None or (value is not None and (whole[1] is None or until >= whole[0])):
                self.rounds[number] = (until, value)
        else:
            self.by_snapshot = True
            scored = self.snapshots.get(number)
            if value is not None and (scored is None or event.snapshot >= scored[0]):
                self.snapshots[number] = (event.snapshot, value)
        if value is not None:
            place = bisect_right(self.valued, number)
            if not place or self.valued[place - 1] != number:
                self.valued.insert(place, number)


@final
class UtilityBook:
    """Collects the scores of one session from all utility scorers, and says which count.

    If a round has several snapshots, the last one with a score counts; a score of the round itself
    takes precedence. A later record in a stream replaces an earlier one about the same thing,
    except that a missing score does not replace a value.

    Args:
        wanted: as ``Options.utility``.
        index: the rounds of the session.
    """

    def __init__(self, wanted: str | None, index: RoundIndex) -> None:
        self._wanted = wanted
        self._configured = False
        self._index = index
        self._streams: dict[str, _ScorerStream] = {}
        self._chosen: _ScorerStream | None = None
        self._snapshots: set[int] = set()
        self._output = False

    def submitted(self, version: int, *, blank: bool) -> None:
        """There is a snapshot at this trace version."""
        self._snapshots.add(version)
        self._output = self._output or not blank

    def configure(self, wanted: str) -> None:
        """Takes the scorer that the session's own configuration names."""
        self._configured = self._wanted in (None, wanted, split_stream(wanted)[0])
        if self._wanted is None:
            self._wanted = wanted
            self._choose()

    @property
    def has_snapshots(self) -> bool:
        """Whether anybody put up an output."""
        return bool(self._snapshots)

    @property
    def scorer(self) -> str | None:
        """The stream whose scores count; None without any scores."""
        chosen = self._chosen
        return next((name for name, stream in self._streams.items() if stream is chosen), None)

    @property
    def candidates(self) -> tuple[str, ...]:
        """The scorers to choose from, if none is chosen."""
        return candidates(self._streams) if self._wanted is None else ()

    @property
    def missing(self) -> str | None:
        """Why the session's utility is missing; None if it has one, even if only U_0 = 0.

        It is evaluated if its configuration names a utility scorer, or one ran on it.
        """
        stream = self._chosen
        if stream is None:
            if not self._configured:
                return undecided(self.candidates) or NOT_EVALUATED
            return NO_SCORE if self._output else None
        if stream.valued:
            return None
        return NO_SCORE if stream.failed or (stream.by_snapshot and self._output) else None

    @property
    def base(self) -> float | None:
        """U_0: 0, or None if utility is missing."""
        return 0.0 if self.missing is None else None

    def of(self, number: int, snapshot: int | None) -> Scored:
        """A round's utility as it counts: a score in a closing round belongs to the round before.

        Args:
            number: the number of the round.
            snapshot: trace version of its last snapshot; None if it holds none.
        """
        closing = self._index.closing
        if closing is None or number < closing - 1:
            return self._recorded(number, snapshot)
        if number == closing:
            return None, False
        value, stale = self._recorded(number, snapshot)
        late, _ = self._recorded(closing, None)
        return (value, stale) if late is None else (late, False)

    def _recorded(self, number: int, snapshot: int | None) -> Scored:
        """The utility of a round, and whether it is stale.

        Args:
            number: the number of the round.
            snapshot: trace version of its last snapshot; None if it holds none.
        """
        stream = self._chosen
        if stream is None:
            return None, snapshot is not None and self._configured
        whole = stream.rounds.get(number)
        if whole is not None and whole[1] is not None:
            return whole[1], False
        if snapshot is None:
            return None, whole is not None
        scored = stream.snapshots.get(number)
        if scored is None:
            return None, True
        return scored[1], whole is not None or scored[0] != snapshot

    def last_valued(self, upto: int) -> int:
        """The last round up to this one for which utility was measured; 0 if there is none."""
        valued = [] if self._chosen is None else self._chosen.valued
        closing = self._index.closing
        place = bisect_right(valued, upto)
        if closing is not None and upto == closing - 1 and valued[place:]:
            return upto  # a score in the closing round belongs to the one before
        found = valued[place - 1] if place else 0
        return found - (found == closing)

    def next_valued(self, after: int) -> int | None:
        """The first round after this one for which utility was measured; None if there is none."""
        valued = [] if self._chosen is None else self._chosen.valued
        place = bisect_right(valued, after)
        if place == len(valued):
            return None
        found = valued[place] - (valued[place] == self._index.closing)
        return found if found > after else None

    def record(self, stream: str, event: UtilityScored, latest: int) -> Changed | None:
        """Takes a score.

        Args:
            stream: the scorer's stream.
            event: the score.
            latest: the last trace version known.

        Returns:
            The round it is about, and those whose utility may have changed; None if it is about
            no round, or no snapshot of the trace.
        """
        if event.snapshot is not None:
            known = event.snapshot in self._snapshots
            number = self._index.of_version(event.snapshot, latest) if known else None
        else:
            number = self._index.of_place(event.round or 0, event.rounds, event.until, latest)
        if number is None:
            return None
        counts = number - 1 if number == self._index.closing and number > 1 else number
        scores = self._streams.get(stream)
        fresh = scores is None
        if scores is None:
            scores = self._streams[stream] = _ScorerStream()
        scores.put(number, event)
        if fresh:
            before = self._chosen
            self._choose()
            if self._chosen is not before:
                return counts, range(1, self._index.number + 1)
        return counts, (counts,) if scores is self._chosen else ()

    def _choose(self) -> None:
        chosen = chosen_utility(self._streams, self._wanted)
        self._chosen = self._streams[chosen] if chosen is not None else None
