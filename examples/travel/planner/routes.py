"""Routes through the cities of a trip: their order, and the way from each to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from math import ceil, inf
from typing import NamedTuple

from ..data.tables import SEATS, Flight, Mode, Route
from .finds import Finds
from .knowledge import Knowledge

__all__ = (
    "Journey",
    "Leg",
    "candidates",
    "city_count",
    "even_nights",
    "journeys",
    "leads_back",
    "road_line",
    "transfers",
)

_HOUR = 30.0  # dollars per hour of travel, unless the budget forces to save
_CIRCLES = 20_000  # more than three cities out of any state give; a bound for stranger wishes


class Leg(NamedTuple):
    """One way from a city to another.

    Attributes:
        line: as a plan states it.
        fare: in dollars, for everybody.
        hours: under way.
        departs: hour of the day, e.g. 8.5 for half past eight.
        arrives: hour of the day; beyond 24 on the next day.
    """

    line: str
    fare: float
    hours: float
    departs: float
    arrives: float


class Journey(NamedTuple):
    """A closed circle from home through one or more cities.

    Attributes:
        stops: the cities, in order.
        nights: how many in each.
        legs: one more than there are stops; the last one leads home.
    """

    stops: tuple[str, ...]
    nights: tuple[int, ...]
    legs: tuple[Leg, ...]

    @property
    def fare(self) -> float:
        """Dollars for all legs and all travellers."""
        return sum(leg.fare for leg in self.legs)

    @property
    def burden(self) -> float:
        """Fare and time together, in dollars."""
        return sum(leg.fare + _HOUR * leg.hours for leg in self.legs)


def city_count(known: Knowledge) -> int:
    """How many cities to visit; by default one, or two if the destination is a state."""
    guess = 2 if known.to_state else 1
    count = guess if known.cities is None else known.cities
    return max(1, min(count, known.days - 1))


def even_nights(total: int, stops: int) -> tuple[int, ...]:
    """The nights of a trip spread evenly, the earlier stops first."""
    return tuple(total // stops + (stop < total % stops) for stop in range(stops))


def transfers(nights: Sequence[int]) -> tuple[int, ...]:
    """On which days, counted from 0, there is a leg; the last is the day of the return."""
    days = [0]
    for count in nights:
        days.append(days[-1] + count)
    return tuple(days)


def candidates(known: Knowledge, finds: Finds) -> tuple[str, ...]:
    """The cities that may be visited, as far as they are known."""
    if not known.to_state:
        return (known.destination,)
    cities = finds.cities.get(known.destination, ())
    return tuple(city for city in cities if city != known.origin)


def journeys(
    known: Knowledge,
    finds: Finds,
    cities: Sequence[str],
    nights: tuple[int, ...],
    *,
    saving: bool = False,
) -> list[Journey]:
    """All closed circles through as many of the cities as there are nights, least burden first.

    Each goes by own car all the way, or by flights and taxis: the two do not mix, since the car
    would be left behind.

    Args:
        known: decides what is allowed, and for how many people.
        finds: what ways there are.
        cities: to choose from.
        nights: per stop.
        saving: take the cheapest of several legs, however long it takes.
    """
    circles = _kinds_of_circles(known, finds, cities, nights, 0.0 if saving else _HOUR)
    found = [circle for kind in circles for circle in islice(kind, _CIRCLES)]
    through = [Journey(stops, nights, legs) for stops, legs in found]
    return sorted(through, key=lambda journey: journey.fare if saving else journey.burden)


def leads_back(
    known: Knowledge, finds: Finds, cities: Sequence[str], nights: tuple[int, ...]
) -> bool:
    """Whether ``journeys`` finds any."""
    return any(True for kind in _kinds_of_circles(known, finds, cities, nights, 0.0) for _ in kind)


_Way = Callable[[str, str, int], Leg | None]
_Circle = tuple[tuple[str, ...], tuple[Leg, ...]]


def _kinds_of_circles(
    known: Knowledge, finds: Finds, cities: Sequence[str], nights: tuple[int, ...], hour: float
) -> list[Iterator[_Circle]]:
    """The circles by flights and taxis, and those by own car, if an hour of travel is worth so many dollars."""
    people = known.party

    @cache
    def road(a: str, b: str, mode: Mode) -> Leg | None:
        route = finds.routes.get((a, b, mode))
        return None if route is None else _by_road(route, people)

    def drive(a: str, b: str, day: int) -> Leg | None:
        return road(a, b, "self-driving")

    @cache
    def ride(a: str, b: str, day: int) -> Leg | None:
        options: list[Leg] = []
        if "no flight" not in known.transportation:
            flights = finds.flights.get((a, b, known.dates[day]), ())
            options += [_by_air(flight, people) for flight in flights]
        by_taxi = road(a, b, "taxi")
        if by_taxi is not None:
            options.append(by_taxi)
        return min(options, key=lambda leg: leg.fare + hour * leg.hours, default=None)

    if len(nights) > len(cities):
        return []
    ways = (ride,) if "no self-driving" in known.transportation else (ride, drive)
    return [_circles(known.origin, cities, transfers(nights), way) for way in ways]


def _circles(
    home: str, cities: Sequence[str], days: Sequence[int], way: _Way, *, so_far: _Circle = ((), ())
) -> Iterator[_Circle]:
    """Complete the circle begun in every way there is, with a leg on each of the days."""
    stops, legs = so_far
    here = stops[-1] if stops else home
    day = days[len(stops)]
    if len(stops) == len(days) - 1:
        back = way(here, home, day)
        if back is not None:
            yield stops, (*legs, back)
        return
    for city in cities:
        leg = None if city in stops else way(here, city, day)
        if leg is not None:
            further = ((*stops, city), (*legs, leg))
            yield from _circles(home, cities, days, way, so_far=further)


def road_line(route: Route) -> str:
    """A way over land as a plan states it."""
    cost = "" if route.cost is None else f", Cost: {route.cost:g}"
    return (
        f"{route.mode.capitalize()}, from {route.origin} to {route.destination}, "
        f"Duration: {route.duration}, Distance: {route.distance}{cost}"
    )


def _by_air(flight: Flight, people: int) -> Leg:
    departs, arrives = _hour(flight.departs), _hour(flight.arrives)
    if arrives < departs:
        arrives += 24
    return Leg(
        line=f"Flight Number: {flight.number}, from {flight.origin} to {flight.destination}, "
        f"Departure Time: {flight.departs}, Arrival Time: {flight.arrives}",
        fare=flight.price * people,
        hours=arrives - departs + 2,  # the way to the airport and the wait there
        departs=departs,
        arrives=arrives,
    )


def _by_road(route: Route, people: int) -> Leg | None:
    if route.cost is None or route.duration is None:
        return None
    hours = _duration(route.duration)
    return Leg(
        line=road_line(route),
        fare=route.cost * ceil(people / SEATS[route.mode]),
        hours=hours,
        departs=8.0,
        arrives=8.0 + hours,
    )


def _hour(clock: str) -> float:
    """``08:30`` as 8.5; a time that cannot be read as noon."""
    hours, _, minutes = clock.partition(":")
    if not (hours.isdecimal() and minutes.isdecimal()):
        return 12.0
    return int(hours) + int(minutes) / 60


def _duration(words: str) -> float:
    """Hours in ``5 hours 12 mins``."""
    hours = 0.0
    number = 0.0
    for word in words.replace(",", "").split():
        if word.isdecimal():
            number = float(word)
        elif word.startswith("hour"):
            hours += number
        elif word.startswith("min"):
            hours += number / 60
        elif word.startswith("day"):
            return inf
    return hours
