"""Sessions in an order, found by the store: a page of them is read without reading all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import nlargest, nsmallest
from typing import Final, NamedTuple, Protocol, runtime_checkable

import msgspec

from ..text import natural
from .contract import SessionSummary
from .summary import labels_in

__all__ = (
    "LABEL",
    "NUMBERS",
    "ROW",
    "TEXTS",
    "Arranged",
    "Arrangement",
    "Condition",
    "Dialect",
    "Ranked",
    "RowNumbers",
    "Rows",
    "SessionGroup",
    "first_keys",
    "groups_in",
    "is_about_rows",
    "label_in",
    "meeting",
)

NUMBERS: Final = {
    "events": "s.events",
    "opened": "s.opened",
    "last": "s.last",
    "lasted": "s.last - s.opened",
    "position": "s.position",
}
"""Numbers by which sessions can be ordered, as SQL expressions of a summary ``s``."""

TEXTS: Final = ("session", "task", "instance", "state")
"""Texts of summaries that sessions can be ordered by."""

LABEL: Final = "label:"
"""Before the name of a label that sessions are to be ordered by."""

ROW: Final = "row:"
"""Prefix of the index, from 0, of the number in derived rows by which sessions are ordered."""

_ALL_LABELS: Final = "labels"
_TEXTS_HELD: Final = 1024  # of which it is known what they are compared by


class Rows(NamedTuple):
    """Which derived rows an order or a condition is about: their kind and version; see ``Derived``."""

    kind: str
    version: int


class RowNumbers(NamedTuple):
    """The numbers of a derived row.

    Attributes:
        session: session id.
        position: the position of the last record that they rest on.
        numbers: see ``Derived``.
    """

    session: str
    position: int
    numbers: tuple[float | None, ...]


class Arranged(NamedTuple):
    """A session in an order.

    Attributes:
        session: session id.
        value: the number or text that it is ordered by; None if it is missing, or if the order is that of first
            records.
    """

    session: str
    value: float | str | None


class SessionGroup(NamedTuple):
    """Sessions of one task and state with the same labels.

    Attributes:
        task: see ``SessionSummary``.
        state: see ``SessionSummary``.
        labels: see ``SessionSummary.group``.
        sessions: how many they are.
        position: the position of their last record.
    """

    task: str
    state: str
    labels: dict[str, str]
    sessions: int
    position: int


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition that a store decides, so that few sessions have to be read.

    Stores may let sessions through that do not meet it, and never leave out one that does. All sessions
    without a current row meet a condition about rows, and all texts with other characters than printable ASCII
    meet a condition about texts, since databases do not agree on their upper and lower case.

    Attributes:
        by: what it is about, as ``Arrangement`` names it: it is enough that one of these meets it. A text
            that is to be found in any label is found in ``labels``.
        ranges: the number lies in one of these, bounds included,
        missing: or it is missing, if this is set.
        texts: or the text is one of these, in any case,
        part: or this is a part of it, in any case; empty for no such condition.
    """

    by: tuple[str, ...]
    ranges: tuple[tuple[float, float], ...] = ()
    missing: bool = False
    texts: tuple[str, ...] = ()
    part: str = ""


class Arrangement(msgspec.Struct, frozen=True, kw_only=True):
    """Which sessions are asked for, and their order.

    In texts, 2 comes before 10. Sessions with equal values are in order of their first records; those with an
    empty text, or without the label or the number, come last. Rows count as they are: see ``Ranked.outdated``.

    Attributes:
        by: one of ``NUMBERS`` or ``TEXTS``; ``LABEL`` and the name of a label; ``ROW`` and the index of a number;
            or empty for the order of first records.
        descending: whether the greatest comes first.
        limit: how many sessions at most; None for all.
        offset: how many of the first ones are left out.
        conditions: what the sessions have to meet.
        rows: which rows order and conditions are about; None if they are about none.
    """

    by: str = ""
    descending: bool = False
    limit: int | None = None
    offset: int = 0
    conditions: Sequence[Condition] = ()
    rows: Rows | None = None

    @property
    def needs_rows(self) -> bool:
        """Whether the order or a condition is about derived rows."""
        return self.rows is not None and (
            self.by.startswith(ROW) or any(map(is_about_rows, self.conditions))
        )

    @property
    def upto(self) -> int | None:
        """How many sessions have to be found, those that are left out included; None for all."""
        return None if self.limit is None else self.limit + self.offset


class Dialect(NamedTuple):
    """The SQL dialect of conditions; ``{}`` is replaced by an argument.

    Attributes:
        behind: whether a row is missing, out of date or damaged.
        number: a number of a derived row, by its index.
        label: a label, by its name; None if it is missing.
        others: whether a text has other characters than printable ASCII.
        part: whether a text that is lower case holds another one.
        lower: a text in lower case, as far as ASCII goes.
    """

    behind: str
    number: str
    label: str
    others: str
    part: str
    lower: str


