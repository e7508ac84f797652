"""Sessions in an order, found by the store: a page of them is read without reading all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import nlargest, nsmallest
from typing import Final, Protocol, runtime_checkable

import msgspec

from ..text import natural
from .contract import SessionSummary

__all__ = ("LABEL", "NUMBERS", "TEXTS", "Ranked", "first_keys", "label_in")

NUMBERS: Final = {
    "events": "events",
    "opened": "opened",
    "last": "last",
    "lasted": "last - opened",
    "position": "position",
}
"""Numbers of summaries that sessions can be ordered by, as SQL has them."""

TEXTS: Final = ("session", "task", "instance", "state")
"""Texts of summaries that sessions can be ordered by."""

LABEL: Final = "label:"
"""Before the name of a label that sessions are to be ordered by."""

_TEXTS_HELD: Final = 1024  # of which it is known what they are compared by

_labels = msgspec.json.Decoder(dict[str, str]).decode


@runtime_checkable
class Ranked(Protocol):
    """A log whose store can order sessions by their summaries and by the numbers of derived rows."""

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

    async def arranged(self, by: str, *, descending: bool, limit: int) -> Sequence[str]:
        """The first sessions in the order of a property of their summaries.

        In texts, 2 comes before 10. Sessions with equal values are in order of their first records; those
        with an empty text, or without the label, come last.

        Args:
            by: one of ``NUMBERS`` or ``TEXTS``, or ``LABEL`` and the name of a label.
            descending: whether the greatest comes first.
            limit: how many sessions at most.

        Raises:
            LogClosed: the log is closed.
        """
        ...

    async def summaries(self, sessions: Sequence[str]) -> Sequence[SessionSummary]:
        """The summaries of some sessions, in the order in which they are named.

        Sessions that the log does not have are left out.

        Raises:
            LogClosed: the log is closed.
        """
        ...


def label_in(name: str) -> Callable[[str], str]:
    """What finds the value of a label in labels as JSON; empty if it is not there."""
    return lambda labels: _labels(labels).get(name, "")


def first_keys(
    rows: Iterable[tuple[int, str]],
    text_of: Callable[[str], str] | None,
    *,
    descending: bool,
    limit: int,
) -> list[int]:
    """The keys of the first sessions by a text, for stores whose databases know no such order.

    Args:
        rows: key of each session and its text, in order of keys.
        text_of: finds what is to be compared in the text; None for the text itself.
        descending: whether the greatest comes first.
        limit: how many keys at most.
    """
    lacking: list[int] = []

    @lru_cache(_TEXTS_HELD)
    def value_of(text: str) -> tuple[str | int, ...] | None:
        found = text if text_of is None else text_of(text)
        return natural(found) if found else None

    def having() -> Iterator[tuple[tuple[str | int, ...], int]]:
        for key, text in rows:
            value = value_of(text)
            if value is not None:
                yield value, -key if descending else key
            elif len(lacking) < limit:
                lacking.append(key)

    best = nlargest(limit, having()) if descending else nsmallest(limit, having())
    return [*(abs(key) for _, key in best), *lacking][:limit]
