"""The sessions of a run that several processes share: which are next here, and which others have."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, final

import anyio

from ..log.leases import LeaseHolder
from .runner import Session

__all__ = ("NextSession", "SessionQueue", "is_session_lease", "lease_name")

_PREFIX: Final = "session/"


class NextSession(NamedTuple):
    """The next session to run in this process.

    Attributes:
        make: makes the session.
        aside: whether it was put aside before because another process had it.
    """

    make: Callable[[], Session]
    aside: bool


@final
class SessionQueue:
    """Gives out sessions in order; those that others have come up again once these let go of them.

    Args:
        makers: functions that each make a session.
    """

    def __init__(self, makers: Iterable[Callable[[], Session]]) -> None:
        self._makers = iter(makers)
        self._aside: list[tuple[str, Callable[[], Session]]] = []
        self._free: deque[Callable[[], Session]] = deque()
        self._out = 0
        self._changed = anyio.Event()

    async def next(self) -> NextSession | None:
        """The next session, to be settled or put aside; None once all are settled.

        It waits while other processes have all remaining sessions, or while one that was given out
        may still be put aside.
        """
        while True:
            if self._free:
                self._out += 1
                return NextSession(self._free.popleft(), aside=True)
            for make in self._makers:
                self._out += 1
                return NextSession(make, aside=False)
            if not self._aside and not self._out:
                return None
            await self._changed.wait()

    def settle(self) -> None:
        """Marks a session that was given out as done."""
        self._out -= 1
        self._notify()

    def put_aside(self, session: str, make: Callable[[], Session]) -> None:
        """Puts a session aside because another process has it at the moment."""
        self._aside.append((lease_name(session), make))
        self._out -= 1

    async def watch(self, holder: LeaseHolder, every: float) -> None:
        """Offers sessions again when the process that had them released them, or counts as dead."""
        while True:
            await anyio.sleep(every)
            if not self._aside:
                continue
            held = await holder.others()
            self._free += [make for lease, make in self._aside if lease not in held]
            self._aside = [(lease, make) for lease, make in self._aside if lease in held]
            self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def lease_name(session: str) -> str:
    """The name of the lease on running a session."""
    return _PREFIX + session


def is_session_lease(name: str) -> bool:
    """Whether a lease is one on running a session."""
    return name.startswith(_PREFIX)
