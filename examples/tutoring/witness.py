"""What the best tutor could reach with a student: a lesson that knows all, within the student's energy."""

from __future__ import annotations

from typing import Final

from ..kit.task import Witness
from .generator import Instance
from .maths.rules import Component
from .maths.solving import components_in
from .student.learning import Lesson, practise, take_in
from .student.student import Student, expected_score, tiredness
from .utility import score_of

__all__ = ("best_lesson", "witness_of")

_MARK: Final = 8
_EXPLANATION: Final = 30
"""Words of feedback with the next task, and of an explanation."""

_ENOUGH: Final = 0.8
"""P(L) at which a component needs no explanation any more."""

_WORTH: Final = 0.001
"""Gain in the expected score below which a lesson is not worth its while."""


def best_lesson(instance: Instance) -> Student:
    """The student after lessons by somebody who knows all of them, while their energy lasts.

    The homework is gone through, and what goes wrong in it is explained by the very misconception; what
    energy is left goes into exercises on whatever is worth most in the test, each right in the end.
    """
    student = instance.student
    for item in instance.homework:
        used = components_in(item.problem)
        weak = [one for one in used if student.knows[one] < _ENOUGH]
        for component in weak:
            student = _lesson(student, component)
        student = take_in(practise(student), [Lesson("right", one) for one in used], _MARK)
    while tiredness(student) < 1.0:
        after = [_lesson(student, component) for component in instance.focus]
        best = max(after, key=lambda one: expected_score(one, instance.test))
        gain = expected_score(best, instance.test) - expected_score(student, instance.test)
        if gain < _WORTH:
            break
        student = best
    return student


def witness_of(instance: Instance) -> Witness:
    """The utility of the best lesson with the homework done; no sheet alone shows what was learned."""
    return Witness(score_of(instance, best_lesson(instance), 1.0).value)


def _lesson(student: Student, component: Component) -> Student:
    """A wrong attempt that is taken up, or an example the next time; then a right one."""
    refutes = student.believes[component]
    told = student.told.get(f"explanation/{component}/{refutes}", 0)
    explained = Lesson("example", component) if told else Lesson("explanation", component, refutes)
    learned = take_in(practise(student), [Lesson("wrong", component), explained], _EXPLANATION)
    return take_in(practise(learned), [Lesson("right", component)], _MARK)
