"""Scores logs: a session at once, all sessions in one pass, or live as records arrive.

All of it goes through ``TrajectoryFold``; live scoring is a replay that has caught up.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self, final

import anyio.to_thread
import msgspec

from ..engine.errors import DuologError, InvalidInput, SessionNotFound
from ..engine.log.contract import EventLog
from ..engine.log.follower import Follower
from ..engine.log.session_states import SessionStates, read_before
from ..engine.records import Record
from .columns.log import Shared, folded
from .columns.rows import trajectory_of
from .replay import Step
from .trajectory.fold import TrajectoryFold
from .trajectory.options import Options
from .trajectory.points import Trajectory
from .trajectory.updates import Update

__all__ = (
    "UpdateSubscription",
    "follow_updates",
    "score_log",
    "score_records",
    "score_sessions",
    "watch",
)


_AT_ONCE = 1 << 15  # bytes of a body that is folded on the event loop; more in a thread


def score_records(records: Iterable[Record], options: Options | None = None) -> Trajectory:
    """The trajectory of one session from its records, of all streams in order of position.

    Raises:
        InvalidInput: there are no records, or they are of several sessions.
        CodecError: a body that is needed is damaged.
    """
    fold: TrajectoryFold | None = None
    for record in records:
        if fold is None:
            fold = TrajectoryFold(record.session, options, emit=False)
        fold.feed(record)
    if fold is None:
        raise InvalidInput("nothing to score: no records were given")
    return fold.trajectory()


async def score_log(log: EventLog, session: str, options: Options | None = None) -> Trajectory:
    """The trajectory of one session of a log, as of now.

    For example::

        trajectory = await duolog.score_log(log, "conversation-42")
        for point in trajectory.points:
            print(point.round, point.utility, point.rating, point.effort["acts"])

    Args:
        log: the log; it has to be open.
        session: session id.
        options: how to count rounds and tokens, and whose scores and ratings count.

    Returns:
        One point per round: utility in [0, 1], rating 1 to 5, and cumulative effort by measure.

    Raises:
        SessionNotFound: the log has no such session.
        CodecError: a body that is needed is damaged.
        PluginFailed: ``Options.count`` or ``Options.vague`` raised.
        LogClosed: the log is closed.
    """
    fold = TrajectoryFold(session, options, emit=False)
    empty = True
    async for record in log.read_all(session=session):
        empty = False
        fold.feed(record)
    if empty:
        raise SessionNotFound(session, log.url)
    return fold.trajectory()


async def score_sessions(
    log: EventLog,
    options: Options | None = None,
    *,
    process: bool = False,
    shared: Shared | None = None,
) -> AsyncIterator[Trajectory]:
    """The trajectories of all sessions of a log as of now, in order of their first records.

    The log keeps what was folded: the next call folds only sessions that are new, or have grown.

    Args:
        log: the log.
        options: how to score.
        process: say also how the parties worked together.
        shared: other processes that fold a part of a large log each; None for this one alone. The
            trajectories are the same to the bit.

    Raises:
        CodecError: a body that is needed is damaged.
        PluginFailed: ``Options.count`` or ``Options.vague`` raised.
        LogClosed: the log is closed.
    """
    async for rows in folded(log, options, shared=shared):
        trajectory = trajectory_of(rows)
        yield trajectory if process else msgspec.structs.replace(trajectory, process=None)


def watch(
    log: EventLog,
    *,
    session: str | None = None,
    options: Options | None = None,
    after_position: int = 0,
    keep: int = 256,
    keep_open: int = 16_384,
    idle: float = 60.0,
) -> UpdateSubscription:
    """Updates of one session or of all, from a log as it grows: catches up, then goes live.

    Args:
        log: the log.
        session: only this one; None for all.
        options: how to score.
        after_position: only updates that records after this position bring about.
        keep: how many closed sessions to keep in memory; one that is measured later than that is
            folded again from the log.
        keep_open: how many open ones, those in which something happened last; likewise.
        idle: seconds for which one in which nothing happens is kept; likewise.

    Raises:
        LogClosed: the log is closed.
    """
    return UpdateSubscription(log, session, options, after_position, keep, keep_open, idle)


@asynccontextmanager
async def follow_updates(
    log: EventLog, session: str | None, after: int
) -> AsyncIterator[AsyncIterator[Step]]:
    """Follows a log with its records and what scoring makes of them; an ``interop.Follow``."""

    async def steps(watched: UpdateSubscription) -> AsyncIterator[Step]:
        while True:
            yield await watched.step()

    async with watch(log, session=session, after_position=after) as watched:
        yield steps(watched)


@final
class UpdateSubscription:
    """Updates as they come; use it as an async context manager, and iterate over it.

    Lossless and in order, like the subscription beneath it. It waits while the log is unavailable,
    and never ends by itself, since measurements may follow a session's close.

    Attributes:
        position: the position of the last record that was taken in.
    """

    def __init__(
        self,
        log: EventLog,
        session: str | None,
        options: Options | None,
        after_position: int,
        keep: int,
        keep_open: int,
        idle: float,
    ) -> None:
        log.subscribe(session=session, after_position=after_position)  # raises if it cannot
        self._log = log
        self._options = options
        self.position = after_position
        self._follower = Follower(log, session=session, after_position=after_position)
        self._open: SessionStates[TrajectoryFold] = SessionStates(keep_open, idle=idle)
        self._closed: SessionStates[TrajectoryFold] = SessionStates(keep, idle=idle)
        self._held: Record | None = None  # delivered, and not folded: a step may be cancelled
        self._ready: list[Update] = []

    def __aiter__(self) -> AsyncIterator[Update]:
        return self

    async def __anext__(self) -> Update:
        while not self._ready:
            self._ready.extend(reversed((await self.step()).updates))
        return self._ready.pop()

    async def step(self) -> Step:
        """The next record and its updates, for those who want both; instead of iterating.

        With this, the record before it counts as processed.

        Raises:
            LogClosed: the subscription is closed, or its log is.
            CodecError: a body that is needed is damaged; the next step resumes after it.
            PluginFailed: the counter of tokens raised, or ``Options.vague``; likewise.
        """
        self._follower.done(self.position)
        self._held = record = self._held or await self._follower.__anext__()
        fold = self._at_hand(record.session) or await self._begin(record)

        def feed() -> Sequence[Update]:
            self._held = None
            self.position = record.position
            return fold.feed(record)

        large = len(record.body or b"") > _AT_ONCE
        updates = await anyio.to_thread.run_sync(feed) if large else feed()
        if fold.state == "open":
            self._open.keep(record.session, fold)
        else:
            self._open.drop(record.session)
            self._closed.keep(record.session, fold)
        return Step(record, tuple(updates))

    async def settle(self) -> None:
        """Waits until the updates of all that the log holds now were taken, and more asked for."""
        await self._follower.settle()

    async def __aenter__(self) -> Self:
        await self._follower.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._follower.aclose()

    def trajectory(self, session: str) -> Trajectory:
        """A session's trajectory as of the last update.

        Raises:
            InvalidInput: no record of that session has come yet, or it is no longer in memory.
        """
        fold = self._at_hand(session)
        if fold is None:
            raise InvalidInput(f"session {session!r} is not being watched; read it with score_log")
        return fold.trajectory()

    def _at_hand(self, session: str) -> TrajectoryFold | None:
        return self._open.get(session) or self._closed.get(session)

    async def _begin(self, record: Record) -> TrajectoryFold:
        """Folds the records of a session that the log holds before this one."""

        async def read() -> TrajectoryFold:
            fold = TrajectoryFold(record.session, self._options)
            async for earlier in read_before(self._log, record):
                fold.feed(earlier)
            return fold

        try:
            return await self._follower.retry(read)
        except DuologError:  # a damaged body, say: the session cannot be folded
            self._held = None
            self.position = record.position
            raise
