"""The history of an input: earlier texts that can be sent again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

__all__ = ("History",)


@final
class History:
    """Lines that were sent, the newest last, and a place among them.

    The line that is being written follows the newest. Changes to any line are kept until a line is
    sent, so looking back loses nothing.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._changed: dict[int, str] = {}
        self._at = 0

    def add(self, line: str) -> None:
        """Takes a line that was sent, unless it is the newest already."""
        if line and self._lines[-1:] != [line]:
            self._lines.append(line)
        self._at = len(self._lines)
        self._changed.clear()

    def restore(self, lines: Iterable[str]) -> None:
        """Takes what was sent in an earlier run, as older than all that is here."""
        older = list(lines)
        self._lines[:0] = older
        self._changed = {at + len(older): line for at, line in self._changed.items()}
        self._at += len(older)

    def back(self, current: str) -> str | None:
        """The previous line; None if there is none.

        Args:
            current: the text in the input.
        """
        return self._go(self._at - 1, current)

    def forward(self, current: str) -> str | None:
        """The line after, in the end the one that is being written; None behind that.

        Args:
            current: the text in the input.
        """
        return self._go(self._at + 1, current)

    def _go(self, at: int, current: str) -> str | None:
        if not 0 <= at <= len(self._lines):
            return None
        self._changed[self._at] = current
        self._at = at
        return self._changed.get(at, self._lines[at] if at < len(self._lines) else "")
