"""The tables of a travel sandbox, in the shapes that TravelPlanner's database has.

The searches return these names, prices and rules, and the evaluation looks them up. Rows keep the
order of their table: if a name matches several rows, the first one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Final, Literal, Protocol, TypeVar, final

import msgspec

__all__ = (
    "REMEMBERED",
    "SEATS",
    "Accommodation",
    "Attraction",
    "Constraints",
    "Flight",
    "Mode",
    "Restaurant",
    "Route",
    "Sandbox",
    "Trip",
)

Mode = Literal["self-driving", "taxi"]

REMEMBERED: Final = 1 << 14
"""The number of texts whose reading is kept.

Both sides and the evaluation read the same plans, messages and names of places again and again. It is enough for a
thousand sessions at once, and keeps what models invent from filling the memory of a long run.
"""

SEATS: Mapping[Mode, int] = {"self-driving": 5, "taxi": 4}
"""How many people one car takes."""


class Flight(msgspec.Struct, frozen=True):
    """A flight on one date; price in dollars per person, times as HH:MM, distance in miles."""

    number: str
    price: float
    departs: str
    arrives: str
    elapsed: str
    date: str
    origin: str
    destination: str
    distance: float


class Restaurant(msgspec.Struct, frozen=True):
    """A restaurant; average cost in dollars per person, cuisines as comma-separated text."""

    name: str
    average_cost: float
    cuisines: str
    rating: float
    city: str


class Accommodation(msgspec.Struct, frozen=True):
    """A place to stay; price in dollars per night, house rules as in ``No pets & No parties``."""

    name: str
    price: float
    room_type: str
    house_rules: str
    minimum_nights: float
    maximum_occupancy: int
    rating: float | None
    city: str


class Attraction(msgspec.Struct, frozen=True):
    """Something to see."""

    name: str
    latitude: float
    longitude: float
    address: str
    phone: str
    website: str
    city: str


class Route(msgspec.Struct, frozen=True):
    """A way over land: duration and distance in words, cost in dollars per car.

    All three are None if there is no way ("no valid information").
    """

    origin: str
    destination: str
    mode: Mode
    duration: str | None
    distance: str | None
    cost: float | None


class Constraints(msgspec.Struct, frozen=True, kw_only=True):
    """The hard constraints of a request; None for those it does not make.

    Attributes:
        house_rule: the house must allow it: ``pets``, ``smoking``, ``parties``,
            ``children under 10`` or ``visitors``.
        cuisine: cuisines each of which some meal of the trip must offer.
        room_type: ``entire room``, ``private room``, ``shared room`` or ``not shared room``.
        transportation: ``no flight`` or ``no self-driving``.
    """

    house_rule: str | None = None
    cuisine: tuple[str, ...] | None = None
    room_type: str | None = None
    transportation: str | None = None


class Trip(msgspec.Struct, frozen=True, kw_only=True):
    """A request in structured form, known to the evaluation only.

    Attributes:
        origin: city.
        destination: a city for trips of 3 days, a state for longer ones.
        days: 3, 5 or 7.
        cities: how many cities to visit.
        dates: one ISO date a day.
        people: how many travel.
        budget: in dollars, for everybody and everything; None if there is none.
        constraints: the rest.
    """

    origin: str
    destination: str
    days: int
    cities: int
    dates: tuple[str, ...]
    people: int
    budget: float | None
    constraints: Constraints


@final
class Sandbox:
    """The tables of one world, indexed for searches and for the evaluation.

    Args:
        flights, restaurants, accommodations, attractions, routes: rows in table order.
        states: state of each city.
    """

    def __init__(
        self,
        *,
        flights: Iterable[Flight] = (),
        restaurants: Iterable[Restaurant] = (),
        accommodations: Iterable[Accommodation] = (),
        attractions: Iterable[Attraction] = (),
        routes: Iterable[Route] = (),
        states: Mapping[str, str] | None = None,
    ) -> None:
        self.flights = tuple(flights)
        self.restaurants = tuple(restaurants)
        self.accommodations = tuple(accommodations)
        self.attractions = tuple(attractions)
        self.routes = tuple(routes)
        self.states: Mapping[str, str] = dict(states or {})

    @cached_property
    def flights_between(self) -> Mapping[tuple[str, str, str], tuple[Flight, ...]]:
        """Flights by (origin, destination, date)."""
        return _grouped(((f.origin, f.destination, f.date) for f in self.flights), self.flights)

    @cached_property
    def restaurants_in(self) -> Mapping[str, tuple[Restaurant, ...]]:
        """Restaurants by city."""
        return _grouped((r.city for r in self.restaurants), self.restaurants)

    @cached_property
    def accommodations_in(self) -> Mapping[str, tuple[Accommodation, ...]]:
        """Accommodations by city."""
        return _grouped((a.city for a in self.accommodations), self.accommodations)

    @cached_property
    def attractions_in(self) -> Mapping[str, tuple[Attraction, ...]]:
        """Attractions by city."""
        return _grouped((a.city for a in self.attractions), self.attractions)

    @cached_property
    def restaurants_named(self) -> Callable[[str, str], tuple[Restaurant, ...]]:
        """Restaurants whose name contains a text, in a city: ``restaurants_named(text, city)``."""
        return _finder(self.restaurants_in)

    @cached_property
    def accommodations_named(self) -> Callable[[str, str], tuple[Accommodation, ...]]:
        """Accommodations whose name contains a text, in a city."""
        return _finder(self.accommodations_in)

    @cached_property
    def attractions_named(self) -> Callable[[str, str], tuple[Attraction, ...]]:
        """Attractions whose name contains a text, in a city."""
        return _finder(self.attractions_in)

    @cached_property
    def flights_numbered(self) -> Mapping[str, tuple[Flight, ...]]:
        """Flights by number."""
        return _grouped((f.number for f in self.flights), self.flights)

    @cached_property
    def route(self) -> Mapping[tuple[str, str, str], Route]:
        """The route by (origin, destination, mode); the first row if there are several."""
        return {(r.origin, r.destination, r.mode): r for r in reversed(self.routes)}

    @cached_property
    def cities_of(self) -> Mapping[str, tuple[str, ...]]:
        """Cities by state, in table order."""
        return _grouped(self.states.values(), self.states)


class _TableRow(Protocol):
    @property
    def name(self) -> str: ...


_K = TypeVar("_K")
_V = TypeVar("_V")
_N = TypeVar("_N", bound=_TableRow)


def _finder(rows_in: Mapping[str, tuple[_N, ...]]) -> Callable[[str, str], tuple[_N, ...]]:
    @lru_cache(maxsize=REMEMBERED)
    def find(text: str, city: str) -> tuple[_N, ...]:
        return tuple(row for row in rows_in.get(city, ()) if text in row.name)

    return find


def _grouped(keys: Iterable[_K], rows: Iterable[_V]) -> Mapping[_K, tuple[_V, ...]]:
    groups: dict[_K, list[_V]] = {}
    for key, row in zip(keys, rows, strict=True):
        groups.setdefault(key, []).append(row)
    return {key: tuple(group) for key, group in groups.items()}
