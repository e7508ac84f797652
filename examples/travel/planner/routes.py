"""Routes through the cities of a trip: their order, and the way from each to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from .finds import Finds
from .knowledge import Knowledge
from .legs import Circle, Leg

__all__ = (
    "Journey",
    "candidates",
    "city_count",
    "even_nights",
    "journeys",
    "leads_back",
    "transfers",
)

_HOUR = 30.0  # dollars per hour of travel, unless the budget forces to save
_CIRCLES = 20_000  # more than three cities out of any state give; a bound for stranger wishes


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
        return _fare(self.legs)

    @property
    def burden(self) -> float:
        """Fare and time together, in dollars."""
        return _burden(self.legs)


def _fare(legs: Sequence[Leg]) -> float:
    return sum(leg.fare for leg in legs)


def _burden(legs: Sequence[Leg]) -> float:
    return sum(leg.fare + _HOUR * leg.hours for leg in legs)


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
) -> Iterator[Journey]:
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
    about = (known.origin, known.dates, known.transportation, known.party)
    key = (*about, tuple(cities), nights, saving)
    circles = finds.ways.circles.get(key)
    if circles is None:
        kinds = _kinds_of_circles(known, finds, cities, nights, 0.0 if saving else _HOUR)
        found = chain.from_iterable(islice(kind, _CIRCLES) for kind in kinds)
        weigh = _fare if saving else _burden
        circles = sorted(found, key=lambda circle: weigh(circle[1]))
        finds.ways.circles[key] = circles
    return (Journey(stops, nights, legs) for stops, legs in circles)


def leads_back(
    known: Knowledge, finds: Finds, cities: Sequence[str], nights: tuple[int, ...]
) -> bool:
    """Whether ``journeys`` finds any."""
    return any(True for kind in _kinds_of_circles(known, finds, cities, nights, 0.0) for _ in kind)


_Way = Callable[[str, str, int], Leg | None]


def _kinds_of_circles(
    known: Knowledge, finds: Finds, cities: Sequence[str], nights: tuple[int, ...], hour: float
) -> list[Iterator[Circle]]:
    """The circles by flights and taxis, and those by own car, if an hour of travel is worth so many dollars."""
    people, ways = known.party, finds.ways
    dates = known.dates if "no flight" not in known.transportation else (None,) * known.days

    def ride(a: str, b: str, day: int) -> Leg | None:
        return ways.ride(a, b, dates[day], people, hour)

    def drive(a: str, b: str, day: int) -> Leg | None:
        return ways.road(a, b, "self-driving", people)

    if len(nights) > len(cities):
        return []
    kinds = (ride,) if "no self-driving" in known.transportation else (ride, drive)
    return [_circles(known.origin, cities, transfers(nights), way) for way in kinds]


def _circles(
    home: str, cities: Sequence[str], days: Sequence[int], way: _Way, *, so_far: Circle = ((), ())
) -> Iterator[Circle]:
    """Complete the circle begun in every way there is, with a leg on each of the days."""
    stops, legs = so_far
    here = stops[-1] if stops else home
    day, after = days[len(stops)], days[len(stops) + 1]
    last = len(stops) == len(days) - 2
    for city in cities:
        leg = None if city in stops else way(here, city, day)
        if leg is None:
            continue
        if not last:
            further = ((*stops, city), (*legs, leg))
            yield from _circles(home, cities, days, way, so_far=further)
        elif (back := way(city, home, after)) is not None:
            yield (*stops, city), (*legs, leg, back)
