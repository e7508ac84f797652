"""Works out problems by rules: the right ones, or those of a student with misconceptions; exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple, final

from ....engine.errors import InvalidInput
from .expressions import (
    Equation,
    Expression,
    Number,
    Operation,
    Problem,
    Symbol,
    X,
    parse_problem,
)
from .rules import MISCONCEPTIONS, Component, misconceptions_of

__all__ = ("RIGHT", "Solved", "components_in", "explanations", "keeping", "solve", "solve_by")

RIGHT: Final = "right"
"""The name of the right rule of any component."""

Choose = Callable[[Component], str]
"""Which rule is used at an opportunity: the name of a misconception, or ``right``."""


class Solved(NamedTuple):
    """A problem that was worked out.

    Attributes:
        answer: None if the rules do not lead to a solution, as with a division by zero.
        components: whose rules were used, in order, each once.
    """

    answer: Fraction | None
    components: tuple[Component, ...]


def solve(problem: Problem | str) -> Solved:
    """The right answer, and the components that it requires.

    Raises:
        InvalidInput: a text that is no problem.
    """
    if isinstance(problem, str):
        return _solve_text(problem)
    return solve_by(problem, keeping({}))


@lru_cache(maxsize=4096)
def _solve_text(text: str) -> Solved:
    return solve_by(parse_problem(text), keeping({}))


def solve_by(problem: Problem, choose: Choose) -> Solved:
    """Works a problem out by the rules that are chosen at each opportunity."""
    worker = _Worker(choose)
    try:
        answer = worker.solve(problem)
    except ZeroDivisionError:
        answer = None
    return Solved(answer, tuple(worker.used))


def components_in(text: str) -> tuple[Component, ...]:
    """The components that a problem takes; none if the text is not a problem."""
    try:
        return _solve_text(text).components
    except InvalidInput:
        return ()


@lru_cache(maxsize=4096)
def explanations(text: str) -> Mapping[Fraction | None, tuple[tuple[str, ...], ...]]:
    """A problem's possible answers, each with the sets of misconceptions that lead to it.

    The right answer has the empty set among its own. Sets hold one misconception of a component
    at most.

    Raises:
        InvalidInput: the text is not a problem.
    """
    problem = parse_problem(text)
    used = solve(text).components
    choices = [(RIGHT, *(one.name for one in misconceptions_of(part))) for part in used]
    found: dict[Fraction | None, list[tuple[str, ...]]] = {}
    for names in product(*choices):
        answer = solve_by(problem, keeping(dict(zip(used, names, strict=True)))).answer
        found.setdefault(answer, []).append(tuple(name for name in names if name != RIGHT))
    return {answer: tuple(sorted(sets, key=len)) for answer, sets in found.items()}


def keeping(rules: Mapping[Component, str]) -> Choose:
    """A choice of rules that is the same each time, and right if none is named."""
    return lambda component: rules.get(component, RIGHT)


@final
class _Worker:
    """Works out one problem, and notes which components it used."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._rules: dict[Component, str] = {}
        self.used: list[Component] = []

    def solve(self, problem: Problem) -> Fraction:
        if not isinstance(problem, Equation):
            return self._value(problem)
        a, b = self._linear(problem.left)
        c, d = self._linear(problem.right)
        if c and not a:
            a, b, c, d = c, d, a, b
        if c:
            a = self._apply("collect", a, c, a - c)
        if b:
            d = self._apply("move-constant", d, b, None)
        if a != 1:
            d = self._apply("divide-coefficient", d, a, None)
        return d

    def _rule(self, component: Component) -> str:
        """The rule for a component: chosen once for a problem, and then kept to."""
        if component not in self._rules:
            self._rules[component] = self._choose(component)
            self.used.append(component)
        return self._rules[component]

    def _apply(
        self, component: Component, a: Fraction, b: Fraction, right: Fraction | None
    ) -> Fraction:
        rule = self._rule(component)
        if rule != RIGHT:
            return MISCONCEPTIONS[rule].program(a, b)
        if right is not None:
            return right
        return self._compute("-" if component == "move-constant" else "÷", a, b)

    def _value(self, expression: Expression) -> Fraction:
        """The value of an expression without an unknown."""
        if isinstance(expression, Number):
            return expression.value
        if isinstance(expression, X):
            raise ZeroDivisionError  # not linear
        symbol, left, right = expression
        if symbol in ("+", "-"):
            swapped = self._in_order(symbol, left, right)
            if swapped is not None:
                return swapped
        return self._compute(symbol, self._value(left), self._value(right))

    def _in_order(self, symbol: Symbol, left: Expression, right: Expression) -> Fraction | None:
        """The value of a sum with a product in it, by a wrong order of operations; else None."""
        last = isinstance(right, Operation) and right.symbol == "*"
        first = isinstance(left, Operation) and left.symbol == "*"
        if not (last or first):
            return None
        rule = self._rule("order")
        if rule == RIGHT:
            return None
        sums_first = rule == "sums-first" and first and isinstance(left, Operation)
        before = left.right if sums_first and isinstance(left, Operation) else left
        after = right.left if last and isinstance(right, Operation) else right
        value = self._compute(symbol, self._value(before), self._value(after))
        if sums_first and isinstance(left, Operation):
            value = self._compute("*", self._value(left.left), value)
        if last and isinstance(right, Operation):
            value = self._compute("*", value, self._value(right.right))
        return value

    def _compute(self, symbol: Symbol, a: Fraction, b: Fraction) -> Fraction:
        """The result of one operation on two numbers, by the rule that covers it."""
        exact = _EXACT[symbol](a, b)
        component = _covering(symbol, a, b)
        if component is None:
            return exact
        rule = self._rule(component)
        if rule == RIGHT:
            return exact
        program = MISCONCEPTIONS[rule].program
        return program(a, -b if component == "add-fractions" and symbol == "-" else b)

    def _linear(self, expression: Expression) -> tuple[Fraction, Fraction]:
        """A side of an equation as coefficient of x and constant."""
        if isinstance(expression, X):
            return Fraction(1), Fraction(0)
        if isinstance(expression, Number):
            return Fraction(0), expression.value
        symbol, left, right = expression
        if symbol in ("+", "-"):
            (a, b), (c, d) = self._linear(left), self._linear(right)
            if not (a or c):
                return Fraction(0), self._value(expression)
            return (a + c, b + d) if symbol == "+" else (a - c, b - d)
        (a, b), (c, d) = self._linear(left), self._linear(right)
        if not (a or c):
            return Fraction(0), self._value(expression)
        if symbol == "÷" and not c:
            return a / d, b / d
        if a and c or symbol == "÷":
            raise ZeroDivisionError  # not linear
        factor, p, q = (b, c, d) if c else (d, a, b)
        return factor * p, self._apply("distribute", factor, q, factor * q) if q else q


_EXACT: Final[Mapping[Symbol, Callable[[Fraction, Fraction], Fraction]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "÷": lambda a, b: a / b,
}


def _covering(symbol: Symbol, a: Fraction, b: Fraction) -> Component | None:
    """The component whose rule covers an operation on two numbers; None if any child can do it."""
    fractions = a.denominator > 1 or b.denominator > 1
    if symbol in ("+", "-"):
        if fractions:
            return "add-fractions" if a.denominator != b.denominator else None
        if symbol == "-":
            return "subtract-negative" if b < 0 else None
        return "add-signed" if a and b and (a < 0) != (b < 0) else None
    if symbol == "*":
        if a.denominator > 1 and b.denominator > 1:
            return "multiply-fractions"
        return "multiply-signs" if a and b and (a < 0 or b < 0) else None
    return "divide-fractions" if fractions and a else None
