"""The task actions of travel planning: six searches over a sandbox, the same for human and agent.

Every error is an `InvalidInput` whose message says how to continue. A search that finds nothing is an
error too, instead of an empty result.

In a flight or distance search, a place is a city, or a state for all its cities. Write a state that
shares its name with a city as ``New York (state)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date as Date
from typing import Annotated, Final, TypeVar

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import JSON
from ...engine.text import suggestion
from ...tasks.actions import ActionTable, TypedAction, action
from .data.tables import Accommodation, Attraction, Flight, Mode, Restaurant, Route, Sandbox

__all__ = (
    "ACTIONS",
    "COLUMNS",
    "SearchAccommodations",
    "SearchAttractions",
    "SearchCities",
    "SearchDistance",
    "SearchFlights",
    "SearchRestaurants",
    "state_of",
)

_STATE: Final = " (state)"
_SECONDS: Final = 1.5

_Place = Annotated[str, msgspec.Meta(description="A city, or a state for all of its cities.")]
_CityName = Annotated[str, msgspec.Meta(description="The name of a city.")]
_IsoDate = Annotated[
    str,
    msgspec.Meta(description="The day of departure as YYYY-MM-DD.", examples=["2022-03-19"]),
]


class SearchFlights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Find the flights from one place to another on one day, with prices per person."""

    origin: _Place
    destination: _Place
    date: _IsoDate


class SearchDistance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Find duration, distance and cost per car of the way over land between two places."""

    origin: _Place
    destination: _Place
    mode: Annotated[
        Mode | None, msgspec.Meta(description="Only this way of travelling; both if left out.")
    ] = None


class SearchAccommodations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Find places to stay in a city: price a night, room type, house rules, minimum nights."""

    city: _CityName


