"""What changed between two versions of the shared output, as lines for a person to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate
from typing import Final, Literal, NamedTuple

__all__ = ("ChangedLine", "Mark", "changes", "counts", "matched", "unified")

Mark = Literal["+", "-", " ", "…"]

_CONTEXT = 1
_LONG: Final = 200
_WORK: Final = 4_000_000
"""Pairs of equal lines that are looked at: hostile texts of 5,000 lines have ten thousand times more."""


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
    matcher = matched(before, after)
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


def unified(before: str, after: str) -> str:
    """The hunks of a unified diff of two texts."""
    old, new = before.splitlines(), after.splitlines()
    lines: list[str] = []
    for group in matched(old, new).get_grouped_opcodes(3):
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


def matched(before: Sequence[str], after: Sequence[str]) -> SequenceMatcher[str]:
    """A matcher that has compared two texts, in bounded work.

    If the texts take more than that, stretches that were not compared count as changed.
    """
    matcher = SequenceMatcher(None, before, after)
    times = Counter(after)
    if len(after) >= _LONG:  # lines that are everywhere are passed over, as the matcher does itself
        times = Counter({line: n for line, n in times.items() if n <= len(after) // 100 + 1})
    pairs = [0, *accumulate(times[line] for line in before)]
    left = _WORK
    waiting = [(0, len(before), 0, len(after))]
    blocks: list[Match] = []
    while waiting:
        low, high, new_low, new_high = waiting.pop()
        left -= pairs[high] - pairs[low]
        if left < 0:
            continue
        found = matcher.find_longest_match(low, high, new_low, new_high)
        if not found.size:
            continue
        blocks.append(found)
        waiting.append((low, found.a, new_low, found.b))
        waiting.append((found.a + found.size, high, found.b + found.size, new_high))
    # As difflib keeps them itself: it sets no limit.
    setattr(matcher, "matching_blocks", [*_joined(sorted(blocks)), _end(before, after)])  # noqa: B010
    return matcher


def _joined(blocks: Sequence[Match]) -> list[Match]:
    """The same blocks, with those that touch as one."""
    found: list[Match] = []
    for block in blocks:
        last = found[-1] if found else None
        if last and (last.a + last.size, last.b + last.size) == (block.a, block.b):
            found[-1] = Match(last.a, last.b, last.size + block.size)
        else:
            found.append(block)
    return found


def _end(before: Sequence[str], after: Sequence[str]) -> Match:
    return Match(len(before), len(after), 0)
