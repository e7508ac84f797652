"""Claims: divisibility over a class of integers, and closed forms of sums; each can be decided."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from math import comb, gcd
from typing import Final, TypeAlias

import msgspec

from ....engine.errors import InvalidInput
from ..algebra.classes import ALL, NAMED, Class, fixed_divisor, read_class
from ..algebra.expressions import read_polynomial
from ..algebra.polynomials import (
    Polynomial,
    composed,
    evaluated,
    polynomial,
    scaled,
    spelled,
    subtracted,
)

__all__ = (
    "MAX_DIVISOR",
    "Claim",
    "Divides",
    "SumIs",
    "counterexample",
    "fails_at",
    "generalised",
    "holds",
    "read_claim",
    "restricted",
    "weakened",
)

MAX_DIVISOR: Final = 100_000
"""The largest divisor that a claim may have."""


class Divides(msgspec.Struct, frozen=True):
    """``24 divides n^3 - n for odd n``.

    Attributes:
        divisor: the divisor, above 1.
        value: what it divides.
        over: for which integers.
    """

    divisor: int
    value: Polynomial
    over: Class = ALL

    @property
    def text(self) -> str:
        """As it is written, with the value in its canonical form."""
        return f"{self.divisor} divides {spelled(self.value)} for {self.over.text}"


class SumIs(msgspec.Struct, frozen=True):
    """``6*sum(i^2) = 2*n^3 + 3*n^2 + n``: the sum runs over i = 1, ..., n, for all n from 0.

    Attributes:
        factor: the factor of the sum, above 0.
        term: what is added, as a polynomial in i.
        total: what the sum comes out as, times the factor.
    """

    factor: int
    term: Polynomial
    total: Polynomial

    @property
    def text(self) -> str:
        """As it is written."""
        factor = "" if self.factor == 1 else f"{self.factor}*"
        return f"{factor}sum({spelled(self.term, 'i')}) = {spelled(self.total)}"

    @property
    def step(self) -> Polynomial:
        """How much the total grows from n - 1 to n."""
        return subtracted(self.total, composed(self.total, polynomial(-1, 1)))


Claim: TypeAlias = Divides | SumIs
"""A claim."""

_DIVIDES = re.compile(r"(\d+) (?:divides|\|) (.+?) for ((?:all|every|odd|even) n|n .+)")
_SUM = re.compile(r"(?:(\d{1,9}) ?\*? ?)?sum\((.+)\) = (.+?)(?: for all n)?")


@lru_cache(maxsize=4096)
def read_claim(text: str) -> Claim:
    """The claim that a text makes.

    Raises:
        InvalidInput: it makes none that this system knows.
    """
    words = " ".join(text.split()).rstrip(".")
    divides = _DIVIDES.fullmatch(words)
    if divides is not None:
        divisor = int(divides[1][:9])
        if not 1 < divisor <= MAX_DIVISOR:
            raise InvalidInput(f"the divisor {divides[1]} is not between 2 and {MAX_DIVISOR:,}")
        return Divides(divisor, read_polynomial(divides[2]), read_class(divides[3]))
    total = _SUM.fullmatch(words)
    factor = int(total[1] or 1) if total is not None else 0
    if total is not None and 0 < factor <= MAX_DIVISOR:
        return SumIs(factor, read_polynomial(total[2], "i"), read_polynomial(total[3]))
    raise InvalidInput(
        f"{text!r} is not a claim; write '24 divides n^3 - n for odd n', or 'sum(2*i - 1) = n^2'"
    )


def holds(claim: Claim) -> bool:
    """Whether a claim is true. Exact, not by trial."""
    if isinstance(claim, Divides):
        return fixed_divisor(claim.value, claim.over) % claim.divisor == 0
    return not evaluated(claim.total, 0) and claim.step == scaled(claim.term, claim.factor)


def fails_at(claim: Claim, number: int) -> bool:
    """Whether a claim is about a number, and wrong there."""
    if isinstance(claim, Divides):
        return claim.over.holds(number) and evaluated(claim.value, number) % claim.divisor != 0
    if number < 0:
        return False
    return claim.factor * _summed(claim.term, number) != evaluated(claim.total, number)


def _summed(term: Polynomial, number: int) -> int:
    """The sum of a polynomial over 1, ..., n, however large n is: by its differences (Newton)."""
    values = [evaluated(term, i) for i in range(1, len(term) + 1)]
    total = 0
    for order in range(len(term)):
        total += values[0] * comb(number, order + 1)
        values = [after - before for before, after in pairwise(values)]
    return total


def counterexample(claim: Claim, limit: int = 60) -> int | None:
    """The smallest number from 0 to a limit, by size, at which a claim fails; None if there is none."""
    return next((number for number in range(limit + 1) if fails_at(claim, number)), None)


def weakened(claim: Divides) -> Divides | None:
    """The claim with the largest divisor that makes it true for the same n; None if that is 1."""
    divisor = gcd(fixed_divisor(claim.value, claim.over), claim.divisor)
    return Divides(divisor, claim.value, claim.over) if divisor > 1 else None


def restricted(claim: Divides) -> Divides | None:
    """The claim for the largest class with a name for which it is true; None if there is none."""
    found = [
        Divides(claim.divisor, claim.value, over)
        for over in NAMED.values()
        if fixed_divisor(claim.value, over) % claim.divisor == 0
    ]
    return max(found, key=lambda one: one.over.density, default=None)


def generalised(claim: Divides) -> Divides | None:
    """The claim for a larger class with a name, if it is true there; None if there is none."""
    found = restricted(claim)
    return found if found is not None and found.over.density > claim.over.density else None
