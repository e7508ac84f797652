"""The eight commonsense constraints, exactly as TravelPlanner's published evaluator decides them.

The conditions are those of ``evaluation/commonsense_constraint.py`` in OSU-NLP-Group/TravelPlanner
(Xie et al. 2024), in their order: the first that fails gives the verdict, and an exception ends
the whole kind. Oddities of the original are kept; `strict` corrects them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from ..data.tables import Sandbox, Trip
from .reading import (
    MEALS,
    Loose,
    before_parenthesis,
    car_of,
    days_within,
    filled,
    flight_number,
    name_and_city,
    route_in,
    route_of,
    vehicle_of,
)
from .results import COMMONSENSE, ConstraintResult, failed, passed

__all__ = ("NOTHING_TO_FILL_IN", "commonsense_checks", "valid_sequence")

NOTHING_TO_FILL_IN = "You don't need to fill in the information for this or later days."
"""The current city of a day beyond the trip in TravelPlanner's annotation form."""

Check = Callable[[Loose, Trip, Sandbox], ConstraintResult]
Rows = Callable[[str, str], tuple[object, ...]]


def commonsense_checks(*, rooms_among_attractions: bool = False) -> tuple[tuple[str, Check], ...]:
    """The checks with their names, in order.

    Args:
        rooms_among_attractions: look accommodations up among the attractions in the sandbox
            check, as Collaborative Gym's copy does.
    """

    def in_sandbox(plan: Loose, trip: Trip, sandbox: Sandbox) -> ConstraintResult:
        rooms = sandbox.attractions_named if rooms_among_attractions else None
        return _in_sandbox(plan, trip, sandbox, rooms or sandbox.accommodations_named)

    checks: tuple[Check, ...] = (
        _reasonable_cities,
        _different_restaurants,
        _different_attractions,
        _minimum_nights,
        _no_conflicting_transport,
        _in_current_city,
        in_sandbox,
        _nothing_absent,
    )
    return tuple(zip(COMMONSENSE, checks, strict=True))


def _cities_of(place: Loose) -> tuple[str, ...]:
    """One city for a stay, two for a day of travel."""
    if "from" in place:
        origin, destination = route_in(place)
        return before_parenthesis(origin), before_parenthesis(destination)
    return (before_parenthesis(place),)


def _reasonable_cities(plan: Loose, trip: Trip, sandbox: Sandbox) -> ConstraintResult:
    cities: list[str] = []
    for index, day in days_within(plan, trip.days):
        of_day = _cities_of(day["current_city"])
        if index == 0 and len(of_day) == 2 and of_day[0] != trip.origin:
            return failed(f"day 1 starts in {of_day[0]!r}, not in {trip.origin}")
        cities += of_day
    if cities[0] != cities[-1]:
        return failed(f"the trip starts in {cities[0]!r} but ends in {cities[-1]!r}")
    if not valid_sequence(cities):
        return failed(f"{' > '.join(cities)} is no sensible route")
    for index, city in enumerate(cities):
        state = sandbox.states.get(city)
        if state is None:
            return failed(f"there is no city {city!r}")
        within = 0 < index < len(cities) - 1
        if within and trip.days > 3 and state != trip.destination:
            return failed(f"{city} is in {state}, not in {trip.destination}")
    return passed


def valid_sequence(cities: list[str]) -> bool:
    """Whether no city between the ends is come back to, or only passed through.

    Passed through means that it stands alone: a stop of a night is named twice, on arrival and on
    departure. The last place is free to repeat any city, as the first is.
    """
    if len(cities) < 3:
        return False
    last = len(cities) - 1
    visited: set[str] = set()
    start = 0
    for city, run in groupby(cities):
        length = len(tuple(run))
        if city in visited and start not in (0, last):
            return False
        if length == 1 and 0 < start < last:
            return False
        visited.add(city)
        start += length
    return True