class SearchRestaurants(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Find restaurants in a city: average cost per person, cuisines, rating."""

    city: _CityName


class SearchAttractions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Find things to see in a city."""

    city: _CityName


class SearchCities(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """List the cities of a state that have places to stay."""

    state: Annotated[str, msgspec.Meta(description="The name of a state.")]


COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "SearchFlights": (
        "number",
        "price",
        "departs",
        "arrives",
        "elapsed",
        "origin",
        "destination",
        "distance",
    ),
    "SearchDistance": ("origin", "destination", "mode", "duration", "distance", "cost"),
    "SearchAccommodations": (
        "name",
        "price",
        "room_type",
        "house_rules",
        "minimum_nights",
        "maximum_occupancy",
        "rating",
    ),
    "SearchRestaurants": ("name", "average_cost", "cuisines", "rating"),
    "SearchAttractions": ("name", "address"),
    "SearchCities": ("name",),
}
"""The columns of each observation: fields of the tables' rows without the arguments of the search."""


def state_of(place: str, sandbox: Sandbox) -> str | None:
    """The state that a place in a search means; None if it means a city.

    Raises:
        InvalidInput: the sandbox has neither a city nor a state of that name.
    """
    name = place.removesuffix(_STATE)
    if place == name and place in sandbox.states:
        return None
    if name in sandbox.cities_of:
        return name
    known = (*sandbox.states, *sandbox.cities_of)
    raise InvalidInput(f"no city or state {place!r} in this world{suggestion(place, known)}")


def _flights(sandbox: Sandbox, wanted: SearchFlights) -> Sequence[Flight]:
    try:
        day = Date.fromisoformat(wanted.date).isoformat()
    except ValueError:
        raise InvalidInput(
            f"{wanted.date!r} is not a date; write year, month and day, as in 2022-03-19"
        ) from None
    found = sandbox.flights_between
    return _some(
        [f for a, b in _pairs(sandbox, wanted) for f in found.get((a, b, day), ())],
        f"no flights from {wanted.origin} to {wanted.destination} on {day}: try another way to "
        f"travel (SearchDistance), or another city",
    )


def _distance(sandbox: Sandbox, wanted: SearchDistance) -> Sequence[Route]:
    modes: tuple[Mode, ...] = ("self-driving", "taxi") if wanted.mode is None else (wanted.mode,)
    found = (sandbox.route.get((a, b, mode)) for a, b in _pairs(sandbox, wanted) for mode in modes)
    return _some(
        [route for route in found if route is not None and route.cost is not None],
        f"no way over land from {wanted.origin} to {wanted.destination} within a day: try "
        f"SearchFlights, or another city",
    )


def _accommodations(sandbox: Sandbox, wanted: SearchAccommodations) -> Sequence[Accommodation]:
    city = _known_city(sandbox, wanted.city)
    return _some(sandbox.accommodations_in.get(city, ()), f"no places to stay in {city}")


def _restaurants(sandbox: Sandbox, wanted: SearchRestaurants) -> Sequence[Restaurant]:
    city = _known_city(sandbox, wanted.city)
    return _some(sandbox.restaurants_in.get(city, ()), f"no restaurants in {city}")


def _attractions(sandbox: Sandbox, wanted: SearchAttractions) -> Sequence[Attraction]:
    city = _known_city(sandbox, wanted.city)
    return _some(sandbox.attractions_in.get(city, ()), f"no attractions in {city}")


def _cities(sandbox: Sandbox, wanted: SearchCities) -> Sequence[_NamedCity]:
    state = wanted.state.removesuffix(_STATE)
    if state not in sandbox.cities_of:
        raise InvalidInput(
            f"no state {wanted.state!r} in this world{suggestion(state, sandbox.cities_of)}"
        )
    open_to_guests = (c for c in sandbox.cities_of[state] if c in sandbox.accommodations_in)
    return _some(
        [_NamedCity(city) for city in open_to_guests], f"no city of {state} has places to stay"
    )


class _NamedCity(msgspec.Struct, frozen=True):
    name: str


_Search = TypeVar("_Search", bound=msgspec.Struct)


def _search(
    kind: type[_Search], find: Callable[[Sandbox, _Search], Sequence[object]]
) -> TypedAction[Sandbox]:
    """A search whose observation is a table: ``{"columns": [...], "rows": [[...], ...]}``.

    Columns are named once and rows are lists, so that the log stays small.
    """
    columns = COLUMNS[kind.__name__]

    def table(sandbox: Sandbox, wanted: _Search) -> JSON:
        rows = [[getattr(row, column) for column in columns] for row in find(sandbox, wanted)]
        return {"columns": [*columns], "rows": rows}  # lists, as the log reads them back

    return action(kind, table, seconds=_SECONDS)


ACTIONS: Final[ActionTable[Sandbox]] = ActionTable(
    (
        _search(SearchFlights, _flights),
        _search(SearchDistance, _distance),
        _search(SearchAccommodations, _accommodations),
        _search(SearchRestaurants, _restaurants),
        _search(SearchAttractions, _attractions),
        _search(SearchCities, _cities),
    )
)
"""The six searches; none has an effect."""


def _pairs(sandbox: Sandbox, wanted: SearchFlights | SearchDistance) -> list[tuple[str, str]]:
    """The pairs of cities between the two places, each of which may be a state."""
    ends: list[Sequence[str]] = []
    for place in (wanted.origin, wanted.destination):
        state = state_of(place, sandbox)
        ends.append((place,) if state is None else sandbox.cities_of[state])
    return [(a, b) for a in ends[0] for b in ends[1] if a != b]


def _known_city(sandbox: Sandbox, city: str) -> str:
    if city in sandbox.states or city in sandbox.accommodations_in:
        return city
    if city.removesuffix(_STATE) in sandbox.cities_of:
        raise InvalidInput(f"{city!r} is a state: list its cities with SearchCities, and name one")
    raise InvalidInput(f"no city {city!r} in this world{suggestion(city, sandbox.states)}")


_Row = TypeVar("_Row")


def _some(rows: Sequence[_Row], nothing: str) -> Sequence[_Row]:
    if not rows:
        raise InvalidInput(f"none found: {nothing}")
    return rows
