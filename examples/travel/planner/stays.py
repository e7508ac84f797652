"""Chooses rooms and restaurants for the stops of a journey.

The weight of comfort against money is a number from 0 (money alone) upwards: the value of one more
star for a night, and of one more point for a meal.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice
from math import ceil
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias, final

from ..data.tables import Accommodation, Restaurant
from .knowledge import Knowledge

__all__ = ("Rooms", "Table", "Tables", "allows", "fits_type", "room_cost")

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
        filled: how many slots have a restaurant.
        dollars: what the meals cost, for each person.
    """

    by_city: Mapping[str, tuple[Restaurant, ...]]
    missing: tuple[str, ...]
    filled: int
    dollars: float


def allows(room: Accommodation, house_rule: str) -> bool:
    """Whether the house rules allow this, that is, do not forbid it."""
    return f"No {house_rule}" not in room.house_rules


def fits_type(room: Accommodation, room_type: str) -> bool:
    """Whether a room is of the type wished for."""
    return room.room_type in _ROOM_TYPES.get(room_type, (room.room_type,))


def room_cost(room: Accommodation, people: int) -> float:
    """Dollars a night for as many of this room as the party needs."""
    return room.price * ceil(people / max(1, room.maximum_occupancy))


_Room: TypeAlias = tuple[Accommodation | None, tuple[str, ...]]
_Ranked: TypeAlias = tuple[tuple[float, Restaurant], ...]
_Covering: TypeAlias = tuple[float, tuple[Restaurant, ...], str, int]


@final
class Rooms:
    """The rooms found in each city; the best one for a stay is looked for once."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Accommodation, ...]] = {}
        self._picked: dict[str, dict[Hashable, _Room]] = {}

    def of(self, city: str) -> tuple[Accommodation, ...]:
        """The rooms of a city, in the order of the table."""
        return self._found.get(city, ())

    def add(self, city: str, rooms: tuple[Accommodation, ...]) -> None:
        """Takes in the rooms of a city, in place of those found before."""
        self._found[city] = rooms
        self._picked.pop(city, None)

    def pick(self, known: Knowledge, city: str, nights: int, comfort: float) -> _Room:
        """The best room for a stay, and which wishes it fails: ``nights``, ``house_rule``,
        ``room_type``; where nothing fits, the one that fails least.
        """
        picked = self._picked.setdefault(city, {})
        key = nights, comfort, known.party, known.house_rule, known.room_type
        if key not in picked:
            picked[key] = _best_room(self.of(city), known, nights, comfort)
        return picked[key]


def _best_room(
    rooms: Iterable[Accommodation], known: Knowledge, nights: int, comfort: float
) -> _Room:
    people, rule, wished = known.party, known.house_rule, known.room_type
    best: _Room = None, ("nights", "house_rule", "room_type")
    least: tuple[bool, int, float] | None = None
    for room in rooms:
        short = room.minimum_nights > nights
        forbidden = rule is not None and not allows(room, rule)
        other = wished is not None and not fits_type(room, wished)
        price = room_cost(room, people) - comfort * _STAR * (room.rating or 0.0)
        rank = short, short + forbidden + other, price
        if least is None or rank < least:
            fails = (("nights", short), ("house_rule", forbidden), ("room_type", other))
            best, least = (room, tuple(wish for wish, failed in fails if failed)), rank
    return best


@final
class Tables:
    """The restaurants found in each city; those for the same meals are chosen once."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[Restaurant, ...]] = {}
        self._ranked: dict[tuple[str, float], _Ranked] = {}
        self._picked: dict[Hashable, Table] = {}

    def of(self, city: str) -> tuple[Restaurant, ...]:
        """The restaurants of a city, in the order of the table."""
        return self._found.get(city, ())

    def add(self, city: str, restaurants: tuple[Restaurant, ...]) -> None:
        """Takes in the restaurants of a city, in place of those found before."""
        self._found[city] = restaurants
        self._ranked.clear()
        self._picked.clear()

    def pick(self, cuisines: tuple[str, ...], slots: Mapping[str, int], comfort: float) -> Table:
        """Restaurants for the meals of a journey: all cuisines asked for, then the best there are.

        Args:
            cuisines: asked for.
            slots: how many meals in each city.
            comfort: what a better rating is worth.
        """
        key = cuisines, tuple(slots.items()), comfort
        if key not in self._picked:
            ranked = {city: self._rank(city, comfort) for city, count in slots.items() if count}
            self._picked[key] = _best_table(cuisines, ranked, slots)
        return self._picked[key]

    def _rank(self, city: str, comfort: float) -> _Ranked:
        """The restaurants of a city with their prices less the worth of their ratings; the best first."""
        key = city, comfort
        if key not in self._ranked:
            priced = [(r.average_cost - comfort * _POINT * r.rating, r) for r in self.of(city)]
            self._ranked[key] = tuple(sorted(priced, key=itemgetter(0)))
        return self._ranked[key]


def _best_table(
    cuisines: Sequence[str], ranked: Mapping[str, _Ranked], slots: Mapping[str, int]
) -> Table:
    chosen, covered = _cover(cuisines, ranked, slots) if cuisines else ((), frozenset())
    by_city = {}
    for city, offers in ranked.items():
        kept = [restaurant for restaurant in chosen if restaurant.city == city]
        rest = (restaurant for _, restaurant in offers if restaurant not in kept)
        by_city[city] = (*kept, *islice(rest, slots[city] - len(kept)))
    eaten = [restaurant for meals in by_city.values() for restaurant in meals]
    missing = [
        wish
        for wish in cuisines
        if wish not in covered and not any(wish in one.cuisines for one in eaten)
    ]
    return Table(by_city, tuple(missing), len(eaten), sum(one.average_cost for one in eaten))


def _cover(
    cuisines: Sequence[str], ranked: Mapping[str, _Ranked], slots: Mapping[str, int]
) -> tuple[tuple[Restaurant, ...], frozenset[str]]:
    """The cheapest set of restaurants that has as many of the cuisines as can be had.

    What a restaurant costs here is what it costs more than the one that its meal would be had in
    anyway. At most five cuisines are wished for, so that sets of cuisines, which are bits of a
    number here, can be enumerated.
    """
    bits = {cuisine: 1 << at for at, cuisine in enumerate(dict.fromkeys(cuisines))}
    # For each set what it costs, the restaurants, the city of the last of them, and how many are there.
    best: dict[int, _Covering] = {0: (0.0, (), "", 0)}
    for city, offers in ranked.items():
        room = slots[city]
        usual = offers[min(room, len(offers)) - 1][0] if offers else 0.0
        for price, restaurant in offers:
            has = 0
            for cuisine, bit in bits.items():
                if cuisine in restaurant.cuisines:
                    has |= bit
            if not has:
                continue
            extra = max(0.0, price - usual)
            for covered, (cost, chosen, where, count) in list(best.items()):
                union = covered | has
                if union == covered or (union in best and cost + extra >= best[union][0]):
                    continue
                there = count if where == city else 0
                if there < room:
                    best[union] = (cost + extra, (*chosen, restaurant), city, there + 1)
    most = max(best, key=lambda union: (union.bit_count(), -best[union][0]))
    return best[most][1], frozenset(cuisine for cuisine, bit in bits.items() if most & bit)