def _different_restaurants(plan: Loose, trip: Trip, sandbox: Sandbox) -> ConstraintResult:
    # A list, not a set: values other than texts may not be hashable, and compare as in Python.
    visited: list[Loose] = []
    for index, day in days_within(plan, trip.days):
        for meal in MEALS:
            restaurant = _said(day, meal)
            if restaurant is None:
                continue
            if restaurant in visited:
                return failed(f"the {meal} of day {index + 1} repeats {restaurant!r}")
            visited.append(restaurant)
    return passed


def _said(day: Loose, field: str) -> Loose:
    """The field of a day; None if it is missing or blank."""
    return day[field] if field in day and filled(day[field]) else None


def _listed_attractions(day: Loose) -> list[str]:
    """The attractions of a day but for what follows the last semicolon."""
    attractions = _said(day, "attraction")
    if attractions is None:
        return []
    listed: list[str] = attractions.split(";")
    return listed[:-1]


def _different_attractions(plan: Loose, trip: Trip, sandbox: Sandbox) -> ConstraintResult:
    visited: set[str] = set()
    for index, day in days_within(plan, trip.days):
        for attraction in _listed_attractions(day):
            if attraction in visited:
                return failed(f"day {index + 1} repeats the attraction {attraction!r}")
            visited.add(attraction)
    return passed


def _minimum_nights(plan: Loose, trip: Trip, sandbox: Sandbox) -> ConstraintResult:
    nights: list[Loose] = []
    for index, day in days_within(plan, trip.days):
        if "accommodation" not in day:
            return failed(f"day {index + 1} has no field for an accommodation")
        nights.append(day["accommodation"])
    for stay, run in groupby(nights):
        count = len(tuple(run))
        if stay in ("-", ""):
            continue
        found = sandbox.accommodations_named(*name_and_city(stay))
        if len(found) == 1 and count < found[0].minimum_nights:
            return failed(f"{stay!r} wants {found[0].minimum_nights:g} nights, not {count}")
    return passed


def _no_conflicting_transport(plan: Loose, trip: Trip, sandbox: Sandbox) -> ConstraintResult:
    if not filled(plan[0]["transportation"]):
        return failed("day 1 has no transportation")
    vehicles = {vehicle_of(plan[0]["transportation"])}
    for _, day in days_within(plan, trip.days):
        way = _said(day, "transportation")
        if way is not None:
            vehicles.add(vehicle_of(way))
    if "self-driving" in vehicles and vehicles & {"flight", "taxi"}:
        return failed("the own car is left behind: self-driving mixed with a flight or a taxi")
    return passed


def _in_current_city(plan: Loose, trip: Trip, sandbox: Sandbox) -> ConstraintResult:
    for index, day in days_within(plan, trip.days):
        of_day = _cities_of(day["current_city"])
        # On a day without travel the published check walks the characters of the city's name.
        cities = of_day if len(of_day) == 2 else tuple(of_day[0])
        wrong = _misplaced(day, cities)
        if wrong is not None:
            return failed(f"the {wrong} of day {index + 1} is not in {' or '.join(of_day)}")
    return passed


def _misplaced(day: Loose, cities: tuple[str, ...]) -> str | None:
    """The first field of a day that names none of its cities."""
    way = _said(day, "transportation")
    if way is not None and not all(city in way for city in cities):
        return "transportation"
    for meal in MEALS:
        restaurant = _said(day, meal)
        if restaurant is not None and not _names_one_of(cities, restaurant):
            return meal
    for attraction in _listed_attractions(day):
        if not _names_one_of(cities, attraction):
            return "attraction"
    stay = _said(day, "accommodation")
    return "accommodation" if stay is not None and cities[-1] not in stay else None


def _names_one_of(cities: tuple[str, ...], text: Loose) -> bool:
    return any(city in text for city in cities)


