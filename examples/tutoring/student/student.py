"""A student's knowledge, beliefs and work on problems: Bayesian knowledge tracing as a simulation.

Knowledge tracing (Corbett & Anderson 1995) has four numbers for a component: P(L), that it is known;
P(T), that it is learned at an opportunity; P(G), that an unknown one is guessed right; and P(S), that
a known one goes wrong. This student has P(L) for each component. If they do not know a component, they
err by the misconception that they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from random import Random
from typing import Final, NamedTuple

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ..maths.expressions import parse_problem, write_number
from ..maths.rules import MISCONCEPTIONS, Component
from ..maths.solving import RIGHT, keeping, solve, solve_by

__all__ = (
    "Attempt",
    "Student",
    "attempt",
    "expected_score",
    "profile_of",
    "student_of",
    "tiredness",
)

_STUDENT: Final = "student"
_OFTEN, _SELDOM = 0.65, 0.35
"""Above and below these, a student gets a component mostly right, and mostly wrong."""


class Student(msgspec.Struct, frozen=True, kw_only=True):
    """A student as they are at one moment.

    Attributes:
        knows: P(L) of each component.
        believes: the misconception used in place of each component that they do not know.
        unsure: the components that they know they are bad at; of the others they are sure, even if wrong.
        guess: P(G).
        slip: P(S).
        pace: factor on every P(T).
        energy: how much they can do and read before they are tired out; an attempt takes 1.
        spent: how much of that they have done.
        told: how often they were told each thing, see ``learning``.
        erred: components that they have learned they had wrong.
        heard: trace version up to which they have taken in what was said and done.
    """

    knows: Mapping[Component, float]
    believes: Mapping[Component, str]
    unsure: tuple[Component, ...] = ()
    guess: float = 0.05
    slip: float = 0.05
    pace: float = 1.0
    energy: float = 20.0
    spent: float = 0.0
    told: Mapping[str, int] = {}
    erred: tuple[Component, ...] = ()
    heard: int = 0

    def right(self, component: Component) -> float:
        """The probability that they use the right rule at an opportunity."""
        known = self.knows[component]
        return known + (1.0 - known) * self.guess


class Attempt(NamedTuple):
    """The result of a student's work on a problem.

    Attributes:
        answer: None if their rules lead nowhere.
        wrong: components in whose place they used a misconception.
    """

    answer: Fraction | None
    wrong: tuple[Component, ...]


def tiredness(student: Student) -> float:
    """How tired a student is, from 0 to 1."""
    return min(1.0, student.spent / student.energy)


def attempt(student: Student, problem: str, random: Random) -> Attempt:
    """Makes a student work a problem out.

    Each component is used rightly with its probability, else by the misconception; then the result is
    off by one with the probability of a slip, which doubles as the student tires.

    Raises:
        InvalidInput: the text is no problem.
    """
    wrong: list[Component] = []

    def choose(component: Component) -> str:
        if random.random() < student.right(component):
            return RIGHT
        wrong.append(component)
        return student.believes[component]

    answer = solve_by(parse_problem(problem), choose).answer
    if answer is not None and random.random() < student.slip * (1.0 + tiredness(student)):
        answer += random.choice((-1, 1))
    return Attempt(answer, tuple(wrong))


def expected_score(student: Student, problems: Sequence[str]) -> float:
    """The share of problems that a student is expected to get right, on their own and rested.

    It is computed over all ways in which each component of a problem may be used rightly or not.

    Raises:
        InvalidInput: there are no problems, or one is none.
    """
    if not problems:
        raise InvalidInput("a test needs problems")
    return sum(_chance(student, problem) for problem in problems) / len(problems)


def _chance(student: Student, problem: str) -> float:
    used = solve(problem).components
    rules = tuple(student.believes[component] for component in used)
    chance = 0.0
    for way in _ways_that_work(problem, rules):
        likely = 1.0
        for component, right in zip(used, way, strict=True):
            likely *= student.right(component) if right else 1.0 - student.right(component)
        chance += likely
    return chance * (1.0 - student.slip)


@lru_cache(maxsize=4096)
def _ways_that_work(problem: str, rules: tuple[str, ...]) -> tuple[tuple[bool, ...], ...]:
    """Which components may be used rightly or not, such that the answer is right."""
    solved, parsed = solve(problem), parse_problem(problem)
    ways = []
    for way in product((True, False), repeat=len(solved.components)):
        names = {
            component: RIGHT if right else rule
            for component, right, rule in zip(solved.components, way, rules, strict=True)
        }
        if solve_by(parsed, keeping(names)).answer == solved.answer:
            ways.append(way)
    return tuple(ways)


def profile_of(student: Student, topics: Sequence[Component]) -> JSON:
    """The private part of a student's view: in sentences, and in numbers.

    Args:
        student: as they are.
        topics: the components that the homework is about.
    """
    lines = [_sentence(student, component) for component in topics]
    return {"profile": lines, _STUDENT: msgspec.to_builtins(student)}


def student_of(profile: JSON) -> Student:
    """The student that a private part describes.

    Raises:
        InvalidInput: it describes none.
    """
    if not isinstance(profile, Mapping) or _STUDENT not in profile:
        raise InvalidInput("the profile describes no student")
    try:
        return msgspec.convert(profile[_STUDENT], Student)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the profile describes no student: {error}") from error


def _sentence(student: Student, component: Component) -> str:
    known = student.knows[component]
    example, wrong = _shown(component, student.believes[component])
    right = write_number(solve(example).answer)
    does = MISCONCEPTIONS[student.believes[component]].does
    if known >= _OFTEN:
        return f"You can do problems like {example}, which is {right}."
    how = "you" if known < _SELDOM else "you sometimes"
    sure = (
        "You know that you are bad at these."
        if component in student.unsure
        else "You are sure of it."
    )
    return f"In problems like {example} {how} {does}, and get {wrong}. {sure}"


@lru_cache(maxsize=64)
def _shown(component: Component, misconception: str) -> tuple[str, str]:
    """An example of a component, and the answer that a misconception gives."""
    example = _EXAMPLES[component]
    found = solve_by(parse_problem(example), keeping({component: misconception}))
    return example, write_number(found.answer)


_EXAMPLES: Final[Mapping[Component, str]] = {
    "add-signed": "-2 + 9",
    "subtract-negative": "-2 - (-6)",
    "multiply-signs": "-3 × (-5)",
    "order": "3 × 4 + 2 × 5",
    "add-fractions": "1/2 + 2/5",
    "multiply-fractions": "1/2 × 3/5",
    "divide-fractions": "1/2 ÷ 3/5",
    "distribute": "-2(x + 3) = 4",
    "collect": "6x = 2x + 8",
    "move-constant": "x + 4 = 9",
    "divide-coefficient": "3x = 12",
}
