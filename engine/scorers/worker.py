"""One scorer at work on a log: it follows all sessions, each at its own pace, and loses nothing."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..errors import (
    CheckpointConflict,
    DuologError,
    LogClosed,
    LogUnavailable,
    SessionClosedError,
    SessionInterrupted,
)
from ..events import ScorerFailed, ScorerRef
from ..log.contract import Advance, EventLog
from ..logger import journal
from ..records import TRACE, Record
from .protocol import Scorer, stream_of
from .runner import Measuring

__all__ = ("Following", "Pace", "ScorerStatistics", "consumer_of")

_BACKLOG = 4096  # records taken from the log that were not looked at yet
_SESSION = 256  # of those, of one session; what comes then is read from the log later
_SAVE = 256  # records between checkpoints
_LONGEST = 30.0  # seconds between attempts


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


def consumer_of(ref: ScorerRef, session: str | None = None) -> tuple[str, str]:
    """Name and version under which the log keeps a scorer's checkpoint."""
    name = f"scorer/{ref.name}"
    return (name if session is None else f"{name}/{session}"), ref.version


@final
class _Work:
    """A scorer's work on one session."""

    __slots__ = (
        "behind",
        "closed",
        "done",
        "excused",
        "measuring",
        "over",
        "pending",
        "running",
        "session",
        "since",
        "version",
    )

    def __init__(self, session: str) -> None:
        self.session = session
        self.measuring: Measuring | None = None
        self.version = 0  # of the last record that the scorer has seen
        self.done = 0  # position up to which nothing of this session is left to look at
        self.pending: deque[Record] = deque()
        self.behind = False  # there is more in the log than in ``pending``
        self.closed = False  # as far as the scorer has seen, the session is
        self.running = False
        self.over = False  # it is quarantined here, or there is nothing to measure any more
        self.since: float | None = None  # when it began to look at a record
        self.excused = 0

    @contextmanager
    def excuse(self) -> Iterator[None]:
        """While the scorer waits for somebody else, its time stands still."""
        self.excused += 1
        try:
            yield
        finally:
            self.excused -= 1
            self.since = time.monotonic()

    def forget(self) -> None:
        """Begins anew with the next record."""
        self.measuring = None
        self.version = 0


