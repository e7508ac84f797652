"""One session's records, their texts and their scores, as of now and as of any of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple, final

import msgspec

from ...engine.errors import CodecError
from ...engine.events import SessionOpened
from ...engine.records import Record
from ...engine.rounds import RoundProjector
from ...scoring.trajectory.fold import TrajectoryFold
from ...scoring.trajectory.options import Options
from ...scoring.trajectory.points import Point
from ...scoring.trajectory.updates import ScorerDown, StopAdvice, StopWithdrawn, Update
from ..text.records import RecordFormatter, RecordText

__all__ = ("Moment", "Timeline", "TimelineEntry")

_SHOWN = (StopAdvice, StopWithdrawn, ScorerDown)  # the headings have what other updates say


class TimelineEntry(NamedTuple):
    """Something to be shown, in order: the head, a round's heading, or a record.

    Attributes:
        record: index of the record with which it came.
        round: the round that begins with it, for a heading; 0 for the head; None for a record.
    """

    record: int
    round: int | None = None


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A session's state after some of its records.

    Attributes:
        count: after how many.
        entries: how many entries there were.
        points: its rounds.
        state: ``open``, the reason why it was closed, or ``forgotten``.
        stops: by tolerance τ, the round after which it was used up.
        scored: whether any utility was measured.
        missing: why the session's utility is missing; None if it has one.
    """

    count: int = 0
    entries: int = 0
    points: tuple[Point, ...] = ()
    state: str = "open"
    stops: Mapping[int, int] = {}
    scored: bool = False
    missing: str | None = None


@final
class Timeline:
    """Takes a session's records of all streams, in order of position; looks back at any of them.

    A record is formatted once, when it arrives; the session's state is folded
    from its records up to the moment that is asked for.

    Args:
        session: session id.
        options: how to score.
        full: show all of each output.

    Attributes:
        session: session id.
        records: its records.
        texts: the text of each; None if it adds nothing.
        advice: what else came with a record, by its index: advice to stop, and the like.
        entries: all there is to be shown.
        opened: how it was opened, if known.
        problem: why not all of it could be scored; empty if it could.
    """

    def __init__(self, session: str, options: Options, *, full: bool = False) -> None:
        self.session = session
        self.records: list[Record] = []
        self.texts: list[RecordText | None] = []
        self.advice: dict[int, tuple[Update, ...]] = {}
        self.entries: list[TimelineEntry] = []
        self.opened: SessionOpened | None = None
        self.problem = ""
        self._options = options
        self._formatter = RecordFormatter(full=full)
        self._projector = RoundProjector(options.rounds)
        self._now = TrajectoryFold(session, options)
        self._then = TrajectoryFold(session, options, emit=False)
        self._fed = 0  # records that the fold of an earlier moment has taken
        self._positions: list[int] = []
        self._shown: list[int] = []  # by record, how many entries there are with it
        self._rounds: list[int] = []  # index of the record with which each round begins
        self._moment = Moment()

    @property
    def position(self) -> int:
        """Of its last record; 0 before the first."""
        return self._positions[-1] if self._positions else 0

    def add(self, record: Record) -> None:
        """Takes the next record; one that it has already is left out."""
        if record.position <= self.position:
            return
        index = len(self.records)
        self.records.append(record)
        self._positions.append(record.position)
        before = self._projector.number
        updates: Sequence[Update] = ()
        text: RecordText | None = None
        try:
            self._projector.feed(record)
            updates = self._now.feed(record)
            text = self._formatter.format(record)
            if isinstance(record.event, SessionOpened):
                self.opened = record.event
        except CodecError as error:
            self.problem = str(error)
        if index == 0:
            self.entries.append(TimelineEntry(index, 0))
        if index == 0 or self._projector.number > before:
            self._rounds.append(index)
            self.entries.append(TimelineEntry(index, len(self._rounds)))
        self.texts.append(text)
        advice = tuple(update for update in updates if isinstance(update, _SHOWN))
        if advice:
            self.advice[index] = advice
        if text is not None or advice:
            self.entries.append(TimelineEntry(index))
        self._shown.append(len(self.entries))

    def count_at(self, position: int | None) -> int:
        """How many of its records there were at a position of the log; None for now."""
        if position is None:
            return len(self.records)
        return bisect_right(self._positions, position)

    def position_of(self, count: int) -> int:
        """Position of the log at which it had this many records."""
        return self._positions[count - 1]

    def round_at(self, count: int) -> int:
        """The round, from 1, of its record with this number; 0 before the first."""
        return bisect_right(self._rounds, count - 1)

    def begins(self, number: int) -> int | None:
        """How many of its records there were when a round had just begun; None if there is none."""
        return self._rounds[number - 1] + 1 if 1 <= number <= len(self._rounds) else None

    def at(self, count: int) -> Moment:
        """Its state after this many of its records."""
        if count != self._moment.count:
            self._moment = self._folded(count) if count else Moment()
        return self._moment

    def _folded(self, count: int) -> Moment:
        fold = self._now
        if count < len(self.records):
            if count < self._fed:
                self._then = TrajectoryFold(self.session, self._options, emit=False)
                self._fed = 0
            fold = self._then
            for record in self.records[self._fed : count]:
                try:
                    fold.feed(record)
                except CodecError as error:
                    self.problem = str(error)
            self._fed = count
        trajectory = fold.trajectory()
        return Moment(
            count=count,
            entries=self._shown[count - 1],
            points=trajectory.points,
            state="forgotten" if self.records[count - 1].body is None else trajectory.state,
            stops=dict(fold.stops),
            scored=any(point.value is not None for point in trajectory.points),
            missing=fold.utility_missing,
        )
