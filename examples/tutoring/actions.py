"""A tutor's actions: look up solutions, find the errors behind an answer, and make fresh problems.

The student has no such help: that would be copying.
"""

from __future__ import annotations

from random import Random
from typing import Annotated, Final, Literal

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON
from ...tasks.actions import ActionTable, action
from .generator import Instance
from .maths.expressions import parse_number
from .maths.making import make_plain, make_telling, make_transfer
from .maths.rules import MISCONCEPTIONS, Component
from .maths.solving import explanations, solve
from .sheet import written
from .student.learning import Teach, lesson_of

__all__ = ("ACTIONS", "Check", "MakeProblem", "Solve")

_SECONDS: Final = 1.0
_MOST: Final = 3  # explanations of a wrong answer that are listed
_TOGETHER: Final = 2  # misconceptions that are taken to work together

_Problem = Annotated[
    str,
    msgspec.Meta(
        description="An expression or a linear equation.",
        examples=["7 - (-2)", "1/2 + 1/3", "2(x + 3) = 8"],
    ),
]


class Solve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Work out a problem: its answer, and the rules that it takes."""

    problem: _Problem


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Check a student's answer: whether it is right, and if not, which misconceptions lead to just this."""

    problem: _Problem
    answer: Annotated[
        str, msgspec.Meta(description="An integer or a fraction.", examples=["9", "-3/4"])
    ]


class MakeProblem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Make a fresh problem with its answer; another number gives another one."""

    component: Annotated[Component, msgspec.Meta(description="The rule that it is to need.")]
    kind: Annotated[
        Literal["plain", "telling", "transfer"],
        msgspec.Meta(
            description="plain: for practice; telling: each misconception gets it wrong in its own way; "
            "transfer: with other rules too.",
        ),
    ] = "plain"
    number: Annotated[int, msgspec.Meta(ge=0, le=999)] = 0


def _solve(instance: Instance, wanted: Solve) -> JSON:
    solved = solve(wanted.problem)
    if solved.answer is None:
        raise InvalidInput(
            f"{wanted.problem!r} does not have a single solution; choose another problem"
        )
    return {
        "answer": written(wanted.problem, solved.answer),
        "components": list(solved.components),
    }


def _check(instance: Instance, wanted: Check) -> JSON:
    answer = parse_number(wanted.answer)
    solved = solve(wanted.problem)
    if len(solved.components) > 5:
        raise InvalidInput(
            f"{wanted.problem!r} takes too many rules at once to find the error: simplify it"
        )
    right = answer == solved.answer
    found: dict[str, JSON] = {
        "right": right,
        "answer": written(wanted.problem, solved.answer),
        "components": list(solved.components),
    }
    if not right:
        sets = [
            one for one in explanations(wanted.problem).get(answer, ()) if len(one) <= _TOGETHER
        ]
        found["explained_by"] = [
            [{"misconception": name, "component": MISCONCEPTIONS[name].component} for name in names]
            for names in sets[:_MOST]
        ]
    return found


def _make(instance: Instance, wanted: MakeProblem) -> JSON:
    random = Random(f"{instance.seed}/{wanted.component}/{wanted.kind}/{wanted.number}")
    make = {"plain": make_plain, "telling": make_telling, "transfer": make_transfer}[wanted.kind]
    reserved = {*instance.test, *(item.problem for item in instance.homework)}
    problem = make(wanted.component, random)
    while problem in reserved:
        problem = make(wanted.component, random)
    return {"problem": problem, "answer": written(problem, solve(problem).answer)}


def _teach(instance: Instance, wanted: Teach) -> JSON:
    lesson_of(msgspec.to_builtins(wanted))
    return None


ACTIONS: Final[ActionTable[Instance]] = ActionTable(
    (
        action(Solve, _solve, seconds=_SECONDS, roles=("agent",)),
        action(Check, _check, seconds=_SECONDS, roles=("agent",)),
        action(MakeProblem, _make, seconds=_SECONDS, roles=("agent",)),
        action(Teach, _teach, seconds=0.0, roles=("agent",)),
    )
)
"""The actions of a tutor, by name."""
