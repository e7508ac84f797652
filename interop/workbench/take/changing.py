"""The stretches in which an output differs from the text that a participant has accepted, for them to judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ....scoring.display.diff import ChangedLine, matched
from ..markup.records import diff_table

__all__ = ("Stretch", "stretches")

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
    """The stretches in which two texts differ; takes a moment, so call it in a thread."""
    before, after = accepted.split("\n"), output.split("\n")
    found = []
    for kind, low, high, new_low, new_high in matched(before, after)[0].get_opcodes():
        if kind != "equal":
            taken, put = before[low:high], after[new_low:new_high]
            lines = [
                *(ChangedLine("-", line) for line in taken if line.strip()),
                *(ChangedLine("+", line) for line in put if line.strip()),
            ]
            found.append(
                Stretch(low, taken, new_low, put, str(diff_table(lines)), _heading(after, new_low))
            )
    return found


def _heading(lines: Sequence[str], at: int) -> str:
    """The nearest heading above a line: of Markdown, or a short line that ends in a colon."""
    for line in reversed(lines[:at]):
        text = line.strip()
        if len(text) <= _HEADING and (text.startswith("#") or text.endswith(":")):
            return text.strip("#: ")
    return ""
