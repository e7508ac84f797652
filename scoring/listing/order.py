"""The order of listed sessions: by any of their properties or labels, missing values last."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

import msgspec

from ...engine.errors import InvalidInput
from ...engine.log.contract import SessionSummary
from ...engine.text import suggestion

__all__ = ("SORT_KEYS", "SessionOrder", "Sortable", "parse_order")

SORT_KEYS: Final = (
    "session",
    "task",
    "instance",
    "state",
    "rounds",
    "events",
    "utility",
    "lasted",
    "opened",
    "last",
    "written",
)
"""What sessions can be sorted by, besides their labels. ``written``: their latest record."""

_DIGITS = re.compile(r"(\d+)")

Sortable: TypeAlias = float | tuple[tuple[str, int], ...]
"""What values are compared by: a number, or a text so that 2 comes before 10."""


class SessionOrder(msgspec.Struct, frozen=True):
    """An order of sessions.

    Attributes:
        key: what they are sorted by, one of ``SORT_KEYS`` or a label.
        descending: whether the greatest comes first.
    """

    key: str
    descending: bool = False

    @property
    def labels(self) -> frozenset[str]:
        """The key, if it has to be a label."""
        return frozenset(() if self.key in SORT_KEYS else (self.key,))

    def check_label(self, known: Collection[str]) -> None:
        """Checks that the key is a property, or a label that occurs in a log.

        Raises:
            InvalidInput: it is neither.
        """
        if self.labels.difference(known):
            near = suggestion(self.key, [*SORT_KEYS, *known])
            raise InvalidInput(f"sessions cannot be sorted by {self.key!r}{near}")

    def sorted(self, sessions: Iterable[SessionSummary]) -> list[SessionSummary]:
        """Sessions in this order; equal ones stay in theirs, and those without a value come last."""
        having: list[tuple[Sortable, SessionSummary]] = []
        lacking: list[SessionSummary] = []
        for session in sessions:
            value = self.value(session)
            if value is None:
                lacking.append(session)
            else:
                having.append((value, session))
        having.sort(key=lambda pair: pair[0], reverse=self.descending)
        return [session for _, session in having] + lacking

    def value(self, summary: SessionSummary) -> Sortable | None:
        """What a session is sorted by; None where it has none."""
        match self.key:
            case "utility":
                return summary.utility
            case "lasted":
                return summary.last - summary.opened
            case "written":
                return summary.position
            case "rounds" | "events" | "opened" | "last" as number:
                value: float = getattr(summary, number)
                return value
            case "session" | "task" | "instance" | "state" as text:
                return _natural(getattr(summary, text))
            case label:
                return _natural(summary.group.get(label, ""))


def parse_order(text: str) -> SessionOrder:
    """An order: ``KEY``, or ``-KEY`` for the greatest first.

    Raises:
        InvalidInput: it names nothing.
    """
    key = text.strip().removeprefix("-")
    if not key:
        raise InvalidInput(f"{text!r} names nothing to sort by; there are: {', '.join(SORT_KEYS)}")
    return SessionOrder(key, text.strip().startswith("-"))


def _natural(text: str) -> tuple[tuple[str, int], ...] | None:
    """A text so that 2 comes before 10; None for an empty one."""
    if not text:
        return None
    parts = _DIGITS.split(text.casefold())
    numbers = [int(part) if len(part) < 20 else 0 for part in parts[1::2]]
    return tuple(zip(parts[::2], [*numbers, 0], strict=True))
