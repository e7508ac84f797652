"""The sessions of a log in order of their first records, and which of them were there when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from ...engine.log.contract import EventLog

__all__ = ("SessionIndex",)


@final
class SessionIndex:
    """Ids of sessions by the order of their first records; holds nothing else of them.

    Attributes:
        sessions: ids in order.
    """

    def __init__(self) -> None:
        self.sessions: list[str] = []
        self._places: dict[str, int] = {}
        self._firsts: dict[int, int] = {}  # position of a session's first record, where known

    def __len__(self) -> int:
        return len(self.sessions)

    def add(self, sessions: Iterable[str]) -> None:
        """Takes sessions in order of their first records; those known already are left out."""
        for session in sessions:
            if session not in self._places:
                self._places[session] = len(self.sessions)
                self.sessions.append(session)

    def place(self, session: str) -> int | None:
        """Where a session is in that order, from 0; None where it is not known."""
        return self._places.get(session)

    async def count_at(self, log: EventLog, position: int) -> int:
        """How many sessions there were at a position: as many as had begun, the first ones.

        Reads the beginnings of a few sessions: no more than a search by halves needs.

        Raises:
            LogError: the log cannot be read.
        """
        low, high = 0, len(self.sessions)
        while low < high:
            middle = (low + high) // 2
            if await self._first(log, middle) <= position:
                low = middle + 1
            else:
                high = middle
        return low

    async def _first(self, log: EventLog, place: int) -> int:
        found = self._firsts.get(place)
        if found is None:
            found = 0
            async for record in log.read_all(session=self.sessions[place]):
                found = record.position
                break
            self._firsts[place] = found
        return found
