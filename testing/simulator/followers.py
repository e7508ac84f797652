"""The followers of a log in the simulator: what they are delivered live is what is read afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, final

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
        heads: the last position that has to be delivered of each session, and of all under None; known
            once the workers are done.
    """

    def __init__(
        self,
        failing: Callable[[], bool],
        errors: list[BaseException],
        forgotten: Callable[[], Collection[str]],
    ) -> None:
        self._failing = failing
        self._errors = errors
        self._forgotten = forgotten
        self._followed: list[_Followed] = []
        self.heads: dict[str | None, int] = {}

    async def follow(self, log: EventLog, operation: Operation, done: asyncio.Event) -> None:
        """Follows the log, or a session, until the workers are done and all that is committed was
        delivered; or leaves early.
        """
        after = operation.draw % 3 if operation.draw & 64 else 0
        session = f"s{operation.session}" if operation.draw & 128 else None
        leaves = bool(operation.draw & 768 == 768)
        got: list[Record] = []
        gone = frozenset(self._forgotten())
        try:
            async with log.subscribe(session=session, after_position=after) as subscription:
                self._followed.append(_Followed(after, session, leaves, gone, got))
                taking = asyncio.get_running_loop().create_task(_take(subscription, got))
                if leaves:
                    for _ in range(operation.draw >> 10 & 15):
                        await asyncio.sleep(0)
                else:
                    await done.wait()
                    with anyio.move_on_after(_LATEST):
                        head = self.heads.get(session, 0)
                        while not taking.done() and _reached(after, got) < head:  # noqa: ASYNC110
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
        for after, session, left, gone, got in self._followed:
            wanted = [
                record
                for record in records
                if record.position > after and session in (None, record.session)
            ]
            where = [record.position for record in got]
            there = [record.position for record in wanted]
            for record in () if self._failing() else got:
                erased = record.body is None or record.session not in gone
                require(erased, f"what was forgotten before is not delivered: {record.position}")
            if self._failing() or left:
                there = there[: len(where)]
            require(where == there, f"live must equal replay: {where}, not {there}")
            for live, read in zip(got, wanted, strict=False):
                same = live == read or read.body is None
                require(same, f"live must equal replay at {read.position}")


class _Followed(NamedTuple):
    """What was followed.

    Attributes:
        after: the position after which it began.
        session: the session; None for the log.
        left: whether the follower left early.
        gone: sessions that had been forgotten when it began.
        got: what was delivered.
    """

    after: int
    session: str | None
    left: bool
    gone: Collection[str]
    got: list[Record]


def _reached(after: int, got: Sequence[Record]) -> int:
    return got[-1].position if got else after


async def _take(subscription: Subscription, got: list[Record]) -> None:
    async for each in subscription:
        got.append(each)  # noqa: PERF401 (one by one: it is cancelled in between)
