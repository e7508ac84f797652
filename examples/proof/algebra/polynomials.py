"""Polynomials in one variable with integer coefficients, in a canonical form."""

from __future__ import annotations

from functools import lru_cache
from itertools import zip_longest
from typing import TypeAlias

__all__ = (
    "Polynomial",
    "added",
    "composed",
    "divided",
    "evaluated",
    "multiplied",
    "polynomial",
    "scaled",
    "spelled",
    "subtracted",
)

Polynomial: TypeAlias = tuple[int, ...]
"""Coefficients from the lowest power up, without zeros at the end; the zero polynomial is ()."""


def polynomial(*coefficients: int) -> Polynomial:
    """The polynomial with these coefficients, from the lowest power up."""
    end = len(coefficients)
    while end and not coefficients[end - 1]:
        end -= 1
    return coefficients[:end]


def added(one: Polynomial, other: Polynomial) -> Polynomial:
    """The sum."""
    return polynomial(*(a + b for a, b in zip_longest(one, other, fillvalue=0)))


def subtracted(one: Polynomial, other: Polynomial) -> Polynomial:
    """The difference."""
    return added(one, scaled(other, -1))


def scaled(one: Polynomial, factor: int) -> Polynomial:
    """The product with a number."""
    return polynomial(*(a * factor for a in one))


def multiplied(one: Polynomial, other: Polynomial) -> Polynomial:
    """The product."""
    if not one or not other:
        return ()
    product = [0] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            product[i + j] += a * b
    return polynomial(*product)


def composed(one: Polynomial, inner: Polynomial) -> Polynomial:
    """The polynomial with another one in the place of its variable."""
    result: Polynomial = ()
    for coefficient in reversed(one):
        result = added(multiplied(result, inner), polynomial(coefficient))
    return result


def evaluated(one: Polynomial, at: int) -> int:
    """The value at an integer."""
    value = 0
    for coefficient in reversed(one):
        value = value * at + coefficient
    return value


def divided(one: Polynomial, by: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Quotient and remainder of the division by a monic polynomial.

    Raises:
        ValueError: the divisor is not monic.
    """
    if not by or by[-1] != 1:
        raise ValueError("only a monic polynomial divides every other one over the integers")
    rest = list(one)
    quotient = [0] * max(len(rest) - len(by) + 1, 0)
    for place in reversed(range(len(quotient))):
        factor = quotient[place] = rest[place + len(by) - 1]
        for i, coefficient in enumerate(by):
            rest[place + i] -= factor * coefficient
    return polynomial(*quotient), polynomial(*rest)


@lru_cache(maxsize=8192)
def spelled(one: Polynomial, variable: str = "n") -> str:
    """The polynomial as text, from the highest power down: ``n^3 - 2*n + 1``."""
    text = ""
    for power in reversed(range(len(one))):
        coefficient = one[power]
        if not coefficient:
            continue
        term = "" if not power else variable if power == 1 else f"{variable}^{power}"
        size = abs(coefficient)
        shown = term if size == 1 and term else f"{size}*{term}" if term else str(size)
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} {shown}" if text else f"{'-' if coefficient < 0 else ''}{shown}"
    return text or "0"
