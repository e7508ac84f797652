"""Task instances: a short request, the wishes behind it, and the structured form that scores plans.

The same struct serves invented instances and those loaded from TravelPlanner's files.
"""

from __future__ import annotations

from datetime import date as Date
from datetime import timedelta
from math import ceil, floor
from random import Random
from typing import NamedTuple

import msgspec

from ..language.facts import CUISINES, HOUSE_RULES, Fact, facts_of
from ..language.profiles import write_preference
from ..language.requests import say_request
from ..plan.plan import Plan
from .tables import Constraints, Trip
from .world.cities import CITIES, STATES, kilometres
from .world.feasible import FeasiblePlan, find_feasible_plan, least_cost
from .world.generator import World

__all__ = ("Instance", "make_instance", "solution_of")

_ROOM_WISHES = ("entire room", "private room", "not shared room", "shared room")
_ROOM_WEIGHTS = (8, 6, 5, 1)
_PEOPLE = (1, 2, 3, 4, 5, 6, 7, 8)
_PEOPLE_WEIGHTS = (12, 40, 15, 12, 7, 5, 5, 4)
_DRIVABLE = 1000  # kilometres as the crow flies; beyond that, no request excludes flights
_FIRST_DAY = Date(2022, 3, 1)
_SHORT = (0.75, 0.95)  # budgets that conflict with the rest, as shares of the least that it costs
_LEVELS = (1, 2, 3, 4)  # how many wishes of the four kinds below
_LEVEL_WEIGHTS = (10, 30, 40, 20)


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """One task instance.

    Attributes:
        id: unique among the instances of its world or data set.
        trip: what is to be planned; for the evaluation only.
        request: what the user says first: where and when.
        preferences: the hidden profile, one wish a sentence; for the user only.
    """

    id: str
    trip: Trip
    request: str
    preferences: tuple[str, ...]


def make_instance(world: World, index: int, *, conflicts: float = 0.0) -> Instance:
    """The instance of a world with this index; any index from 0 has one.

    Its budget is what a journey that meets all other wishes costs, plus up to a tenth
    (`solution_of`). In a share of the instances the wishes conflict: what they ask for costs more than
    they want to spend, whatever the plan (`bounds.least_cost`), so that no plan meets all of them.

    Args:
        world: where to travel.
        index: the index of the instance.
        conflicts: the share of the instances whose wishes conflict.
    """
    return _invent(world, index, conflicts).instance


def solution_of(world: World, index: int) -> Plan:
    """A plan that meets every wish of `make_instance`, or all but the budget if the wishes conflict."""
    return _invent(world, index, 0.0).solution


class _Invention(NamedTuple):
    instance: Instance
    solution: Plan


def _invent(world: World, index: int, conflicts: float) -> _Invention:
    random = Random(f"{world.seed}/instance/{index}")
    days = (3, 5, 7)[index % 3]
    most = {3: 1, 5: 2, 7: 3}[days]
    cities = most if random.random() < 0.7 else max(1, most - 1)
    people = random.choices(_PEOPLE, _PEOPLE_WEIGHTS)[0]
    wishes = random.choices(_LEVELS, _LEVEL_WEIGHTS)[0]
    while True:
        trip, stops = _draft(random, days, cities, people, wishes)
        feasible = find_feasible_plan(world, trip, stops, random)
        if feasible is not None:
            chance = Random(f"{world.seed}/conflict/{index}")
            short = None
            if chance.random() < conflicts:
                short = least_cost(world, trip) * chance.uniform(*_SHORT)
            return _finish(world, index, trip, feasible, random, short)


def _draft(
    random: Random, days: int, cities: int, people: int, wishes: int
) -> tuple[Trip, list[str]]:
    """A trip without budget, and the cities to go to; it may turn out to be impossible."""
    kinds = random.sample(("house_rule", "room_type", "cuisine", "transportation"), wishes)
    constraints = Constraints(
        house_rule=random.choice(HOUSE_RULES) if "house_rule" in kinds else None,
        cuisine=(
            tuple(sorted(random.sample(CUISINES, random.choice((2, 3, 4)))))
            if "cuisine" in kinds
            else None
        ),
        room_type=(
            random.choices(_ROOM_WISHES, _ROOM_WEIGHTS)[0] if "room_type" in kinds else None
        ),
        transportation=(
            random.choice(("no flight", "no self-driving")) if "transportation" in kinds else None
        ),
    )
    state = random.choice(tuple(STATES))
    stops = random.sample(STATES[state], cities)
    reach = _DRIVABLE if constraints.transportation == "no flight" else 4000
    origin = random.choice(
        [
            city.name
            for city in CITIES.values()
            if city.state != state and kilometres(city, CITIES[stops[0]]) < reach
        ]
    )
    first = _FIRST_DAY + timedelta(days=random.randrange(31 - days))
    trip = Trip(
        origin=origin,
        destination=stops[0] if days == 3 else state,
        days=days,
        cities=cities,
        dates=tuple(str(first + timedelta(days=day)) for day in range(days)),
        people=people,
        budget=None,
        constraints=constraints,
    )
    return trip, stops


def _finish(
    world: World,
    index: int,
    trip: Trip,
    feasible: FeasiblePlan,
    random: Random,
    short: float | None,
) -> _Invention:
    budget = ceil(feasible.cost * random.uniform(1.02, 1.1) / 100) * 100
    if short is not None:
        budget = floor(short / 50) * 50
    trip = msgspec.structs.replace(trip, budget=float(budget))
    told = [fact for fact in facts_of(trip) if _is_hidden(fact, trip)]
    random.shuffle(told)
    instance = Instance(
        id=f"world-{world.seed}-{index}",
        trip=trip,
        request=say_request(trip.origin, trip.destination, trip.dates, random),
        preferences=tuple(write_preference(fact, random) for fact in told),
    )
    return _Invention(instance, feasible.plan)


def _is_hidden(fact: Fact, trip: Trip) -> bool:
    """Whether the request leaves a fact open; for a city as destination the number of cities is not."""
    return fact.slot != "cities" or trip.days > 3
