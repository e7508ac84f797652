"""The constraints with the obvious errors of the published evaluator corrected.

Numbers of this variant are comparable only among themselves. The changes:

| published | strict |
|---|---|
| an exception costs the plan a whole kind of constraints | what cannot be read fails its constraint |
| where nothing is planned, that is since it raises | every constraint that applies fails |
| a field that is no text raises, or matches by accident | it is read as text, a list as several |
| days beyond the trip are ignored | the plan has too many days, and is incomplete |
| only "from A to B" on day 1 must start at the origin | day 1 starts at the origin |
| a trip of three days may go anywhere | it goes to its destination |
| a stay is checked against the characters of its city | against the city |
| a city counts wherever its letters occur | a place lies in the city after its last comma |
| what follows the last semicolon is no attraction | it is one |
| an empty name matches any place of the city, and a name loses all lines but its last | neither |
| the first place whose name contains the text counts | one of exactly that name goes first |
| nights are counted by equal text | by place |
| minimum nights count if only one place matches | always |
| a flight may be of any date | it is one of that day |
| a way of travelling that the sandbox does not have is not looked up | it does not exist |
| a meal at the origin ends the day's search for cuisines | only that meal is passed over |
| what is unknown costs nothing, and fulfils every wish | it fails the wish, and the budget |
| a way without price raises when costs are added | it fails the budget |
| wishes for transportation are sensitive to case | they are not |
| day numbers, cities and unknown keys fill a plan | only its six kinds of entries do |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from math import ceil
from typing import TypeVar

import msgspec

from ....engine.errors import InvalidInput
from ..data.tables import SEATS, Accommodation, Flight, Restaurant, Route, Sandbox, Trip
from ..plan.plan import BLANK, DayPlan, Plan, attractions_of, plan_from_json
from .commonsense import NOTHING_TO_FILL_IN, valid_sequence
from .hard import forbids, room_fits
from .reading import MEALS, before_parenthesis, car_of, route_in, vehicle_of
from .results import COMMONSENSE, HARD, ConstraintResult, Evaluation, failed, not_applicable, passed

__all__ = ("evaluate_strictly",)


class NamedPlace(msgspec.Struct, frozen=True):
    """A name and the city that it is said to be in."""

    name: str
    city: str

    def __str__(self) -> str:
        return f"{self.name}, {self.city}"


class StrictDay(msgspec.Struct, frozen=True):
    """A day of the plan, read: one city for a stay, two for a way, none if that is unclear."""

    number: int
    cities: tuple[str, ...]
    way: str
    meals: Mapping[str, NamedPlace]
    attractions: tuple[NamedPlace, ...]
    stay: NamedPlace | None

    @property
    def travels(self) -> bool:
        """Whether it leads from one city to another."""
        return len(self.cities) == 2


def plan_of(value: object) -> Plan:
    """The days of any JSON value: none if it is not a list, and a blank one for each item that is not a day."""
    if isinstance(value, Mapping):
        value = value.get("plan")
    if not isinstance(value, list | tuple):
        return ()
    return tuple(_day_of(day, number) for number, day in enumerate(value, 1))


def _day_of(value: object, number: int) -> DayPlan:
    try:
        return plan_from_json([value])[0]
    except InvalidInput:
        return DayPlan(days=number)


def read_day(day: DayPlan, number: int) -> StrictDay:
    """Reads a day; its number is its position in the plan."""
    named = {meal: _place(text) for meal in MEALS if (text := _said(getattr(day, meal)))}
    stay = _said(day.accommodation)
    return StrictDay(
        number=number,
        cities=_cities(day.current_city),
        way=_said(day.transportation) or BLANK,
        meals=named,
        attractions=tuple(_place(text) for text in attractions_of(day)),
        stay=_place(stay) if stay else None,
    )


def _said(text: str) -> str:
    text = text.strip()
    return "" if text == BLANK else text


def _cities(text: str) -> tuple[str, ...]:
    text = text.strip()
    origin, destination = route_in(text)
    if origin is not None and destination is not None:
        return before_parenthesis(origin).strip(), before_parenthesis(destination).strip()
    if text in ("", BLANK, NOTHING_TO_FILL_IN) or text.startswith("from "):
        return ()
    return (before_parenthesis(text).strip(),)


def _place(text: str) -> NamedPlace:
    name, comma, city = text.rpartition(",")
    if not comma:
        return NamedPlace(text.strip(), "")
    return NamedPlace(name.strip(), before_parenthesis(city).strip())


# --- the constraints with the obvious errors of the published evaluator corrected -----------------


_R = TypeVar("_R", Accommodation, Restaurant)


def evaluate_strictly(value: object, trip: Trip, sandbox: Sandbox) -> Evaluation:
    """Evaluates any plan; nothing raises."""
    case = _Case(value, trip, sandbox)
    total, unpriced = case.cost()
    commonsense = (
        case.reasonable_cities(),
        case.different_restaurants(),
        case.different_attractions(),
        case.minimum_nights(),
        case.no_conflicting_transport(),
        case.in_current_city(),
        case.in_sandbox(),
        case.nothing_absent(),
    )
    hard = (
        case.cuisine(),
        case.room_rule(),
        case.transportation(),
        case.room_type(),
        _within(trip.budget, total, unpriced),
    )
    planned = bool(case.days)
    return Evaluation(
        commonsense={
            name: verdict if planned else _nothing(verdict)
            for name, verdict in zip(COMMONSENSE, commonsense, strict=True)
        },
        hard={
            name: verdict if planned else _nothing(verdict)
            for name, verdict in zip(HARD, hard, strict=True)
        },
        total_cost=total if planned else None,
    )


def _nothing(verdict: ConstraintResult) -> ConstraintResult:
    """The outcome without a plan: a constraint does not hold only since no day breaks it."""
    return verdict if verdict.passed is None else failed("there is no plan")


class _Case:
    """The evaluation of one plan."""

    def __init__(self, value: object, trip: Trip, sandbox: Sandbox) -> None:
        plan = plan_of(value)
        self.trip = trip
        self.sandbox = sandbox
        self.planned = len(plan)
        self.days = tuple(read_day(day, n) for n, day in enumerate(plan[: trip.days], 1))

    def reasonable_cities(self) -> ConstraintResult:
        trip, states = self.trip, self.sandbox.states
        unclear = next((day.number for day in self.days if not day.cities), None)
        if unclear is not None or not self.days:
            return failed(f"day {unclear or 1} does not say in which city it is")
        cities = [city for day in self.days for city in day.cities]
        if cities[0] != trip.origin:
            return failed(f"day 1 starts in {cities[0]!r}, not in {trip.origin}")
        if cities[-1] != trip.origin:
            return failed(f"the trip ends in {cities[-1]!r}, not in {trip.origin}")
        if not valid_sequence(cities):
            return failed(f"{' > '.join(cities)} is no sensible route")
        for city in cities[1:-1]:
            state = states.get(city)
            if state is None:
                return failed(f"there is no city {city!r}")
            if trip.destination != (state if trip.days > 3 else city):
                return failed(f"{city} in {state} is not where the trip goes: {trip.destination}")
        return passed

    def different_restaurants(self) -> ConstraintResult:
        visited: set[tuple[str, str]] = set()
        for day in self.days:
            for meal, place in day.meals.items():
                row = self._restaurant(place)
                key = (row.name, row.city) if row else (place.name, place.city)
                if key in visited:
                    return failed(f"the {meal} of day {day.number} repeats {place}")
                visited.add(key)
        return passed

    def different_attractions(self) -> ConstraintResult:
        visited: set[NamedPlace] = set()
        for day in self.days:
            for place in day.attractions:
                if place in visited:
                    return failed(f"day {day.number} repeats the attraction {place}")
                visited.add(place)
        return passed

    def minimum_nights(self) -> ConstraintResult:
        rooms = (self._room(day.stay) if day.stay else None for day in self.days)
        for room, run in groupby(rooms):
            nights = len(tuple(run))
            if room and nights < room.minimum_nights:
                return failed(f"{room.name!r} wants {room.minimum_nights:g} nights, not {nights}")
        return passed

    def no_conflicting_transport(self) -> ConstraintResult:
        if not self.days or self.days[0].way == BLANK:
            return failed("day 1 has no transportation")
        kinds = {vehicle_of(day.way) for day in self.days}
        if "self-driving" in kinds and kinds & {"flight", "taxi"}:
            return failed("the own car is left behind: self-driving mixed with a flight or a taxi")
        return passed

    def in_current_city(self) -> ConstraintResult:
        for day in self.days:
            elsewhere = next(self._elsewhere(day), None)
            if elsewhere is not None:
                where = " or ".join(day.cities) or "a city that the day names"
                return failed(f"the {elsewhere} of day {day.number} is not in {where}")
        return passed

    @staticmethod
    def _elsewhere(day: StrictDay) -> Iterator[str]:
        if day.way != BLANK and not all(city in day.way for city in day.cities):
            yield "transportation"
        yield from (meal for meal, place in day.meals.items() if place.city not in day.cities)
        yield from ("attraction" for place in day.attractions if place.city not in day.cities)
        if day.stay and day.stay.city not in day.cities[-1:]:
            yield "accommodation"

    def in_sandbox(self) -> ConstraintResult:
        for day in self.days:
            unknown = next(self._unknown(day), None)
            if unknown is not None:
                return failed(f"day {day.number}: there is no {unknown}")
        return passed

    def _unknown(self, day: StrictDay) -> Iterator[str]:
        if day.way != BLANK:
            vehicle = self._vehicle(day)
            if vehicle is None and (day.travels or vehicle_of(day.way)):
                yield f"such way of travelling on that day: {day.way!r}"
        for place in day.meals.values():
            if not self._restaurant(place):
                yield f"restaurant {place}"
        for place in day.attractions:
            if not place.name or not self.sandbox.attractions_named(place.name, place.city):
                yield f"attraction {place}"
        if day.stay and not self._room(day.stay):
            yield f"accommodation {day.stay}"

    def nothing_absent(self) -> ConstraintResult:
        trip = self.trip
        if self.planned != trip.days:
            return failed(f"{self.planned} days are planned, not {trip.days}")
        visited = {city for day in self.days for city in day.cities} - {trip.origin}
        if len(visited) != trip.cities:
            return failed(f"{len(visited)} cities are visited, not {trip.cities}")
        said = 0
        for day in self.days:
            missing = next(_missing(day, last=day.number == trip.days), None)
            if missing is not None:
                return failed(f"day {day.number} has no {missing}")
            entries = (day.way != BLANK, bool(day.attractions), day.stay is not None)
            said += sum(entries) + len(day.meals)
        if said < trip.days * 3:
            return failed("more than half of the plan is blank")
        return passed

    def cuisine(self) -> ConstraintResult:
        wanted = self.trip.constraints.cuisine
        if not wanted:
            return not_applicable
        offered: set[str] = set()
        for day in self.days:
            for place in day.meals.values():
                row = self._restaurant(place) if place.city != self.trip.origin else None
                offered.update(c for c in wanted if row and c in row.cuisines)
        missing = [cuisine for cuisine in wanted if cuisine not in offered]
        return failed(f"no meal offers {' or '.join(missing)} food") if missing else passed

    def room_rule(self) -> ConstraintResult:
        wish = self.trip.constraints.house_rule
        return self._rooms(wish, lambda room, rule: not forbids(room, rule), "allows")

    def room_type(self) -> ConstraintResult:
        wish = self.trip.constraints.room_type
        return self._rooms(wish, room_fits, "is")

    def _rooms(
        self, wish: str | None, fits: Callable[[Accommodation, str], bool], verb: str
    ) -> ConstraintResult:
        if wish is None:
            return not_applicable
        for day in self.days:
            room = self._room(day.stay) if day.stay else None
            if day.stay and not (room and fits(room, wish)):
                return failed(f"nothing says that {day.stay} on day {day.number} {verb} {wish}")
        return passed

    def transportation(self) -> ConstraintResult:
        wish = self.trip.constraints.transportation
        if wish is None:
            return not_applicable
        banned = wish.removeprefix("no ").lower()
        for day in self.days:
            if banned in day.way.lower():
                return failed(f"day {day.number} has what the request rules out: {wish}")
        return passed

    def cost(self) -> tuple[float, str | None]:
        """Dollars for all that has a price, and the first thing that has none."""
        total, unpriced = 0.0, None
        for day in self.days:
            for what, price in self._prices(day):
                total += price or 0.0
                if price is None and unpriced is None:
                    unpriced = f"{what} on day {day.number}"
        return total, unpriced

    def _prices(self, day: StrictDay) -> Iterator[tuple[object, float | None]]:
        people = self.trip.people
        if day.way != BLANK and (day.travels or vehicle_of(day.way)):
            match self._vehicle(day):
                case Flight(price=price):
                    yield day.way, price * people
                case Route(cost=float(cost), mode=mode):
                    yield day.way, cost * ceil(people / SEATS[mode])
                case _:
                    yield day.way, None
        for place in day.meals.values():
            row = self._restaurant(place)
            yield place, row.average_cost * people if row else None
        if day.stay:
            room = self._room(day.stay)
            rooms = ceil(people / room.maximum_occupancy) if room else 0
            yield day.stay, room.price * rooms if room else None

    def _vehicle(self, day: StrictDay) -> Flight | Route | None:
        """The flight of that day, or the way by car or taxi, that the sandbox has."""
        origin, destination = route_in(day.way)
        if origin is None or destination is None:
            if not day.travels:
                return None
            origin, destination = day.cities
        start, end = before_parenthesis(origin).strip(), before_parenthesis(destination).strip()
        if vehicle_of(day.way) == "flight":
            words = {word.strip(".,;:()") for word in day.way.split()}
            flights = self.sandbox.flights_between.get((start, end, self._date(day)), ())
            return next((flight for flight in flights if flight.number in words), None)
        mode = car_of(day.way.lower())
        route = self.sandbox.route.get((start, end, mode)) if mode else None
        return route if route and route.cost is not None else None

    def _date(self, day: StrictDay) -> str:
        dates = self.trip.dates
        return dates[day.number - 1] if day.number <= len(dates) else ""

    def _restaurant(self, place: NamedPlace) -> Restaurant | None:
        return _best(self.sandbox.restaurants_named(place.name, place.city), place)

    def _room(self, place: NamedPlace) -> Accommodation | None:
        return _best(self.sandbox.accommodations_named(place.name, place.city), place)


def _best(rows: tuple[_R, ...], place: NamedPlace) -> _R | None:
    """The row of exactly that name, else the first that contains it."""
    if not rows or not place.name:
        return None
    return next((row for row in rows if row.name.strip() == place.name), rows[0])


def _missing(day: StrictDay, *, last: bool) -> Iterator[str]:
    if not day.cities:
        yield "current city"
    if day.travels and day.way == BLANK:
        yield "transportation"
    if not day.travels and not day.attractions:
        yield "attraction"
    if not last and day.stay is None:
        yield "accommodation"
    if not day.travels and len(day.meals) < len(MEALS):
        yield "complete meals"


def _within(budget: float | None, total: float, unpriced: str | None) -> ConstraintResult:
    if budget is None:
        return not_applicable
    if total > budget:
        return failed(f"it costs ${total:,.0f}, more than the budget of ${budget:,.0f}")
    return failed(f"there is no price for {unpriced}") if unpriced else passed
