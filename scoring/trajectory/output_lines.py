"""The output of a session as lines, split and compared once for all folds that look at it."""

from __future__ import annotations

from typing import final

from ...engine.events import SnapshotTaken
from ...engine.text import new_lines, text_of

__all__ = ("OutputLines",)


@final
class OutputLines:
    """Splits each version of the output once, and compares two of them once.

    Folds of one session may share it, which are given the same records in turn. What it gives is not
    to be changed.
    """

    __slots__ = ("_event", "_fresh", "_lines", "_new", "_old")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets what it holds, since the session is closed."""
        self._event: SnapshotTaken | None = None
        self._lines: list[str] = []
        self._old = self._new = self._lines
        self._fresh = ""

    def of(self, event: SnapshotTaken) -> list[str]:
        """The lines of an output."""
        if event is not self._event:
            self._event = event
            self._lines = text_of(event.content).splitlines()
        return self._lines

    def new(self, old: list[str], new: list[str]) -> str:
        """The lines of one output that another does not hold: see ``new_lines``."""
        if new is not self._new or old is not self._old:
            self._old, self._new, self._fresh = old, new, new_lines(old, new)
        return self._fresh