@runtime_checkable
class Ranked(Protocol):
    """A log whose store can order and select sessions by their summaries and by the numbers of derived rows."""

    async def outdated(self, kind: str, version: int) -> Sequence[str]:
        """The sessions without a current row, in order of their first records.

        Forgotten sessions are left out: they never have one.

        Args:
            kind: the kind of the rows; see ``Derived``.
            version: the version of the rows.

        Raises:
            LogClosed: the log is closed.
        """
        ...

    async def arranged(self, wanted: Arrangement) -> Sequence[Arranged]:
        """Sessions in the order of a property of their summaries, or of a number of their rows.

        Raises:
            LogClosed: the log is closed.
        """
        ...

    async def groups(self) -> Sequence[SessionGroup]:
        """All sessions, counted by task, state and labels.

        Raises:
            LogClosed: the log is closed.
        """
        ...

    async def numbers(self, rows: Rows, sessions: Sequence[str]) -> Sequence[RowNumbers]:
        """The numbers of the rows that some sessions have, in no particular order.

        They are read without the rows' payloads, and not held to their checksums.

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


def groups_in(rows: Iterable[tuple[str, str, str, int, int]]) -> list[SessionGroup]:
    """The groups in rows of a store: task, state, labels as JSON, number of sessions, last position."""
    return [
        SessionGroup(task, state, labels_in(labels), count, position)
        for task, state, labels, count, position in rows
    ]


def label_in(name: str) -> Callable[[str], str]:
    """What finds the value of a label in labels as JSON; empty if it is not there."""
    return lambda labels: labels_in(labels).get(name, "")


def first_keys(
    rows: Iterable[tuple[int, str]],
    text_of: Callable[[str], str] | None,
    *,
    descending: bool,
    limit: int | None,
) -> list[int]:
    """The keys of the first sessions by a text, for stores whose databases know no such order.

    Args:
        rows: key of each session and its text, in order of keys.
        text_of: finds what is to be compared in the text; None for the text itself.
        descending: whether the greatest comes first.
        limit: how many keys at most; None for all.
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
            elif limit is None or len(lacking) < limit:
                lacking.append(key)

    if limit is None:
        best = sorted(having(), reverse=descending)
    else:
        best = (nlargest if descending else nsmallest)(limit, having())
    return [*(abs(key) for _, key in best), *lacking][:limit]


def is_about_rows(condition: Condition) -> bool:
    """Whether a condition is about derived rows."""
    return any(name.startswith(ROW) for name in condition.by)


def meeting(conditions: Iterable[Condition], dialect: Dialect, *, rows: bool) -> str:
    """SQL for those conditions on a summary ``s`` and its row ``d`` that can be decided.

    Args:
        conditions: what sessions have to meet.
        dialect: the dialect of the database.
        rows: whether there are derived rows.
    """
    return " AND ".join(
        f"({' OR '.join(_sql(name, one, dialect) for name in one.by)})"
        for one in conditions
        if rows or not is_about_rows(one)
    )


def _sql(name: str, condition: Condition, dialect: Dialect) -> str:
    if name.startswith(ROW):
        number = dialect.number.format(int(name.removeprefix(ROW)))
        return f"{dialect.behind} OR {_in_ranges(number, condition)}"
    if name in NUMBERS:
        return _in_ranges(f"({NUMBERS[name]})", condition)
    if name.startswith(LABEL):
        label = name.removeprefix(LABEL)
        if not label.replace("_", "").replace("-", "").isalnum() or not label.isascii():
            return "TRUE"  # its name would have to be quoted, which databases do in their own ways
        text = f"coalesce({dialect.label.format(label)}, '')"
    else:
        text = f"s.{name if name == _ALL_LABELS else TEXTS[TEXTS.index(name)]}"
    wanted = [*condition.texts, condition.part]
    if any(not one.isascii() or not one.isprintable() for one in wanted):
        return "TRUE"
    lower = dialect.lower.format(text)
    found = [dialect.others.format(text)]
    if condition.texts:
        found.append(f"{lower} IN ({', '.join(_quoted(one.lower()) for one in condition.texts)})")
    if condition.part:
        found.append(dialect.part.format(lower, _quoted(condition.part.lower())))
    return " OR ".join(found)


def _in_ranges(number: str, condition: Condition) -> str:
    found = [f"{number} IS NULL"] if condition.missing else []
    for low, high in condition.ranges:
        bounds = [(">=", low)] if low > -math.inf else []
        bounds += [("<=", high)] if high < math.inf else []
        inside = [f"{number} {sign} {float(bound)!r}" for sign, bound in bounds]
        found.append(f"({' AND '.join(inside)})" if inside else f"{number} IS NOT NULL")
    return f"({' OR '.join(found)})" if found else "FALSE"


def _quoted(text: str) -> str:
    """A text of printable ASCII in SQL."""
    return "'{}'".format(text.replace("'", "''"))
