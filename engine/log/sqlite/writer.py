"""The writer of a log: appends gather in a queue, and are committed group by group in one thread.

The thread sleeps until the queue's bell rings. It then takes all that waits, commits it as one
group, hands the outcome to the event loop and takes what has gathered meanwhile, until nothing
waits. The writer task is the thread's stand-in on the event loop: it lives as long as the log.
"""

from __future__ import annotations

import asyncio
import copy
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import NamedTuple, ParamSpec, TypeAlias, TypeVar, final

import aiosqlite
import anyio

from ...errors import DuologError, LogClosed, LogGone
from ...logger import get_logger
from ...records import Record
from ..append import Append
from ..append_writer import Job, Room, wait_until_settled
from ..process import OwnProcess
from ..publisher import Publisher
from .file import translate
from .thread import run_in_thread

__all__ = ("Commit", "Committed", "Writer")

P = ParamSpec("P")
T = TypeVar("T")

_Work: TypeAlias = Callable[[], object]

_EVENTS = 4096  # in one transaction, more only if they are one append

_SLOW = 1.0  # seconds of wall time from which a commit is reported

_CANCELLED = "its writer task was cancelled from outside"


class Committed(NamedTuple):
    """What a group has put into the log: its records, and unknown ones of others before them."""

    records: list[Record]
    foreign: list[Record]


Commit: TypeAlias = Callable[[Sequence[Append], int | None, Callable[[], bool]], Committed]
"""``commit(group, known, wanted)``, in the thread; leaves each append's outcome in it. ``known`` is
the position up to which this process knows all records, None where nobody follows the log.
``wanted`` is asked before the group is written whether it still is, and may shorten it."""


