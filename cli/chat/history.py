"""What was sent before, to be sent again: the history of an input."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

__all__ = ("History",)


@final
class History:
    """Lines that were sent, the newest last, and a place among them.

    The line that is being written stands behind the newest, and is kept while one looks back.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._at = 0
        self._draft = ""

    def add(self, line: str) -> None:
        """Takes a line that was sent, unless it is the newest already."""
        if line and self._lines[-1:] != [line]:
            self._lines.append(line)
        self._at = len(self._lines)
        self._draft = ""

    def restore(self, lines: Iterable[str]) -> None:
        """Takes what was sent in an earlier run, as older than all that is here."""
        older = list(lines)
        self._lines[:0] = older
        self._at += len(older)

    def back(self, current: str) -> str | None:
        """The line before; None where there is none.

        Args:
            current: what the input holds.
        """
        if self._at == 0:
            return None
        if self._at == len(self._lines):
            self._draft = current
        self._at -= 1
        return self._lines[self._at]

    def forward(self) -> str | None:
        """The line after, in the end the one that was being written; None behind that."""
        if self._at == len(self._lines):
            return None
        self._at += 1
        return self._draft if self._at == len(self._lines) else self._lines[self._at]
