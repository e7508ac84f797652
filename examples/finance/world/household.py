"""A household, what its people want, and the monthly and yearly sums that follow from its tables."""

from __future__ import annotations

from functools import cached_property
from typing import Final, Literal, final

import msgspec

from .places import Place, annual_tax

__all__ = ("TOPICS", "Budget", "Household", "Topic", "Wishes", "annuity")

Topic = Literal[
    "loss", "cushion", "age", "income", "study", "project", "support", "cover", "prepay"
]
"""The topic of a wish, which is also the name of its field in `Wishes`."""

TOPICS: Final[tuple[Topic, ...]] = (
    "loss",
    "cushion",
    "age",
    "income",
    "study",
    "project",
    "support",
    "cover",
    "prepay",
)


class Household(msgspec.Struct, frozen=True, kw_only=True):
    """A household's file, all of which the agent may read.

    Attributes:
        place: where it lives.
        age: the age of the client.
        salaries: before tax, a year; the higher one first.
        child: age of the child.
        mortgage: the debt on the home.
        mortgage_rate: its interest, a year.
        mortgage_years: until it is paid off.
        prepayment_share: share of the mortgage that may be paid off extra in a year.
        cover_asked: life cover that the bank asks for.
        card: owed on credit cards.
        card_rate: their interest, a year.
        savings: all there is, in a bank account.
        boldness: how much risk the client said on a form to be ready for, 1 to 10.
    """

    place: str
    age: int
    salaries: tuple[int, int]
    child: int
    mortgage: int
    mortgage_rate: float
    mortgage_years: int
    prepayment_share: float
    cover_asked: int
    card: int
    card_rate: float
    savings: int
    boldness: int


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """A client's wishes for a plan at one time; 0 means no such wish.

    Attributes:
        loss: most per cent of their investments that they can bear to lose in a bad year.
        cushion: months of spending that the emergency fund should cover.
        age: at which the client wants to stop working.
        income: that they then want a month.
        study: per cent of the child's studies that they want to pay for.
        project: sum that something in the next two years will cost (a renovation, parental leave).
        support: sum a month that they give to a relative.
        cover: years of the higher salary that the family should have if the client dies.
        prepay: extra sum a month that they want to pay on the mortgage.
    """

    loss: int
    cushion: int
    age: int
    income: int
    study: int = 0
    project: int = 0
    support: int = 0
    cover: int = 0
    prepay: int = 0


def annuity(owed: int, rate: float, years: float) -> int:
    """A loan's monthly payment until it is paid off."""
    month = rate / 12
    share: float = month / (1 - (1 + month) ** (-12 * years))
    return round(owed * share)


_CHILDCARE_UNTIL: Final = 4
_HOME_BY_MORTGAGE: Final = 1.25
_AGE_PRICES: Final = ((35, 1.0), (45, 1.5), (200, 2.4))
_COVER_LIMIT: Final = 12
_CARD_MONTHS: Final = 24


@final
class Budget:
    """The sums of a household in its place.

    Args:
        household: the household.
        place: where it lives.
    """

    def __init__(self, household: Household, place: Place) -> None:
        self.household = household
        self.place = place

    @cached_property
    def gross(self) -> int:
        """Income before tax, a year."""
        return sum(self.household.salaries)

    @cached_property
    def net(self) -> int:
        """Income after tax, a month."""
        taxes = sum(annual_tax(self.place, salary) for salary in self.household.salaries)
        return round((self.gross - taxes) / 12)

    @cached_property
    def living(self) -> int:
        """Living costs, a month: two adults, the child, and childcare while it is small."""
        small = self.household.child < _CHILDCARE_UNTIL and self.household.salaries[1] > 0
        return 2 * self.place.adult + self.place.child + (self.place.childcare if small else 0)

    @cached_property
    def housing(self) -> int:
        """Mortgage and property tax, a month."""
        home = self.household
        paid = annuity(home.mortgage, home.mortgage_rate, home.mortgage_years)
        return paid + round(home.mortgage * _HOME_BY_MORTGAGE * self.place.property_tax / 12)

    @cached_property
    def spending(self) -> int:
        """The household's essential spending per month."""
        return self.living + self.housing

    @cached_property
    def surplus(self) -> int:
        """The sum left per month, before expenses that only the client knows of."""
        return self.net - self.spending

    def premium(self, cover: int) -> int:
        """The price of a life cover, a month."""
        by_age = next(price for under, price in _AGE_PRICES if self.household.age < under)
        return round(cover / 1000 * self.place.life * by_age / 12)

    @cached_property
    def cover_limit(self) -> int:
        """Most life cover that an insurer sells them."""
        return _COVER_LIMIT * self.gross

    @cached_property
    def prepay_limit(self) -> int:
        """Most that may be paid extra on the mortgage, a month."""
        return int(self.household.mortgage * self.household.prepayment_share / 12)

    @cached_property
    def retirement_limit(self) -> int:
        """Most that may go into retirement savings, a month."""
        return self.place.retirement_allowance // 12

    def card_monthly(self, paid_at_once: int) -> int:
        """The monthly payment that clears the cards within two years."""
        left = max(0, self.household.card - paid_at_once)
        return annuity(left, self.household.card_rate, _CARD_MONTHS / 12) if left else 0
