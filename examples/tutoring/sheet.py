"""The homework sheet, which student and tutor share: numbered problems with answers and marks, as text.

One line for each problem: ``3. 7 - (-2) -> 9 [right]``. An open answer is ``?``. A mark is a tutor's, and
goes when the answer changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final

import msgspec

from ...engine.errors import InvalidInput
from .maths.expressions import Equation, parse_number, parse_problem, write_number
from .maths.solving import solve

__all__ = (
    "LOOK_AGAIN",
    "OPEN",
    "RIGHT",
    "Item",
    "answered",
    "newly_answered",
    "number_of",
    "read_answers",
    "read_problems",
    "read_sheet",
    "share_right",
    "write_sheet",
    "written",
)

OPEN: Final = "?"
RIGHT: Final = "right"
LOOK_AGAIN: Final = "look again"

_WIDTH: Final = 240
"""Most characters in the line of an item."""

_LINE = re.compile(r"\s*(\d{1,3})[.)]\s*(.+?)\s*(?:(?:->|→)\s*(.*?))?\s*(?:\[([^\]]*)\])?\s*")


class Item(msgspec.Struct, frozen=True):
    """A problem of the homework.

    Attributes:
        number: from 1.
        problem: as it is written.
        answer: as written on the sheet; empty while it is open.
        mark: the mark of the tutor; empty without one.
    """

    number: int
    problem: str
    answer: str = ""
    mark: str = ""


@lru_cache(maxsize=512)
def read_sheet(text: str) -> tuple[Item, ...]:
    """The items on a sheet; other lines are skipped."""
    items: dict[int, Item] = {}
    for line in text.splitlines():
        found = _LINE.fullmatch(line) if len(line) <= _WIDTH else None
        if found is None:
            continue
        number, problem, answer, mark = found.groups()
        try:
            parse_problem(problem)
        except InvalidInput:
            continue
        answer = "" if answer in (None, OPEN) else answer
        items[int(number)] = Item(int(number), problem, answer, mark or "")
    return tuple(items[number] for number in sorted(items))


def read_answers(text: str, homework: Sequence[Item]) -> tuple[Item, ...]:
    """The homework with the answers and marks of a sheet, as far as that has the same problems.

    Args:
        text: the sheet. What it leaves out is open, and what it adds does not belong to the homework.
        homework: as it was set; if that is unknown, the problems of the sheet.
    """
    there = {item.number: item for item in read_sheet(text)}
    if not homework:
        return tuple(there.values())
    found = []
    for item in homework:
        answer = there.get(item.number)
        same = answer is not None and _same(answer.problem, item.problem)
        found.append(
            Item(item.number, item.problem, answer.answer, answer.mark)
            if same and answer is not None
            else Item(item.number, item.problem)
        )
    return tuple(found)


def _same(problem: str, other: str) -> bool:
    return problem == other or parse_problem(problem) == parse_problem(other)


def read_problems(request: str) -> tuple[Item, ...]:
    """The problems in a request, as the items of an empty sheet."""
    return tuple(Item(item.number, item.problem) for item in read_sheet(request))


def write_sheet(items: Sequence[Item]) -> str:
    """A sheet as text."""
    lines = []
    for item in items:
        mark = f" [{item.mark}]" if item.mark else ""
        lines.append(f"{item.number}. {item.problem} -> {item.answer or OPEN}{mark}")
    return "\n".join(lines)


def written(problem: str, answer: Fraction | None) -> str:
    """An answer as written on the sheet: ``x = 3`` for an equation."""
    number = write_number(answer)
    return (
        f"x = {number}"
        if answer is not None and isinstance(parse_problem(problem), Equation)
        else number
    )


def number_of(answer: str) -> Fraction | None:
    """The number in an answer on a sheet; None if it is not a number."""
    try:
        return parse_number(answer)
    except InvalidInput:
        return None


def answered(items: Sequence[Item], answers: Mapping[int, str]) -> tuple[Item, ...]:
    """A sheet with some answers written in, not marked yet."""
    return tuple(
        Item(item.number, item.problem, answers[item.number]) if item.number in answers else item
        for item in items
    )


def newly_answered(before: Sequence[Item], after: Sequence[Item]) -> tuple[Item, ...]:
    """The items whose answer changed, or was written again in place of a marked one."""
    was = {item.number: (item.answer, item.mark) for item in before}
    found = []
    for item in after:
        answer, mark = was.get(item.number, ("", ""))
        if item.answer and (item.answer != answer or (mark and not item.mark)):
            found.append(item)
    return tuple(found)


def share_right(items: Sequence[Item], homework: Sequence[str]) -> float:
    """The share of the problems that were set to which a sheet has the right answer.

    Args:
        items: the items of the sheet.
        homework: the problems as they were set; what else is on the sheet does not count.
    """
    answers = {item.problem: item.answer for item in items}
    right = [number_of(answers.get(one, "")) == solve(one).answer for one in homework]
    return sum(right) / len(right) if right else 0.0
