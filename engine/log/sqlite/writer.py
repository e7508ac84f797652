"""The writer of a log: appends gather in a queue, and are committed group by group in one thread.

The thread sleeps until the queue's bell rings. It then commits all waiting appends as one group and
hands the outcome to the event loop. It repeats this until nothing waits. The writer task represents
the thread on the event loop: it lives as long as the log.
"""

from __future__ import annotations

import asyncio
import copy
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import NamedTuple, ParamSpec, TypeAlias, TypeVar, cast, final

import aiosqlite
import anyio

from ...errors import DuologError, LogGone
from ...logger import get_logger
from ...records import Record
from ..append import Append
from ..append_writer import AppendQueue, Job
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


class Committed(NamedTuple):
    """The outcome of a group: its records, and unknown records of other processes before them."""

    records: list[Record]
    foreign: list[Record]


Commit: TypeAlias = Callable[[Sequence[Append], int | None, Callable[[], bool]], Committed]
"""``commit(group, known, wanted)``, in the thread; leaves each append's outcome in it. ``known`` is
the position up to which this process knows all records, None if nothing follows the log.
``wanted`` is asked before the group is written whether it still is, and may shorten it."""


@final
class Writer:
    """Queues appends and commits them.

    Args:
        connection: whose thread commits.
        commit: commits a group.
        publisher: where committed records are published.
        url: the URL of the log, for messages.
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
        self.queue: AppendQueue[_Work] = AppendQueue(url, self._ring)
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._rung = False
        self._finished = anyio.Event()
        self.groups = 0
        self.events = 0

    def _ring(self) -> None:
        if not self._rung:
            self._rung = True
            self._bell.put(None)

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs something in the thread, between two groups; see ``AppendQueue.call``."""
        return cast(T, await self.queue.call(partial(function, *args, **kwargs)))

    async def run(self) -> None:
        """The writer task; ends once the writer is closed and nothing waits."""
        try:
            with anyio.CancelScope(shield=True):
                await run_in_thread(self._connection, self._serve)
        except asyncio.CancelledError:
            # Forced from outside: this scope is shielded, so Duolog never cancels it. The writer
            # finishes the work in progress; then the task is cancelled, and the log closes with it.
            self.queue.closing = True
            if self._process.forked:
                raise
            self._bell.put(None)
            await self._thread_is_done()
        finally:
            self.queue.refuse_all()
            self._finished.set()

    async def _thread_is_done(self) -> None:
        """Waits for the thread, however often the task is cancelled: outcomes are on their way."""
        while True:
            try:
                await run_in_thread(self._connection, int)
            except asyncio.CancelledError:
                continue
            return

    async def close(self) -> None:
        """Takes no further appends, and returns when those that wait are committed."""
        await self.queue.close()
        self._bell.put(None)
        await self._finished.wait()

    # --- in the thread ----------------------------------------------------------------------------

    def _serve(self) -> None:
        """Commits group after group, until the writer is closed and nothing waits."""
        while not self.queue.closing or self.queue:
            self._bell.get()
            self._rung = False  # from here on, a new append rings again
            while self.queue:
                group = self.queue.take(_EVENTS)
                if group:
                    self._write(group)
                else:
                    self._work()
                del group  # while it waits for the bell, it must not keep appends alive

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
                waiting=len(self.queue),
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
        job = self.queue.take_job()
        if job is None:
            return
        outcome: object
        try:
            outcome = job.work()
        except Exception as error:  # noqa: BLE001 (for the caller that waits for the outcome)
            outcome = error
        self._loop.call_soon_threadsafe(self._work_done, job, outcome)

    # --- back in the loop -------------------------------------------------------------------------

    def _work_done(self, job: Job[_Work], outcome: object) -> None:
        job.settle(outcome)
        self.queue.give_room()

    def _done(self, group: Sequence[Append], done: Committed, failure: Exception | None) -> None:
        """Hands out the outcomes of a group, and publishes its records."""
        if isinstance(failure, LogGone):
            self._publisher.close(LogGone(*failure.args))  # followers would wait for ever
        for append in group:
            if append.outcome is None and failure is not None:
                append.outcome = _own(failure)
        self.queue.hand_out(group)
        if group:
            self.groups += 1
            self.events += len(done.records)
        self._publisher.publish(done.foreign)
        self._publisher.publish(done.records)


def _own(failure: Exception) -> Exception:
    """A copy of a failure for one append: a shared one would hold the frames of all callers."""
    if not isinstance(failure, DuologError):
        return failure
    own = copy.copy(failure)
    own.__cause__ = failure.__cause__
    return own
