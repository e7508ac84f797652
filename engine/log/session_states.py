"""States of sessions, such as folds of their records: the latest used ones are kept in memory."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Generic, TypeVar, final

from ..records import Record
from .contract import EventLog

__all__ = ("SessionStates", "read_before")

State = TypeVar("State")


@final
class SessionStates(Generic[State]):
    """A bounded cache of states by session; one that was evicted is rebuilt from the log.

    Args:
        most: how many states to keep.
        busy: whether a state is in use and may not be evicted now; None if none ever is.
        idle: seconds after which a state that was not used is evicted.
    """

    def __init__(
        self,
        most: int,
        busy: Callable[[State], bool] | None = None,
        idle: float = math.inf,
    ) -> None:
        self._most = most
        self._idle = idle
        self._used: dict[str, float] = {}  # when each was used last, if that matters
        self._busy = busy
        self._states: dict[str, State] = {}  # the one that was used last comes last

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[State]:
        """The states in memory; the one that was used last comes last."""
        return iter(self._states.values())

    def get(self, session: str) -> State | None:
        """The state of a session, if it is cached."""
        return self._states.get(session)

    def keep(self, session: str, state: State) -> None:
        """Keeps a state as the one used last; evicts another if there are too many."""
        states = self._states
        states.pop(session, None)
        states[session] = state
        if self._idle < math.inf:
            self._used.pop(session, None)
            self._used[session] = now = time.monotonic()
            self._evict_idle(now - self._idle, state)
        self.evict(but=state)

    def drop(self, session: str) -> State | None:
        """Removes the state of a session, and returns it."""
        self._used.pop(session, None)
        return self._states.pop(session, None)

    def _evict_idle(self, before: float, but: State) -> None:
        """Drops states that were not used since a time, up to one that is in use."""
        idle: list[str] = []
        for session, at in self._used.items():
            state = self._states.get(session)
            if at >= before or state is but:
                break
            if state is None or self._busy is None or not self._busy(state):
                idle.append(session)
        for session in idle:
            self.drop(session)

    def evict(self, but: State | None = None) -> None:
        """Drops the least recently used state, if there are too many.

        Args:
            but: a state that stays in any case.
        """
        if len(self._states) <= self._most:
            return
        for session, state in self._states.items():
            if state is not but and not (self._busy and self._busy(state)):
                self.drop(session)
                return


async def read_before(log: EventLog, record: Record) -> AsyncIterator[Record]:
    """The records of a record's session before that record, in order of position.

    Raises:
        LogUnavailable: the log cannot be read now.
        LogClosed: the log is closed.
    """
    if record.version == 1 and record.kind == "SessionOpened":
        return  # nothing comes before the opening
    async for earlier in log.read_all(session=record.session):
        if earlier.position >= record.position:
            return
        yield earlier
