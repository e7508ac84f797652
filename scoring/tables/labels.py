"""The labels of sessions as SQL over ``cells``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .query import label_of, quoted

__all__ = ("matching", "named", "selected")


def selected(labels: Iterable[str]) -> str:
    """Labels as further columns of a query."""
    return "".join(f", {label_of(name)}" for name in labels)


def matching(labels: Iterable[str], mine: Mapping[str, str]) -> str:
    """Which sessions have these labels, and of the others none."""
    conditions = [
        f"{label_of(name)} = {quoted(mine[name])}" if name in mine else f"{label_of(name)} IS NULL"
        for name in labels
    ]
    return " AND ".join(conditions) or "true"


def named(labels: Iterable[str], values: Sequence[str | None]) -> list[tuple[str, str]]:
    """The labels that a session has, of these, with their values."""
    pairs = zip(labels, values, strict=True)
    return [(name, value) for name, value in pairs if value is not None]
