"""Reads expressions such as ``(n - 1)*n*(n + 1)`` as polynomials."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, final

from ....engine.errors import InvalidInput
from .polynomials import Polynomial, added, multiplied, polynomial, subtracted

__all__ = ("MAX_DEGREE", "read_polynomial")

MAX_DEGREE: Final = 24
"""The highest power that is read."""

_LENGTH = 400
_DEEPEST = 20  # parentheses within parentheses
_DIGITS = 12
_TOKEN = re.compile(r"\s*(\d+|[a-z]|\*\*|[-+*^()])")


@lru_cache(maxsize=4096)
def read_polynomial(text: str, variable: str = "n") -> Polynomial:
    """Parses an expression to a polynomial.

    Args:
        text: sums, products and powers of integers and the variable, with parentheses.
        variable: one letter.

    Raises:
        InvalidInput: the text is no such expression, or its degree or its numbers are too large.
    """
    if len(text) > _LENGTH:
        raise InvalidInput(
            f"an expression of {len(text)} characters is too long: {_LENGTH} at most"
        )
    reader = _Reader(_tokens(text), text, variable)
    result = reader.sum()
    if reader.next is not None:
        raise InvalidInput(f"{text!r} cannot be read from {reader.next!r} on")
    return result


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    at = 0
    stripped = text.rstrip()
    while at < len(stripped):
        match = _TOKEN.match(stripped, at)
        if match is None:
            raise InvalidInput(f"{text!r} cannot be read from {stripped[at:].strip()!r} on")
        found.append("^" if match[1] == "**" else match[1])
        at = match.end()
    return found


@final
class _Reader:
    """Reads by recursive descent."""

    def __init__(self, tokens: list[str], text: str, variable: str) -> None:
        self._tokens = tokens
        self._text = text
        self._variable = variable
        self._at = 0
        self._depth = 0

    @property
    def next(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def sum(self) -> Polynomial:
        total: Polynomial = ()
        sign = "+"
        if self.next in ("+", "-"):
            sign = self._take()
        while True:
            term = self._product()
            total = added(total, term) if sign == "+" else subtracted(total, term)
            if self.next not in ("+", "-"):
                return total
            sign = self._take()

    def _product(self) -> Polynomial:
        product = self._power()
        while self.next is not None and self.next not in ("+", "-", ")", "^"):
            if self.next == "*":
                self._take()
            product = self._small(multiplied(product, self._power()))
        return product

    def _power(self) -> Polynomial:
        base = self._atom()
        if self.next != "^":
            return base
        self._take()
        exponent = self._take()
        if not exponent.isdigit() or int(exponent) > MAX_DEGREE:
            raise InvalidInput(f"{exponent!r} in {self._text!r} is not a power up to {MAX_DEGREE}")
        result = polynomial(1)
        for _ in range(int(exponent)):
            result = self._small(multiplied(result, base))
        return result

    def _atom(self) -> Polynomial:
        token = self._take()
        if token == self._variable:
            return polynomial(0, 1)
        if token.isdigit() and len(token) <= _DIGITS:
            return polynomial(int(token))
        if token == "(":
            self._depth += 1
            if self._depth > _DEEPEST:
                raise InvalidInput(f"{self._text!r} nests more than {_DEEPEST} parentheses")
            inner = self.sum()
            self._depth -= 1
            if self._take() != ")":
                raise InvalidInput(f"a parenthesis is not closed in {self._text!r}")
            return inner
        raise InvalidInput(
            f"{token!r} in {self._text!r} is neither a number, {self._variable}, nor a parenthesis"
        )

    def _take(self) -> str:
        token = self.next
        if token is None:
            raise InvalidInput(f"{self._text!r} ends too early")
        self._at += 1
        return token

    def _small(self, one: Polynomial) -> Polynomial:
        if len(one) > MAX_DEGREE + 1:
            raise InvalidInput(f"the degree of {self._text!r} is above {MAX_DEGREE}")
        return one