def _in_sandbox(plan: Loose, trip: Trip, sandbox: Sandbox, rooms: Rows) -> ConstraintResult:
    for index, day in days_within(plan, trip.days):
        if filled(day["transportation"]):
            problem = _unknown_way(day, sandbox, index)
            if problem is not None:
                return failed(f"day {index + 1}: {problem}")
        unknown = _unknown_place(day, sandbox, rooms)
        if unknown is not None:
            return failed(f"day {index + 1}: there is no {unknown}")
    return passed


def _unknown_place(day: Loose, sandbox: Sandbox, rooms: Rows) -> str | None:
    """The first restaurant, attraction or accommodation of a day that does not exist."""
    for meal in MEALS:
        restaurant = _said(day, meal)
        if restaurant is not None and not sandbox.restaurants_named(*name_and_city(restaurant)):
            return f"restaurant {restaurant!r}"
    for attraction in _listed_attractions(day):
        if not sandbox.attractions_named(*name_and_city(attraction)):
            return f"attraction {attraction!r}"
    stay = _said(day, "accommodation")
    if stay is not None and not rooms(*name_and_city(stay)):
        return f"accommodation {stay!r}"
    return None


def _unknown_way(day: Loose, sandbox: Sandbox, index: int) -> str | None:
    """The error in a day's transportation: a flight or a road that does not exist."""
    text = day["transportation"]
    origin, destination = route_of(day)
    lowered = text.lower()
    if "flight number" in lowered:
        if origin is None or destination is None:
            raise ValueError(f"the flight {text!r} of day {index + 1} says not from where to where")
        start, end = before_parenthesis(origin), before_parenthesis(destination)
        number = flight_number(text)
        flights = sandbox.flights_numbered.get(number, ())
        if any(flight.origin == start and flight.destination == end for flight in flights):
            return None
        return f"there is no flight {number} from {start} to {end}"
    mode = car_of(lowered)
    if mode is None:
        return None
    if origin is None or destination is None:
        return f"{text!r} says not from where to where"
    start, end = before_parenthesis(origin), before_parenthesis(destination)
    route = sandbox.route.get((start, end, mode))
    return (
        f"no way from {start} to {end} by {mode}" if route is None or route.cost is None else None
    )


def _nothing_absent(plan: Loose, trip: Trip, sandbox: Sandbox) -> ConstraintResult:
    present = sum(
        day != {} and day["current_city"] != NOTHING_TO_FILL_IN
        for _, day in days_within(plan, trip.days)
    )
    if present != trip.days:
        return failed(f"{present} of {trip.days} days are planned")
    visited: set[str] = set()
    for index, day in days_within(plan, trip.days):
        of_day = _cities_of(day["current_city"])
        if index == 0 and len(of_day) == 2 and of_day[0] != trip.origin:
            return failed(f"day 1 starts in {of_day[0]!r}, not in {trip.origin}")
        visited.update(of_day)
    visited.discard(trip.origin)
    if len(visited) != trip.cities:
        return failed(f"{len(visited)} cities are visited, not {trip.cities}")
    said = 0
    for index, day in days_within(plan, trip.days):
        missing = _missing(day, last=index == trip.days - 1)
        if missing is not None:
            return failed(f"day {index + 1} has no {missing}")
        said += sum(filled(day[field]) for field in day)
    if said < trip.days * 6 * 0.5:
        return failed("more than half of the plan is blank")
    return passed


def _missing(day: Loose, *, last: bool) -> str | None:
    """The missing part of a day."""
    for field in ("transportation", *MEALS, "attraction", "accommodation"):
        if field not in day:
            return f"field for {field}"
    place = day["current_city"]
    blank = ("", "-")
    travels = "from " in place
    if (travels or "to " in place) and day["transportation"] in blank:
        return "transportation"
    if not travels and " to " not in place and day["attraction"] in blank:
        return "attraction"
    if not last and day["accommodation"] in blank:
        return "accommodation"
    if not travels and any(day[meal] in blank for meal in MEALS):
        return "complete meals"
    return None
