"""The caller's side of a store with a writer task: how appends are checked, queued and awaited.

The writer commits. This module does the rest. It checks large appends in a thread, and keeps those
of one session in order. The caller waits for room in the queue and for the outcome. A cancellation
leaves all of an append in the log, or none of it. Records of other logs become appends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar, final

import anyio
import anyio.to_thread

from ..errors import DuologError, LogClosed
from ..events import Event, Forgotten, Unknown
from ..records import Draft, Record, Redact
from .append import Append, check_late, checked, prepare, redacted, restored
from .process import OwnProcess

__all__ = ("AppendLine", "AppendQueue", "Job", "Restoration", "restorations")

T = TypeVar("T")

Restoration: TypeAlias = Append | DuologError
"""An append that takes a record as it is, or why no log takes it."""

_AT_ONCE: Final = 1 << 15  # bytes of bodies that are checked at once; more are checked in a thread


async def restorations(records: Sequence[Record], redact: Redact | None) -> list[Restoration]:
    """For each record the append that takes it, behind the version before its own.

    Args:
        records: as another log held them.
        redact: called here for each that is not erased; a thread never calls it.
    """
    size = sum(len(record.body or b"") for record in records)
    if redact is None:
        return await _run(size, partial(_prepared, records, [None] * len(records)))
    known = await _run(size, partial(_checked, records))
    drafts: list[Draft | DuologError | None] = []
    for record, event in zip(records, known, strict=True):
        if isinstance(event, (DuologError, Forgotten)):
            drafts.append(event if isinstance(event, DuologError) else None)
            continue
        draft = Draft(
            event,
            record.actor,
            record.role,
            record.time,
            record.caller_id,
            record.cause,
            record.seen,
        )
        drafts.append(_attempt(partial(redacted, draft, redact)))
    return await _run(size, partial(_prepared, records, drafts))


async def _run(size: int, function: Callable[[], T]) -> T:
    if size <= _AT_ONCE:
        return function()
    return await anyio.to_thread.run_sync(function, abandon_on_cancel=True)


def _checked(records: Sequence[Record]) -> list[Event | Unknown | Forgotten | DuologError]:
    return [_attempt(partial(checked, record)) for record in records]


def _prepared(
    records: Sequence[Record], drafts: Sequence[Draft | DuologError | None]
) -> list[Restoration]:
    return [
        draft if isinstance(draft, DuologError) else _attempt(partial(_append, record, draft))
        for record, draft in zip(records, drafts, strict=True)
    ]


def _append(record: Record, draft: Draft | None) -> Append:
    """The append of a record, or of the draft that a redaction hook returned for it."""
    if draft is None:
        return restored(record)
    append = prepare(record.session, (draft,), record.stream, record.version - 1, None, None)
    if append.late:
        check_late(append)
    return append


def _attempt(function: Callable[[], T]) -> T | DuologError:
    try:
        return function()
    except DuologError as error:
        return error.with_traceback(None)


_THREADS: Final = 2  # threads that check; more would only wait for the interpreter's lock


@final
class _Session:
    """The turns of one session: its lock, and how many tasks hold it or wait for it."""

    __slots__ = ("lock", "waiting")

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.waiting = 0


@final
class AppendLine:
    """The line in which appends wait while a large one of their session is checked.

    Ordinary appends enter it only if one of their session is in it: a later append must not
    overtake it. Appends of other sessions continue.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._empty = anyio.Event()

    def holds(self, append: Append) -> bool:
        """Whether an append has to go through the line."""
        return bool(append.late) or append.session in self._sessions

    @asynccontextmanager
    async def turn(self, append: Append) -> AsyncIterator[None]:
        """Waits for an append's turn, and does the remaining checks.

        The appends behind it wait until the end of the block. A caller that is cancelled leaves the
        line, and nothing is appended.

        Raises:
            CodecError: an event that would not be read back as what it is.
        """
        session = self._sessions.setdefault(append.session, _Session())
        session.waiting += 1
        try:
            async with session.lock:
                if append.late:
                    await anyio.to_thread.run_sync(
                        check_late, append, abandon_on_cancel=True, limiter=self._threads
                    )
                yield
        finally:
            session.waiting -= 1
            if not session.waiting:
                del self._sessions[append.session]
            if not self._sessions:
                self._empty.set()
                self._empty = anyio.Event()

    async def drain(self) -> None:
        """Waits until the line is empty."""
        while self._sessions:
            await self._empty.wait()


W = TypeVar("W")

_APPENDS: Final = 8192  # that may wait in the queue; more wait to be queued


@final
class Job(Generic[W]):
    """Something else for a writer to do between two groups, and where its caller waits."""

    __slots__ = ("future", "work")

    def __init__(self, work: W, future: asyncio.Future[Any]) -> None:
        self.work = work
        self.future = future

    def settle(self, outcome: object) -> None:
        """Hands the outcome to the caller; an error is raised there."""
        if self.future.done():
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


