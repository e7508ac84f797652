"""The rules of school mathematics, and the misconceptions that take their place: each a program.

A misconception is a buggy rule in the sense of Brown & Burton (1978): in place of the right rule, it
computes something else, always in the same way, and exactly. Sources, by topic:

- signed numbers: Vlassis (2004) on the minus sign; Linchevski & Livneh (1999) on the order of operations;
- fractions: Braithwaite, Pyke & Siegler (2017), who model these errors, and the work they draw on;
- equations: the mal-rules of Sleeman (1984) and of Payne & Squibb (1990); Matz (1982) on brackets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import lcm
from typing import Final, Literal, TypeAlias, get_args

import msgspec

__all__ = (
    "COMPONENTS",
    "MISCONCEPTIONS",
    "TOPICS",
    "Component",
    "Misconception",
    "Program",
    "misconceptions_of",
)

Component: TypeAlias = Literal[
    "add-signed",
    "subtract-negative",
    "multiply-signs",
    "order",
    "add-fractions",
    "multiply-fractions",
    "divide-fractions",
    "distribute",
    "collect",
    "move-constant",
    "divide-coefficient",
]
"""A knowledge component: one rule that a student can have, or not."""

COMPONENTS: Final[tuple[Component, ...]] = get_args(Component)

TOPICS: Final[Mapping[str, tuple[Component, ...]]] = {
    "signed numbers": COMPONENTS[:4],
    "fractions": COMPONENTS[4:7],
    "equations": COMPONENTS[7:],
}

Program: TypeAlias = Callable[[Fraction, Fraction], Fraction]
"""A rule's result for two numbers: for ``distribute``, the factor and the last term in brackets; for
``collect``, the two coefficients; for ``move-constant``, the right side and the constant; for
``divide-coefficient``, the right side and the coefficient."""


class Misconception(msgspec.Struct, frozen=True, kw_only=True):
    """A buggy rule.

    Attributes:
        name: short, unique.
        component: in whose place it is.
        program: computes its result; not used for ``order``, see ``solving``.
        does: the behaviour of a student who has it, as in "you ...".
        believes: the same as the student sees it, as in "I ..."; empty if it is the same.
    """

    name: str
    component: Component
    program: Program
    does: str
    believes: str = ""

    @property
    def own(self) -> str:
        """A student's own words for it, as in "I ...": they do not know that it is wrong."""
        return self.believes or self.does


def _sign(value: Fraction) -> int:
    return -1 if value < 0 else 1


def _tops_and_bottoms(a: Fraction, b: Fraction) -> Fraction:
    return Fraction(a.numerator + b.numerator, a.denominator + b.denominator)


def _tops_over_common(a: Fraction, b: Fraction) -> Fraction:
    return Fraction(a.numerator + b.numerator, lcm(a.denominator, b.denominator))


def _keeps_denominator(a: Fraction, b: Fraction) -> Fraction:
    common = lcm(a.denominator, b.denominator)
    return Fraction(int(a * common) * int(b * common), common)


def _cross(a: Fraction, b: Fraction) -> Fraction:
    return Fraction(a.numerator * b.denominator, a.denominator * b.numerator)


