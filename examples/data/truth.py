"""The truth about a survey under given rulings, computed from the stored rows, cleaned as documented.

It shares no query with agents; both share the thresholds of ``facts``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, final

import msgspec

from .facts import (
    Claim,
    Group,
    Names,
    Rulings,
    Topic,
    decide_age,
    decide_channel,
    decide_favourite,
    decide_price,
)

__all__ = ("YOUNGER", "Answers", "Person", "Price", "Rating", "Sums", "Tables")

YOUNGER = 40
"""The younger people are below this age."""


class Person(NamedTuple):
    """A row of ``people``: a respondent, their wave and part, and how they usually buy."""

    id: int
    region: str
    age: int
    channel: str
    wave: str
    role: str


class Rating(NamedTuple):
    """A row of ``ratings``: a person's rating of a product, from 1 to 10."""

    person: int
    product: str
    rating: int


class Price(NamedTuple):
    """A row of ``prices``: a product's price in a store, with the store's sort of site."""

    store: int
    site: str
    region: str
    product: str
    price: float


class Tables(msgspec.Struct, frozen=True):
    """The three tables."""

    people: tuple[Person, ...]
    ratings: tuple[Rating, ...]
    prices: tuple[Price, ...]


# --- what is true of a survey under given rulings -------------------------------------------------


Answers = Mapping[Topic, Claim]
"""The true claims by topic; a topic whose answer is not clear is left out."""

_SCALE = 10
_CENTS = 100.0  # a price above this is in cents


def region_name(written: str) -> str:
    """The name of a region, however a row spells it."""
    return written.strip().title()


class _Sort(NamedTuple):
    """Ratings of one product by one sort of rater, with the flags by which a ruling may drop them."""

    region: str
    channel: str
    younger: bool
    product: str
    pilot: bool
    staff: bool
    zero: bool


_Sum = tuple[int, float]


@final
class Sums:
    """Numbers and sums of the rows of a survey, once they are cleaned.

    Args:
        tables: the tables of the survey, as they are stored.
        names: the names of the survey.
    """

    def __init__(self, tables: Tables, names: Names) -> None:
        self._names = names
        self._ratings = _ratings(tables)
        self._prices = _prices(tables)
        self._quality = _quality(tables)

    def answers(self, rulings: Rulings) -> Answers:
        """The true claims on all topics that the data decide under these rulings."""
        by_region: dict[str, dict[str, _Sum]] = {name: {} for name in self._names.regions}
        by_age: dict[str, dict[tuple[str, bool], _Sum]] = {p: {} for p in self._names.products}
        for sort, rows in self._ratings.items():
            if (
                (rulings["pilot"] or not sort.pilot)
                and (rulings["staff"] or not sort.staff)
                and (rulings["zeros"] or not sort.zero)
            ):
                products, ages = by_region[sort.region], by_age[sort.product]
                age = (sort.channel, sort.younger)
                products[sort.product] = _plus(products.get(sort.product), rows)
                ages[age] = _plus(ages.get(age), rows)
        prices: dict[str, dict[str, _Sum]] = {product: {} for product in self._names.products}
        for (region, product, airport), rows in self._prices.items():
            if rulings["airport"] or not airport:
                prices[product][region] = _plus(prices[product].get(region), rows)
        decided = [decide_favourite(region, _groups(of)) for region, of in by_region.items()]
        for product in self._names.products:
            cells = {age: _group(rows) for age, rows in by_age[product].items()}
            decided += [
                decide_price(product, _groups(prices[product])),
                decide_age(product, cells, within=rulings["within"]),
                decide_channel(product, cells),
            ]
        found = [claim for claim, clear in decided if clear]
        return {claim.topic: claim for claim in (*found, *self._quality)}


def _ratings(tables: Tables) -> dict[_Sort, _Sum]:
    people = {
        one.id: (
            region_name(one.region),
            one.channel,
            one.age < YOUNGER,
            one.wave == "pilot",
            one.role == "staff",
        )
        for one in tables.people
    }
    sums: dict[_Sort, _Sum] = {}
    for person, product, rating in dict.fromkeys(tables.ratings):
        if rating <= _SCALE:
            region, channel, younger, pilot, staff = people[person]
            sort = _Sort(region, channel, younger, product, pilot, staff, rating == 0)
            sums[sort] = _plus(sums.get(sort), (1, rating))
    return sums


def _prices(tables: Tables) -> dict[tuple[str, str, bool], _Sum]:
    sums: dict[tuple[str, str, bool], _Sum] = {}
    for one in tables.prices:
        sort = (region_name(one.region), one.product, one.site == "airport")
        price = one.price / 100 if one.price > _CENTS else one.price
        sums[sort] = _plus(sums.get(sort), (1, price))
    return sums


def _quality(tables: Tables) -> list[Claim]:
    cents = sum(1 for one in tables.prices if one.price > _CENTS)
    good = {one for one in tables.ratings if one.rating <= _SCALE}
    wrong, of = len(tables.ratings) - len(good), len(tables.ratings)
    return [
        Claim(Topic("quality", "prices"), str(cents), None, len(tables.prices)),
        Claim(Topic("quality", "ratings"), str(wrong), None, of),
    ]


def _plus(rows: _Sum | None, more: _Sum) -> _Sum:
    return more if rows is None else (rows[0] + more[0], rows[1] + more[1])


def _group(rows: _Sum) -> Group:
    return Group(rows[0], rows[1] / rows[0])


def _groups(rows: Mapping[str, _Sum]) -> dict[str, Group]:
    return {name: _group(one) for name, one in rows.items()}
