"""The intake: a bounded queue between a product and its log, written session by session.

Any thread may hand over an entry, and does not wait for it to be written. On the log's event loop,
a separate task writes each session with waiting entries, one batch after the other. So each trace
has one order, and many sessions share the store's commits.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, final
from uuid import uuid4

import anyio
import msgspec
from anyio.abc import TaskGroup

from ..engine.errors import (
    DuplicateConflict,
    InvalidInput,
    LogClosed,
    LogUnavailable,
    NewerLog,
    NotRecorded,
    SessionClosedError,
    StaleBase,
)
from ..engine.events import RecordsLate, RecordsLost, SessionOpened
from ..engine.log.contract import EventLog
from ..engine.log.process import OwnProcess
from ..engine.logger import get_logger
from ..engine.records import ENGINE, TRACE
from ..engine.session.commands import (
    CloseSession,
    Command,
    GiveFeedback,
    RecordEvent,
    SubmitSnapshot,
    TakeAction,
)
from ..engine.workers import Workers
from .committer import BatchCommitter, CommitResult
from .queue import IntakeStatistics, OnFull, QueuedCommand, SessionQueue, Unwritten
from .receipt import Receipt
from .spill import Leftover, Sent, SpillFiles
from .tally import Killed, Tally

__all__ = ("LONGEST_LINGER", "Intake")

_BATCH = 256  # entries in one append
LONGEST_LINGER: Final = 0.05
"""Seconds for which events are gathered at most."""
_MARK = "lost"  # the verb of what notes that events were lost
_KILLED: Final = "the process ended before they were written"
_LONGEST = 5.0  # seconds between attempts to write
_TICK = 0.1  # seconds between looks for what has waited too long in memory
_LATE = 5.0  # seconds after which an event that waited in memory alone has come late

_LOOK = 0.5
"""Seconds for which the opening of a session waits for the log's records of it."""

_REFUSALS = (DuplicateConflict, InvalidInput, SessionClosedError, StaleBase)


