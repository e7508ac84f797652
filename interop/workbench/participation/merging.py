"""Merges two versions of a text that were made from the same one, line by line.

Changes of only one version are taken. If both changed the same lines, both changes are kept between
marks, for a person to choose. Comparing takes quadratic time in the differing lines, so very many
of them are treated as one conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from ....engine.text import quantity
from ....scoring.display.diff import ChangedLine, matched
from ..markup.records import diff_table

__all__ = ("MINE", "SEPARATOR", "THEIRS", "Merged", "Stretch", "merge", "stretches")


MINE: Final = "<<<<<<< yours"
SEPARATOR: Final = "======="
THEIRS: Final = ">>>>>>> theirs"
_LINES: Final = 4000  # lines of two texts that are compared at most
_MOST: Final = 500  # stretches that a person can judge one by one
_SHOWN: Final = 2000  # lines that the page shows of all stretches together


class Merged(NamedTuple):
    """The merged text, and how many places are for a person to choose."""

    text: str
    conflicts: int


def merge(base: str, mine: str, theirs: str) -> Merged:
    """Merges two texts; takes a moment, so call it in a thread.

    Args:
        base: what both were made from.
        mine: one of them.
        theirs: the other.
    """
    old, left, right = (text.split("\n") for text in (base, mine, theirs))
    merged: list[str] = []
    conflicts = 0
    at = at_left = at_right = 0
    for start, left_start, right_start, size in _anchors(old, left, right):
        before = old[at:start]
        ours, others = left[at_left:left_start], right[at_right:right_start]
        if ours == others or others == before:
            merged += ours
        elif ours == before:
            merged += others
        else:
            conflicts += 1
            merged += [MINE, *ours, SEPARATOR, *others, THEIRS]
        merged += old[start : start + size]
        at, at_left, at_right = start + size, left_start + size, right_start + size
    return Merged("\n".join(merged), conflicts)


def _anchors(
    old: Sequence[str], left: Sequence[str], right: Sequence[str]
) -> list[tuple[int, int, int, int]]:
    """Stretches of the old text that both others hold: where in each, and how long; the last one ends
    all three.
    """
    texts = old, left, right
    first = _common(texts)
    last = _common([text[first:][::-1] for text in texts])
    middle, ours, others = (text[first : len(text) - last] for text in texts)
    of_left, of_right = _pairs(middle, ours), _pairs(middle, others)
    kept = [index for index in range(len(middle)) if index in of_left and index in of_right]
    return [
        (0, 0, 0, first),
        *((first + index, first + of_left[index], first + of_right[index], 1) for index in kept),
        (len(old) - last, len(left) - last, len(right) - last, last),
    ]


def _common(texts: Sequence[Sequence[str]]) -> int:
    """How many lines all texts begin with."""
    count = 0
    for lines in zip(*texts, strict=False):
        if len(set(lines)) > 1:
            break
        count += 1
    return count


def _pairs(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """The line numbers of old lines in the new text; empty if they are too many to compare."""
    if len(old) + len(new) > _LINES:
        return {}
    return {
        block.a + step: block.b + step
        for block in matched(old, new)[0].get_matching_blocks()
        for step in range(block.size)
    }


_HEADING: Final = 60


class Stretch(msgspec.Struct, frozen=True):
    """Lines that were replaced.

    Attributes:
        old: number of the first line in the accepted text, from 0.
        taken: the lines that were there.
        new: number of the first line in the output, from 0.
        put: the lines that are there now.
        html: both, as a page shows them.
        under: the heading above it in the output; empty if there is none.
    """

    old: int
    taken: list[str]
    new: int
    put: list[str]
    html: str
    under: str


def stretches(accepted: str, output: str) -> list[Stretch]:
    """The stretches in which two texts differ; takes a moment, so call it in a thread.

    Very many of them are one, from the first to the last.
    """
    before, after = accepted.split("\n"), output.split("\n")
    codes = [code for code in matched(before, after)[0].get_opcodes() if code[0] != "equal"]
    if len(codes) > _MOST:
        codes = [("replace", codes[0][1], codes[-1][2], codes[0][3], codes[-1][4])]
    found = []
    under, read, left = "", 0, _SHOWN
    for _, low, high, new_low, new_high in codes:
        taken, put = before[low:high], after[new_low:new_high]
        changed = [
            *(ChangedLine("-", line) for line in taken if line.strip()),
            *(ChangedLine("+", line) for line in put if line.strip()),
        ]
        lines = changed[:left]
        left -= len(lines)
        if more := len(changed) - len(lines):
            lines.append(ChangedLine("…", quantity(more, "more line")))
        under = _heading(after[read:new_low]) or under
        read = new_low
        found.append(Stretch(low, taken, new_low, put, str(diff_table(lines)), under))
    return found


def _heading(lines: Sequence[str]) -> str:
    """The last heading among lines: of Markdown, or a short line that ends in a colon."""
    for line in reversed(lines):
        text = line.strip()
        if len(text) <= _HEADING and (text.startswith("#") or text.endswith(":")):
            return text.strip("#: ")
    return ""
