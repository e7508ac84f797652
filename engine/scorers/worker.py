"""One scorer at work on a log: it follows all sessions, each at its own pace, and loses nothing."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import final

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..errors import (
    CheckpointConflict,
    LogClosed,
    LogError,
    LogUnavailable,
    SessionClosedError,
    SessionInterrupted,
)
from ..events import ScorerRef
from ..log.backoff import Backoff
from ..log.contract import EventLog
from ..log.follower import CheckpointKey, Follower
from ..log.session_states import SessionStates
from ..logger import get_logger
from ..plugins import PluginCall
from ..records import TRACE, Record
from .computing import ComputeThread
from .protocol import Scorer, stream_of
from .runner import ScorerRunner
from .session_work import SessionWork

__all__ = ("Pace", "ScorerStatistics", "ScorerWorker", "checkpoint_key")

_BACKLOG = 4096  # records taken from the log that were not looked at yet
_SESSION = 256  # of those, of one session; what comes then is read from the log later
_SAVE = 256  # records between checkpoints


class ScorerStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """How one scorer stands.

    Attributes:
        scorer: ``name@version``.
        position: of the log, up to which it has taken note of all records.
        lag: how many positions the log is ahead of that.
        measured: records that it has looked at since it was started.
        working: sessions that it is at work on, or has waiting.
        quarantined: sessions in which it failed since it was started, and measures no more.
    """

    scorer: str
    position: int
    lag: int
    measured: int
    working: int
    quarantined: int


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """What a scorer may take.

    Attributes:
        within: seconds over one record; a scorer that takes longer is quarantined.
        at_once: sessions that it works on at a time.
        keep: open sessions whose state is kept at hand; for others it is made anew when something
            comes, by reading the session from the log.
        retry: seconds before the first new attempt where the log, or a model that a scorer asks,
            cannot be reached.
    """

    within: float = 60.0
    at_once: int = 64
    keep: int = 4096
    retry: float = 0.25


def checkpoint_key(ref: ScorerRef, session: str | None = None) -> CheckpointKey:
    """Under what the log keeps a scorer's checkpoint."""
    name = f"scorer/{ref.name}"
    return CheckpointKey(name if session is None else f"{name}/{session}", ref.version)


