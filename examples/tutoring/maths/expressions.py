"""Expressions and linear equations of school mathematics, read from text as students write it.

Integers, fractions such as ``3/4``, an unknown ``x``, parentheses and the four operations; an
equation has one ``=``. A fraction without blanks around its bar is a number; division is ``÷``.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, final

from ....engine.errors import InvalidInput

__all__ = (
    "LONGEST",
    "Equation",
    "Expression",
    "Number",
    "Operation",
    "Problem",
    "Symbol",
    "X",
    "find_problems",
    "parse_number",
    "parse_problem",
    "write_number",
)

LONGEST: Final = 80
"""Characters of the longest problem that is read."""

_DEEPEST = 6  # parentheses within parentheses
_BIGGEST = 10**6
_DIGITS = 7

Symbol: TypeAlias = Literal["+", "-", "*", "÷"]
"""An operation."""


class Number(NamedTuple):
    """A number: an integer or a fraction."""

    value: Fraction


class X(NamedTuple):
    """The unknown."""


class Operation(NamedTuple):
    """An operation on two expressions."""

    symbol: Symbol
    left: Expression
    right: Expression


class Equation(NamedTuple):
    """An equation between two expressions."""

    left: Expression
    right: Expression


Expression: TypeAlias = "Number | X | Operation"
"""A term with a value, which may depend on the unknown."""

Problem: TypeAlias = "Expression | Equation"
"""A problem for a student: find the value of an expression, or the unknown in an equation."""

_TOKEN = re.compile(r"\s*(\d+/\d+|\d+|[-+*÷()=x])")
_SAME = str.maketrans({"−": "-", "–": "-", "×": "*", "·": "*", "⋅": "*", ":": "÷", "X": "x"})
_NUMBER = re.compile(r"-?\s*\d+(?:\s?/\s?\d+)?")
_RUN = re.compile(r"(?:\d+/\d+|\d+|(?<![a-zA-Z])[xX](?![a-zA-Z])|[-−–+*×·÷()=]|\s)+")


@lru_cache(maxsize=2048)
def parse_problem(text: str) -> Problem:
    """Reads an expression or an equation.

    Raises:
        InvalidInput: it is none, too long or too deep; the message says where.
    """
    written = " ".join(text.split())
    if len(written) > LONGEST:
        raise InvalidInput(
            f"a problem has at most {LONGEST} characters, and this one {len(written)}"
        )
    return _Reader(written).problem()


def parse_number(text: str) -> Fraction:
    """Reads an integer or a fraction, as in ``-3/4`` or ``x = -3/4``.

    Raises:
        InvalidInput: it is none.
    """
    plain = text.translate(_SAME).strip()
    plain = re.sub(r"^x\s*=\s*", "", plain)
    if not _NUMBER.fullmatch(plain):
        raise InvalidInput(f"{text!r} is not an integer or a fraction such as -3/4")
    return _fraction(plain.replace(" ", ""))


def write_number(value: Fraction | None) -> str:
    """A number as students write it; ``no solution`` for None."""
    return "no solution" if value is None else str(value)


def find_problems(text: str) -> tuple[str, ...]:
    """The equations and the expressions with an operation in a text, as written there.

    If an equation has a number on one side and no unknown on the other, as in ``7 - 2 = 5``, it is a
    statement; its left side is taken.
    """
    found = []
    for run in _RUN.finditer(" ".join(text.split())):
        for piece in _pieces(run.group()):
            try:
                problem = parse_problem(piece)
            except InvalidInput:
                continue
            if (
                isinstance(problem, Equation)
                and _has_x(problem.left) is _has_x(problem.right) is False
            ):
                piece = piece.split("=")[0].strip()
                problem = problem.left
            if isinstance(problem, Equation) and (problem.left == X() or problem.right == X()):
                continue  # an answer, such as x = 3
            if isinstance(problem, Equation | Operation):
                found.append(piece)
    return tuple(found)


def _pieces(run: str) -> list[str]:
    """A run of mathematical signs without what hangs over at its ends, e.g. a dash between words."""
    if len(run) > 2 * LONGEST:
        return []
    plain = run.strip()
    plain = re.sub(r"^(?:[-+*×·÷=)−–]\s+)+", "", plain)
    plain = re.sub(r"(?:\s*[-+*×·÷=(−–])+$", "", plain).strip()
    while plain.endswith(")") and plain.count(")") > plain.count("("):
        plain = plain[:-1].rstrip()
    while plain.startswith("(") and plain.count("(") > plain.count(")"):
        plain = plain[1:].lstrip()
    return [plain] if plain else []


def _has_x(expression: Expression) -> bool:
    if isinstance(expression, Operation):
        return _has_x(expression.left) or _has_x(expression.right)
    return isinstance(expression, X)


def _fraction(written: str) -> Fraction:
    parts = [int(part[: _DIGITS + 2]) for part in written.split("/")]
    if max(abs(part) for part in parts) > _BIGGEST:
        raise InvalidInput(f"numbers go up to {_BIGGEST}, and {written[:20]} does not")
    if len(parts) == 2 and parts[1] == 0:
        raise InvalidInput(f"{written} divides by zero")
    return Fraction(*parts)


@final
class _Reader:
    """Reads one problem, by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        self._next = 0
        self._depth = 0
        plain, position = text.translate(_SAME), 0
        while plain[position:].strip():
            found = _TOKEN.match(plain, position)
            if found is None:
                raise InvalidInput(
                    f"{text!r} cannot be read from {text[position:].strip()[:10]!r} on"
                )
            self._tokens.append(found.group(1))
            position = found.end()

    def problem(self) -> Problem:
        left = self._sum()
        if self._peek() != "=":
            self._done()
            if _has_x(left):
                raise InvalidInput(f"{self._text!r} has an unknown but is not an equation")
            return left
        self._next += 1
        right = self._sum()
        self._done()
        return Equation(left, right)

    def _done(self) -> None:
        if self._next < len(self._tokens):
            raise InvalidInput(f"{self._text!r} continues with {self._tokens[self._next]!r}")

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _sum(self) -> Expression:
        value = self._product()
        while (symbol := self._peek()) in ("+", "-"):
            self._next += 1
            right = self._product()
            value = Operation("+" if symbol == "+" else "-", value, right)
        return value

    def _product(self) -> Expression:
        value = self._factor()
        while (symbol := self._peek()) in ("*", "÷", "x", "("):
            if symbol in ("*", "÷"):
                self._next += 1
            right = self._factor()
            value = Operation("÷" if symbol == "÷" else "*", value, right)
        return value

    def _factor(self) -> Expression:
        token = self._peek()
        self._next += 1
        if token == "-":
            inner = self._factor()
            if isinstance(inner, Number):
                return Number(-inner.value)
            return Operation("*", Number(Fraction(-1)), inner)
        if token == "x":
            return X()
        if token == "(":
            self._depth += 1
            if self._depth > _DEEPEST:
                raise InvalidInput(
                    f"{self._text!r} has more than {_DEEPEST} parentheses inside others"
                )
            inner = self._sum()
            if self._peek() != ")":
                raise InvalidInput(f"{self._text!r} lacks a closing parenthesis")
            self._next += 1
            self._depth -= 1
            return inner
        if token and token[0].isdigit():
            return Number(_fraction(token))
        if not token:
            raise InvalidInput(f"{self._text!r} ends too early")
        raise InvalidInput(f"{self._text!r} has {token!r} in place of a number")
