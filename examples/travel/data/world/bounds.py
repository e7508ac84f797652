"""What a trip costs at least: the proof that a smaller budget can be met by no complete plan.

A bound from below: of each part of a plan the cheapest that the wishes allow is taken, whether or not
these go together. It counts plans of real ways, rooms and restaurants that keep the commonsense rules;
meals on days of travel may be left out, as the evaluation allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, permutations
from math import ceil, inf

from ...evaluation.hard import forbids, room_fits
from ..tables import SEATS, Trip
from .cities import STATES
from .generator import World

__all__ = ("least_cost",)


def least_cost(world: World, trip: Trip) -> float:
    """Dollars for everybody and everything, from below; infinite where no plan meets the wishes.

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
        best = min(best, _travel(fares, (trip.origin, *stops, trip.origin)) + lodging + eating)
    return best


_Fares = tuple[float, float]
"""What a way costs with one's own car, and without."""


def _travel(fares: dict[tuple[str, str], _Fares], through: Sequence[str]) -> float:
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
