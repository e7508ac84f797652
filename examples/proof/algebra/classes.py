"""Classes of integers that a claim is about: all n, odd n, n not divisible by 3."""

from __future__ import annotations

import re
from functools import lru_cache
from math import gcd
from typing import Final

import msgspec

from ....engine.errors import InvalidInput
from .polynomials import Polynomial, evaluated

__all__ = ("ALL", "NAMED", "Class", "fixed_divisor", "is_within", "read_class")

_LIMIT: Final = 5_000
"""The largest modulus of a class."""


class Class(msgspec.Struct, frozen=True):
    """The integers with some remainders.

    Attributes:
        modulus: what they are divided by.
        residues: the remainders, in order.
    """

    modulus: int
    residues: tuple[int, ...]

    def holds(self, number: int) -> bool:
        """Whether a number is in the class."""
        return number % self.modulus in self.residues

    def modulo(self, modulus: int) -> tuple[int, ...]:
        """The remainders that members of the class leave for another modulus."""
        # By the Chinese remainder theorem: those that agree with a residue modulo the common divisor.
        common = gcd(self.modulus, modulus)
        shared = {residue % common for residue in self.residues}
        return tuple(n for n in range(modulus) if n % common in shared)

    def shifted(self, by: int) -> Class:
        """The class of ``n + by``, for n in this class."""
        moved = sorted((residue + by) % self.modulus for residue in self.residues)
        return Class(self.modulus, tuple(moved))

    @property
    def density(self) -> float:
        """The share of all integers that are in the class."""
        return len(self.residues) / self.modulus

    @property
    def text(self) -> str:
        """As it is written: ``odd n``, or ``n = 1, 5 mod 8``."""
        known = _NAMES.get(self)
        return known or f"n = {', '.join(map(str, self.residues))} mod {self.modulus}"


ALL: Final = Class(1, (0,))
"""All integers."""

NAMED: Final = {
    "all n": ALL,
    "odd n": Class(2, (1,)),
    "even n": Class(2, (0,)),
    "n not divisible by 3": Class(3, (1, 2)),
    "n not divisible by 5": Class(5, (1, 2, 3, 4)),
    "n divisible by 3": Class(3, (0,)),
    "n coprime to 6": Class(6, (1, 5)),
    "n divisible by 4": Class(4, (0,)),
    "n divisible by 6": Class(6, (0,)),
}
"""The classes that have a name."""

_NAMES = {value: name for name, value in NAMED.items()}
_CONGRUENT = re.compile(r"n (?:=|≡) (\d{1,9}(?:, ?\d{1,9})*) mod (\d{1,9})")


def read_class(text: str) -> Class:
    """The class that a text names.

    Raises:
        InvalidInput: it names none.
    """
    words = " ".join(text.split())
    known = NAMED.get(words) or NAMED.get(words.replace("every", "all"))
    if known is not None:
        return known
    match = _CONGRUENT.fullmatch(words)
    if match is None or not 1 <= int(match[2]) <= _LIMIT:
        raise InvalidInput(
            f"{text!r} is not a set of integers; write one of: {', '.join(NAMED)}; or n = 1, 5 mod 8"
        )
    modulus = int(match[2])
    residues = sorted({int(number) % modulus for number in match[1].split(",")})
    return Class(modulus, tuple(residues))


def is_within(inner: Class, outer: Class) -> bool:
    """Whether each member of one class is in the other."""
    return set(inner.modulo(outer.modulus)) <= set(outer.residues)


@lru_cache(maxsize=4096)
def fixed_divisor(one: Polynomial, over: Class) -> int:
    """The largest number that divides all values of a polynomial over a class; 0 if all are 0.

    The values along ``r + m*t`` are a polynomial in t of the same degree, and what divides
    as many values in a row as it has coefficients divides its differences, and so all of them.
    """
    return gcd(
        *(
            evaluated(one, residue + over.modulus * step)
            for residue in over.residues
            for step in range(max(len(one), 1))
        )
    )
