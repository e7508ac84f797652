"""The search results of a planner, rebuilt from the observations of searches alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ....engine.session.view import ActionSeen
from ..data.tables import Accommodation, Flight, Mode, Restaurant, Route
from .legs import Ways
from .stays import Rooms, Tables

__all__ = ("Finds", "SearchRequest")


class SearchRequest(msgspec.Struct, frozen=True):
    """A search to be made: the name of an action and its arguments."""

    name: str
    arguments: Mapping[str, str]


_Cell = str | int | float | None


class _SearchObservation(msgspec.Struct, frozen=True):
    columns: tuple[str, ...]
    rows: tuple[tuple[_Cell, ...], ...]


class _Name(msgspec.Struct, frozen=True):
    name: str


@final
class Finds:
    """The results of all searches so far, by place and date.

    A failed search is kept as one without results, so that it is not repeated.

    Attributes:
        cities: the cities of each state searched.
        flights: by origin, destination and date.
        routes: over land, by origin, destination and mode.
        ways: the legs that those flights and routes offer.
        accommodations: by city, in the order of the table.
        restaurants: by city, in the order of the table.
        attractions: names by city.
        rooms: the accommodations whose name cannot be taken for another one's, to choose from.
        tables: the restaurants whose name cannot be taken for another one's, to choose from.
    """

    def __init__(self) -> None:
        self.cities: dict[str, tuple[str, ...]] = {}
        self.flights: dict[tuple[str, str, str], tuple[Flight, ...]] = {}
        self.routes: dict[tuple[str, str, Mode], Route] = {}
        self.accommodations: dict[str, tuple[Accommodation, ...]] = {}
        self.restaurants: dict[str, tuple[Restaurant, ...]] = {}
        self.attractions: dict[str, tuple[str, ...]] = {}
        self.ways = Ways(self.flights, self.routes)
        self.rooms = Rooms()
        self.tables = Tables()
        self._made: set[tuple[str, tuple[tuple[str, str], ...]]] = set()

    def made(self, search: SearchRequest) -> bool:
        """Whether this search was made, with or without results."""
        return _key(search.name, search.arguments) in self._made

    @property
    def count(self) -> int:
        """How many searches were made."""
        return len(self._made)

    def take_in(self, outcomes: Iterable[ActionSeen]) -> None:
        """Adds the outcomes of searches as an actor saw them.

        Raises:
            InvalidInput: see ``add``.
        """
        for action in outcomes:
            ok = action.resolved is not None and action.resolved.outcome == "ok"
            found = action.resolved.observation if ok and action.resolved else None
            self.add(action.name, action.arguments, found)

    def add(self, name: str, arguments: Mapping[str, JSON], observation: JSON) -> None:
        """Adds the outcome of a search.

        Args:
            name: the name of the action; one that is no search is ignored.
            arguments: as it was called.
            observation: what `actions.perform` returned; None for a search that failed.

        Raises:
            InvalidInput: the observation is not one of such a search.
        """
        take = _TAKERS.get(name)
        if take is None:
            return
        given = {key: value for key, value in arguments.items() if isinstance(value, str)}
        self._made.add(_key(name, given))
        if observation is None:
            return
        try:
            seen = msgspec.convert(observation, _SearchObservation)
            rows = [dict(zip(seen.columns, row, strict=True)) for row in seen.rows]
            take(self, given, rows)
        except (msgspec.ValidationError, ValueError, KeyError) as error:
            raise InvalidInput(f"this is not an observation of {name}: {error}") from error


_Rows = Sequence[dict[str, _Cell]]


def _take_cities(finds: Finds, given: Mapping[str, str], rows: _Rows) -> None:
    names = msgspec.convert(rows, tuple[_Name, ...])
    finds.cities[given["state"].removesuffix(" (state)")] = tuple(row.name for row in names)


def _take_flights(finds: Finds, given: Mapping[str, str], rows: _Rows) -> None:
    date = given["date"]
    groups: dict[tuple[str, str, str], list[Flight]] = {}
    for flight in msgspec.convert([{**row, "date": date} for row in rows], list[Flight]):
        groups.setdefault((flight.origin, flight.destination, date), []).append(flight)
    finds.flights.update((key, tuple(group)) for key, group in groups.items())
    finds.ways.forget()


def _take_routes(finds: Finds, given: Mapping[str, str], rows: _Rows) -> None:
    for route in msgspec.convert(rows, list[Route]):
        finds.routes[route.origin, route.destination, route.mode] = route
    finds.ways.forget()


def _take_accommodations(finds: Finds, given: Mapping[str, str], rows: _Rows) -> None:
    city = given["city"]
    found = msgspec.convert([{**row, "city": city} for row in rows], tuple[Accommodation, ...])
    finds.accommodations[city] = found
    finds.rooms.add(city, _clear(found))


def _take_restaurants(finds: Finds, given: Mapping[str, str], rows: _Rows) -> None:
    city = given["city"]
    found = msgspec.convert([{**row, "city": city} for row in rows], tuple[Restaurant, ...])
    finds.restaurants[city] = found
    finds.tables.add(city, _clear(found))


def _take_attractions(finds: Finds, given: Mapping[str, str], rows: _Rows) -> None:
    names = msgspec.convert(rows, tuple[_Name, ...])
    # a semicolon ends an attraction
    plain = (row.name for row in names if _is_plain(row.name) and ";" not in row.name)
    finds.attractions[given["city"]] = tuple(plain)


_TAKERS: Mapping[str, Callable[[Finds, Mapping[str, str], _Rows], None]] = {
    "SearchCities": _take_cities,
    "SearchFlights": _take_flights,
    "SearchDistance": _take_routes,
    "SearchAccommodations": _take_accommodations,
    "SearchRestaurants": _take_restaurants,
    "SearchAttractions": _take_attractions,
}


class _NamedRow(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_NamedRow)


def _clear(rows: Sequence[_N]) -> tuple[_N, ...]:
    """The rows that a look-up by their name finds first.

    A plan names places in words, and a look-up takes the first row whose name contains the text.
    """
    clear: list[_N] = []
    before = ""  # a plain name, which is one line, is in several lines only if it is in one of them
    for row in rows:
        if _is_plain(row.name) and row.name not in before:
            clear.append(row)
        before += f"{row.name}\n"
    return tuple(clear)


def _is_plain(name: str) -> bool:
    """Whether the text of a plan can hold a name unchanged; every line there is a field."""
    return bool(name.strip()) and len(name.splitlines()) == 1


def _key(name: str, arguments: Mapping[str, str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, tuple(sorted(arguments.items()))
