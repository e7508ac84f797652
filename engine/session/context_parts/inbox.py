"""The inbox of one actor: the records that it may see, from their delivery until it looks.

News is a cursor against the log, never a flag: records that an actor has not looked at stay in its
inbox, so that it sees everything once and loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from ...records import Record
from ..time.scheduler import Turns
from ..view import View, Visibility

__all__ = ("Inbox",)


@final
class Inbox:
    """Takes the records of a session for one actor, and wakes it when they are news to it.

    Args:
        view: the records that the actor can see; it changes only in ``look``.
        turns: the session's clock.
    """

    def __init__(self, view: View, turns: Turns) -> None:
        self._view = view
        self._turns = turns
        self._visibility = Visibility(view.me)
        self._waiting: list[Record] = []
        self._news = 0
        self._submitted: int | None = None

    def deliver(self, record: Record) -> None:
        """Takes the next trace record, as far as the actor may see it."""
        seen = self._visibility.see(record)
        if seen is None:
            return
        self._waiting.append(seen)
        if self._visibility.is_news(seen):
            self._news = seen.version
            self._turns.wake(self._view.me)
        elif seen.kind == "SnapshotTaken":
            self._submitted = seen.version

    def look(self, version: int) -> tuple[Record, ...]:
        """Brings the view up to date with a trace version; returns the new records."""
        view = self._view
        fresh = tuple(self._waiting)
        self._waiting.clear()
        for record in fresh:
            view.feed(record)
        view.version = max(view.version, version)
        view.now = self._turns.now()
        return fresh

    def has_news(self) -> bool:
        """Whether there is news that the view does not show."""
        return self._news > self._view.version

    @property
    def snapshot(self) -> int | None:
        """Version of the latest snapshot that the actor knows: in its view, or its own submission."""
        seen = self._view.snapshot.version if self._view.snapshot else None
        return max(seen or 0, self._submitted or 0) or None

    def owns_any(self, actions: Iterable[int]) -> bool:
        """Whether any of the actions at these trace versions is the actor's own."""
        return not self._visibility.mine.isdisjoint(actions)
