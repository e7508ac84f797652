"""The first request of a client: narrow, about one thing, or vague."""

from __future__ import annotations

from random import Random
from typing import Final

from ..world.household import Household

__all__ = ("say_request",)

_NARROW: Final = (
    (
        "We have just bought our first home in {place}, and there is a child of {child} now. How should we "
        "invest our savings of {savings}?"
    ),
    (
        "We moved into a house of our own in {place} last month. We have {savings} in the bank, and I would "
        "like to know what to buy with it."
    ),
    "I want to stop working early. What should we do with our {savings}, here in {place}?",
)
_VAGUE: Final = (
    (
        "We have a house in {place} and a small child now, and I think that we should get our money in order. "
        "Can you make us a plan?"
    ),
    "With the mortgage and the little one in {place}, I have lost track. What should we do with our money?",
    "Can you help us with our finances? We live in {place}, the three of us.",
)


def say_request(household: Household, random: Random) -> str:
    """A request in plain words, without any wish that a plan could be measured by."""
    texts = _NARROW if random.random() < 0.5 else _VAGUE
    child = "a few months" if not household.child else f"{household.child}"
    return random.choice(texts).format(
        place=household.place, child=child, savings=f"{household.savings:,}"
    )
