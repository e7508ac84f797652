"""Chooses rooms and restaurants for the stops of a journey.

The weight of comfort against money is a number from 0 (money alone) upwards: the value of one more
star for a night, and of one more point for a meal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple

from ..data.tables import Accommodation, Restaurant
from .finds import Finds
from .knowledge import Knowledge

__all__ = ("Table", "allows", "fits_type", "pick_meals", "pick_room", "room_cost")

_STAR = 25.0  # dollars a night for one more star, at comfort 1
_POINT = 8.0  # dollars a meal and person for one more point of rating, at comfort 1

_ROOM_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "entire room": ("Entire home/apt",),
    "private room": ("Private room",),
    "shared room": ("Shared room",),
    "not shared room": ("Entire home/apt", "Private room"),
}


class Table(NamedTuple):
    """A choice of restaurants for the slots of some cities.

    Attributes:
        by_city: for each city as many restaurants as it has slots, or fewer if there are not enough.
        missing: the cuisines asked for that none of them offers.
    """

    by_city: Mapping[str, tuple[Restaurant, ...]]
    missing: tuple[str, ...]


def allows(room: Accommodation, house_rule: str) -> bool:
    """Whether the house rules allow this, that is, do not forbid it."""
    return f"No {house_rule}" not in room.house_rules


def fits_type(room: Accommodation, room_type: str) -> bool:
    """Whether a room is of the type wished for."""
    return room.room_type in _ROOM_TYPES.get(room_type, (room.room_type,))


def room_cost(room: Accommodation, people: int) -> float:
    """Dollars a night for as many of this room as the party needs."""
    return room.price * ceil(people / max(1, room.maximum_occupancy))


def pick_room(
    known: Knowledge, finds: Finds, city: str, nights: int, comfort: float
) -> tuple[Accommodation | None, tuple[str, ...]]:
    """The best room for a stay, and which wishes it fails: ``nights``, ``house_rule``,
    ``room_type``; where nothing fits, the one that fails least.
    """
    people = known.party

    def failed(room: Accommodation) -> tuple[str, ...]:
        wishes = (
            ("nights", room.minimum_nights <= nights),
            ("house_rule", known.house_rule is None or allows(room, known.house_rule)),
            ("room_type", known.room_type is None or fits_type(room, known.room_type)),
        )
        return tuple(wish for wish, met in wishes if not met)

    def price(room: Accommodation) -> float:
        return room_cost(room, people) - comfort * _STAR * (room.rating or 0.0)

    rooms = finds.rooms.get(city, ())
    if not rooms:
        return None, ("nights", "house_rule", "room_type")
    rated = ((failed(room), room) for room in rooms)
    fails, best = min(rated, key=lambda pair: ("nights" in pair[0], len(pair[0]), price(pair[1])))
    return best, fails


def pick_meals(known: Knowledge, finds: Finds, slots: Mapping[str, int], comfort: float) -> Table:
    """Restaurants for the meals of a journey: all cuisines asked for, then the best there are.

    Args:
        known: cuisines and number of people.
        finds: the restaurants.
        slots: how many meals in each city.
        comfort: what a better rating is worth.
    """
    ranked = {
        city: sorted(finds.tables.get(city, ()), key=lambda r: _price(r, comfort))
        for city, count in slots.items()
        if count
    }
    chosen, covered = _cover(known.cuisines, ranked, slots, comfort)
    by_city = {}
    for city, offers in ranked.items():
        kept = [restaurant for restaurant in chosen if restaurant.city == city]
        rest = (restaurant for restaurant in offers if restaurant not in kept)
        kept += [r for r, _ in zip(rest, range(slots[city] - len(kept)), strict=False)]
        by_city[city] = tuple(kept)
    offered = [r.cuisines for meals in by_city.values() for r in meals]
    missing = [
        wish
        for wish in known.cuisines
        if wish not in covered and not any(wish in offer for offer in offered)
    ]
    return Table(by_city, tuple(missing))


def _price(restaurant: Restaurant, comfort: float) -> float:
    return restaurant.average_cost - comfort * _POINT * restaurant.rating


def _cover(
    cuisines: Sequence[str],
    ranked: Mapping[str, Sequence[Restaurant]],
    slots: Mapping[str, int],
    comfort: float,
) -> tuple[tuple[Restaurant, ...], frozenset[str]]:
    """The cheapest set of restaurants that has as many of the cuisines as can be had.

    What a restaurant costs here is what it costs more than the one that its meal would be had in
    anyway. At most five cuisines are wished for, so that sets of cuisines can be enumerated.
    """
    best: dict[frozenset[str], tuple[float, tuple[Restaurant, ...]]] = {frozenset(): (0.0, ())}
    for city, offers in ranked.items():
        usual = _price(offers[min(slots[city], len(offers)) - 1], comfort) if offers else 0.0
        for restaurant in offers:
            has = frozenset(cuisine for cuisine in cuisines if cuisine in restaurant.cuisines)
            if not has:
                continue
            extra = max(0.0, _price(restaurant, comfort) - usual)
            for covered, (cost, chosen) in list(best.items()):
                union = covered | has
                known = best.get(union)
                if union == covered or (known is not None and cost + extra >= known[0]):
                    continue
                if sum(other.city == city for other in chosen) < slots[city]:
                    best[union] = (cost + extra, (*chosen, restaurant))
    covered = max(best, key=lambda union: (len(union), -best[union][0]))
    return best[covered][1], covered
