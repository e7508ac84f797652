"""The intake: a bounded queue between a product and its log, written session by session.

Whoever records hands an entry over and goes on; any thread may. On the log's event loop, each
session that has something waiting is written by a task of its own, one batch after the other, so
that its trace has one order, and many sessions share the store's commits.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Sequence
from itertools import islice
from typing import final
from uuid import uuid4

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..engine.errors import (
    DuplicateConflict,
    InvalidInput,
    LogClosed,
    LogUnavailable,
    NotRecorded,
    SessionClosedError,
    StaleBase,
)
from ..engine.events import RecordsLost
from ..engine.log.contract import EventLog
from ..engine.log.process import OwnProcess
from ..engine.logger import get_logger
from ..engine.records import ENGINE
from ..engine.session.commands import (
    CloseSession,
    Command,
    GiveFeedback,
    RecordEvent,
    SubmitSnapshot,
)
from .committer import BatchCommitter, CommitResult
from .queue import IntakeStatistics, OnFull, QueuedCommand, SessionQueue, Unwritten
from .receipt import Receipt

__all__ = ("Intake",)

_BATCH = 256  # entries in one append
_MARK = "lost"  # the verb of what notes that events were lost
_LONGEST = 5.0  # seconds between attempts to write
_REFUSALS = (DuplicateConflict, InvalidInput, SessionClosedError, StaleBase)


@final
class Intake:
    """Takes entries from any thread, and writes them on the event loop that runs it.

    Args:
        log: where they go.
        limit: how many may wait, of all sessions together; a session's close always finds room.
        on_full: what becomes of one for which there is no room.
        retry: seconds before the first new attempt where the log cannot be written now.

    Raises:
        InvalidInput: a limit below 1, or an unknown ``on_full``.
    """

    def __init__(self, log: EventLog, *, limit: int, on_full: OnFull, retry: float) -> None:
        if limit < 1:
            raise InvalidInput(f"an intake has to hold at least one event, not {limit}")
        if on_full not in ("drop", "block"):
            raise InvalidInput(f"on_full is 'drop' or 'block', not {on_full!r}")
        self._log = log
        self._limit = limit
        self._on_full = on_full
        self._retry = retry
        self._committer = BatchCommitter(log)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._process = OwnProcess()
        # Protects what follows, and the queues of the lanes.
        self._lock = threading.Lock()
        self._ready: deque[SessionQueue] = deque()
        self._awake = False
        self._closed = False
        self._waiting = 0
        self._accepted = 0
        self._dropped: Counter[str] = Counter()
        # The event loop alone touches what follows.
        self._written = self._repeated = self._refused = self._failed = self._retries = 0
        self._error = ""
        self._busy: dict[SessionQueue, None] = {}
        self._news = anyio.Event()
        self._room = anyio.Event()
        self._finished = anyio.Event()
        self._scope = anyio.CancelScope(shield=True)

    # --- from any thread --------------------------------------------------------------------------

    def offer(self, lane: SessionQueue, entry: QueuedCommand) -> bool:
        """Takes an entry; False where there is no room for it. Never waits.

        Raises:
            LogClosed: the log is closed, or closing.
            SessionClosedError: the session is closed. An event with an id is taken all the same,
                since it may have been recorded before.
        """
        self._process.check(self._log.url)
        command = entry.command
        closes = isinstance(command, CloseSession)
        with self._lock:
            if self._closed:
                raise LogClosed(f"{self._log.url} is closed: nothing can be recorded any more")
            if closes:
                lane.closing = True
            elif lane.closing and entry.id is None and not _may_follow(command):
                raise SessionClosedError(lane.session)
            if self._waiting >= self._limit and command is not None and not closes:
                return False
            self._waiting += 1
            self._accepted += 1
            if isinstance(command, SubmitSnapshot):
                if entry.about is not None and lane.is_outdated(entry.about):
                    entry.stale = True
                else:
                    lane.latest = entry.receipt
            if command is not None:
                entry.received, lane.last = lane.last, entry.receipt
            wake = self._enqueue(lane, entry)
        if wake:
            self._wake_up()
        return True

    def _enqueue(self, lane: SessionQueue, entry: QueuedCommand) -> bool:
        """Puts an entry into the queue of its session, under the lock; whether to wake the loop."""
        lane.queue.append(entry)
        if lane.busy:
            return False
        lane.busy = True
        self._ready.append(lane)
        woken, self._awake = self._awake, True
        return not woken

    def _wake_up(self) -> None:
        if threading.get_ident() == self._thread:
            self._news.set()
        else:
            self._loop.call_soon_threadsafe(self._wake)

    def _lose(self, lane: SessionQueue, entry: QueuedCommand, why: str) -> bool:
        """Has it noted in the log that an entry is lost, under the lock; whether to wake the loop.

        Losses are noted together, behind what waits of the session.
        """
        at, mark = entry.time, lane.lost
        if mark is not None and isinstance(mark.command, RecordEvent):
            lost = mark.command.event
            assert isinstance(lost, RecordsLost)
            begin, end = min(lost.begin, at), max(lost.end, at)
            more = msgspec.structs.replace(lost, count=lost.count + 1, begin=begin, end=end)
            mark.command = RecordEvent(more)
            return False
        lost = RecordsLost(count=1, begin=at, end=at, why=why)
        ident = f"{_MARK}/{uuid4()}"
        receipt = Receipt(lane.session, ident)
        lane.lost = QueuedCommand(
            _MARK, RecordEvent(lost), ENGINE, "environment", at, receipt, ident
        )
        self._waiting += 1
        return self._enqueue(lane, lane.lost)

    def drop(self, lane: SessionQueue, entry: QueuedCommand) -> None:
        """Counts an entry that found no room, has it noted in the log, and says so now and then."""
        why = f"{self._limit} events wait to be written already"
        reason = NotRecorded(lane.session, why)
        with self._lock:
            self._dropped[entry.verb] += 1
            count = self._dropped.total()
            self._error = str(reason)
            wake = not self._closed and self._lose(lane, entry, why)
        entry.receipt.settle(None, reason)
        if wake:
            self._wake_up()
        if count & (count - 1) == 0:
            get_logger("telemetry").warning(
                "events are dropped: the log does not keep up",
                dropped=count,
                session=lane.session,
                verb=entry.verb,
                limit=self._limit,
            )

    def statistics(self) -> IntakeStatistics:
        """How it stands. Raises LogClosed in a fork of its process."""
        self._process.check(self._log.url)
        with self._lock:
            return IntakeStatistics(
                accepted=self._accepted,
                waiting=self._waiting,
                written=self._written,
                repeated=self._repeated,
                refused=self._refused,
                failed=self._failed,
                dropped=self._dropped.total(),
                dropped_verbs=dict(self._dropped),
                retries=self._retries,
                error=self._error,
            )

    # --- on the event loop ------------------------------------------------------------------------

    def _wake(self) -> None:
        self._news.set()

    async def put(self, lane: SessionQueue, entry: QueuedCommand) -> None:
        """Takes an entry; where there is no room, drops it or waits, as was chosen.

        Raises:
            LogClosed: the log is closed, or closing.
            SessionClosedError: as ``offer``.
        """
        while not self.offer(lane, entry):
            if self._on_full == "drop":
                self.drop(lane, entry)
                return
            await self._room.wait()

    async def load(self, lane: SessionQueue) -> None:
        """Reads a session's trace where it is not known; later, if the log cannot be read now.

        Raises:
            CodecError: a body that is needed is damaged.
            LogClosed: the log is closed.
        """
        self._process.check(self._log.url)
        async with lane.lock:
            if lane.state is not None:
                return
            try:
                state = await self._committer.load(lane)
            except LogUnavailable as error:
                get_logger("telemetry").warning(
                    "a session cannot be read now", session=lane.session, error=str(error)
                )
                return
        with self._lock:
            lane.follow(state)

    async def run(self) -> None:
        """Writes what is handed over, until ``drain`` ends it; no other cancellation reaches it."""
        try:
            with self._scope:
                async with anyio.create_task_group() as writers:
                    while not (self._closed and not self._waiting):
                        await self._news.wait()
                        self._news = anyio.Event()
                        self._start(writers)
        finally:
            self._finished.set()

    def _start(self, writers: TaskGroup) -> None:
        """Starts to write the sessions that have something waiting."""
        with self._lock:
            self._awake = False
            ready, self._ready = self._ready, deque()
        for lane in ready:
            self._busy[lane] = None
            writers.start_soon(self._write, lane, name=f"writer of session {lane.session}")

    async def drain(self, seconds: float) -> tuple[Unwritten, ...]:
        """Takes nothing more, and writes what waits, for a number of seconds; gives what could not be written.

        What the store has begun to commit when the time is over is waited for.
        """
        if self._process.forked:
            return ()
        with self._lock:
            self._closed = True
        self._news.set()
        self._room.set()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(seconds):
                await self._finished.wait()
            self._scope.cancel()
            await self._finished.wait()
        return self._give_up()

    def _give_up(self) -> tuple[Unwritten, ...]:
        """Fails what still waits."""
        left: list[Unwritten] = []
        for lane in dict.fromkeys((*self._busy, *self._ready)):
            waiting = len(lane.queue)
            count = sum(entry.verb != _MARK for entry in lane.queue)
            if not count:
                self._done(lane, waiting)
                continue
            left.append(Unwritten(session=lane.session, events=count, error=lane.error))
            why = f"the log was closed before it could be written. {lane.error}".strip()
            for entry in lane.queue:
                entry.receipt.settle(None, NotRecorded(lane.session, why))
            self._failed += count
            self._done(lane, waiting)
        if left:
            get_logger("telemetry").error(
                "the log was closed before all was written",
                events=sum(part.events for part in left),
                sessions=len(left),
                error=left[0].error,
            )
        return tuple(left)

    # --- one session ------------------------------------------------------------------------------

    async def _write(self, lane: SessionQueue) -> None:
        """Writes what waits of a session, batch by batch."""
        delay = self._retry
        while batch := self._next(lane):
            try:
                async with lane.lock:
                    results = await self._committer.commit(lane, batch)
            except LogUnavailable as error:
                lane.error = str(error)
                self._retries += 1
                get_logger("telemetry").warning(
                    "the log cannot be written now; trying again",
                    session=lane.session,
                    seconds=delay,
                    error=lane.error,
                )
                await anyio.sleep(delay)
                delay = min(2 * delay, _LONGEST)
                continue
            delay = self._retry
            if lane.error:
                get_logger("telemetry").warning(
                    "the log can be written again", session=lane.session
                )
            lane.error = ""
            for result in results:
                self._settle(lane, result)
            self._done(lane, len(results))
        if self._closed and not self._waiting:
            self._news.set()

    def _next(self, lane: SessionQueue) -> Sequence[QueuedCommand]:
        """The next batch of a session; it stays in the queue until its result is known."""
        with self._lock:
            batch = list(islice(lane.queue, 1 if lane.alone else _BATCH))
            marks = [at for at, entry in enumerate(batch) if entry.verb == _MARK]
            if marks:
                batch = batch[: max(marks[0], 1)]
            if batch and batch[0] is lane.lost:
                lane.lost = None  # it is being written, so that it cannot take more
            if not batch:
                lane.busy = False
                self._busy.pop(lane, None)
        return batch

    def _done(self, lane: SessionQueue, count: int) -> None:
        """Removes entries at the head of a queue, since their results are known."""
        lane.alone = max(0, lane.alone - count)
        with self._lock:
            full = self._waiting >= self._limit
            self._waiting -= count
            for _ in range(count):
                lane.queue.popleft()
            if lane.state is not None:
                lane.follow(lane.state)
        if full:
            self._room.set()
            self._room = anyio.Event()

    def _settle(self, lane: SessionQueue, result: CommitResult) -> None:
        """Settles the receipt of a command."""
        entry, record, error, repeated = result
        if entry.verb == _MARK:
            if error is not None:
                get_logger("telemetry").error(
                    "it could not be noted that events were lost",
                    session=lane.session,
                    error=str(error),
                )
        elif error is None:
            self._written += 1
            self._repeated += repeated
        else:
            refused = isinstance(error, _REFUSALS)
            if isinstance(error, SessionClosedError):
                with self._lock:
                    lane.closing = True
            self._refused += refused
            self._failed += not refused
            if not refused and entry.command is not None:
                with self._lock:
                    self._lose(lane, entry, str(error))  # the session is being written already
            self._error = str(error)
            if refused or self._failed & (self._failed - 1) == 0:
                get_logger("telemetry").warning(
                    "an event was refused" if refused else "an event could not be written",
                    session=lane.session,
                    verb=entry.verb,
                    actor=entry.actor,
                    failed=self._failed,
                    error=str(error),
                )
        entry.receipt.settle(record, error)


def _may_follow(command: Command | None) -> bool:
    """Whether a command makes sense after the close."""
    return command is None or isinstance(command, GiveFeedback)