_ALL: Final = (
    Misconception(
        name="adds-sizes",
        component="add-signed",
        program=lambda a, b: _sign(a) * (abs(a) + abs(b)),
        does="add the two sizes and keep the first sign",
    ),
    Misconception(
        name="first-sign-wins",
        component="add-signed",
        program=lambda a, b: _sign(a) * abs(abs(a) - abs(b)),
        does="take the difference and always keep the first sign",
    ),
    Misconception(
        name="drops-double-minus",
        component="subtract-negative",
        program=lambda a, b: a - abs(b),
        does="drop one of the two minus signs",
    ),
    Misconception(
        name="all-turns-plus",
        component="subtract-negative",
        program=lambda a, b: abs(a) + abs(b),
        does="turn every minus into a plus as soon as there are two in a row",
    ),
    Misconception(
        name="stays-minus",
        component="multiply-signs",
        program=lambda a, b: -abs(a * b),
        does="leave the product negative although both numbers are negative",
        believes="keep the product negative, since there is a minus in it",
    ),
    Misconception(
        name="takes-away-instead",
        component="multiply-signs",
        program=lambda a, b: a + b if b < 0 else a * b,
        does="read the second minus as taking away, and do not multiply at all",
        believes="read the second minus as taking away",
    ),
    Misconception(
        name="left-to-right",
        component="order",
        program=lambda a, b: a + b,
        does="simply go from left to right",
    ),
    Misconception(
        name="sums-first",
        component="order",
        program=lambda a, b: a + b,
        does="do plus and minus before times",
    ),
    Misconception(
        name="tops-and-bottoms",
        component="add-fractions",
        program=_tops_and_bottoms,
        does="add the tops and add the bottoms",
    ),
    Misconception(
        name="tops-over-common",
        component="add-fractions",
        program=_tops_over_common,
        does="find the common denominator but leave the tops as they were",
        believes="find the common denominator and keep the tops",
    ),
    Misconception(
        name="keeps-denominator",
        component="multiply-fractions",
        program=_keeps_denominator,
        does="make the denominators equal and then multiply only the tops",
    ),
    Misconception(
        name="multiplies-crosswise",
        component="multiply-fractions",
        program=_cross,
        does="multiply crosswise",
    ),
    Misconception(
        name="divides-straight",
        component="divide-fractions",
        program=lambda a, b: a * b,
        does="multiply straight across without turning anything over",
        believes="multiply straight across, top by top and bottom by bottom",
    ),
    Misconception(
        name="turns-first",
        component="divide-fractions",
        program=lambda a, b: b / a,
        does="turn over the first fraction instead of the second",
        believes="turn over the first fraction and then multiply",
    ),
    Misconception(
        name="first-term-only",
        component="distribute",
        program=lambda factor, last: last,
        does="multiply only the first term in the brackets",
        believes="multiply only the first term, which stands next to the factor",
    ),
    Misconception(
        name="loses-the-minus",
        component="distribute",
        program=lambda factor, last: abs(factor) * last,
        does="forget the minus of the factor for the last term in the brackets",
        believes="multiply the last term in the brackets without the minus",
    ),
    Misconception(
        name="adds-the-xs",
        component="collect",
        program=lambda left, right: left + right,
        does="add the x terms of both sides together",
    ),
    Misconception(
        name="forgets-an-x",
        component="collect",
        program=lambda left, right: left,
        does="let the x on the right just disappear",
        believes="leave the x on the right aside",
    ),
    Misconception(
        name="keeps-the-sign",
        component="move-constant",
        program=lambda right, constant: right + constant,
        does="carry the number to the other side without changing its sign",
        believes="carry the number to the other side as it is",
    ),
    Misconception(
        name="takes-away-backwards",
        component="move-constant",
        program=lambda right, constant: constant - right,
        does="take the right side away from the number instead of the other way round",
        believes="take the right side away from the number",
    ),
    Misconception(
        name="subtracts-coefficient",
        component="divide-coefficient",
        program=lambda right, coefficient: right - coefficient,
        does="subtract the number in front of x instead of dividing by it",
        believes="subtract the number in front of x",
    ),
    Misconception(
        name="divides-backwards",
        component="divide-coefficient",
        program=lambda right, coefficient: coefficient / right if right else right,
        does="divide the number in front of x by the right side",
    ),
)

MISCONCEPTIONS: Final[Mapping[str, Misconception]] = {one.name: one for one in _ALL}
"""All misconceptions by name."""

_OF: Final = {
    component: tuple(one for one in _ALL if one.component == component) for component in COMPONENTS
}


def misconceptions_of(component: Component) -> tuple[Misconception, ...]:
    """The misconceptions that take the place of a component."""
    return _OF[component]
