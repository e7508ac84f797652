"""Ways from a city to the next, by air and over land; each is worked out once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import ceil, inf
from typing import NamedTuple, TypeAlias, final

from ..data.tables import SEATS, Flight, Mode, Route

__all__ = ("Circle", "Leg", "Ways", "road_line")


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


Circle: TypeAlias = tuple[tuple[str, ...], tuple[Leg, ...]]
"""Stops, and the legs from home through them and back."""


@final
class Ways:
    """The legs that flights and routes offer.

    Args:
        flights: by origin, destination and date.
        routes: over land, by origin, destination and mode.

    Attributes:
        circles: those that ``routes.journeys`` has worked out, by what it was asked for.
    """

    def __init__(
        self,
        flights: Mapping[tuple[str, str, str], tuple[Flight, ...]],
        routes: Mapping[tuple[str, str, Mode], Route],
    ) -> None:
        self._flights = flights
        self._routes = routes
        self._roads: dict[tuple[str, str, Mode, int], Leg | None] = {}
        self._rides: dict[tuple[str, str, str | None, int, float], Leg | None] = {}
        self.circles: dict[Hashable, list[Circle]] = {}

    def forget(self) -> None:
        """Works legs out anew: the flights or routes have changed."""
        self._roads.clear()
        self._rides.clear()
        self.circles.clear()

    def road(self, origin: str, destination: str, mode: Mode, people: int) -> Leg | None:
        """The way over land; None if there is none."""
        key = origin, destination, mode, people
        if key not in self._roads:
            route = self._routes.get((origin, destination, mode))
            self._roads[key] = None if route is None else _by_road(route, people)
        return self._roads[key]

    def ride(
        self, origin: str, destination: str, date: str | None, people: int, hour: float
    ) -> Leg | None:
        """The best flight or taxi, if an hour of travel is worth so many dollars.

        Args:
            origin: the city that it leaves.
            destination: the city that it reaches.
            date: the date of the flight; None if nobody may fly.
            people: how many travel.
            hour: dollars per hour.
        """
        key = origin, destination, date, people, hour
        if key not in self._rides:
            flights = () if date is None else self._flights.get((origin, destination, date), ())
            options = [_by_air(flight, people) for flight in flights]
            by_taxi = self.road(origin, destination, "taxi", people)
            if by_taxi is not None:
                options.append(by_taxi)
            best = min(options, key=lambda leg: leg.fare + hour * leg.hours, default=None)
            self._rides[key] = best
        return self._rides[key]


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
