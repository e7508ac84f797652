"""The order of listed sessions: by any of their properties or labels, missing values last."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeAlias

import msgspec

from ...engine.errors import InvalidInput
from ...engine.log.contract import SessionSummary
from ...engine.log.ranked import LABEL, ROW
from ...engine.log.summary import FORGOTTEN
from ...engine.text import natural, suggestion
from ..columns.kept import COST, LATENCY, ROUNDS, UTILITY
from .lines import ListedSession, Measured, SessionLine

__all__ = ("BEGUN", "MEASURED", "SORT_KEYS", "SessionOrder", "Sortable", "parse_order")

SORT_KEYS: Final = (
    "session",
    "task",
    "instance",
    "state",
    "rounds",
    "events",
    "utility",
    "cost",
    "latency",
    "lasted",
    "opened",
    "last",
    "written",
)
"""The keys that sessions can be sorted by, apart from their labels. ``written``: their latest record."""

MEASURED: Final = {"rounds": ROUNDS, "utility": UTILITY, "cost": COST, "latency": LATENCY}
"""The keys that are measured, so that an order by them needs the line of each session, and which number of
a kept row each of them is."""

Sortable: TypeAlias = float | tuple[str | int, ...]
"""What values are compared by: a number, or a text in which 2 comes before 10."""


class SessionOrder(msgspec.Struct, frozen=True):
    """An order of sessions. Sessions with equal values stay in the order in which they began.

    Attributes:
        key: what they are sorted by: one of ``SORT_KEYS``, a label, or empty for the order in which they
            began.
        descending: whether the greatest comes first.
    """

    key: str
    descending: bool = False

    def __str__(self) -> str:
        return f"{'-' if self.descending else ''}{self.key}"

    @property
    def labels(self) -> frozenset[str]:
        """The key, if it has to be a label."""
        return frozenset(() if self.key in (*SORT_KEYS, "") else (self.key,))

    @property
    def needs_lines(self) -> bool:
        """Whether the order is by measurements of rounds."""
        return self.key in MEASURED

    @property
    def column(self) -> str:
        """The key as stores know it; see ``Arrangement``."""
        if self.key in MEASURED:
            return f"{ROW}{MEASURED[self.key]}"
        if not self.key or self.key in SORT_KEYS:
            return "position" if self.key == "written" else self.key
        return f"{LABEL}{self.key}"

    def check_label(self, known: Collection[str]) -> None:
        """Checks that the key is a property, or a label that occurs in a log.

        Raises:
            InvalidInput: it is neither.
        """
        if self.labels.difference(known):
            near = suggestion(self.key, [*SORT_KEYS, *known])
            raise InvalidInput(f"sessions cannot be sorted by {self.key!r}{near}")

    def value(
        self,
        session: SessionSummary | ListedSession,
        line: SessionLine | ListedSession | Measured | None = None,
    ) -> Sortable | None:
        """The value that a session is sorted by; None if it is missing.

        Args:
            session: the session.
            line: its line, for an order that ``needs_lines``.
        """
        match self.key:
            case "":
                return 0  # all alike: their places decide
            case "utility":
                return None if line is None else line.utility
            case "cost" | "latency" as measured:
                amount: float | None = None if line is None else getattr(line, measured)
                return amount
            case "rounds":
                return None if line is None or session.state == FORGOTTEN else line.rounds
            case "lasted":
                return session.last - session.opened
            case "written":
                return session.position
            case "events" | "opened" | "last" as number:
                value: float = getattr(session, number)
                return value
            case "session" | "task" | "instance" | "state" as text:
                return _natural(getattr(session, text))
            case label:
                return _natural(session.group.get(label, ""))


BEGUN: Final = SessionOrder("")
"""The order in which sessions began."""


def parse_order(text: str) -> SessionOrder:
    """An order: ``KEY``, or ``-KEY`` for the greatest first.

    Raises:
        InvalidInput: it names nothing.
    """
    key = text.strip().removeprefix("-")
    if not key:
        raise InvalidInput(f"unknown sort key {text!r}; choose from {', '.join(SORT_KEYS)}")
    return SessionOrder(key, text.strip().startswith("-"))


def _natural(text: str) -> tuple[str | int, ...] | None:
    """A text so that 2 comes before 10; None for an empty one."""
    return natural(text) if text else None