@final
class Writer:
    """Queues appends and has them committed.

    Args:
        connection: whose thread commits.
        commit: commits a group.
        publisher: where committed records are published.
        url: of the log, for messages.
    """

    def __init__(
        self, connection: aiosqlite.Connection, commit: Commit, publisher: Publisher, url: str
    ) -> None:
        self._connection = connection
        self._commit = commit
        self._publisher = publisher
        self._url = url
        self._loop = asyncio.get_running_loop()
        self._process = OwnProcess()
        self._queue: deque[Append | Job[_Work]] = deque()
        self._room = Room(self._queue)
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._rung = False
        self._closing = False
        self._finished = anyio.Event()
        self.groups = 0
        self.events = 0

    @property
    def waiting(self) -> int:
        """Appends that wait to be taken."""
        return len(self._queue)

    def submit(self, append: Append) -> asyncio.Future[None]:
        """Queues an append; the future is done when its outcome is there."""
        append.future = future = self._loop.create_future()
        self._queue.append(append)
        if not self._rung:
            self._rung = True
            self._bell.put(None)
        return future

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs something in the thread, between two groups; to its end even if the caller goes.

        Raises:
            LogClosed: the log is closed.
        """
        if self._closing:
            raise LogClosed(f"{self._url} is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.append(Job(partial(function, *args, **kwargs), future))
        self._bell.put(None)
        return await future

    async def withdraw(self, append: Append) -> None:
        """Takes back an append whose caller was cancelled; if it is too late for that, waits until
        its outcome is known. One that waits for another process to let go of the log is taken back.
        """
        append.withdrawn = True
        if self._process.forked:
            return  # the thread is not there
        try:
            self._queue.remove(append)
        except (ValueError, IndexError):  # taken, or the thread is taking others just now
            await wait_until_settled(append)
        append.outcome = None  # nobody asks for it, and an error leads back to the append
        self._room.give()

    @property
    def blocked(self) -> bool:
        """Whether an append has to go by ``wait_for_room`` before it may be queued."""
        return self._room.full or self._closing

    async def wait_for_room(self) -> None:
        """Waits until an append may be queued.

        Raises:
            LogClosed: the log was closed meanwhile.
        """
        await self._room.wait()
        if self._closing:
            raise LogClosed(f"{self._url} is closed")

    async def run(self) -> None:
        """The writer task; ends once the writer is closed and nothing waits."""
        try:
            with anyio.CancelScope(shield=True):
                await run_in_thread(self._connection, self._serve)
        except asyncio.CancelledError:
            # By force, from outside: no scope of ours is cancelled while it shields. What is on
            # its way is seen to its end; the task ends as it was told to, and the log with it.
            self._closing = True
            if self._process.forked:
                raise
            self._bell.put(None)
            await self._thread_is_done()
        finally:
            self._closing = True
            self._refuse_all()
            self._finished.set()

    async def _thread_is_done(self) -> None:
        """Waits for the thread, however often the task is cancelled: outcomes are on their way."""
        while True:
            try:
                await run_in_thread(self._connection, int)
            except asyncio.CancelledError:
                continue
            return

    def _refuse_all(self) -> None:
        """Ends the waiting of those who came after the end; there are none but after a failure."""
        failure = LogClosed(f"{self._url} is closed: {_CANCELLED}")
        group = [item for item in self._queue if isinstance(item, Append)]
        jobs = [item for item in self._queue if isinstance(item, Job)]
        self._queue.clear()
        self._done(group, Committed([], []), failure)
        for job in jobs:
            job.settle(failure)

    async def close(self) -> None:
        """Takes no further appends, and returns when those that wait are committed."""
        self._closing = True
        self._bell.put(None)
        await self._finished.wait()

    # --- in the thread ----------------------------------------------------------------------------

    def _serve(self) -> None:
        """Commits group after group, until the writer is closed and nothing waits."""
        while not self._closing or self._queue:
            self._bell.get()
            self._rung = False  # from here on who comes rings again
            while self._queue:
                group = self._take()
                if group:
                    self._write(group)
                else:
                    self._work()
                del group  # who waits for the bell holds nothing

    def _take(self) -> list[Append]:
        """The next group: the appends that wait, up to a limit."""
        queue = self._queue
        events = 0
        group: list[Append] = []
        while events < _EVENTS:
            try:
                item = queue.popleft()
            except IndexError:
                break
            if not isinstance(item, Append):
                queue.appendleft(item)
                break
            events += len(item.envelopes)
            group.append(item)
        return group

    def _write(self, group: list[Append]) -> None:
        done = Committed([], [])
        failure: Exception | None = None
        began = time.perf_counter()
        try:
            done = self._commit(
                group,
                self._publisher.head if self._publisher.has_readers else None,
                partial(self._release, group),
            )
        except sqlite3.Error as error:
            failure = translate(error, self._url)
            failure.__cause__ = error.with_traceback(None)
        except DuologError as error:
            failure = error.with_traceback(None)
        except Exception as error:  # noqa: BLE001 (it is for those who wait for the outcome)
            failure = error
        seconds = time.perf_counter() - began
        if seconds > _SLOW:
            get_logger("log").warning(
                "a commit was slow",
                log=self._url,
                seconds=seconds,
                appends=len(group),
                waiting=len(self._queue),
            )
        self._loop.call_soon_threadsafe(self._done, group, done, failure)

    def _release(self, group: list[Append]) -> bool:
        """Lets those go who were cancelled before their append was begun; whether others are left."""
        withdrawn = [append for append in group if append.withdrawn]
        if withdrawn:
            group[:] = [append for append in group if not append.withdrawn]
            self._loop.call_soon_threadsafe(self._done, withdrawn, Committed([], []), None)
        return bool(group)

    def _work(self) -> None:
        try:
            job = self._queue.popleft()
        except IndexError:  # the append that was there was withdrawn
            return
        if not isinstance(job, Job):
            self._queue.appendleft(job)
            return
        outcome: object
        try:
            outcome = job.work()
        except Exception as error:  # noqa: BLE001 (it is for who waits for the outcome)
            outcome = error
        self._loop.call_soon_threadsafe(self._work_done, job, outcome)

    # --- back in the loop -------------------------------------------------------------------------

    def _work_done(self, job: Job[_Work], outcome: object) -> None:
        job.settle(outcome)
        self._room.give()

    def _done(self, group: Sequence[Append], done: Committed, failure: Exception | None) -> None:
        """Hands out the outcomes of a group, and publishes its records."""
        if isinstance(failure, LogGone):
            self._publisher.close(LogGone(*failure.args))  # who follows would wait for ever
        for append in group:
            if append.outcome is None and failure is not None:
                append.outcome = _own(failure)
            append.settled = True
            future = append.future
            if future is not None and not future.done():
                future.set_result(None)
        if group:
            self.groups += 1
            self.events += len(done.records)
        self._publisher.publish(done.foreign)
        self._publisher.publish(done.records)
        self._room.give()


def _own(failure: Exception) -> Exception:
    """A failure for one of those who get it: raised by all, one would hold the frames of all."""
    if not isinstance(failure, DuologError):
        return failure
    own = copy.copy(failure)
    own.__cause__ = failure.__cause__
    return own
