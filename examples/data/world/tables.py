"""The tables of a survey as they are stored: people, their ratings, prices; with all that is wrong."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

__all__ = ("YOUNGER", "Person", "Price", "Rating", "Tables")

YOUNGER = 40
"""The younger people are below this age."""


class Person(NamedTuple):
    """A row of ``people``: who answered, in which wave and part, and how they usually buy."""

    id: int
    region: str
    age: int
    channel: str
    wave: str
    role: str


class Rating(NamedTuple):
    """A row of ``ratings``: what a person gave a product, from 1 to 10."""

    person: int
    product: str
    rating: int


class Price(NamedTuple):
    """A row of ``prices``: what a store of some sort of site asks for a product."""

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
