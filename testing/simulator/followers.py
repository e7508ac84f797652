"""The followers of a log in the simulator: what they are delivered live is what is read afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import final

import anyio

from ...engine.errors import LogClosed, LogUnavailable
from ...engine.log.contract import EventLog, Subscription
from ...engine.records import Record
from ..tools import require
from .scenario import Operation

__all__ = ("Followers",)

_LATEST = 5.0  # seconds within which all that is committed is delivered


@final
class Followers:
    """All that follow the log of one process.

    Args:
        failing: whether the disk has failed: errors that say so are right then.
        errors: takes what must not happen.

    Attributes:
        head: the last position that has to be delivered, known once the workers are done.
    """

    def __init__(self, failing: Callable[[], bool], errors: list[BaseException]) -> None:
        self._failing = failing
        self._errors = errors
        self._followed: list[tuple[int, list[Record]]] = []
        self.head = 0

    async def follow(self, log: EventLog, operation: Operation, done: asyncio.Event) -> None:
        """Follows the log until the workers are done and all that is committed was delivered."""
        after = operation.draw % 3 if operation.draw & 64 else 0
        got: list[Record] = []
        try:
            async with log.subscribe(after_position=after) as subscription:
                self._followed.append((after, got))
                taking = asyncio.get_running_loop().create_task(_take(subscription, got))
                await done.wait()
                with anyio.move_on_after(_LATEST):
                    while not taking.done() and _reached(after, got) < self.head:  # noqa: ASYNC110
                        await asyncio.sleep(0.001)
                taking.cancel()
                await asyncio.wait([taking])
                if not taking.cancelled():
                    taking.result()
        except LogUnavailable as error:
            if not self._failing():
                self._errors.append(error)
        except LogClosed as error:
            self._errors.append(error)

    def check(self, records: Sequence[Record]) -> None:
        """What was delivered live is what is read: all of it, unless the disk failed meanwhile.

        Args:
            records: all of the log.
        """
        for after, got in self._followed:
            wanted = [record for record in records if record.position > after]
            where = [record.position for record in got]
            there = [record.position for record in wanted]
            if self._failing():
                there = there[: len(where)]
            require(where == there, f"live must equal replay: {where}, not {there}")
            for live, read in zip(got, wanted, strict=False):
                same = live == read or read.body is None
                require(same, f"live must equal replay at {read.position}")


def _reached(after: int, got: Sequence[Record]) -> int:
    return got[-1].position if got else after


async def _take(subscription: Subscription, got: list[Record]) -> None:
    async for each in subscription:
        got.append(each)  # noqa: PERF401 (one by one: it is cancelled in between)
