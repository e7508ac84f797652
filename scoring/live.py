"""Scores logs: a session at once, all sessions in one pass, or live as records arrive.

All of it feeds ``TrajectoryFold``; live scoring is a replay that has caught up.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self, final

import msgspec

from ..engine.errors import InvalidInput, SessionNotFound
from ..engine.events import ScorerRef, StopAdvised
from ..engine.log.contract import EventLog, Subscription
from ..engine.records import Record
from .process import ProcessFold
from .replay import Step
from .trajectory.fold import TrajectoryFold
from .trajectory.options import Options
from .trajectory.points import Trajectory
from .trajectory.tolerance import SATISFACTORY
from .trajectory.updates import StopAdvice, Update

__all__ = (
    "ToleranceStop",
    "Watch",
    "follow_updates",
    "score_log",
    "score_records",
    "score_sessions",
    "watch",
)


def score_records(records: Iterable[Record], options: Options | None = None) -> Trajectory:
    """The trajectory of one session from its records, of all streams in order of position.

    Raises:
        InvalidInput: there are no records, or they are of several sessions.
        CodecError: a body that is needed is damaged.
    """
    fold: TrajectoryFold | None = None
    for record in records:
        if fold is None:
            fold = TrajectoryFold(record.session, options, tell=False)
        fold.feed(record)
    if fold is None:
        raise InvalidInput("there are no records to score")
    return fold.trajectory()


async def score_log(log: EventLog, session: str, options: Options | None = None) -> Trajectory:
    """The trajectory of one session of a log, as of now.

    Raises:
        SessionNotFound: the log has no such session.
        CodecError: a body that is needed is damaged.
        LogClosed: the log is closed.
    """
    fold = TrajectoryFold(session, options, tell=False)
    empty = True
    async for record in log.read_all(session=session):
        empty = False
        fold.feed(record)
    if empty:
        raise SessionNotFound(session, log.url)
    return fold.trajectory()


async def score_sessions(
    log: EventLog, options: Options | None = None, *, process: bool = False
) -> AsyncIterator[Trajectory]:
    """The trajectories of all sessions of a log as of now, in order of their first records.

    One pass over the log; holds one fold per session until its end.

    Args:
        log: the log.
        options: how to score.
        process: measure also how the parties worked together, which reads every message.

    Raises:
        CodecError: a body that is needed is damaged.
        LogClosed: the log is closed.
    """
    folds: dict[str, TrajectoryFold] = {}
    processes: dict[str, ProcessFold] = {}

    def consume(records: Sequence[Record]) -> None:
        for record in records:
            session = record.session
            fold = folds.get(session)
            if fold is None:
                fold = folds[session] = TrajectoryFold(session, options, tell=False)
                if process:
                    processes[session] = ProcessFold()
            fold.feed(record)
            if process:
                processes[session].feed(record)

    await log.scan(consume)
    for session, fold in folds.items():
        trajectory = fold.trajectory()
        if process:
            measures = processes[session].measures
            trajectory = msgspec.structs.replace(trajectory, process=measures)
        yield trajectory


def watch(
    log: EventLog,
    *,
    session: str | None = None,
    options: Options | None = None,
    after_position: int = 0,
    keep: int = 256,
    keep_open: int = 16_384,
) -> Watch:
    """Updates of one session or of all, from a log as it grows: catches up, then goes live.

    Args:
        log: the log.
        session: only this one; None for all.
        options: how to score.
        after_position: only updates that records after this position bring about.
        keep: how many closed sessions to keep at hand; one that is measured later than that is
            folded again from the log.
        keep_open: how many open ones, those in which something happened last; likewise.

    Raises:
        LogClosed: the log is closed.
    """
    return Watch(log, session, options, after_position, keep, keep_open)


@asynccontextmanager
async def follow_updates(
    log: EventLog, session: str | None, after: int
) -> AsyncIterator[AsyncIterator[Step]]:
    """Follows a log with its records and what scoring makes of them; an ``interop.Follow``."""

    async def steps(watched: Watch) -> AsyncIterator[Step]:
        while True:
            yield await watched.step()

    async with watch(log, session=session, after_position=after) as watched:
        yield steps(watched)


@final
class Watch:
    """Updates as they come; use it as an async context manager, and iterate over it.

    Lossless and in order, like the subscription beneath it; it never ends by itself, since
    measurements may follow a session's close.

    Attributes:
        position: of the last record that was taken in.
    """

    def __init__(
        self,
        log: EventLog,
        session: str | None,
        options: Options | None,
        after_position: int,
        keep: int,
        keep_open: int,
    ) -> None:
        self._log = log
        self._options = options
        self._keep = keep
        self._keep_open = keep_open
        self.position = after_position
        self._open: dict[str, TrajectoryFold] = {}  # the one that was fed last comes last
        self._ended: dict[str, TrajectoryFold] = {}
        self._ready: list[Update] = []
        self._subscription: Subscription = log.subscribe(
            session=session, after_position=after_position
        )

    def __aiter__(self) -> AsyncIterator[Update]:
        return self

    async def __anext__(self) -> Update:
        while not self._ready:
            self._ready.extend(reversed((await self.step()).updates))
        return self._ready.pop()

    async def step(self) -> Step:
        """The next record and its updates, for those who want both; instead of iterating.

        Raises:
            LogClosed: the watch is closed, or its log is.
            CodecError: a body that is needed is damaged.
        """
        record = await self._subscription.__anext__()
        fold = await self._fold(record)
        updates = fold.feed(record)
        if fold.state != "open" and record.session in self._open:
            self._keep_at_hand(self._open.pop(record.session))
        self.position = record.position
        return Step(record, tuple(updates))

    @property
    def ready(self) -> int:
        """Updates that the last record brought about, and that were not taken yet."""
        return len(self._ready)

    async def __aenter__(self) -> Self:
        await self._subscription.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._subscription.__aexit__(kind, error, traceback)

    def trajectory(self, session: str) -> Trajectory:
        """A session's trajectory as of the last update.

        Raises:
            InvalidInput: no record of that session has come yet, or it is no longer at hand.
        """
        fold = self._open.get(session) or self._ended.get(session)
        if fold is None:
            raise InvalidInput(f"session {session!r} is not being watched; read it with score_log")
        return fold.trajectory()

    async def _fold(self, record: Record) -> TrajectoryFold:
        """The fold of a record's session, up to that record."""
        session = record.session
        fold = self._open.pop(session, None)
        if fold is None:
            fold = self._ended.get(session) or await self._begin(record)
        self._keep_at_hand(fold)
        return fold

    async def _begin(self, record: Record) -> TrajectoryFold:
        """A fold of what the log holds of a session before this record."""
        fold = TrajectoryFold(record.session, self._options)
        if record.version > 1 or record.kind != "SessionOpened":
            async for earlier in self._log.read_all(session=record.session):
                if earlier.position < record.position:
                    fold.feed(earlier)
        return fold

    def _keep_at_hand(self, fold: TrajectoryFold) -> None:
        """Keeps a fold, and drops another where there are too many."""
        kept, most = self._open, self._keep_open
        if fold.state != "open":
            kept, most = self._ended, self._keep
        kept[fold.session] = fold
        if len(kept) > most:
            del kept[next(iter(kept))]


@final
class ToleranceStop:
    """Advises to stop a session once a tolerance is used up; a rule for the engine to enforce.

    Args:
        session: session id.
        tau: the tolerance τ.
        options: how to score; its own tolerances do not matter.

    Raises:
        InvalidInput: the tolerance is below 1.
    """

    def __init__(self, session: str, tau: int, options: Options | None = None) -> None:
        self._fold = TrajectoryFold(
            session, msgspec.structs.replace(options or Options(), taus=(tau,))
        )

    def feed(self, record: Record) -> StopAdvised | None:
        """Takes the next record, in order of position; advises the stop the moment it is due."""
        for update in self._fold.feed(record):
            if isinstance(update, StopAdvice):
                return stop_advised(update, enforced=True)
        return None


def stop_advised(advice: StopAdvice, *, enforced: bool = False) -> StopAdvised:
    """An advice to stop as the log holds it."""
    return StopAdvised(
        round=advice.round,
        tau=advice.tau,
        rule=f"{advice.tau} rounds in a row rated below {SATISFACTORY}",
        enforced=enforced,
        scorer=STOPPER,
    )


STOPPER = ScorerRef(name="tolerance", version="1", config="")
"""Who advises, in the log."""
