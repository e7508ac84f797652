"""Numbers and tables of the study as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from duolog.scoring.metrics.results import Estimate

__all__ = ("cell", "estimate", "table")

_NONE = "–"


def cell(value: float | None, digits: int = 3) -> str:
    """A number, or a dash if it is missing."""
    return _NONE if value is None else f"{value:.{digits}f}"


def estimate(found: Estimate, digits: int = 3, *, bold: bool = False, percent: bool = False) -> str:
    """A difference with its interval, with signs."""
    if found.value is None:
        return _NONE
    scale, unit = (100.0, " %") if percent else (1.0, "")
    text = f"{scale * found.value:+.{digits}f}{unit}"
    shown = f"**{text}**" if bold else text
    if found.low is None or found.high is None:
        return shown
    return f"{shown} ({scale * found.low:+.{digits}f} to {scale * found.high:+.{digits}f})"


def table(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [
        f"| {' | '.join(head)} |",
        "|---" * len(head) + "|",
        *(f"| {' | '.join(row)} |" for row in body),
    ]
