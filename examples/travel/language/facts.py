"""Facts about the wishes for a trip, each a slot with a value.

Profiles, messages and plans share them. The values are those of the tables'
`Constraints`, so that a fact means the same to a traveller, to a planner and to an evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from ..data.tables import Trip

__all__ = (
    "ANY",
    "CUISINES",
    "HOUSE_RULES",
    "ROOM_TYPES",
    "SLOTS",
    "TRANSPORTATION",
    "Fact",
    "Slot",
    "Value",
    "facts_of",
)

Slot = Literal[
    "people",
    "cities",
    "budget",
    "house_rule",
    "room_type",
    "cuisine",
    "transportation",
    "generic",
]
"""The subject of a fact; ``generic`` for wishes that fit no other slot."""

SLOTS: Final[tuple[Slot, ...]] = (
    "people",
    "cities",
    "budget",
    "house_rule",
    "room_type",
    "cuisine",
    "transportation",
)
"""The slots that a plan can satisfy."""

Value = int | str | tuple[str, ...]

ANY: Final = "any"
"""The value of a slot for which the traveller says that they have no wish."""

HOUSE_RULES: Final = ("children under 10", "parties", "pets", "smoking", "visitors")
ROOM_TYPES: Final = ("entire room", "not shared room", "private room", "shared room")
TRANSPORTATION: Final = ("no flight", "no self-driving")
CUISINES: Final = (
    "American",
    "Chinese",
    "French",
    "Indian",
    "Italian",
    "Mediterranean",
    "Mexican",
)


class Fact(msgspec.Struct, frozen=True):
    """Something that is known about the wishes for a trip.

    Attributes:
        slot: what it is about.
        value: a number of people or cities, a budget in dollars; one of `HOUSE_RULES`,
            `ROOM_TYPES` or `TRANSPORTATION`; names of cuisines in alphabetical order; `ANY`; or,
            of a generic fact, the sentence itself.
    """

    slot: Slot
    value: Value


def facts_of(trip: Trip) -> tuple[Fact, ...]:
    """All that a request's structured form says about wishes, slot by slot."""
    limits = trip.constraints
    said: Mapping[Slot, Value | None] = {
        "people": trip.people,
        "cities": trip.cities,
        "budget": None if trip.budget is None else int(trip.budget),
        "house_rule": limits.house_rule,
        "room_type": limits.room_type,
        "cuisine": tuple(sorted(limits.cuisine)) if limits.cuisine else None,
        "transportation": limits.transportation,
    }
    return tuple(Fact(slot, value) for slot, value in said.items() if value is not None)
