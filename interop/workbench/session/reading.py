"""The known facts about a session's records without holding them: their positions and totals.

Records are numbered from 1 in order of position; a *moment* is such a number: the session as it was
after so many of its records. The contents of a moment are read from the log again, so a session
costs only a few numbers here for each of its records.
"""

from __future__ import annotations

import pickle
from array import array
from bisect import bisect_left
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, final

import anyio
import msgspec
from anyio.lowlevel import checkpoint

from ....engine.errors import CodecError
from ....engine.events import (
    ACTS,
    ActionResolved,
    ActorFailed,
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    Participant,
    SessionClosed,
    SessionOpened,
)
from ....engine.log.contract import EventLog
from ....engine.log.session_states import SessionStates
from ....engine.log.summary import FORGOTTEN
from ....engine.records import TRACE, Record
from ....scoring.trajectory.fold import TrajectoryFold
from ....scoring.trajectory.options import Options
from ....scoring.trajectory.points import Point, Trajectory
from ....scoring.trajectory.updates import (
    RoundOpened,
    ScorerDown,
    StopAdvice,
    StopWithdrawn,
    Update,
)
from ..access.disclosure import Disclosure
from ..access.identity import Identity
from ..state import Workbench

__all__ = (
    "Growth",
    "KeptFolds",
    "Readings",
    "RoundSeen",
    "SessionReading",
)


_APART: Final = 2000
_MOST: Final = 16


@final
class KeptFolds:
    """Keeps a fold every so many records. When they become too many, it doubles their distance.

    They are kept in brief, since an object graph is copied slowly. Each is as long as the session was, so that an
    unlimited number of them would take room by the square of its length.

    Args:
        apart: records between two folds at first.
        most: how many are kept.

    Attributes:
        apart: records between two folds.
    """

    def __init__(self, apart: int = _APART, most: int = _MOST) -> None:
        self.apart = apart
        self._most = most
        self._folds: list[tuple[int, bytes]] = []
        self._can = True

    def __len__(self) -> int:
        return len(self._folds)

    def offer(self, number: int, fold: TrajectoryFold) -> None:
        """Keeps the fold of so many records, if it is time to.

        If the options hold a custom function, the fold cannot be kept: such a session is folded
        from its start.
        """
        if number % self.apart or not self._can:
            return
        try:
            self._folds.append((number, pickle.dumps(fold, pickle.HIGHEST_PROTOCOL)))
        except (pickle.PicklingError, AttributeError):
            self._can = False
        if len(self._folds) > self._most:
            self.apart *= 2
            self._folds = [one for one in self._folds if one[0] % self.apart == 0]

    def last(self, count: int, after: int = 0) -> tuple[int, TrajectoryFold] | None:
        """The last fold of at most so many records, and of how many; None if none is behind ``after``."""
        for number, brief in reversed(self._folds):
            if number <= count:
                return (number, pickle.loads(brief)) if number > after else None
        return None


# --- who worked when ------------------------------------------------------------------------------


_WORK = ACTS | {"NoteTaken", "TurnYielded", "ProgressRated"}


class Stint(NamedTuple):
    """A stretch of work: who, from when to when, and the number of the record that it led to."""

    actor: str
    begin: float
    end: float
    number: int


@final
class WorkFold:
    """Folds records of the trace into stretches of work."""

    def __init__(self) -> None:
        self._stints: list[Stint] = []
        self._times = array("d")  # by trace version, from 1
        self._versions = array("q")
        self._latest: dict[str, float] = {}
        self._actions: dict[int, float] = {}

    def feed(self, record: Record, number: int) -> None:
        """Takes the next record, which has this number in its session."""
        if record.stream != TRACE:
            return
        self._times.append(record.time)
        self._versions.append(record.version)
        actor, time = record.actor, record.time
        if record.kind == "ActionResolved":
            event = record.event
            began = (
                self._actions.pop(event.action, time) if isinstance(event, ActionResolved) else time
            )
            self._stints.append(Stint(actor, began, time, number))
            return
        if record.kind == "ActionTaken":
            self._actions[record.version] = time
        if record.kind not in _WORK or record.role not in ("human", "agent"):
            return
        began = max(self._time_of(record.seen), self._latest.get(actor, float("-inf")))
        began = time if began == float("-inf") else min(began, time)
        self._latest[actor] = time
        self._stints.append(Stint(actor, began, time, number))

    def _time_of(self, version: int | None) -> float:
        """When a version came, or the last one before it that may be seen."""
        if version is None:
            return float("-inf")
        place = bisect_left(self._versions, version + 1)
        return self._times[place - 1] if place else float("-inf")

    def since(self, after: int) -> list[Stint]:
        """The stretches that led to records behind this number."""
        return self._stints[bisect_left(self._stints, after + 1, key=lambda one: one.number) :]


