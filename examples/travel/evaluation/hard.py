"""The five hard constraints and the total cost, exactly as in TravelPlanner's published evaluator.

The conditions are those of ``evaluation/hard_constraint.py`` in OSU-NLP-Group/TravelPlanner (Xie et
al. 2024). Names that are not in the sandbox cost nothing and pass; if several rows match a name,
the first counts.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from ..data.tables import SEATS, Accommodation, Sandbox, Trip
from .reading import (
    MEALS,
    Loose,
    before_parenthesis,
    car_of,
    days_within,
    filled,
    flight_number,
    name_and_city,
    route_of,
)
from .results import HARD, ConstraintResult, failed, not_applicable, passed

__all__ = ("HARD_CHECKS", "ROOM_TYPES", "asked_of", "forbids", "room_fits", "total_cost")

ROOM_TYPES = {
    "shared room": "Shared room",
    "private room": "Private room",
    "entire room": "Entire home/apt",
}
"""The room type in the tables for each that a request may ask for."""

_RULES = ("smoking", "parties", "children under 10", "visitors", "pets")

Check = Callable[[Loose, Trip, Sandbox], ConstraintResult]


def total_cost(plan: Loose, trip: Trip, sandbox: Sandbox) -> float:
    """The plan's cost for all travellers, in dollars.

    Flights and meals per person, cars per five people, taxis per four, rooms per maximum
    occupancy and listed day.

    Raises:
        TypeError: the price of a way by car or taxi is missing, or the plan is not of the right types.
        IndexError: a flight number is not written as ``Flight Number: ``.
        KeyError: a field is missing.
    """
    total = 0.0
    for _, day in days_within(plan, trip.days):
        if filled(day["transportation"]):
            total += _fare(day, trip, sandbox)
        for meal in MEALS:
            if filled(day[meal]):
                for restaurant in sandbox.restaurants_named(*name_and_city(day[meal]))[:1]:
                    total += restaurant.average_cost * trip.people
        for room in _room(day, sandbox):
            total += room.price * ceil(trip.people / room.maximum_occupancy)
    return total


def _fare(day: Loose, trip: Trip, sandbox: Sandbox) -> float:
    text = day["transportation"]
    origin, destination = route_of(day)
    if origin is None or destination is None:
        return 0.0
    lowered = text.lower()
    if "flight number" in lowered:
        # Neither the route nor the date of the flight counts here.
        for flight in sandbox.flights_numbered.get(flight_number(text), ())[:1]:
            return flight.price * trip.people
        return 0.0
    mode = car_of(lowered)
    if mode is None:
        return 0.0
    start, end = before_parenthesis(origin), before_parenthesis(destination)
    route = sandbox.route.get((start, end, mode))
    if route is None or route.cost is None:
        raise TypeError(f"no price is known from {start} to {end} by {mode}, so none can be added")
    return route.cost * ceil(trip.people / SEATS[mode])


def _room(day: Loose, sandbox: Sandbox) -> tuple[Accommodation, ...]:
    """The first accommodation that a day's text matches, or none."""
    if not filled(day["accommodation"]):
        return ()
    return sandbox.accommodations_named(*name_and_city(day["accommodation"]))[:1]


def asked_of(trip: Trip) -> int:
    """How many hard constraints a request makes, the budget included."""
    wishes = trip.constraints
    named = (wishes.house_rule, wishes.transportation, wishes.room_type, trip.budget)
    return bool(wishes.cuisine) + sum(wish is not None for wish in named)


def forbids(room: Accommodation, wish: str) -> bool:
    """Whether the house rules forbid what the travellers want to do or bring."""
    return wish in _RULES and f"No {wish}" in room.house_rules


def room_fits(room: Accommodation, wish: str) -> bool:
    """Whether a room has the type asked for; every room matches an unknown type."""
    if wish == "not shared room":
        return room.room_type != "Shared room"
    return room.room_type == ROOM_TYPES.get(wish, room.room_type)


def _cuisine(plan: Loose, trip: Trip, sandbox: Sandbox) -> ConstraintResult:
    wanted = trip.constraints.cuisine
    if not wanted:
        return not_applicable
    offered: set[str] = set()
    for _, day in days_within(plan, trip.days):
        for meal in MEALS:
            if not filled(day[meal]):
                continue
            name, city = name_and_city(day[meal])
            if city == trip.origin:
                break  # a meal at home ends the day's search
            for restaurant in sandbox.restaurants_named(name, city)[:1]:
                offered.update(c for c in wanted if c in restaurant.cuisines)
    missing = [cuisine for cuisine in wanted if cuisine not in offered]
    return failed(f"no meal offers {' or '.join(missing)} food") if missing else passed


def _room_rule(plan: Loose, trip: Trip, sandbox: Sandbox) -> ConstraintResult:
    wish = trip.constraints.house_rule
    if wish is None:
        return not_applicable
    for index, day in days_within(plan, trip.days):
        for room in _room(day, sandbox):
            if forbids(room, wish):
                return failed(f"{room.name!r} on day {index + 1} does not allow {wish}")
    return passed


def _transportation(plan: Loose, trip: Trip, sandbox: Sandbox) -> ConstraintResult:
    wish = trip.constraints.transportation
    if wish is None:
        return not_applicable
    word = {"no flight": "Flight", "no self-driving": "Self-driving"}.get(wish)
    for index, day in days_within(plan, trip.days):
        if filled(day["transportation"]) and word is not None and word in day["transportation"]:
            return failed(f"day {index + 1} has what the request rules out: {wish}")
    return passed


def _room_type(plan: Loose, trip: Trip, sandbox: Sandbox) -> ConstraintResult:
    wish = trip.constraints.room_type
    if wish is None:
        return not_applicable
    for index, day in days_within(plan, trip.days):
        for room in _room(day, sandbox):
            if not room_fits(room, wish):
                return failed(f"{room.name!r} on day {index + 1} is no {wish}: {room.room_type}")
    return passed


def _cost(plan: Loose, trip: Trip, sandbox: Sandbox) -> ConstraintResult:
    total = total_cost(plan, trip, sandbox)
    if trip.budget is None:
        return not_applicable
    if total > trip.budget:
        return failed(f"it costs ${total:,.0f}, more than the budget of ${trip.budget:,.0f}")
    return passed


HARD_CHECKS: tuple[tuple[str, Check], ...] = tuple(
    zip(HARD, (_cuisine, _room_rule, _transportation, _room_type, _cost), strict=True)
)
"""The checks with their names, in order."""
