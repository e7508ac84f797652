"""Invented places and their tables: taxes, living costs, schooling, pensions, insurance.

No figure is taken from a real country. Money is in dollars of today: all returns are real ones.
"""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec

__all__ = (
    "PLACES",
    "RETIRED_UNTIL",
    "Place",
    "annual_tax",
    "make_place",
    "monthly_income",
    "retirement_pot",
)

PLACES: Final = (
    "Ashgrove",
    "Brackwater",
    "Calder Bay",
    "Dunmoor",
    "Eastmere",
    "Fallowfield",
    "Glenhaven",
    "Harrowgate",
    "Inverlock",
    "Juniper Falls",
    "Kestrel Point",
    "Larkspur",
)
"""Names of the places."""

RETIRED_UNTIL: Final = 90
"""Age up to which savings for retirement have to last."""

_PENSION_AGE: Final = 67
_YIELD: Final = 0.85
"""Share of each dollar of income that the pot must hold; the rest comes from its later earnings."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of a place.

    Attributes:
        name: one of `PLACES`.
        allowance: income a year on which a person pays no tax.
        basic: rate of income tax above that.
        threshold: income a year above which the higher rate applies.
        higher: that rate.
        social: share of gross income for social insurance.
        adult: living costs of an adult, a month.
        child: those of a child.
        childcare: a month, for a child under four whose parents both work.
        property_tax: share of a home's value, a year.
        study: the full cost of a child's studies.
        pension: state pension from 67, as a share of the household's gross income.
        retirement_allowance: most that a household may pay into retirement savings, a year.
        life: price of 1,000 of life cover a year, for a person under 35.
    """

    name: str
    allowance: int
    basic: float
    threshold: int
    higher: float
    social: float
    adult: int
    child: int
    childcare: int
    property_tax: float
    study: int
    pension: float
    retirement_allowance: int
    life: float


def make_place(name: str, seed: int) -> Place:
    """The tables of a place under a world's seed."""
    random = Random(f"{seed}/place/{name}")
    return Place(
        name=name,
        allowance=random.randrange(8, 14) * 1000,
        basic=random.randrange(15, 24) / 100,
        threshold=random.randrange(36, 52) * 1000,
        higher=random.randrange(30, 42) / 100,
        social=random.randrange(6, 11) / 100,
        adult=random.randrange(85, 116) * 10,
        child=random.randrange(25, 41) * 10,
        childcare=random.randrange(30, 71) * 10,
        property_tax=random.randrange(6, 14) / 1000,
        study=random.randrange(40, 91) * 1000,
        pension=random.randrange(18, 31) / 100,
        retirement_allowance=random.randrange(14, 25) * 1000,
        life=random.randrange(9, 15) / 10,
    )


def annual_tax(place: Place, salary: int) -> int:
    """Income tax and social insurance of one salary, a year."""
    basic = max(0, min(salary, place.threshold) - place.allowance) * place.basic
    higher = max(0, salary - place.threshold) * place.higher
    return round(basic + higher + salary * place.social)


def retirement_pot(place: Place, gross: int, age: int, income: int) -> int:
    """The savings needed at an age for a monthly income until the age of 90.

    Args:
        place: decides the pension.
        gross: income of the household before tax, a year.
        age: at which work ends.
        income: wanted a month, the pension included.
    """
    wanted = 12 * income * (RETIRED_UNTIL - age)
    return max(0, round((wanted - _pensions(place, gross, age)) * _YIELD))


def monthly_income(place: Place, gross: int, age: int, pot: float) -> int:
    """The income a month that a pot lasts for, the pension included: `retirement_pot` turned round."""
    return int((pot / _YIELD + _pensions(place, gross, age)) / (12 * (RETIRED_UNTIL - age)))


def _pensions(place: Place, gross: int, age: int) -> float:
    return place.pension * gross * max(0, RETIRED_UNTIL - max(age, _PENSION_AGE))