@final
class ScorerWorker:
    """One scorer at work on a log.

    Args:
        log: whose sessions it measures, and where its measurements go.
        scorer: who measures.
        session: only this session; None for all.
        pace: what it may take.

    Attributes:
        stream: where its measurements go.
    """

    def __init__(self, log: EventLog, scorer: Scorer, session: str | None, pace: Pace) -> None:
        self._log = log
        self._scorer = scorer
        self._session = session
        self._pace = pace
        self.stream = stream_of(scorer.ref)
        self._follower = Follower(
            log,
            session=session,
            key=checkpoint_key(scorer.ref, session),
            backoff=Backoff(pace.retry),
            on_unavailable=self._report_unavailable,
        )
        self._computing = ComputeThread()
        self._slots = anyio.CapacityLimiter(pace.at_once)
        self._works: SessionStates[SessionWork] = SessionStates(
            pace.keep, busy=lambda work: work.running
        )
        self._running: dict[SessionWork, None] = {}
        self._backlog = 0
        self._measured = 0
        self._unsaved = 0
        self._quarantined = 0
        self._room = anyio.Event()
        self._tasks: TaskGroup | None = None

    # --- the log ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Measures until it is cancelled, or the log is closed or can be read no longer."""
        async with self._follower, anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._watch_the_time)
            try:
                async for record in self._follower:
                    self._take(record)
                    if self._backlog >= _BACKLOG:
                        await self._room.wait()
            except LogClosed:
                pass
            except LogError as error:
                self._report("a scorer has ended: the log cannot be read any more", error)
            tasks.cancel_scope.cancel()

    def _take(self, record: Record) -> None:
        """Takes the next record: something for the scorer to look at, or not."""
        if record.stream == TRACE:
            work = self._works.get(record.session) or SessionWork(record.session)
            self._works.keep(record.session, work)
            if not work.over:
                self._hand(work, record)
                return
        elif record.stream == self.stream and record.kind == "ScorerFailed":
            self._note_failure(record)
        self._follower.done(record.position)

    def _hand(self, work: SessionWork, record: Record) -> None:
        if work.behind:  # this one is read with those before it
            self._follower.done(record.position)
        elif len(work.pending) >= _SESSION:
            work.behind = record.position
        else:
            work.pending.append(record)
            self._backlog += 1
        if not work.running and self._tasks is not None:
            work.running = True
            self._running[work] = None
            self._tasks.start_soon(self._work, work)

    def _note_failure(self, record: Record) -> None:
        """Counts a failure; who measures, here or elsewhere, has logged it."""
        if record.position > self._follower.head_at_start:
            self._quarantined += 1

    # --- one session ------------------------------------------------------------------------------

    async def _work(self, work: SessionWork) -> None:
        """Has the scorer look at what waits of a session, and comes back to it where that fails."""
        backoff = Backoff(self._pace.retry)
        while work.waits:
            try:
                with PluginCall(self.stream):  # lest this task end unnoticed
                    await self._take_slot()
                    try:
                        await self._look_at_all(work)
                    finally:
                        self._slots.release()
            except LogClosed:
                self._room.set()  # nobody else will: the follower has to notice it too
                return
            except (LogUnavailable, SessionInterrupted) as error:
                seconds = backoff.next()
                self._report(
                    "a scorer cannot go on now; trying again", error, work.session, seconds=seconds
                )
                work.restart()
                await anyio.sleep(seconds)
            except SessionClosedError:
                work.over = True  # the session was forgotten
            except Exception as error:  # noqa: BLE001  (logged; the other sessions go on)
                self._report("a session cannot be measured", error, work.session)
                work.over = True
        self._rest(work)

    async def _take_slot(self) -> None:
        """Takes one of the slots, without a switch of tasks where one is free."""
        try:
            self._slots.acquire_nowait()
        except anyio.WouldBlock:
            await self._slots.acquire()

    async def _look_at_all(self, work: SessionWork) -> None:
        """Has the scorer look at what waits; what does not lie in ``pending`` is read."""
        while work.waits:
            record = work.pending[0] if work.pending else None
            if work.runner is None:
                work.runner = await self._begin(work, record)
            if record is not None and record.version <= work.version + 1:
                await self._look(work, work.runner, record)
                self._release(work)
            else:
                await self._read_on(work, work.runner)

    async def _read_on(self, work: SessionWork, runner: ScorerRunner) -> None:
        """Has the scorer look at all that the log holds and it has not seen."""
        behind, work.behind = work.behind, 0  # what comes from here on waits in ``pending`` again
        try:
            async for record in self._log.read(work.session, after_version=work.version):
                await self._look(work, runner, record)
                if work.over:
                    break
        except BaseException:
            if behind:
                self._follower.done(work.behind)
                work.behind = behind
            raise
        self._follower.done(behind)

    async def _look(self, work: SessionWork, runner: ScorerRunner, record: Record) -> None:
        """Has the scorer look at one record, once."""
        if record.version <= work.version:
            return
        work.since = time.monotonic()
        try:
            await runner.measure((record,))
        finally:
            work.since = None
        work.version = record.version
        work.closed = work.closed or record.kind == "SessionClosed"
        work.over = not runner.active
        self._measured += 1
        self._unsaved += 1
        if self._unsaved >= _SAVE:
            await self.save()

    async def _begin(self, work: SessionWork, record: Record | None) -> ScorerRunner:
        """Runs the scorer for a session; it is given what it has measured of it before."""
        recorded: list[Record] = []
        new = record is not None and record.version == 1
        if not new or (record and record.position <= self._follower.head_at_start):
            recorded = [r async for r in self._log.read(work.session, stream=self.stream)]
        return ScorerRunner(
            self._log,
            work.session,
            (self._scorer,),
            recorded=recorded,
            excused=work.excuse,
            run=self._computing.runner(work.excuse),
        )

    def _rest(self, work: SessionWork) -> None:
        """Nothing waits of a session."""
        while work.pending:
            self._release(work)
        self._follower.done(work.behind)
        work.behind = 0
        work.running = False
        del self._running[work]
        if work.closed:  # what may still come, feedback, has it read again
            self._works.drop(work.session)
        self._works.evict()

    def _release(self, work: SessionWork) -> None:
        """The first record that waits of a session has been looked at, or need not be."""
        record = work.pending.popleft()
        full = self._backlog >= _BACKLOG
        self._backlog -= 1
        if full:
            self._room.set()
            self._room = anyio.Event()
        self._follower.done(record.position)

    async def _watch_the_time(self) -> None:
        """Quarantines the scorer where it takes too long over a record."""
        within = self._pace.within
        while True:
            await anyio.sleep(within / 4)
            late = time.monotonic() - within
            for work in tuple(self._running):
                work.stop_if_late(late)

    # --- progress ---------------------------------------------------------------------------------

    async def save(self) -> None:
        """Moves the checkpoint to where everything before has been measured and recorded.

        Where that fails, the checkpoint lags: what lies behind it is looked at a second time after
        a restart, and recorded once.
        """
        self._unsaved = 0
        try:
            await self._follower.commit()
        except CheckpointConflict:
            pass  # another process runs this scorer too
        except LogClosed:
            raise
        except LogError as error:
            self._report("a checkpoint was not saved", error)

    async def settle(self) -> None:
        """Waits until all that the log holds now is measured, and the checkpoint says so.

        Returns as well once the scorer has ended.
        """
        await self._follower.settle()
        with suppress(LogClosed):
            await self.save()

    def statistics(self) -> ScorerStatistics:
        """How it stands."""
        follower = self._follower.statistics()
        return ScorerStatistics(
            scorer=self.stream,
            position=follower.taken,
            lag=follower.lag,
            measured=self._measured,
            working=len(self._running),
            quarantined=self._quarantined,
        )

    def _report_unavailable(self, error: LogUnavailable, seconds: float) -> None:
        self._report("the log cannot be read now; trying again", error, seconds=seconds)

    def _report(
        self, what: str, error: Exception, session: str | None = None, **more: float
    ) -> None:
        get_logger("telemetry").warning(
            what, scorer=self.stream, session=session or self._session, error=str(error), **more
        )
