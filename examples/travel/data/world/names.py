"""Invented names for the places of a world: restaurants, rooms and sights.

The evaluation finds a place by looking for its name *inside* the names of a city's table, so that
within one city no name may be part of another, which `NameMaker` ensures.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import final

__all__ = ("NameMaker",)

_FIRST = (
    "Amber Anchor Aspen Birch Blue Brass Bright Canyon Cedar Clover Copper Coral Corner Crimson "
    "Driftwood Eagle Elm Ember Falcon Fern Flint Foxglove Garnet Golden Granite Harbor Hazel Heron "
    "Hickory Indigo Iron Ivory Jade Juniper Kestrel Lantern Laurel Lighthouse Lilac Linden Lucky "
    "Lupine Maple Marigold Meadow Mesa Midtown Millstone Moonlit Mulberry Oak Old Olive Orchard "
    "Osprey Pepper Pine Plum Poplar Prairie Quail Quarry Red Ridge River Robin Rosewood Rustic "
    "Saffron Sage Sandstone Silver Sparrow Spruce Summit Sunny Sycamore Tamarack Teal Thistle "
    "Timber Tulip Valley Velvet Violet Walnut Willow Wren"
).split()

_RESTAURANTS = (
    "{a} Table;{a} Kitchen;{a} & {b};The {a} Spoon;{a} Street Grill;Cafe {a};{a} Bistro;"
    "The {a} {b};{a} Diner;House of {a};{a} Tavern;{a} Garden;Little {a};{a} Noodle Bar;"
    "{a} Smokehouse;{a} Bakehouse;Chez {a};{a} Cantina;{a} Trattoria;{a} Spice;The {a} Plate;"
    "{a} Corner Deli;{a} Fork"
).split(";")

_ROOMS = {
    "Entire home/apt": (
        "{a} Street Loft;{adj} {n}-bedroom house near {b} Park;{adj} apartment with a view;"
        "The {a} Cottage;{adj} {n}BR flat in {b} Heights;{a} Bungalow;Whole floor on {a} Avenue;"
        "{adj} townhouse by {b} Square"
    ).split(";"),
    "Private room": (
        "{adj} room on {a} Street;Private room in {b} House;{adj} bedroom near {a} Station;"
        "Guest room at the {a};{adj} attic room, {b} quarter;Room {n} in a {a} villa;"
        "{adj} queen room near {b} Market"
    ).split(";"),
    "Shared room": (
        "{a} Hostel, bed {n};{adj} shared dorm at {b} House;Bunk in the {a} Lodge;"
        "{adj} shared room near {b} Campus;{a} Backpackers, dorm {n}"
    ).split(";"),
}

_ADJECTIVES = (
    "Airy Bright Calm Charming Clean Comfy Cozy Cute Elegant Handy Homey Large Lovely Modern Neat "
    "Peaceful Quaint Quiet Relaxing Renovated Roomy Simple Snug Spacious Stylish Sunlit Tidy "
    "Vintage Warm"
).split()

_SIGHTS = (
    "{a} Museum of Art;{a} Park;{a} Botanical Garden;{a} Science Center;{a} Zoo;{a} Bridge;"
    "{a} History Museum;{a} Theater;{a} Overlook;{a} Farmers Market;{a} Nature Preserve;"
    "{a} Railway Museum;{a} Observatory;{a} Aquarium;Fort {a};{a} Mansion;{a} Waterfront;"
    "{a} Sculpture Walk;{a} Cathedral;{a} Planetarium"
).split(";")


@final
class NameMaker:
    """Makes names for the places of one city, none of which contains another.

    Args:
        random: the source of all its choices.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._taken: list[str] = []

    def restaurant(self) -> str:
        """A name for a restaurant."""
        return self._name(_RESTAURANTS)

    def room(self, room_type: str) -> str:
        """A name for a place to stay of this room type (as the tables write it)."""
        return self._name(_ROOMS[room_type])

    def sight(self) -> str:
        """A name for an attraction."""
        return self._name(_SIGHTS)

    def _name(self, patterns: Sequence[str]) -> str:
        choice = self._random.choice
        while True:
            name = choice(patterns).format(
                a=choice(_FIRST),
                b=choice(_FIRST),
                adj=choice(_ADJECTIVES),
                n=self._random.randint(1, 4),
            )
            if not any(name in other or other in name for other in self._taken):
                self._taken.append(name)
                return name