@final
class Following:
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
        self._consumer = consumer_of(scorer.ref, session)
        self._slots = anyio.CapacityLimiter(pace.at_once)
        self._works: dict[str, _Work] = {}  # those that were busy last come last
        self._running: dict[_Work, None] = {}
        self._position = 0
        self._saved = 0
        self._begun_at = 0
        self._backlog = 0
        self._measured = 0
        self._unsaved = 0
        self._saving = False
        self._quarantined = 0
        self._settlers = 0
        self._ended = False
        self._room = anyio.Event()
        self._progress = anyio.Event()
        self._tasks: TaskGroup | None = None

    # --- the log ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Measures until it is cancelled, or the log is closed."""
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self._watch_the_time)
                await self._follow()
                tasks.cancel_scope.cancel()
        finally:
            self._ended = True
            self._progress.set()

    async def _follow(self) -> None:
        """Takes records from the log, from where the scorer has come to; until it is closed."""
        delay = self._pace.retry
        while True:
            try:
                if not self._position:
                    self._begun_at = self._log.statistics().position
                    self._saved = await self._log.checkpoint(*self._consumer)
                    self._position = self._saved
                    self._tell()
                async with self._log.subscribe(
                    session=self._session, after_position=self._position
                ) as records:
                    async for record in records:
                        self._take(record)
                        delay = self._pace.retry
                        if self._backlog >= _BACKLOG:
                            await self._room.wait()
            except LogClosed:
                return
            except LogUnavailable as error:
                self._complain("the log cannot be read now; trying again", error, seconds=delay)
                await anyio.sleep(delay)
                delay = min(2 * delay, _LONGEST)

    def _take(self, record: Record) -> None:
        """Takes the next record: something for the scorer to look at, or not."""
        if record.stream == TRACE:
            work = self._works.pop(record.session, None) or _Work(record.session)
            self._works[record.session] = work
            if not work.over:
                self._hand(work, record)
        elif record.stream == self.stream and record.kind == "ScorerFailed":
            self._note_failure(record)
        self._position = record.position
        self._tell()

    def _hand(self, work: _Work, record: Record) -> None:
        if work.behind or len(work.pending) >= _SESSION:
            work.behind = True
        else:
            work.pending.append(record)
            self._backlog += 1
        if not work.running and self._tasks is not None:
            work.running = True
            work.done = record.position - 1
            self._running[work] = None
            self._tasks.start_soon(self._work, work)

    def _note_failure(self, record: Record) -> None:
        if record.position <= self._begun_at:
            return
        self._quarantined += 1
        event = record.event
        journal("telemetry").error(
            "a scorer failed, and measures this session no more",
            scorer=self.stream,
            session=record.session,
            cause=record.cause,
            error=f"{event.type}: {event.error}" if isinstance(event, ScorerFailed) else "?",
        )

    # --- one session ------------------------------------------------------------------------------

    async def _work(self, work: _Work) -> None:
        """Has the scorer look at what waits of a session, and comes back to it where that fails."""
        delay = self._pace.retry
        while not work.over and (work.pending or work.behind):
            try:
                async with self._slots:
                    await self._look_at_all(work)
            except LogClosed:
                return
            except (LogUnavailable, SessionInterrupted) as error:
                self._complain(
                    "a scorer cannot go on now; trying again", error, work.session, seconds=delay
                )
                work.forget()
                await anyio.sleep(delay)
                delay = min(2 * delay, _LONGEST)
            except SessionClosedError:
                work.over = True  # the session was forgotten
            except DuologError as error:
                self._complain("a session cannot be measured", error, work.session)
                work.over = True
        self._rest(work)

    async def _look_at_all(self, work: _Work) -> None:
        """Has the scorer look at what waits; what does not lie in ``pending`` is read."""
        while not work.over and (work.pending or work.behind):
            record = work.pending[0] if work.pending else None
            if work.measuring is None:
                work.measuring = await self._begin(work, record)
            if record is not None and record.version <= work.version + 1:
                await self._look(work, record)
                work.pending.popleft()
                self._release(1)
            else:
                await self._read_on(work)

    async def _read_on(self, work: _Work) -> None:
        """Has the scorer look at all that the log holds and it has not seen."""
        work.behind = False  # what comes from here on waits in ``pending`` again
        try:
            async for record in self._log.read(work.session, after_version=work.version):
                await self._look(work, record)
                if work.over:
                    return
        except BaseException:
            work.behind = True
            raise

    async def _look(self, work: _Work, record: Record) -> None:
        """Has the scorer look at one record, once."""
        if record.version <= work.version:
            return
        assert work.measuring is not None
        work.since = time.monotonic()
        try:
            await work.measuring.measure((record,))
        finally:
            work.since = None
        work.version = record.version
        work.closed = work.closed or record.kind == "SessionClosed"
        work.done = max(work.done, record.position)
        work.over = not work.measuring.active
        self._measured += 1
        self._unsaved += 1
        if self._unsaved >= _SAVE:
            await self.save(work.session)

    async def _begin(self, work: _Work, record: Record | None) -> Measuring:
        """The scorer for a session, told what it has measured of it before."""
        recorded: list[Record] = []
        if record is None or record.version > 1 or record.position <= self._begun_at:
            recorded = [r async for r in self._log.read(work.session, stream=self.stream)]
        return Measuring(
            self._log, work.session, (self._scorer,), recorded=recorded, excused=work.excuse
        )

    def _rest(self, work: _Work) -> None:
        """Nothing waits of a session."""
        self._release(len(work.pending))
        work.pending.clear()
        work.behind = work.running = False
        self._running.pop(work, None)
        if work.closed:  # what may still come, feedback, has it read again
            self._works.pop(work.session, None)
        if len(self._works) > self._pace.keep:
            for oldest in self._works.values():
                if not oldest.running:
                    del self._works[oldest.session]
                    break
        self._tell()

    def _release(self, count: int) -> None:
        full = self._backlog >= _BACKLOG
        self._backlog -= count
        if full:
            self._room.set()
            self._room = anyio.Event()

    async def _watch_the_time(self) -> None:
        """Quarantines the scorer where it takes too long over a record."""
        within = self._pace.within
        while True:
            await anyio.sleep(within / 4)
            late = time.monotonic() - within
            for work in tuple(self._running):
                measuring, since = work.measuring, work.since
                if measuring and since is not None and since < late and not work.excused:
                    measuring.give_up()

    # --- how far it has come ----------------------------------------------------------------------

    async def save(self, session: str) -> None:
        """Moves the checkpoint to where everything before has been measured and recorded.

        Args:
            session: any session of the log, which the append has to name.
        """
        upto = min((work.done for work in self._running), default=self._position)
        if self._saving or upto <= self._saved:
            return
        self._saving = True
        self._unsaved = 0
        name, version = self._consumer
        advance = Advance(consumer=name, version=version, expected=self._saved, position=upto)
        try:
            await self._log.append(session, (), checkpoint=advance)
            self._saved = upto
        except CheckpointConflict as conflict:
            self._saved = conflict.actual  # another process runs this scorer too
        finally:
            self._saving = False

    async def settle(self, position: int) -> None:
        """Waits until all up to a position of the log is measured; or the scorer has ended."""
        self._settlers += 1
        try:
            while not self._ended and (self._position < position or self._running):
                await self._progress.wait()
        finally:
            self._settlers -= 1

    def _tell(self) -> None:
        if self._settlers:
            self._progress.set()
            self._progress = anyio.Event()

    def statistics(self) -> ScorerStatistics:
        """How it stands."""
        return ScorerStatistics(
            scorer=self.stream,
            position=self._position,
            lag=max(0, self._log.statistics().position - self._position),
            measured=self._measured,
            working=len(self._running),
            quarantined=self._quarantined,
        )

    def _complain(
        self, what: str, error: Exception, session: str | None = None, **more: float
    ) -> None:
        journal("telemetry").warning(
            what, scorer=self.stream, session=session or self._session, error=str(error), **more
        )