# --- the known facts about a session's records, without holding them ------------------------------


_AT_ONCE: Final = 64  # records to process before other tasks get a turn
_SHOWN: Final = (StopAdvice, StopWithdrawn, ScorerDown)


def texts_of(value: object) -> Iterator[str]:
    """The texts in a value, without the names of its fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            if key != "kind":
                yield from texts_of(one)
    elif isinstance(value, Sequence):
        for one in value:
            yield from texts_of(one)


class DraftSeen(NamedTuple):
    """A version of the output: the number of its record, its trace version, and its author."""

    number: int
    version: int
    actor: str
    role: str


class RoundSeen(NamedTuple):
    """A round in a heading.

    Attributes:
        begin: seconds from the beginning of the session.
        lasted: seconds, up to the next round or to now.
        failed: how many records of failures it has.
        point: its measurements; None before there are any.
        before: the utility after the round before; None if there is none.
    """

    begin: float
    lasted: float
    failed: int
    point: Point | None
    before: float | None


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """The new part of a session after some of its records.

    Attributes:
        after: after how many.
        count: how many there are now.
        position: the position of the last one.
        times: the times of each.
        versions: the trace version of each; 0 for a measurement.
        rounds: the numbers of the records with which rounds began.
        drafts: the versions of the output.
        work: times at which each actor worked.
        advice: the numbers of the records at which a tolerance was used up.
        failed: the numbers of the records at which something failed.
        closed: the number of the record that closed it; 0 if none did.
    """

    after: int
    count: int
    position: int
    times: Sequence[float]
    versions: Sequence[int]
    rounds: Sequence[int]
    drafts: Sequence[DraftSeen]
    work: Sequence[Stint]
    advice: Sequence[int]
    failed: Sequence[int]
    closed: int


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it was after some of its records.

    Attributes:
        count: after how many.
        state: ``open``, or why it was closed.
        points: its rounds.
        stops: by tolerance τ, the round after which it was used up.
        missing: why it has no utility; None if it has one.
        approvals: the unanswered requests for approval: the number of the record, the asker, and
            the request.
    """

    count: int
    state: str = "open"
    points: tuple[Point, ...] = ()
    stops: Mapping[int, int] = {}
    missing: str | None = None
    approvals: Sequence[tuple[int, str, str]] = ()


_FAILURES: Final = frozenset({"ActionResolved", "ActorFailed", "ScorerFailed"})


@final
class WordsFold:
    """Folds the last words of a session: of the human, of an agent that waits, and of its end.

    Attributes:
        closed: the event that closed the session.
        said: the last message of a human.
        failed: the last failure of an actor; empty if there was none.
        unanswered: the agent and the text of the last message to which no human has reacted; None
            if there is none.
    """

    def __init__(self) -> None:
        self.closed: SessionClosed | None = None
        self.said = ""
        self.failed = ""
        self.unanswered: tuple[str, str] | None = None

    def feed(self, record: Record) -> None:
        """Takes the next record."""
        kind, role = record.kind, record.role
        if record.stream != TRACE:
            return
        if role == "human" and kind in ACTS:
            self.unanswered = None
            if isinstance(event := record.event, MessageSent):
                self.said = event.text
        elif role == "agent" and kind == "MessageSent":
            if isinstance(event := record.event, MessageSent):
                self.unanswered = record.actor, event.text
        elif kind == "ActorFailed" and isinstance(event := record.event, ActorFailed):
            self.failed = f"{event.type}: {event.error}"
        elif kind == "SessionClosed" and isinstance(event := record.event, SessionClosed):
            self.closed = event


