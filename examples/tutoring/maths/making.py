"""Makes problems for a component: plain ones to practise it, and transfer problems that need others as well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from random import Random
from typing import Final

from .expressions import write_number
from .rules import Component, misconceptions_of
from .solving import explanations, solve

__all__ = ("make_plain", "make_telling", "make_transfer")

_TRIES: Final = 200
_ROUND: Final = 40  # the biggest numerator or denominator of an answer


def make_plain(component: Component, random: Random) -> str:
    """A problem for practice: it needs the component, and of others only what comes along with it.

    The misconceptions of the component all lead to wrong answers.
    """
    return _fitting(_PLAIN[component], component, random)


def make_transfer(component: Component, random: Random) -> str:
    """A problem that needs the component together with others, in a form that practice does not have."""
    return _fitting(_TRANSFER[component], component, random)


def make_telling(component: Component, random: Random) -> str:
    """A plain problem that each misconception of the component gets wrong in its own way."""
    names = [one.name for one in misconceptions_of(component)]
    for _ in range(_TRIES):
        problem = make_plain(component, random)
        sets = explanations(problem).values()
        answers = {name: next(i for i, s in enumerate(sets) if (name,) in s) for name in names}
        if len({*answers.values()}) == len(names):
            return problem
    return make_plain(component, random)


def _fitting(write: Callable[[Random], str], component: Component, random: Random) -> str:
    """A problem as wanted: with a handy answer, and one that shows whether the component is known."""
    for _ in range(_TRIES):
        problem = write(random)
        solved = solve(problem)
        if solved.answer is None or component not in solved.components:
            continue
        if max(abs(solved.answer.numerator), solved.answer.denominator) > _ROUND:
            continue
        lucky = [names for names in explanations(problem)[solved.answer] if len(names) == 1]
        own = {one.name for one in misconceptions_of(component)}
        if not any(names[0] in own for names in lucky):
            return problem
    return write(random)


def _proper(random: Random) -> Fraction:
    bottom = random.randint(2, 9)
    return Fraction(random.randint(1, bottom - 1), bottom)


def _two_fractions(random: Random) -> tuple[str, str]:
    first = _proper(random)
    second = _proper(random)
    while second.denominator == first.denominator:
        second = _proper(random)
    return write_number(first), write_number(second)


def _plus(number: int) -> str:
    """A last term that is added; nothing for 0."""
    return "" if not number else f" + {number}" if number > 0 else f" - {-number}"


def _add_signed(random: Random) -> str:
    small, big = random.randint(2, 6), random.randint(7, 15)
    return random.choice((f"-{small} + {big}", f"{small} + (-{big})"))


def _subtract_negative(random: Random) -> str:
    a, b = random.sample(range(2, 13), 2)
    return f"-{a} - (-{b})"


def _multiply_signs(random: Random) -> str:
    a, b = random.randint(2, 6), random.randint(2, 6)
    return f"-{a} × (-{b})"


def _order(random: Random) -> str:
    a, b, c, d = (random.randint(2, 5) for _ in range(4))
    return random.choice((f"{a} + {b} × {c}", f"{a} × {b} + {c} × {d}"))


def _of_fractions(sign: str) -> Callable[[Random], str]:
    return lambda random: f" {sign} ".join(_two_fractions(random))


def _distribute(random: Random) -> str:
    factor, inside, x = (
        -random.randint(2, 5),
        random.choice((-4, -3, -2, 2, 3, 4)),
        random.randint(1, 6),
    )
    return f"{factor}(x{_plus(inside)}) = {factor * (x + inside)}"


def _collect(random: Random) -> str:
    right, more = random.randint(2, 4), random.randint(2, 5)
    constant, x = random.randint(1, 9), random.randint(1, 6)
    return f"{right + more}x + {constant} = {right}x + {constant + more * x}"


def _move_constant(random: Random) -> str:
    constant, x = random.randint(2, 12), random.randint(2, 12)
    return f"x + {constant} = {constant + x}"


def _divide_coefficient(random: Random) -> str:
    coefficient, x = random.randint(2, 7), random.randint(2, 8)
    return f"{coefficient}x = {coefficient * x}"


_PLAIN: Final[Mapping[Component, Callable[[Random], str]]] = {
    "add-signed": _add_signed,
    "subtract-negative": _subtract_negative,
    "multiply-signs": _multiply_signs,
    "order": _order,
    "add-fractions": _of_fractions("+"),
    "multiply-fractions": _of_fractions("×"),
    "divide-fractions": _of_fractions("÷"),
    "distribute": _distribute,
    "collect": _collect,
    "move-constant": _move_constant,
    "divide-coefficient": _divide_coefficient,
}


def _signed_in_order(random: Random) -> str:
    a, b, c = random.randint(5, 12), random.randint(2, 4), random.randint(2, 5)
    return f"-{a} + {b} × {c}"


def _negative_after_product(random: Random) -> str:
    a, b, c = random.randint(2, 6), random.randint(2, 6), random.randint(2, 12)
    return f"-{a} × {b} - (-{c})"


def _product_of_negatives(random: Random) -> str:
    a, b, c = random.randint(2, 9), random.randint(2, 5), random.randint(2, 5)
    return f"{a} + (-{b}) × (-{c})"


def _fractions_in_order(random: Random) -> str:
    first, second = _two_fractions(random)
    return f"{random.choice(('1/2', '1/3', '3/4'))} + {first} × {second}"


def _fraction_moved(random: Random) -> str:
    first, second = _two_fractions(random)
    return f"x + {first} = {second}"


def _fraction_divided(random: Random) -> str:
    first, second = _two_fractions(random)
    return f"{first} x = {second}"


def _brackets_and_xs(random: Random) -> str:
    factor, inside, x = -random.randint(2, 4), random.choice((-3, -2, 2, 3)), random.randint(1, 5)
    other = random.randint(2, 4)
    return f"{factor}(x{_plus(inside)}) = {other}x{_plus(factor * (x + inside) - other * x)}"


def _negative_constants(random: Random) -> str:
    right, more = random.randint(2, 4), random.randint(2, 5)
    constant, x = -random.randint(2, 9), random.randint(2, 6)
    return f"{right + more}x{_plus(constant)} = {right}x{_plus(constant + more * x)}"


def _two_steps(random: Random) -> str:
    coefficient, constant, x = random.randint(2, 6), random.randint(2, 12), random.randint(2, 8)
    return f"{coefficient}x + {constant} = {coefficient * x + constant}"


_TRANSFER: Final[Mapping[Component, Callable[[Random], str]]] = {
    "add-signed": _signed_in_order,
    "subtract-negative": _negative_after_product,
    "multiply-signs": _product_of_negatives,
    "order": _signed_in_order,
    "add-fractions": _fraction_moved,
    "multiply-fractions": _fractions_in_order,
    "divide-fractions": _fraction_divided,
    "distribute": _brackets_and_xs,
    "collect": _negative_constants,
    "move-constant": _two_steps,
    "divide-coefficient": _two_steps,
}
