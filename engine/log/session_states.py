"""States of sessions, such as folds of their records: the latest used ones are kept at hand."""

from __future__ import annotations

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
        busy: whether a state is in use and may not be evicted now; None where none ever is.
    """

    def __init__(self, most: int, busy: Callable[[State], bool] | None = None) -> None:
        self._most = most
        self._busy = busy
        self._states: dict[str, State] = {}  # the one that was used last comes last

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[State]:
        """The states at hand; the one that was used last comes last."""
        return iter(self._states.values())

    def get(self, session: str) -> State | None:
        """The state of a session, where it is at hand."""
        return self._states.get(session)

    def keep(self, session: str, state: State) -> None:
        """Takes a state as the one that was used last; evicts another where there are too many."""
        states = self._states
        states.pop(session, None)
        states[session] = state
        self.evict(but=state)

    def drop(self, session: str) -> State | None:
        """Lets go of the state of a session, and gives it back."""
        return self._states.pop(session, None)

    def evict(self, but: State | None = None) -> None:
        """Drops the state that was not used for the longest time, where there are too many.

        Args:
            but: a state that stays in any case.
        """
        if len(self._states) <= self._most:
            return
        for session, state in self._states.items():
            if state is not but and not (self._busy and self._busy(state)):
                del self._states[session]
                return


async def read_before(log: EventLog, record: Record) -> AsyncIterator[Record]:
    """What the log holds of a record's session before that record, in order of position.

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