@final
class SessionReading:
    """A session as a user may see it, read further when it grows.

    Args:
        log: the log.
        session: session id.
        identity: the identity of the user.
        options: for scoring.

    Attributes:
        opened: how it was opened, as they may see it; None if that is not known.
        count: how many records there are.
        problem: why not all of it could be scored; empty if it could.
        erased: whether its contents were erased when it was read.
        advice: updates that are shown with a record, by its number.
    """

    def __init__(self, log: EventLog, session: str, identity: Identity, options: Options) -> None:
        self.session = session
        self.opened: SessionOpened | None = None
        self.count = 0
        self.problem = ""
        self.erased = False
        self.advice: dict[int, list[Update]] = {}
        self._log = log
        self._identity = identity
        self._options = options
        self._disclosure = Disclosure(identity)
        self._positions = array("q")
        self._times = array("d")
        self._versions = array("q")
        self._rounds = array("q")
        self._drafts: list[DraftSeen] = []
        self._asked: dict[int, tuple[int, str, str]] = {}
        self._answered: list[tuple[int, int]] = []
        self._closed = 0
        self._failed = array("q")
        self.words = WordsFold()
        self._work = WorkFold()
        self._now = self._fresh()
        # Advice does not depend on utility. Scores may change every later round, so without them
        # its updates cost the same at any length.
        self._advising = TrajectoryFold(session, options)
        self._then: tuple[int, TrajectoryFold] = (0, self._fresh())
        self._folds = KeptFolds()
        self._reading = anyio.Lock()
        self._looking = anyio.Lock()

    @property
    def position(self) -> int:
        """Position of the last record; 0 before the first."""
        return self._positions[-1] if self._positions else 0

    def now(self) -> Trajectory:
        """The trajectory so far."""
        return self._now.trajectory()

    @property
    def stops(self) -> Mapping[int, int]:
        """By tolerance τ, the round after which it was used up."""
        return self._now.stops

    @property
    def participants(self) -> Sequence[Participant]:
        """The participants."""
        return () if self.opened is None else self.opened.participants

    # --- reading on -------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Reads the records that have come.

        Raises:
            LogError: the log cannot be read.
        """
        async with self._reading:
            records = self._log.read_all(session=self.session, after_position=self.position)
            async for record in records:
                self._take(record)
                if len(self._positions) % _AT_ONCE == 0:
                    await checkpoint()

    def _take(self, record: Record) -> None:
        self.erased = record.body is None
        updates: Sequence[Update] = ()
        seen: Record | None = None
        try:
            self._now.feed(record)
            if record.kind != "UtilityScored":
                updates = self._advising.feed(record)
            seen = self._disclosure.see(record)
        except CodecError as error:
            self.problem = str(error)
            seen = record if self._identity.role == "operator" else None
        if seen is None:
            return
        number = self.count = self.count + 1
        self._positions.append(record.position)
        self._times.append(record.time)
        self._versions.append(record.version if record.stream == TRACE else 0)
        for update in updates:
            if isinstance(update, RoundOpened):
                self._rounds.append(number)
            elif isinstance(update, _SHOWN):
                self.advice.setdefault(number, []).append(update)
        try:
            self._note(seen, number)
        except CodecError as error:
            self.problem = str(error)
        self._folds.offer(number, self._now)

    def _note(self, record: Record, number: int) -> None:
        self._work.feed(record, number)
        self.words.feed(record)
        kind = record.kind
        if kind == "SnapshotTaken":
            self._drafts.append(DraftSeen(number, record.version, record.actor, record.role))
        elif kind == "SessionClosed":
            self._closed = number
        elif kind in _FAILURES:
            event = record.event
            if not isinstance(event, ActionResolved) or event.outcome == "failed":
                self._failed.append(number)
        elif kind in ("ApprovalAsked", "ApprovalGiven", "SessionOpened"):
            event = record.event
            if isinstance(event, ApprovalAsked):
                self._asked[record.version] = (number, record.actor, event.question)
            elif isinstance(event, ApprovalGiven):
                self._answered.append((number, event.asked))
            elif isinstance(event, SessionOpened):
                self.opened = event

    def _fresh(self) -> TrajectoryFold:
        return TrajectoryFold(self.session, self._options, emit=False)

    # --- what there is ----------------------------------------------------------------------------

    def growth(self, after: int = 0) -> Growth:
        """The new part after some of its records."""
        rounds = self._rounds[bisect_left(self._rounds, after + 1) :]
        first = bisect_left(self._drafts, (after + 1,))
        return Growth(
            after=after,
            count=self.count,
            position=self.position,
            times=[round(time, 3) for time in self._times[after:]],
            versions=list(self._versions[after:]),
            rounds=list(rounds),
            drafts=self._drafts[first:],
            work=self._work.since(after),
            advice=[number for number in self.advice if number > after],
            failed=list(self._failed[bisect_left(self._failed, after + 1) :]),
            closed=self._closed,
        )

    def count_at(self, position: int) -> int:
        """How many of its records there were at a position of the log."""
        return bisect_left(self._positions, position + 1)

    def label(self, number: int) -> str:
        """The name of a record: its trace version, as on the command line; ``45.1`` is the first measurement after 45."""
        place = number
        while place and not self._versions[place - 1]:
            place -= 1
        version = self._versions[place - 1] if place else 0
        return f"{version}.{number - place}" if number > place else str(version)

    def round_begins(self, number: int) -> int | None:
        """The round that begins with a record; None if none does."""
        place = bisect_left(self._rounds, number)
        begins = place < len(self._rounds) and self._rounds[place] == number
        return place + 1 if begins else None

    def round_seen(self, round_: int) -> RoundSeen:
        """The heading of a round, numbered from 1, by now."""
        first = self._rounds[round_ - 1]
        last = self._rounds[round_] if round_ < len(self._rounds) else self.count
        points = self.now().points
        point = points[round_ - 1] if round_ <= len(points) else None
        before = points[round_ - 2].utility if 1 < round_ <= len(points) + 1 else None
        failed = bisect_left(self._failed, last + 1) - bisect_left(self._failed, first)
        begin = self._times[first - 1]
        return RoundSeen(
            begin - self.opened_at, self._times[last - 1] - begin, failed, point, before
        )

    def draft_before(self, version: int) -> DraftSeen | None:
        """The version of the output before one, by trace versions; None if there is none."""
        place = bisect_left(self._drafts, version, key=lambda draft: draft.version)
        return self._drafts[place - 1] if place else None

    def draft_number(self, version: int) -> int:
        """Which version of the output this is, from 1, by its trace version."""
        return bisect_left(self._drafts, version + 1, key=lambda draft: draft.version)

    @property
    def opened_at(self) -> float:
        """When its first record came; 0 before that."""
        return self._times[0] if self._times else 0.0

    async def version_at(self, count: int) -> int:
        """The trace version that it had reached after this many of its records.

        Raises:
            LogError: the log cannot be read.
        """
        for first in range(min(count, self.count), 0, -_AT_ONCE):
            records = await self.window(first - _AT_ONCE + 1, first)
            for record in reversed(records):
                if record.stream == TRACE:
                    return record.version
        return 0

    async def window(self, first: int, last: int) -> list[Record]:
        """Its records from one number to another, as they may be seen.

        Raises:
            LogError: the log cannot be read.
        """
        first, last = max(first, 1), min(last, self.count)
        if first > last:
            return []
        wanted = set(self._positions[first - 1 : last])
        disclosure = Disclosure(self._identity)
        found: list[Record] = []
        after = self._positions[first - 1] - 1
        async for record in self._log.read_all(session=self.session, after_position=after):
            if record.position in wanted:
                seen = self._seen(disclosure, record)
                if seen is not None:
                    found.append(seen)
            if record.position >= self._positions[last - 1]:
                break
        return found

    async def find(self, text: str, most: int) -> list[int]:
        """The numbers of the records that hold a text in one of their values, as they may be seen.

        Args:
            text: the text to find, in any case.
            most: records that are found at most.

        Raises:
            LogError: the log cannot be read.
        """
        wanted, found = text.casefold(), list[int]()
        for first in range(1, self.count + 1, _AT_ONCE):
            records = await self.window(first, first + _AT_ONCE - 1)
            numbers = {record.position: number for number, record in enumerate(records, first)}
            for record in records:
                try:
                    values = texts_of(msgspec.to_builtins(record.event))
                except CodecError:
                    continue
                if any(wanted in value.casefold() for value in values):
                    found.append(numbers[record.position])
                if len(found) == most:
                    return found
            await checkpoint()
        return found

    def _seen(self, disclosure: Disclosure, record: Record) -> Record | None:
        try:
            return disclosure.see(record)
        except CodecError:
            return record if self._identity.role == "operator" else None

    @property
    def scorer(self) -> str | None:
        """The scorer whose utility counts; None if there is none, or if the choice is open."""
        return self._now.utility_scorer

    async def at(self, count: int) -> Moment:
        """The session as it was after this many of its records.

        Raises:
            LogError: the log cannot be read.
        """
        async with self._looking:
            count = min(max(count, 0), self.count)
            fold = self._now if count == self.count else await self._folded(count)
            trajectory = fold.trajectory()
            answered = {asked for number, asked in self._answered if number <= count}
            return Moment(
                count=count,
                state=trajectory.state,
                points=trajectory.points,
                stops=dict(fold.stops),
                missing=fold.utility_missing,
                approvals=[
                    asked
                    for version, asked in self._asked.items()
                    if asked[0] <= count and version not in answered
                ],
            )

    async def _folded(self, count: int) -> TrajectoryFold:
        """A fold of the first records: the current one or a kept one, continued."""
        done, fold = self._then
        if done > count:
            done, fold = 0, self._fresh()
        done, fold = self._folds.last(count, done) or (done, fold)
        self._then = (0, self._fresh())  # one that is interrupted may have taken only a part
        if done < count:
            after = self._positions[done] - 1
            upto = self._positions[count - 1]
            async for record in self._log.read_all(session=self.session, after_position=after):
                if record.position > upto:
                    break
                try:
                    fold.feed(record)
                except CodecError as error:
                    self.problem = str(error)
        self._then = (count, fold)
        return fold


_KEPT: Final = 16
_RECORDS: Final = 400  # records in one message: if more have come, the page asks for them itself


@final
class Readings:
    """Readings of sessions; those that were not used for the longest time are dropped.

    Args:
        workbench: the shared state of the workbench.
    """

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._held: SessionStates[SessionReading] = SessionStates(_KEPT)

    async def of(self, session: str, identity: Identity) -> SessionReading:
        """A session as a user may see it now.

        Raises:
            SessionNotFound: the log has no such session.
            LogError: the log cannot be read.
        """
        name = f"{identity.role}/{identity.actor}/{session}"
        summary = await self._workbench.log.summary(session)  # raises if there is none
        held = self._held.get(name)
        if held is None or (summary.state == FORGOTTEN and not held.erased):
            held = SessionReading(self._workbench.log, session, identity, self._workbench.options)
        self._held.keep(name, held)
        await held.refresh()
        return held

    async def follow(self, session: str, identity: Identity, after: int) -> AsyncIterator[Growth]:
        """Yields the new parts of a session after a position of the log, at a limited rate.

        Raises:
            SessionNotFound: the log has no such session.
            LogError: the log cannot be read.
        """
        index = self._workbench.sessions
        reading = await self.of(session, identity)  # held here, however many others are looked at
        done = reading.count_at(after)
        while True:
            while reading.count > done:
                growth = reading.growth(max(done, reading.count - _RECORDS))
                yield growth
                done = growth.count
            if not index.has_news(session, reading.position):
                await index.wait()
            await anyio.sleep(self._workbench.limits.pace)
            await reading.refresh()
