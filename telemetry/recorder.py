"""The recorder: opens sessions in a log, for products that record what people and agents do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, Unpack, final
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup

from ..engine.errors import InvalidInput, LogClosed
from ..engine.events import SessionOpened
from ..engine.log.contract import EventLog
from ..engine.log.process import OwnProcess
from ..engine.log.session_states import SessionStates
from ..engine.logger import get_logger
from ..engine.records import ENGINE
from .idle import was_idle
from .intake import Intake
from .jsonable import text
from .queue import IntakeStatistics, OnFull, QueuedCommand, SessionQueue, Unwritten
from .receipt import Awaited, Receipt
from .session import About, Recording, check_about, opening
from .spill import Leftover, SpillFiles
from .tally import Tally, TallyFiles

__all__ = ("DEADLINE", "LINGER", "ROOM", "Recorder")

ROOM: Final = 10_000
"""Events that may wait to be written."""

DEADLINE: Final = 5.0
"""Seconds for which a closing log keeps writing the waiting events."""

LINGER: Final = 0.005
"""Seconds for which events are gathered into one commit, unless something waits for one."""

_RECENT = 1024  # sessions whose state is kept in memory without a handle
_IDLE = 60.0  # seconds for which it is kept after the session was opened


@final
class Recorder:
    """Records sessions in a log that is open. Enter and leave it in the same task.

    Args:
        log: where they are recorded.
        room: how many events may wait to be written, of all sessions together.
        on_full: what to do with an event if the queue is full: ``drop`` it, count it and log a
            warning, or ``block`` its caller until there is room.
        durable: whether a verb waits until its event is in the log, unless the call says otherwise.
        deadline: seconds for which ``aclose`` keeps writing the waiting events.
        utility: name of the scorer whose utility counts in sessions that name none themselves.
        retry: seconds before the first new attempt if the log cannot be written now.
        spill: the files for events that wait while the log is away; None for memory alone.
        strict: opening a session waits for the log, however long that takes.
        linger: seconds for which events are gathered into one commit, see ``duolog.open``.
        hurried: whether a reader waits for all recorded events.
        successors: if a session that was closed as idle is opened again, continue it in a new
            session that names it.
        tallies: where events that wait in memory alone are counted, in case the process is killed;
            None for next to the spill files, if there are any.

    Attributes:
        durable: as above.

    Raises:
        InvalidInput: no room at all, or an unknown ``on_full`` (when it is entered).
    """

    def __init__(
        self,
        log: EventLog,
        *,
        room: int = ROOM,
        on_full: OnFull = "drop",
        durable: bool = False,
        deadline: float = DEADLINE,
        utility: str | None = None,
        retry: float = 0.25,
        spill: SpillFiles | None = None,
        strict: bool = False,
        linger: float = LINGER,
        hurried: Callable[[], bool] = lambda: False,
        successors: bool = False,
        tallies: TallyFiles | None = None,
    ) -> None:
        self._log = log
        if tallies is None and spill is not None:
            tallies = spill.tallies
        self._tallies = tallies
        self._successors = successors
        self._spill = spill
        self._strict = strict
        self._linger = linger
        self._hurried = hurried
        self._room = room
        self._on_full: OnFull = on_full
        self.durable = durable
        self._deadline = deadline
        self._about: About = {} if utility is None else {"utility": utility}
        self._retry = retry
        self._lock = threading.Lock()  # protects the queues
        self._queues: WeakValueDictionary[str, SessionQueue] = WeakValueDictionary()
        self._recent: SessionStates[SessionQueue] = SessionStates(_RECENT, idle=_IDLE)
        self._process = OwnProcess()
        self._intake: Intake | None = None
        self._unwritten: tuple[Unwritten, ...] | None = None

    async def session(self, session: str, **about: Unpack[About]) -> Recording[Awaited]:
        """A session to record, under the caller's id; opened if the log does not have it.

        If the log has it already, it continues, even if another process began it. Its description
        does not change.

        Args:
            session: session id.
            about: what the session is about, see ``About``.

        Raises:
            InvalidInput: an empty id, two participants of one name, or an unknown option or label.
            CodecError: the log's record of the session is damaged.
            LogClosed: the log is closed.
        """
        queue = await self.queue(session, about)
        return Recording(queue, self.put)

    async def queue(self, session: str, about: About) -> SessionQueue:
        """The way of a session to the log; raises as ``session``."""
        intake = self.intake
        queue = self.queue_nowait(session, about)
        await intake.load(queue, news=self._successors)  # others close idle sessions
        number = 1
        while self._successors and was_idle(queue.state):
            number += 1
            about = About(**{**about, "continues": queue.session})
            queue = self.queue_nowait(f"{session}.{number}", about)
            await intake.load(queue, news=True)
        if queue.state is None or not queue.state.version:
            # So that it is opened even if nothing ever happens in it.
            receipt = Receipt(session)
            entry = QueuedCommand("session", None, ENGINE, "environment", time.time(), receipt)
            intake.offer(queue, entry)
        return queue

    def queue_nowait(self, session: str, about: About) -> SessionQueue:
        """The same without reading the log, from any thread.

        The session's records are read when the first event is written.

        Raises:
            InvalidInput: an empty id, two participants of one name, or an unknown option or label.
        """
        self._process.check(self._log.url)
        if not text(session, "a session's id"):
            raise InvalidInput("a session needs an id that is not empty")
        check_about(about)
        return self._queue(session, about)

    def _queue(self, session: str, about: About | SessionOpened) -> SessionQueue:
        with self._lock:
            queue = self._queues.get(session)
            if queue is None:
                if isinstance(about, SessionOpened):
                    opened = about
                else:
                    opened = opening({**self._about, **about})
                queue = self._queues[session] = SessionQueue(session, opened)
            self._recent.keep(session, queue)
        return queue

    async def put(
        self, queue: SessionQueue, entry: QueuedCommand, durable: bool | None = None
    ) -> Receipt:
        """Hands an entry over.

        Raises:
            LogClosed: the log is closed.
            SessionClosedError: the session is closed.
            DuologError: see ``Receipt.written``; only if the call waits for the event.
        """
        await self.intake.put(queue, entry)
        if entry.stale or (self.durable if durable is None else durable):
            await entry.receipt.written()
        return entry.receipt

    def hand_over(self, queue: SessionQueue, entry: QueuedCommand) -> bool:
        """Takes an entry without waiting, from any thread; returns False if its caller has to wait
        for room, see ``put``. Raises as ``put``.
        """
        if self.intake.offer(queue, entry):
            return True
        if self._on_full == "block":
            return False
        self.intake.drop(queue, entry)
        return True

    async def flush(self, session: str) -> None:
        """Waits until all events handed over for a session are in the log, or refused."""
        queue = self._queues.get(session)
        if queue is not None and queue.entries:
            receipt = Receipt(session)
            entry = QueuedCommand("flush", None, ENGINE, "environment", time.time(), receipt)
            await self.put(queue, entry, durable=True)

    def is_last_writer(self, session: str, version: int) -> bool:
        """Whether this process wrote or read the trace of a session up to a version, or writes it now."""
        queue = self._queues.get(session)
        state = None if queue is None else queue.state
        if queue is None or state is None:
            return queue is not None and queue.busy
        return state.version >= version

    @property
    def intake(self) -> Intake:
        """Where entries go. Raises LogClosed if the recorder is not open in this process."""
        self._process.check(self._log.url)
        if self._intake is None:
            raise LogClosed("open the log with 'async with' before recording")
        return self._intake

    def statistics(self) -> IntakeStatistics:
        """Counts of events in the intake: waiting, written, refused, dropped."""
        return self.intake.statistics()

    async def aclose(self, deadline: float | None = None) -> tuple[Unwritten, ...]:
        """Takes nothing more, writes waiting events, and returns the unwritten ones. Idempotent.

        Args:
            deadline: seconds; if the store is committing by then, it also waits for that commit.
        """
        if self._unwritten is None:
            self._unwritten = ()
            if self._intake is not None:
                seconds = self._deadline if deadline is None else deadline
                self._unwritten = await self._intake.drain(seconds)
        return self._unwritten

    async def __aenter__(self) -> Self:
        self._process = OwnProcess()
        get_logger("telemetry")  # so that it is loaded before anything is wrong
        tally = await anyio.to_thread.run_sync(self._open_tally)
        self._intake = Intake(
            self._log,
            limit=self._room,
            on_full=self._on_full,
            retry=self._retry,
            spill=self._spill,
            strict=self._strict,
            linger=self._linger,
            hurried=self._hurried,
            tally=tally,
            opening=self._tallies.opening if tally is not None and self._tallies else None,
        )
        found: list[Leftover] = []
        if self._spill is not None:
            await anyio.to_thread.run_sync(self._spill.check)
            found = await anyio.to_thread.run_sync(self._spill.take_over)
        queues = [self._queue(left.session, left.opened) for left in found]
        if self._tallies is not None:
            # Before what is on the disk is written: by then, the log is as the other process left it.
            for killed in await anyio.to_thread.run_sync(self._tallies.take):
                self._intake.note_killed(self._queue(killed.session, killed.opened or {}), killed)
        for queue, left in zip(queues, found, strict=True):
            self._intake.adopt(queue, left)
        if self._tallies is not None:
            await anyio.to_thread.run_sync(self._tallies.drop)
        self._tasks: TaskGroup = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._intake.run, name=f"recorder of {self._log.url}")
        return self

    def _open_tally(self) -> Tally | None:
        """A tally of this process; None if there can be none."""
        if self._tallies is None:
            return None
        try:
            return self._tallies.open()
        except OSError:  # ``check`` says so of spill files; a log in such a place is for reading
            return None

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
        if self._process.forked:
            return
        # The body's own exception is nothing to the task group, which would wrap it in a group.
        await self._tasks.__aexit__(None, None, None)
