"""What changed between two versions of the shared output, as lines for a person to read."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import Match, SequenceMatcher
from typing import Final, Literal, NamedTuple

from ...engine.diff import matching

__all__ = ("WHOLE", "ChangedLine", "Mark", "changes", "counts", "matched", "unified")

Mark = Literal["+", "-", " ", "…"]

WHOLE: Final = "these lines repeat too much to be compared one by one: all of them count as changed"

_CONTEXT = 1


class ChangedLine(NamedTuple):
    """A line that was added or taken out, a line of context, or ``…`` for lines left out, or a note."""

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
    matcher, whole = matched(before, after)
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
    if whole:
        found.append(ChangedLine("…", WHOLE))
    return found


def counts(changed: Sequence[ChangedLine]) -> tuple[int, int]:
    """How many lines were added, and how many were taken out."""
    added = sum(line.mark == "+" for line in changed)
    return added, sum(line.mark == "-" for line in changed)


def unified(before: str, after: str) -> str:
    """The hunks of a unified diff of two texts."""
    old, new = before.splitlines(), after.splitlines()
    lines: list[str] = []
    for group in matched(old, new)[0].get_grouped_opcodes(3):
        first, last = group[0], group[-1]
        lines.append(f"@@ -{_span(first[1], last[2])} +{_span(first[3], last[4])} @@")
        for tag, low, high, new_low, new_high in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[low:high]]
                continue
            lines += [f"-{line}" for line in old[low:high]]
            lines += [f"+{line}" for line in new[new_low:new_high]]
    return "\n".join(lines)


def _span(low: int, high: int) -> str:
    """A range of lines, as a unified diff has it."""
    count = high - low
    if count == 1:
        return str(low + 1)
    return f"{low + 1 if count else low},{count}"


def matched(before: Sequence[str], after: Sequence[str]) -> tuple[SequenceMatcher[str], bool]:
    """A matcher that has compared two texts, and whether changed stretches count whole.

    ``engine.diff`` says when they do: comparing them would have taken too long.
    """
    matcher = SequenceMatcher(None, "", "")  # it only groups what was found
    found = matching(before, after)
    blocks = [Match(*block) for block in found.blocks]
    # As difflib keeps them itself: it sets no limit.
    end = Match(len(before), len(after), 0)
    setattr(matcher, "matching_blocks", [*blocks, end])  # noqa: B010
    return matcher, found.whole
