"""What changed between two versions of the shared output, as lines for a person to read."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

__all__ = ("ChangedLine", "Mark", "changes", "counts")

Mark = Literal["+", "-", " ", "…"]

_CONTEXT = 1


class ChangedLine(NamedTuple):
    """A line that was added or taken out, a line of context, or ``…`` for lines left out."""

    mark: Mark
    text: str


def changes(
    before: Sequence[str], after: Sequence[str], *, context: int | None = _CONTEXT
) -> list[ChangedLine]:
    """The lines that differ, with lines of context before and after each stretch of them.

    Args:
        before: the lines of the earlier version.
        after: the lines of the later one.
        context: lines of context; None for all lines that there are.
    """
    found: list[ChangedLine] = []
    matcher = SequenceMatcher(None, before, after)
    around = len(before) + len(after) if context is None else context
    for group in matcher.get_grouped_opcodes(around):
        if found or group[0][1] > 0:
            found.append(ChangedLine("…", ""))
        for tag, low, high, new_low, new_high in group:
            if tag == "equal":
                found += [ChangedLine(" ", line) for line in before[low:high]]
            else:
                found += [ChangedLine("-", line) for line in before[low:high]]
                found += [ChangedLine("+", line) for line in after[new_low:new_high]]
    return found


def counts(changed: Sequence[ChangedLine]) -> tuple[int, int]:
    """How many lines were added, and how many were taken out."""
    added = sum(line.mark == "+" for line in changed)
    return added, sum(line.mark == "-" for line in changed)
