"""Replays a log: its records and the updates that follow from them, as they came live.

The same fold as live (``TrajectoryFold``) takes the same records in the same order, so the updates
are the same; only the waiting between them is up to the caller: none, or session time scaled.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple, final

import anyio
import msgspec

from ..engine.errors import InvalidInput, SessionNotFound
from ..engine.log.contract import EventLog
from ..engine.records import TRACE, Record
from ..engine.rounds import RoundProjector
from .trajectory.fold import TrajectoryFold
from .trajectory.options import Options
from .trajectory.points import Trajectory
from .trajectory.updates import Update

__all__ = ("Replay", "Step", "Until", "replay")


@final
class Until(msgspec.Struct, frozen=True, kw_only=True):
    """Where to stop in each session: before the first trace record that lies beyond.

    A measurement belongs to the moment when it was recorded; so what a scorer said later, even
    about an earlier round, is not there yet.

    Attributes:
        round: the last round, as ``Options.rounds`` counts.
        version: the last trace version.
        seconds: session time since the session's first trace record.
        time: time on the session's own clock (UTC epoch, or virtual from 0).

    Raises:
        InvalidInput: a round or version is below 1, or a time is negative or not a number.
    """

    round: int | None = None
    version: int | None = None
    seconds: float | None = None
    time: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("round", self.round), ("version", self.version)):
            if value is not None and value < 1:
                raise InvalidInput(f"a {name} to stop at is at least 1, not {value}")
        for name, at in (("seconds", self.seconds), ("time", self.time)):
            if at is not None and not at >= 0:
                raise InvalidInput(f"{name} to stop at are at least 0, not {at:g}")


class Step(NamedTuple):
    """A record, and the updates that followed from it."""

    record: Record
    updates: tuple[Update, ...]


async def replay(
    log: EventLog,
    *,
    session: str | None = None,
    options: Options | None = None,
    speed: float | None = None,
    until: Until | None = None,
) -> AsyncIterator[Update]:
    """The updates of one session or of all, as ``watch`` gave them while the log was written.

    For example::

        async for update in duolog.replay(log, session="conversation-42"):
            print(type(update).__name__, "in round", update.round)

    Args:
        log: the log.
        session: only this one; None for all.
        options: how to score.
        speed: session seconds per second; None for as fast as it goes.
        until: where to stop.

    Yields:
        The updates, in order of the records that brought them about.

    Raises:
        InvalidInput: the speed is not above 0.
        SessionNotFound: the log has no such session.
        CodecError: a body that is needed is damaged.
        PluginFailed: ``Options.count`` or ``Options.vague`` raised.
        LogClosed: the log is closed.
    """
    async for step in Replay(log, session=session, options=options, speed=speed, until=until):
        for update in step.updates:
            yield update


@final
class Replay:
    """A replay, record by record: iterate over it, once, for its steps.

    With a speed, each record waits until as much session time has passed since the first record
    of its session, on the session's own clock. Records of other sessions keep their order; so a
    record never comes before one that was recorded earlier.

    Args:
        log: the log.
        session: only this one; None for all.
        options: how to score.
        speed: session seconds per second; None for as fast as it goes.
        until: where to stop.
        now: a clock in seconds, for the waiting.
        sleep: waits for a number of seconds.

    Raises:
        InvalidInput: the speed is not above 0.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        session: str | None = None,
        options: Options | None = None,
        speed: float | None = None,
        until: Until | None = None,
        now: Callable[[], float] = anyio.current_time,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        if speed is not None and not speed > 0:
            raise InvalidInput(f"the speed of a replay is above 0, not {speed:g}")
        self._log = log
        self._session = session
        self._options = options or Options()
        self._speed = speed
        self._until = until
        self._now = now
        self._sleep = sleep
        self._sessions: dict[str, _Session] = {}

    def trajectory(self, session: str) -> Trajectory:
        """A session's trajectory as of the last step.

        Raises:
            InvalidInput: no record of it has been replayed.
        """
        found = self._sessions.get(session)
        if found is None:
            raise InvalidInput(f"no record of session {session!r} has been replayed")
        return found.fold.trajectory()

    @property
    def sessions(self) -> tuple[str, ...]:
        """The sessions that have been replayed so far, in order of their first records."""
        return tuple(self._sessions)

    async def __aiter__(self) -> AsyncIterator[Step]:
        """The steps in order of position."""
        async for record in self._log.read_all(session=self._session):
            session = self._sessions.get(record.session)
            if session is None:
                session = self._begin(record)
            if session.ends(record, self._until):
                if self._session is not None:
                    return
                continue
            if self._speed is not None:
                await self._wait(session.began + (record.time - session.first) / self._speed)
            yield Step(record, tuple(session.fold.feed(record)))
        if self._session is not None and not self._sessions:
            raise SessionNotFound(self._session, self._log.url)

    def _begin(self, record: Record) -> _Session:
        session = _Session(record, self._options, 0.0 if self._speed is None else self._now())
        self._sessions[record.session] = session
        return session

    async def _wait(self, due: float) -> None:
        seconds = due - self._now()
        if seconds > 0:
            await self._sleep(seconds)


@final
class _Session:
    """One session of a replay.

    Attributes:
        fold: its trajectory.
        first: time of its first record, on its own clock.
        began: when that record came, on the replay's clock.
    """

    def __init__(self, record: Record, options: Options, began: float) -> None:
        self.fold = TrajectoryFold(record.session, options)
        self.first = record.time
        self.began = began
        self._projector = RoundProjector(options.rounds)
        self._over = False

    def ends(self, record: Record, until: Until | None) -> bool:
        """Whether a record lies beyond the end, and with it all that follow in its session."""
        if until is None or self._over:
            return self._over
        if record.stream == TRACE:
            self._projector.feed(record)
            self._over = (
                _beyond(self._projector.number, until.round)
                or _beyond(record.version, until.version)
                or _beyond(record.time - self.first, until.seconds)
                or _beyond(record.time, until.time)
            )
        return self._over


def _beyond(value: float, limit: float | None) -> bool:
    return limit is not None and value > limit
