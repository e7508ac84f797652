"""Exact arithmetic: polynomials in canonical form, classes of integers, and what divides all values."""

from __future__ import annotations

from math import gcd
from random import Random

import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.proof.algebra.classes import (
    ALL,
    NAMED,
    Class,
    fixed_divisor,
    is_within,
    read_class,
)
from duolog.examples.proof.algebra.expressions import read_polynomial
from duolog.examples.proof.algebra.polynomials import (
    added,
    composed,
    divided,
    evaluated,
    multiplied,
    polynomial,
    spelled,
)


def some(words: Random) -> tuple[int, ...]:
    return polynomial(*(words.randint(-9, 9) for _ in range(words.randint(0, 6))))


def test_arithmetic_agrees_with_that_of_the_values() -> None:
    words = Random(1)
    for _ in range(200):
        one, other, at = some(words), some(words), words.randint(-20, 20)
        a, b = evaluated(one, at), evaluated(other, at)
        assert evaluated(added(one, other), at) == a + b
        assert evaluated(multiplied(one, other), at) == a * b
        assert evaluated(composed(one, other), at) == evaluated(one, b)
        quotient, rest = divided(one, (*other, 1))
        assert len(rest) <= len(other)
        assert added(multiplied(quotient, (*other, 1)), rest) == one


def test_what_is_spelled_is_read_as_the_same_polynomial() -> None:
    words = Random(2)
    for _ in range(200):
        one = some(words)
        assert read_polynomial(spelled(one)) == one
    assert read_polynomial("(n - 1)n(n + 1)") == read_polynomial("n**3 - n") == (0, -1, 0, 1)
    assert spelled((0, -1, 0, 1)) == "n^3 - n"


@pytest.mark.parametrize(
    "text", ["", "n +", "n^99", "m + 1", "(n", "n)", "2^n", "n $ 1", "n" * 500, "(n^20)^20"]
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_polynomial(text)


def test_the_fixed_divisor_is_what_divides_all_values() -> None:
    words = Random(3)
    for _ in range(60):
        one, over = some(words), words.choice(list(NAMED.values()))
        values = [evaluated(one, n) for n in range(-60, 60) if over.holds(n)]
        assert fixed_divisor(one, over) == gcd(*values)


def test_classes_are_read_by_name_and_by_remainders() -> None:
    assert read_class("odd n") == read_class("n = 1 mod 2") == Class(2, (1,))
    assert read_class("n = 7, 1 mod 6") == Class(6, (1,))
    assert is_within(read_class("n coprime to 6"), read_class("odd n"))
    assert not is_within(ALL, read_class("odd n"))
    assert all(read_class(over.text) == over for over in NAMED.values())
    with pytest.raises(InvalidInput, match="prime n"):
        read_class("prime n")
