"""What stores with a writer of their own share: how an append is handed over, and how one waits for it.

The writer commits. Here is what its caller sees: the wait for room in the queue, the outcome, and a
cancellation that leaves all of an append in the log or nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, Generic, Protocol, TypeVar, final

import anyio

from ..errors import DuologError
from ..records import Record
from .append import Append
from .append_line import AppendLine
from .restoring import Restoration

__all__ = ("AppendWriter", "Job", "Room", "restore_by", "wait_until_settled", "write_by")

W = TypeVar("W")

_APPENDS: Final = 8192  # that may wait in the queue; more wait to be queued


class AppendWriter(Protocol):
    """Takes appends one after the other, and commits them in groups."""

    @property
    def blocked(self) -> bool:
        """Whether an append has to go by ``wait_for_room`` before it may be queued."""
        ...

    async def wait_for_room(self) -> None:
        """Waits until an append may be queued.

        Raises:
            LogClosed: the log was closed meanwhile.
        """
        ...

    def submit(self, append: Append) -> asyncio.Future[None]:
        """Queues an append; the future is done when its outcome is there."""
        ...

    async def withdraw(self, append: Append) -> None:
        """Takes back an append whose caller was cancelled; if it is too late for that, waits until
        its outcome is known.
        """
        ...


async def write_by(writer: AppendWriter, line: AppendLine, append: Append) -> list[Record]:
    """Has an append written, and returns its records.

    Raises:
        LogError: it was refused, or it is unknown whether it was written.
    """
    if line.holds(append):
        async with line.turn(append):
            if writer.blocked:
                await writer.wait_for_room()
            future = writer.submit(append)
    else:
        if writer.blocked:
            await writer.wait_for_room()
        future = writer.submit(append)
    try:
        await future
    except asyncio.CancelledError:
        await writer.withdraw(append)
        raise
    outcome, append.outcome = append.outcome, None
    if isinstance(outcome, list):
        return outcome
    assert outcome is not None
    try:
        raise outcome
    finally:
        del outcome  # else error, traceback and frame hold each other


async def restore_by(
    writer: AppendWriter, restorations: Sequence[Restoration]
) -> list[Record | DuologError]:
    """Has records of another log written, each on its own: each as it stands here, or its error."""
    submitted: list[Append] = []
    try:
        for append in restorations:
            if isinstance(append, Append):
                if writer.blocked:
                    await writer.wait_for_room()
                writer.submit(append)
                submitted.append(append)
        for append in submitted:
            if not append.settled:
                assert append.future is not None
                await append.future
    except asyncio.CancelledError:
        for append in submitted:
            await writer.withdraw(append)
        raise
    return [_restored(outcome) for outcome in restorations]


def _restored(outcome: Restoration) -> Record | DuologError:
    if isinstance(outcome, DuologError):
        return outcome
    if isinstance(outcome.outcome, list):
        return outcome.outcome[0]
    if isinstance(outcome.outcome, DuologError):
        return outcome.outcome
    raise AssertionError("an append that is settled has an outcome")


async def wait_until_settled(append: Append) -> None:
    """Waits until the outcome of an append is known, whoever cancels its caller meanwhile."""
    with anyio.CancelScope(shield=True):
        while not append.settled:
            append.future = asyncio.get_running_loop().create_future()
            try:
                await append.future
            except asyncio.CancelledError:
                continue  # the cancellation that came first goes on when this is over


@final
class Job(Generic[W]):
    """Something else for a writer to do between two groups, and where its caller waits."""

    __slots__ = ("future", "work")

    def __init__(self, work: W, future: asyncio.Future[Any]) -> None:
        self.work = work
        self.future = future

    def settle(self, outcome: object) -> None:
        """Hands the outcome to the caller; raised there, where it is an error."""
        if self.future.done():
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


@final
class Room:
    """The room in a queue of appends, and those who wait for some.

    Args:
        queue: the queue.
    """

    def __init__(self, queue: deque[Any]) -> None:
        self._queue = queue
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def full(self) -> bool:
        """Whether there is none."""
        return len(self._queue) >= _APPENDS

    async def wait(self) -> None:
        """Waits until there is some."""
        while self.full:
            room = asyncio.get_running_loop().create_future()
            self._waiting.append(room)
            await room

    def give(self) -> None:
        """Lets those go on who wait; to be called wherever the queue gets shorter."""
        while self._waiting and not self.full:
            room = self._waiting.popleft()
            if not room.done():
                room.set_result(None)
