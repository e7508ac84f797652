"""Merges two versions of a text that were made from the same one, line by line.

What only one of them changed is taken from it. Where both changed the same lines, both stand, between
marks, for a person to choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

__all__ = ("MINE", "SEPARATOR", "THEIRS", "Merged", "merge")

MINE: Final = "<<<<<<< yours"
SEPARATOR: Final = "======="
THEIRS: Final = ">>>>>>> theirs"


class Merged(NamedTuple):
    """The merged text, and how many places are for a person to choose."""

    text: str
    conflicts: int


def merge(base: str, mine: str, theirs: str) -> Merged:
    """Merges two texts.

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
    """Stretches of the old text that both others hold: where in each, and how long; the last one is
    the end of all three.
    """
    of_left = dict(_pairs(old, left))
    of_right = dict(_pairs(old, right))
    kept = [index for index in range(len(old)) if index in of_left and index in of_right]
    end = (len(old), len(left), len(right), 0)
    return [*((index, of_left[index], of_right[index], 1) for index in kept), end]


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        (block.a + step, block.b + step)
        for block in matcher.get_matching_blocks()
        for step in range(block.size)
    ]