@final
class AppendQueue(Generic[W]):
    """The queue of a writer: appends, which it commits in groups, and jobs between them.

    A writer takes from it, in a thread if it likes; all else is called on the event loop.

    Args:
        url: the URL of the log, for messages.
        ring: wakes the writer.

    Attributes:
        closing: nothing more is taken in; what waits is still to be done.
    """

    def __init__(self, url: str, ring: Callable[[], object]) -> None:
        self._url = url
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._process = OwnProcess()
        self._line = AppendLine()
        self._items: deque[Append | Job[W]] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()  # for room
        self.closing = False

    def __len__(self) -> int:
        return len(self._items)

    async def write(self, append: Append) -> list[Record]:
        """Writes an append, and returns its records.

        Raises:
            LogError: it was refused, or it is unknown whether it was written.
        """
        if self._line.holds(append):
            async with self._line.turn(append):
                future = await self._enter(append)
        elif self._full or self.closing:
            future = await self._enter(append)
        else:
            future = self._submit(append)
        try:
            await future
        except asyncio.CancelledError:
            await self._withdraw(append)
            raise
        outcome, append.outcome = append.outcome, None
        if isinstance(outcome, list):
            return outcome
        assert outcome is not None
        try:
            raise outcome
        finally:
            del outcome  # else error, traceback and frame hold each other

    async def restore(self, restorations: Sequence[Restoration]) -> list[Record | DuologError]:
        """Appends records of another log separately; returns each as written here, or its error."""
        submitted: list[Append] = []
        try:
            for append in restorations:
                if isinstance(append, Append):
                    await self._enter(append)
                    submitted.append(append)
            for append in submitted:
                if not append.settled:
                    assert append.future is not None
                    await append.future
        except asyncio.CancelledError:
            for append in submitted:
                await self._withdraw(append)
            raise
        return [_restored(outcome) for outcome in restorations]

    def write_staged(self, appends: Sequence[Append]) -> None:
        """Begins to write appends in order; see ``Staging``."""
        self._check_open()
        self._items.extend(appends)  # at once: the writer takes all of them, or none
        self._ring()

    async def call(self, work: W) -> object:
        """Makes the writer do something between two groups; it is done even if the caller goes.

        Raises:
            LogClosed: the log is closed.
        """
        self._check_open()
        future: asyncio.Future[object] = self._loop.create_future()
        self._items.append(Job(work, future))
        self._ring()
        return await future

    async def close(self) -> None:
        """Waits until the line is empty, then accepts nothing more."""
        await self._line.drain()
        self.closing = True
        self._ring()

    def _check_open(self) -> None:
        if self.closing:
            raise LogClosed(f"{self._url} is closed")

    @property
    def _full(self) -> bool:
        return len(self._items) >= _APPENDS

    async def _enter(self, append: Append) -> asyncio.Future[None]:
        """Queues an append when there is room. Raises LogClosed if the log is closed meanwhile."""
        while self._full:
            await self._wait_for_room()
        self._check_open()
        return self._submit(append)

    async def _wait_for_room(self) -> None:
        room = self._loop.create_future()
        self._waiting.append(room)
        await room

    def _submit(self, append: Append) -> asyncio.Future[None]:
        append.future = future = self._loop.create_future()
        self._items.append(append)
        self._ring()
        return future

    async def _withdraw(self, append: Append) -> None:
        """Takes back an append whose caller was cancelled.

        If it is too late for that, waits until its outcome is known. An append that waits for
        another process to release the log can still be taken back.
        """
        append.withdrawn = True
        if self._process.forked:
            return  # the writer is not there
        try:
            self._items.remove(append)
        except (ValueError, IndexError):  # taken, or a thread is taking others just now
            with anyio.CancelScope(shield=True):
                while not append.settled:
                    append.future = self._loop.create_future()
                    try:
                        await append.future
                    except asyncio.CancelledError:
                        continue  # the first cancellation is raised when this is over
        append.outcome = None  # it is not read, and an error refers back to the append
        self.give_room()

    # --- for the writer, in any thread ------------------------------------------------------------

    def take(self, most: int) -> list[Append]:
        """The next group: the appends that wait, up to a number of events; none before a job.

        Appends that follow each other stay together.
        """
        events = 0
        group: list[Append] = []
        while True:
            try:
                item = self._items.popleft()
            except IndexError:
                break
            if not isinstance(item, Append) or (events >= most and item.after is None):
                self._items.appendleft(item)
                break
            events += len(item.envelopes)
            group.append(item)
        return group

    def take_job(self) -> Job[W] | None:
        """The next job; None if an append comes first, or nothing waits."""
        try:
            item = self._items.popleft()
        except IndexError:  # the append that was there was withdrawn
            return None
        if isinstance(item, Job):
            return item
        self._items.appendleft(item)
        return None

    @property
    def begins_with_append(self) -> bool:
        """Whether an append is the next one."""
        return bool(self._items) and isinstance(self._items[0], Append)

    # --- for the writer, on the event loop --------------------------------------------------------

    def hand_out(self, group: Iterable[Append]) -> None:
        """Settles appends that have their outcomes, and lets others in."""
        for append in group:
            append.settle()
        self.give_room()

    def give_room(self) -> None:
        """Wakes the callers that wait for room; called whenever the queue gets shorter."""
        while self._waiting and not self._full:
            room = self._waiting.popleft()
            if not room.done():
                room.set_result(None)

    def refuse_all(self) -> None:
        """Settles what is left; there is something only after a forced cancellation."""
        self.closing = True
        group: list[Append] = []
        while self._items:
            item = self._items.popleft()
            closed = LogClosed(f"{self._url} is closed: its writer task was cancelled from outside")
            if isinstance(item, Append):
                item.outcome = closed
                group.append(item)
            else:
                item.settle(closed)
        self.hand_out(group)

    def put_back(self, group: Sequence[Append]) -> None:
        """Puts appends that were taken and not begun in front of the others."""
        self._items.extendleft(reversed(group))


def _restored(outcome: Restoration) -> Record | DuologError:
    if isinstance(outcome, DuologError):
        return outcome
    if isinstance(outcome.outcome, list):
        return outcome.outcome[0]
    if isinstance(outcome.outcome, DuologError):
        return outcome.outcome
    raise AssertionError("an append that is settled has an outcome")
