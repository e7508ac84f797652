"""Sessions in the order of what folds keep of them, found by the store, without reading all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

__all__ = ("Ranked",)


@runtime_checkable
class Ranked(Protocol):
    """A log whose store can order sessions by the numbers of derived rows."""

    async def outdated(self, kind: str, version: int) -> Sequence[str]:
        """The sessions without a current row, in order of their first records.

        Forgotten sessions are left out: they never have one.

        Args:
            kind: of the rows; see ``Derived``.
            version: of the rows.

        Raises:
            LogClosed: the log is closed.
        """
        ...

    async def ranked(
        self, kind: str, version: int, number: int, *, descending: bool, limit: int
    ) -> Sequence[str]:
        """The first sessions in the order of a number that their rows have.

        Sessions with equal numbers are in order of their first records; those without one come last.
        The rows count as they are: see ``outdated``.

        Args:
            kind: of the rows.
            version: of the rows.
            number: which of ``Derived.numbers``, from 0.
            descending: whether the greatest comes first.
            limit: how many sessions at most.

        Raises:
            LogClosed: the log is closed.
        """
        ...
