"""Draws a plan that satisfies given wishes: the proof that they can be met.

A journey is drawn at random until it meets the wishes, and the budget is set from its cost. Nothing
here uses the planner, so that the planner is measured on instances that do not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, permutations
from math import ceil, inf
from random import Random
from typing import NamedTuple

from ...evaluation.hard import forbids, room_fits
from ...plan.plan import BLANK, DayPlan, Plan
from ..tables import SEATS, Accommodation, Flight, Restaurant, Route, Trip
from .cities import STATES
from .generator import World

__all__ = ("FeasiblePlan", "find_feasible_plan", "least_cost")

_ROOM_TYPES = {
    "entire room": ("Entire home/apt",),
    "private room": ("Private room",),
    "shared room": ("Shared room",),
    "not shared room": ("Entire home/apt", "Private room"),
    None: ("Entire home/apt", "Private room", "Shared room"),
}
_MENUS = 4  # how many restaurants are looked at for a meal, the cheapest of which is taken
_LONGEST_TAXI = 700  # dollars; beyond that, taking a taxi makes no sense


class FeasiblePlan(NamedTuple):
    """A plan that meets all wishes but the budget, and its cost in dollars."""

    plan: Plan
    cost: float


class _PlannedDay(NamedTuple):
    """The cities of a day: from one to another, or the same all day."""

    came_from: str
    city: str


def find_feasible_plan(
    world: World, trip: Trip, stops: Sequence[str], random: Random
) -> FeasiblePlan | None:
    """Draw a journey through the given cities that meets the trip's constraints, or None.

    Args:
        world: where to travel.
        trip: the wishes; its budget is ignored.
        stops: the cities to visit, in order.
        random: the source of all choices.
    """
    nights = _nights(trip.days - 1, len(stops))
    days = _days(trip, stops, nights)
    legs = _travel(world, trip, days, random)
    rooms = [_room(world, trip, *stay, random) for stay in zip(stops, nights, strict=True)]
    meals = _meals(world, trip, days, random)
    if legs is None or meals is None or any(room is None for room in rooms):
        return None
    beds = {room.city: room for room in rooms if room is not None}
    cost = sum(_fare(leg, trip.people) for leg in legs if leg is not None)
    cost += sum(meal.average_cost * trip.people for day in meals for meal in day if meal)
    plan = []
    for number, (day, leg, eaten) in enumerate(zip(days, legs, meals, strict=True), 1):
        bed = beds.get(day.city) if number < trip.days else None
        if bed is not None:
            cost += bed.price * ceil(trip.people / bed.maximum_occupancy)
        sights = world.tables(day.city).attractions[2 * number - 2 : 2 * number]
        seen = "".join(f"{sight.name}, {sight.city};" for sight in sights)
        breakfast, lunch, dinner = (f"{m.name}, {m.city}" if m else BLANK for m in eaten)
        plan.append(
            DayPlan(
                days=number,
                current_city=day.city if leg is None else f"from {day.came_from} to {day.city}",
                transportation=BLANK if leg is None else _line(leg),
                breakfast=breakfast,
                attraction=seen if seen and number < trip.days else BLANK,
                lunch=lunch,
                dinner=dinner,
                accommodation=BLANK if bed is None else f"{bed.name}, {bed.city}",
            )
        )
    return FeasiblePlan(tuple(plan), cost)


def _nights(total: int, stops: int) -> list[int]:
    return [total // stops + (stop < total % stops) for stop in range(stops)]


def _days(trip: Trip, stops: Sequence[str], nights: Sequence[int]) -> list[_PlannedDay]:
    slept = [city for city, count in zip(stops, nights, strict=True) for _ in range(count)]
    return [
        _PlannedDay(a, b) for a, b in zip([trip.origin, *slept], [*slept, trip.origin], strict=True)
    ]


def _travel(
    world: World, trip: Trip, days: Sequence[_PlannedDay], random: Random
) -> list[Flight | Route | None] | None:
    """The way from city to city, None on days without travel; or None if no way exists."""
    banned = trip.constraints.transportation
    drive = banned != "no self-driving" and (banned == "no flight" or random.random() < 0.3)
    legs: list[Flight | Route | None] = []
    for day, date in zip(days, trip.dates, strict=True):
        if day.came_from == day.city:
            legs.append(None)
            continue
        flights = () if drive else world.flights(day.came_from, day.city, date)
        by_car, taxi = world.routes(day.came_from, day.city)
        if drive and by_car.cost is not None:
            legs.append(by_car)
        elif flights:
            legs.append(random.choice(flights))
        elif not drive and taxi.cost is not None and taxi.cost <= _LONGEST_TAXI:
            legs.append(taxi)
        else:
            return None
    return legs


def _room(world: World, trip: Trip, city: str, nights: int, random: Random) -> Accommodation | None:
    limits = trip.constraints
    fitting = [
        room
        for room in world.tables(city).accommodations
        if room.minimum_nights <= nights
        and room.room_type in _ROOM_TYPES[limits.room_type]
        and (limits.house_rule is None or f"No {limits.house_rule}" not in room.house_rules)
    ]
    fitting.sort(key=lambda room: room.price * ceil(trip.people / room.maximum_occupancy))
    return random.choice(fitting[: ceil(len(fitting) / 4)]) if fitting else None


def _meals(
    world: World, trip: Trip, days: Sequence[_PlannedDay], random: Random
) -> list[tuple[Restaurant | None, ...]] | None:
    """Breakfast, lunch and dinner of each day, all different, with every cuisine asked for."""
    last = len(days) - 1
    where = [
        city
        for number, day in enumerate(days)
        for city in (
            BLANK if number == 0 else day.came_from,
            BLANK if number == last else day.city,
            BLANK if number == last else day.city,
        )
    ]
    chosen: list[Restaurant | None] = [None] * len(where)
    missing = set(trip.constraints.cuisine or ())
    while missing:
        cuisine = min(missing)
        offers = [
            (slot, restaurant)
            for slot, city in enumerate(where)
            if city != BLANK and chosen[slot] is None
            for restaurant in world.tables(city).restaurants
            if cuisine in restaurant.cuisines and restaurant not in chosen
        ]
        if not offers:
            return None
        slot, restaurant = random.choice(offers)
        chosen[slot] = restaurant
        missing -= {name for name in missing if name in restaurant.cuisines}
    for slot, city in enumerate(where):
        if city != BLANK and chosen[slot] is None:
            free = [r for r in world.tables(city).restaurants if r not in chosen]
            tried = random.sample(free, min(_MENUS, len(free)))
            chosen[slot] = min(tried, key=lambda restaurant: restaurant.average_cost)
    return [tuple(chosen[start : start + 3]) for start in range(0, len(chosen), 3)]


def _fare(leg: Flight | Route, people: int) -> float:
    if isinstance(leg, Flight):
        return leg.price * people
    return (leg.cost or 0.0) * ceil(people / SEATS[leg.mode])


def _line(leg: Flight | Route) -> str:
    if isinstance(leg, Flight):
        return (
            f"Flight Number: {leg.number}, from {leg.origin} to {leg.destination}, "
            f"Departure Time: {leg.departs}, Arrival Time: {leg.arrives}"
        )
    return (
        f"{leg.mode.capitalize()}, from {leg.origin} to {leg.destination}, "
        f"Duration: {leg.duration}, Distance: {leg.distance}, Cost: {leg.cost}"
    )


# --- what a trip costs at least -------------------------------------------------------------------


def least_cost(world: World, trip: Trip) -> float:
    """A lower bound on the whole party's costs in dollars; infinite if no plan meets the wishes.

    Args:
        world: where to travel.
        trip: the wishes; its budget is ignored.
    """
    cities = (trip.destination,) if trip.days == 3 else STATES[trip.destination]
    through = [city for city in cities if city != trip.origin]
    rooms = {city: _night(world, trip, city) for city in through}
    meals = {
        city: sorted(r.average_cost for r in world.tables(city).restaurants) for city in through
    }
    full = 3 * (trip.days - trip.cities - 1)  # meals on days without travel
    fares = {pair: _fares(world, trip, *pair) for pair in permutations((trip.origin, *through), 2)}
    best = inf
    for stops in permutations(through, trip.cities):
        nights = [rooms[city] for city in stops]
        lodging = sum(nights) + (trip.days - 1 - len(stops)) * min(nights)
        eating = sum(sorted(cost for city in stops for cost in meals[city])[:full]) * trip.people
        best = min(
            best, _travel_bounds(fares, (trip.origin, *stops, trip.origin)) + lodging + eating
        )
    return best


_Fares = tuple[float, float]
"""The cost of a way with self-driving, and without."""


def _travel_bounds(fares: dict[tuple[str, str], _Fares], through: Sequence[str]) -> float:
    """The way through the cities: by own car all the way, or without it."""
    legs = [fares[pair] for pair in pairwise(through)]
    return min(sum(leg[0] for leg in legs), sum(leg[1] for leg in legs))


def _fares(world: World, trip: Trip, origin: str, destination: str) -> _Fares:
    banned = trip.constraints.transportation
    by_car, taxi = world.routes(origin, destination)

    def road(cost: float | None, seats: int) -> float:
        return inf if cost is None else cost * ceil(trip.people / seats)

    drive = inf if banned == "no self-driving" else road(by_car.cost, SEATS["self-driving"])
    without = road(taxi.cost, SEATS["taxi"])
    if banned != "no flight":
        # The evaluation goes by the number of a flight, and not by its date.
        without = min(
            without,
            _least(
                flight.price * trip.people
                for date in trip.dates
                for flight in world.flights(origin, destination, date)
            ),
        )
    return drive, without


def _night(world: World, trip: Trip, city: str) -> float:
    """A night in the city for all of them, in the cheapest room that they would take."""
    wishes = trip.constraints
    return _least(
        room.price * ceil(trip.people / room.maximum_occupancy)
        for room in world.tables(city).accommodations
        if (wishes.house_rule is None or not forbids(room, wishes.house_rule))
        and (wishes.room_type is None or room_fits(room, wishes.room_type))
    )


def _least(costs: Iterable[float]) -> float:
    return min(costs, default=inf)
