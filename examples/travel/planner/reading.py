"""Reads a plan back: its cities, stays and meals, and its cost as far as prices are known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil
from typing import Final, NamedTuple, Protocol, TypeVar

from ..data.tables import SEATS, Flight
from ..plan.plan import BLANK, DayPlan, Plan
from .finds import Finds
from .stays import room_cost

__all__ = (
    "MEALS",
    "Cost",
    "Meal",
    "Stay",
    "look_up",
    "meals",
    "plan_cost",
    "route_of",
    "stays",
    "visited",
)

MEALS: Final = ("breakfast", "lunch", "dinner")

_ROUTE = re.compile(r"\bfrom\s+(.+?)\s+to\s+([^,;]+)")
_NUMBER = re.compile(r"Flight Number:\s*(\w+)", re.IGNORECASE)
_COST = re.compile(r"Cost:\s*\$?([\d,]{1,15}(?:\.\d+)?)", re.IGNORECASE)
_ASIDE = re.compile(r"\s*\([^)]*\)\s*$")


class Stay(NamedTuple):
    """Nights in a row in one place; ``days`` are indices into the plan."""

    name: str
    city: str
    days: tuple[int, ...]


class Meal(NamedTuple):
    """A meal that a plan names; ``day`` is an index into the plan."""

    day: int
    field: str
    name: str
    city: str


class Cost(NamedTuple):
    """The cost of a plan.

    Attributes:
        dollars: what all calls with a known price cost.
        complete: whether everything in the plan has one.
    """

    dollars: float
    complete: bool


def stays(plan: Plan) -> tuple[Stay, ...]:
    """The places to sleep, in order; a blank night interrupts a stay."""
    found: list[Stay] = []
    before = BLANK
    for index, day in enumerate(plan):
        if day.accommodation != BLANK:
            if day.accommodation == before:
                found[-1] = found[-1]._replace(days=(*found[-1].days, index))
            else:
                found.append(Stay(*_place(day.accommodation), (index,)))
        before = day.accommodation
    return tuple(found)


def meals(plan: Plan) -> tuple[Meal, ...]:
    """All meals that a plan names, in order."""
    return tuple(
        Meal(index, field, *_place(getattr(day, field)))
        for index, day in enumerate(plan)
        for field in MEALS
        if getattr(day, field) != BLANK
    )


def visited(plan: Plan) -> tuple[str, ...]:
    """The cities that a plan goes to, each once and in order, without the one it starts from."""
    home = next((route[0] for route in map(route_of, plan) if route is not None), None)
    cities: dict[str, None] = {}
    for day in plan:
        route = route_of(day)
        here = (_bare(day.current_city),) if route is None else route
        cities.update(dict.fromkeys(here))
    return tuple(city for city in cities if city not in (home, BLANK, ""))


def route_of(day: DayPlan) -> tuple[str, str] | None:
    """The day's route, as its start and destination; None for a day without travel."""
    route = _ROUTE.search(day.current_city)
    return None if route is None else (_bare(route[1]), _bare(route[2]))


def plan_cost(plan: Plan, finds: Finds, people: int) -> Cost:
    """The cost of a plan for a number of people, from search results and prices in the plan."""
    prices: list[float | None] = [
        _fare(day, finds, people) for day in plan if day.transportation != BLANK
    ]
    for stay in stays(plan):
        room = look_up(finds.accommodations.get(stay.city, ()), stay.name)
        prices.append(None if room is None else room_cost(room, people) * len(stay.days))
    for meal in meals(plan):
        restaurant = look_up(finds.restaurants.get(meal.city, ()), meal.name)
        prices.append(None if restaurant is None else restaurant.average_cost * people)
    known = [price for price in prices if price is not None]
    return Cost(sum(known), len(known) == len(prices))


class _NamedEntry(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_NamedEntry)


def look_up(rows: Sequence[_N], name: str) -> _N | None:
    """The row of that name, else the first whose name contains it."""
    exact = (row for row in rows if row.name == name)
    return next(exact, None) or next((row for row in rows if name in row.name), None)


def _fare(day: DayPlan, finds: Finds, people: int) -> float | None:
    text = day.transportation
    number = _NUMBER.search(text)
    if number is not None:
        flight = _flight(finds, number[1])
        return None if flight is None else flight.price * people
    stated = _COST.search(text)
    if stated is None:
        return None
    seats = SEATS["self-driving" if "self-driving" in text.lower() else "taxi"]
    return float(stated[1].replace(",", "")) * ceil(people / seats)


def _flight(finds: Finds, number: str) -> Flight | None:
    every = (flight for flights in finds.flights.values() for flight in flights)
    return next((flight for flight in every if flight.number == number), None)


def _place(text: str) -> tuple[str, str]:
    name, _, city = text.rpartition(",")
    return name.strip(), _bare(city)


def _bare(city: str) -> str:
    """A city without an aside such as its state in parentheses."""
    return _ASIDE.sub("", city).strip() if "(" in city else city.strip()