@final
class Intake:
    """Takes entries from any thread, and writes them on the event loop that runs it.

    Args:
        log: where they go.
        limit: how many may wait, of all sessions together; a session's close always finds room.
        on_full: what to do with an entry if the queue is full.
        retry: seconds before the first new attempt if the log cannot be written now.
        spill: the files for entries that wait while the log is away; None for memory alone.
        strict: opening a session waits for the log, however long that takes.
        linger: seconds for which events are gathered before a write, unless a caller waits.
        hurried: whether a reader waits for all recorded events, so that none are gathered.
        tally: counts events that wait in memory alone, in case the process is killed.
        opening: how the tally keeps the opening of a session, see ``TallyFiles.opening``.

    Raises:
        InvalidInput: a limit below 1, an unknown ``on_full``, or a ``linger`` out of its range.
    """

    def __init__(
        self,
        log: EventLog,
        *,
        limit: int,
        on_full: OnFull,
        retry: float,
        spill: SpillFiles | None = None,
        strict: bool = False,
        linger: float = 0.0,
        hurried: Callable[[], bool] = lambda: False,
        tally: Tally | None = None,
        opening: Callable[[str, SessionOpened, float], bytes] | None = None,
    ) -> None:
        if not 0.0 <= linger <= LONGEST_LINGER:
            raise InvalidInput(f"linger is from 0 to {LONGEST_LINGER:g} seconds, not {linger!r}")
        if limit < 1:
            raise InvalidInput(f"an intake has to hold at least one event, not {limit}")
        if on_full not in ("drop", "block"):
            raise InvalidInput(f"on_full is 'drop' or 'block', not {on_full!r}")
        self._log = log
        self._limit = limit
        self._on_full = on_full
        self._retry = retry
        self._committer = BatchCommitter(log, patient=spill is not None)
        self._spill = spill
        self._strict = strict
        self._linger = linger
        self._hurried = hurried
        self._tally = tally
        self._opening = opening
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._process = OwnProcess()
        # Protects what follows, and the entries of the queues.
        self._lock = threading.Lock()
        self._ready: deque[SessionQueue] = deque()
        self._awake = False
        self._closed = False
        self._waiting = 0
        self._kept = 0  # of those that wait, in a spill file
        self._unkept: deque[tuple[SessionQueue, QueuedCommand]] = (
            deque()
        )  # in memory alone, in order
        self._accepted = 0
        self._dropped: Counter[str] = Counter()
        # The event loop alone touches what follows.
        self._written = self._repeated = self._refused = self._failed = self._retries = 0
        self._late = 0
        self._error = ""
        self._away = False  # the latest attempt to reach the log failed
        self._keeping = False  # a task looks for what has waited too long in memory
        self._sent: list[Sent] = []  # entries in a spill file that wait no more
        self._disk = anyio.Lock()
        self._busy: dict[SessionQueue, None] = {}
        self._news = anyio.Event()
        self._hurry = anyio.Event()
        self._room = anyio.Event()
        self._finished = anyio.Event()
        self._scope = anyio.CancelScope(shield=True)

    # --- from any thread --------------------------------------------------------------------------

    def offer(self, queue: SessionQueue, entry: QueuedCommand) -> bool:
        """Takes an entry; False if the queue is full. Never waits.

        Raises:
            LogClosed: the log is closed, or closing.
            SessionClosedError: the session is closed. An event with an id is taken all the same,
                since it may have been recorded before.
        """
        self._process.check(self._log.url)
        command = entry.command
        closes = isinstance(command, CloseSession)
        if self._opening is not None and queue.opening is None and not queue.is_in_the_log:
            queue.opening = self._opening(queue.session, queue.opened, entry.time)
        with self._lock:
            if self._closed:
                raise LogClosed(f"{self._log.url} is closed: nothing can be recorded any more")
            if closes:
                queue.closing = True
            elif queue.closing and entry.id is None and not _may_follow(command):
                raise SessionClosedError(queue.session)
            if self._waiting - self._kept >= self._limit and command is not None and not closes:
                return False
            self._waiting += 1
            self._accepted += 1
            entry.taken = time.time()
            if self._linger:
                entry.receipt.awaited_by(self._hurry_up)
            if isinstance(command, SubmitSnapshot):
                if entry.about is not None and queue.is_outdated(entry.about):
                    entry.stale = True
                else:
                    queue.latest = entry.receipt
            if command is not None:
                entry.received, queue.last = queue.last, entry.receipt
            self._count(queue, entry, _weight(command), entry.time)
            wake = self._enqueue(queue, entry)
            many = self._waiting == min(_BATCH, self._limit)
        if wake:
            self._wake_up()
        if many and self._linger:
            self._hurry_up()
        return True

    def _count(self, queue: SessionQueue, entry: QueuedCommand, events: int, at: float) -> None:
        """Makes the tally count events that wait in memory alone, under the lock."""
        if self._tally is not None and events:
            entry.tallied += events
            version = 0 if queue.state is None else queue.state.version
            self._tally.add(queue.session, events, at, version, queue.opening or b"")

    def _discount(self, queue: SessionQueue, entry: QueuedCommand) -> None:
        """Removes an entry from the tally, under the lock."""
        if self._tally is not None and entry.tallied:
            version = 0 if queue.state is None else queue.state.version
            self._tally.remove(queue.session, entry.tallied, version)
            entry.tallied = 0

    def _enqueue(self, queue: SessionQueue, entry: QueuedCommand) -> bool:
        """Puts an entry into the queue of its session, under the lock; whether to wake the loop."""
        queue.entries.append(entry)
        kept = entry.verb != "flush" and not entry.spilled and entry.killed is None
        if self._spill is not None and kept:
            self._unkept.append((queue, entry))
        if queue.busy:
            return False
        queue.busy = True
        self._ready.append(queue)
        woken, self._awake = self._awake, True
        return not woken

    def _hurry_up(self) -> None:
        """Ends the gathering, from any thread."""
        if threading.get_ident() == self._thread:
            self._hurry.set()
        else:
            self._loop.call_soon_threadsafe(self._set_hurry)

    def _set_hurry(self) -> None:
        self._hurry.set()

    def _wake_up(self) -> None:
        if threading.get_ident() == self._thread:
            self._news.set()
        else:
            self._loop.call_soon_threadsafe(self._wake)

    def _lose(self, queue: SessionQueue, entry: QueuedCommand, why: str) -> bool:
        """Has it noted in the log that an entry is lost, under the lock; whether to wake the loop.

        Losses are noted together, behind what waits of the session.
        """
        at, mark, count = entry.time, queue.lost, _weight(entry.command)
        if mark is not None and isinstance(mark.command, RecordEvent):
            lost = mark.command.event
            assert isinstance(lost, RecordsLost)
            begin, end = min(lost.begin, at), max(lost.end, at)
            more = msgspec.structs.replace(lost, count=lost.count + count, begin=begin, end=end)
            mark.command = RecordEvent(more)
            self._count(queue, mark, count, at)
            return False
        lost = RecordsLost(count=count, begin=at, end=at, why=why)
        ident = f"{_MARK}/{uuid4()}"
        receipt = Receipt(queue.session, ident)
        queue.lost = QueuedCommand(
            _MARK, RecordEvent(lost), ENGINE, "environment", at, receipt, ident
        )
        self._count(queue, queue.lost, count, at)
        return self._mark(queue, queue.lost)

    def note_killed(self, queue: SessionQueue, killed: Killed) -> None:
        """Has it noted in the log what was lost with a process that was killed.

        To be called before this process records anything.
        """
        begin, end = killed.begin, killed.end
        lost = RecordsLost(count=killed.events, begin=begin, end=end, why=_KILLED)
        ident = f"{_MARK}/{uuid4()}"
        receipt = Receipt(queue.session, ident)
        mark = QueuedCommand(_MARK, RecordEvent(lost), ENGINE, "environment", end, receipt, ident)
        mark.killed = killed
        with self._lock:
            self._count(queue, mark, killed.events, begin)
            self._mark(queue, mark)

    def _mark(self, queue: SessionQueue, mark: QueuedCommand) -> bool:
        """Notes something in the log of a session, under the lock; whether to wake the loop."""
        mark.taken = time.time()
        self._waiting += 1
        return self._enqueue(queue, mark)

    def drop(self, queue: SessionQueue, entry: QueuedCommand) -> None:
        """Counts an entry that found no room, has it noted in the log, and says so now and then."""
        why = f"{self._limit} events wait to be written already"
        reason = NotRecorded(queue.session, why)
        with self._lock:
            self._dropped[entry.verb] += 1
            count = self._dropped.total()
            self._error = str(reason)
            wake = not self._closed and self._lose(queue, entry, why)
        entry.receipt.settle(None, reason)
        if wake:
            self._wake_up()
        if count & (count - 1) == 0:
            get_logger("telemetry").warning(
                "events are dropped: the log does not keep up",
                dropped=count,
                session=queue.session,
                verb=entry.verb,
                limit=self._limit,
            )

    def statistics(self) -> IntakeStatistics:
        """Counts of events. Raises LogClosed in a fork of its process."""
        self._process.check(self._log.url)
        with self._lock:
            return IntakeStatistics(
                accepted=self._accepted,
                waiting=self._waiting,
                written=self._written,
                repeated=self._repeated,
                refused=self._refused,
                failed=self._failed,
                spilled=self._kept,
                late=self._late,
                dropped=self._dropped.total(),
                dropped_verbs=dict(self._dropped),
                retries=self._retries,
                error=self._error,
            )

    # --- on the event loop ------------------------------------------------------------------------

    def _wake(self) -> None:
        self._news.set()

    async def put(self, queue: SessionQueue, entry: QueuedCommand) -> None:
        """Takes an entry; if the queue is full, drops it or waits, as was chosen.

        Raises:
            LogClosed: the log is closed, or closing.
            SessionClosedError: as ``offer``.
        """
        while not self.offer(queue, entry):
            if self._on_full == "drop":
                self.drop(queue, entry)
                return
            await self._room.wait()

    async def load(self, queue: SessionQueue, *, news: bool = False) -> None:
        """Reads a session's trace if it is not known; later, if the log cannot be read now.

        Args:
            queue: the session.
            news: read what others have written since, too.

        Raises:
            CodecError: a body that is needed is damaged.
            LogClosed: the log is closed.
        """
        self._process.check(self._log.url)
        if self._away and not self._strict:
            return
        with anyio.move_on_after(None if self._strict else _LOOK) as look:
            async with queue.lock:
                if queue.state is not None and not news:
                    return
                try:
                    state = await self._committer.load(queue)
                except LogUnavailable as error:
                    self._away = True
                    get_logger("telemetry").warning(
                        "a session cannot be read now", session=queue.session, error=str(error)
                    )
                    return
            with self._lock:
                queue.follow(state)
        if look.cancelled_caught:
            self._away = True
            get_logger("telemetry").warning(
                "a session cannot be read now",
                session=queue.session,
                error="the log does not answer",
            )

    def adopt(self, queue: SessionQueue, left: Leftover) -> None:
        """Takes a command that another process has left behind, before this one records anything."""
        assert self._spill is not None
        entry, age = left.entry, self._spill.settings.age
        with self._lock:
            if time.time() - left.taken > age:
                self._lose(queue, entry, f"it waited on the disk for more than {age:g} seconds")
                if entry.id is not None:
                    self._sent.append((queue.session, entry.id))
                return
            self._waiting += 1
            self._kept += 1
            if entry.command is not None and entry.verb != _MARK:
                entry.received, queue.last = queue.last or entry.received, entry.receipt
            self._enqueue(queue, entry)

    async def run(self) -> None:
        """Writes what is handed over, until ``drain`` ends it; no other cancellation reaches it."""
        try:
            with self._scope:
                async with (
                    anyio.create_task_group() as keeper,
                    anyio.create_task_group() as tasks,
                ):
                    name = f"writer of sessions of {self._log.url}"
                    writers = Workers(tasks, self._write, name)
                    self._start(writers, keeper)
                    while not (self._closed and not self._waiting):
                        await self._news.wait()
                        self._news = anyio.Event()
                        await self._gather()
                        self._start(writers, keeper)
                    writers.close()
                    keeper.cancel_scope.cancel()
        finally:
            self._finished.set()

    async def _gather(self) -> None:
        """Waits a moment for more to write, so that one commit serves for several events."""
        if self._linger and not self._closed and not self._hurried():
            with anyio.move_on_after(self._linger):
                await self._hurry.wait()
        self._hurry = anyio.Event()

    def _start(self, writers: Workers[SessionQueue], keeper: TaskGroup) -> None:
        """Starts to write the sessions that have something waiting."""
        with self._lock:
            self._awake = False
            ready, self._ready = self._ready, deque()
            keep = not self._keeping and bool(self._unkept or self._kept)
            self._keeping = self._keeping or keep
        if keep:
            keeper.start_soon(self._keep_often, name=f"keeper of {self._log.url}")
        for queue in ready:
            self._busy[queue] = None
            writers.start(queue)

    # --- on the disk ------------------------------------------------------------------------------

    async def _keep_often(self) -> None:
        """Writes to the disk what has waited for some time, for as long as anything waits."""
        assert self._spill is not None
        pause = min(_TICK, max(self._spill.settings.after, _TICK / 10))
        while True:
            await anyio.sleep(pause)
            await self._keep(everything=False)
            with self._lock:
                if not (self._unkept or self._kept):
                    self._keeping = False
                    return

    async def _keep(self, *, everything: bool) -> None:
        """Writes what waits in memory to the disk, and removes the file when nothing waits any more."""
        spill = self._spill
        if spill is None:
            return
        async with self._disk:
            at_once = everything or self._away
            due = time.time() - (0.0 if at_once else spill.settings.after)
            entries: list[tuple[SessionQueue, QueuedCommand]] = []
            with self._lock:
                while self._unkept and (
                    self._unkept[0][1].settled or self._unkept[0][1].taken <= due
                ):
                    queue, entry = self._unkept.popleft()
                    if not entry.settled:
                        spill.name_entry(entry)
                        entries.append((queue, entry))
                done, self._sent = self._sent, []
            if entries:
                kept, dealt = await anyio.to_thread.run_sync(spill.keep, entries, done)
                with self._lock:
                    self._unkept.extendleft(reversed(entries[dealt:]))
                    for queue, entry in kept:
                        if entry.settled:
                            self._sent.append((queue.session, entry.id or ""))
                        else:
                            entry.spilled = True
                            self._kept += 1
                            self._discount(queue, entry)
                    self._sent = self._sent if dealt else done + self._sent
            else:
                self._sent = done + self._sent  # written with the next lines
            if spill.in_use and not self._kept:
                self._sent.clear()
                await anyio.to_thread.run_sync(spill.clear)

    async def drain(self, seconds: float) -> tuple[Unwritten, ...]:
        """Takes nothing more and writes waiting entries for some seconds; returns the rest.

        If the store is committing when the time is over, it waits for that commit.
        """
        if self._process.forked:
            return ()
        with self._lock:
            self._closed = True
        self._news.set()
        self._hurry.set()
        self._room.set()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(seconds):
                await self._finished.wait()
            self._scope.cancel()
            await self._finished.wait()
            await self._keep(everything=True)
            left = self._give_up()
            if self._spill is not None and self._spill.in_use:
                await anyio.to_thread.run_sync(self._spill.leave, self._sent)
            if self._tally is not None:
                await anyio.to_thread.run_sync(self._tally.close)
                self._tally = None
        return left

    def _give_up(self) -> tuple[Unwritten, ...]:
        """Fails what still waits."""
        left: list[Unwritten] = []
        for queue in dict.fromkeys((*self._busy, *self._ready)):
            waiting = len(queue.entries)
            count = sum(entry.verb != _MARK for entry in queue.entries)
            if not count:
                self._done(queue, waiting)
                continue
            spilled = sum(entry.spilled and entry.verb != _MARK for entry in queue.entries)
            left.append(
                Unwritten(session=queue.session, events=count, spilled=spilled, error=queue.error)
            )
            why = f"the log was closed before it could be written. {queue.error}".strip()
            for entry in queue.entries:
                kept = (
                    "it waits on the disk until the log is opened next; " if entry.spilled else ""
                )
                entry.receipt.settle(None, NotRecorded(queue.session, f"{kept}{why}"))
            self._failed += count - spilled
            self._done(queue, waiting)
        if left:
            get_logger("telemetry").error(
                "the log was closed before all was written",
                events=sum(part.events for part in left),
                spilled=sum(part.spilled for part in left),
                sessions=len(left),
                error=left[0].error,
            )
        return tuple(left)

    # --- one session ------------------------------------------------------------------------------

    async def _write(self, queue: SessionQueue) -> None:
        """Writes what waits of a session, batch by batch."""
        delay = self._retry
        while batch := self._next(queue):
            try:
                async with queue.lock:
                    results = await self._committer.commit(queue, batch)
            except (LogUnavailable, NewerLog) as error:
                self._away = True
                queue.error = str(error)
                self._retries += 1
                get_logger("telemetry").warning(
                    "the log cannot be written now; trying again",
                    session=queue.session,
                    seconds=delay,
                    error=queue.error,
                )
                await anyio.sleep(delay)
                delay = min(2 * delay, _LONGEST)
                continue
            delay = self._retry
            self._away = False
            if queue.error:
                get_logger("telemetry").warning(
                    "the log can be written again", session=queue.session
                )
            queue.error = ""
            self._note_late(queue, results)
            for result in results:
                self._settle(queue, result)
            self._done(queue, len(results))
        if self._closed and not self._waiting:
            self._news.set()

    def _next(self, queue: SessionQueue) -> Sequence[QueuedCommand]:
        """The next batch of a session; it stays in the queue until its result is known."""
        with self._lock:
            batch = list(islice(queue.entries, 1 if queue.alone else _BATCH))
            marks = [at for at, entry in enumerate(batch) if entry.verb == _MARK]
            if marks:
                batch = batch[: max(marks[0], 1)]
            if batch and batch[0] is queue.lost:
                queue.lost = None  # it is being written, so that it cannot take more
            if not batch:
                queue.busy = False
                self._busy.pop(queue, None)
        return batch

    def _done(self, queue: SessionQueue, count: int) -> None:
        """Removes entries at the head of a queue, since their results are known."""
        queue.alone = max(0, queue.alone - count)
        with self._lock:
            full = self._waiting >= self._limit
            self._waiting -= count
            for _ in range(count):
                entry = queue.entries.popleft()
                if entry.settled:  # else the next process notes that it is lost
                    self._discount(queue, entry)
            if queue.state is not None:
                queue.follow(queue.state)
        if full:
            self._room.set()
            self._room = anyio.Event()

    def _note_late(self, queue: SessionQueue, results: Sequence[CommitResult]) -> None:
        """Has it noted in the log which events of its trace came late."""
        now = time.time()
        waits = 4 * self._spill.settings.after if self._spill is not None else _LATE
        late = [
            (result.record.version, result.entry.time)
            for result in results
            if result.record is not None
            and result.record.stream == TRACE
            and now - result.entry.taken > (waits if result.entry.spilled else _LATE)
        ]
        if not late:
            return
        first, last = min(late)[0], max(late)[0]
        times = [at for _, at in late]
        event = RecordsLate(first=first, last=last, begin=min(times), end=max(times))
        ident = f"late/{first}-{last}"
        mark = QueuedCommand(
            _MARK,
            RecordEvent(event),
            ENGINE,
            "environment",
            max(times),
            Receipt(queue.session, ident),
            ident,
        )
        with self._lock:
            self._late += len(late)
            self._mark(queue, mark)  # the session is being written already

    def _settle(self, queue: SessionQueue, result: CommitResult) -> None:
        """Settles the receipt of a command."""
        entry, record, error, repeated = result
        entry.settled = True
        if entry.spilled:
            with self._lock:
                self._kept -= 1
                if entry.id is not None:
                    self._sent.append((queue.session, entry.id))
        if entry.verb == _MARK:
            if error is not None:
                get_logger("telemetry").error(
                    "it could not be noted that events were lost",
                    session=queue.session,
                    error=str(error),
                )
        elif error is None:
            self._written += 1
            self._repeated += repeated
        else:
            refused = isinstance(error, _REFUSALS)
            if isinstance(error, SessionClosedError):
                with self._lock:
                    queue.closing = True
            self._refused += refused
            self._failed += not refused
            if not refused and entry.command is not None:
                with self._lock:
                    self._lose(queue, entry, str(error))  # the session is being written already
            self._error = str(error)
            if refused or self._failed & (self._failed - 1) == 0:
                get_logger("telemetry").warning(
                    "an event was refused" if refused else "an event could not be written",
                    session=queue.session,
                    verb=entry.verb,
                    actor=entry.actor,
                    failed=self._failed,
                    error=str(error),
                )
        entry.receipt.settle(record, error)


def _weight(command: Command | None) -> int:
    """How many events the log gets of a command."""
    if command is None:
        return 0
    return 2 if isinstance(command, TakeAction) and command.outcome is not None else 1


def _may_follow(command: Command | None) -> bool:
    """Whether a command makes sense after the close."""
    return command is None or isinstance(command, GiveFeedback)
