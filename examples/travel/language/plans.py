"""Checks a plan as a traveller: which wishes it fails, and how to say so.

The check uses what the traveller can see: the text of the plan, and search results. What neither
shows (such as the rules of a house that nobody looked up) counts as satisfied.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

import msgspec

from ....engine.errors import InvalidInput
from ...kit.phrases import counted, spelled
from ..data.tables import Accommodation
from ..plan.plan import BLANK, Plan
from ..plan.text import parse_plan
from ..planner.edit import edit_plan
from ..planner.finds import Finds
from ..planner.knowledge import Knowledge, learn
from ..planner.reading import MEALS, look_up, meals, plan_cost, route_of, stays, visited
from ..planner.stays import allows, fits_type
from .facts import ANY, Fact
from .messages import say_fact

__all__ = (
    "PlanProblem",
    "check_plan",
    "edit_plan",
    "find_gaps",
    "room_cities",
    "say_edit",
    "say_problem",
)


class PlanProblem(msgspec.Struct, frozen=True):
    """A problem of a plan.

    Attributes:
        text: the problem, as a sentence.
        fact: the wish that it fails; None for a gap, which needs no wish.
        days: the days concerned, from 1; empty where it is the plan as a whole.
    """

    text: str
    fact: Fact | None = None
    days: tuple[int, ...] = ()


def check_plan(plan: Plan | str, facts: Iterable[Fact], finds: Finds) -> tuple[PlanProblem, ...]:
    """The visible problems of a plan: gaps first, then wishes in the order of the facts.

    Args:
        plan: parsed, or as text; one that cannot be read is a problem of its own.
        facts: what the traveller wants.
        finds: what the traveller has searched for.
    """
    if isinstance(plan, str):
        try:
            plan = parse_plan(plan)
        except InvalidInput as error:
            return (PlanProblem(f"I cannot make sense of the plan: {error}."),)
    wanted = tuple(facts)
    known = learn(Knowledge(origin="", destination="", dates=()), wanted)
    found = list(find_gaps(plan))
    for fact in wanted:
        if fact.value != ANY:
            found += _failed(plan, fact, known, finds)
    return tuple(found)


def find_gaps(plan: Plan) -> tuple[PlanProblem, ...]:
    """What a plan lacks that every trip needs, and what it has twice."""
    found = []
    for index, day in enumerate(plan):
        missing = []
        travels = route_of(day) is not None
        if travels and day.transportation == BLANK:
            missing.append("a way to get there")
        if not travels and day.attraction == BLANK:
            missing.append("anything to see")
        if not travels:
            missing += [meal for meal in MEALS if getattr(day, meal) == BLANK]
        if index < len(plan) - 1 and day.accommodation == BLANK:
            missing.append("a place to sleep")
        if missing:
            text = f"Day {index + 1} lacks {spelled(tuple(missing))}."
            found.append(PlanProblem(text, days=(index + 1,)))
    if plan and not _returns(plan):
        found.append(PlanProblem("The plan does not bring us back home.", days=(len(plan),)))
    seen: set[tuple[str, str]] = set()
    for meal in meals(plan):
        if (meal.name, meal.city) in seen:
            text = f"{meal.name} in {meal.city} comes up twice."
            found.append(PlanProblem(text, days=(meal.day + 1,)))
        seen.add((meal.name, meal.city))
    return tuple(found)


def room_cities(plan: Plan | str) -> tuple[str, ...]:
    """The cities in which a plan spends nights; none where it cannot be read."""
    if isinstance(plan, str):
        try:
            plan = parse_plan(plan)
        except InvalidInput:
            return ()
    return tuple(dict.fromkeys(stay.city for stay in stays(plan)))


def say_problem(problem: PlanProblem, random: Random) -> str:
    """States a problem, and the wish behind it in the traveller's own words."""
    if problem.fact is None:
        return f"{problem.text} {random.choice(_REQUESTS)}"
    return f"{problem.text} {say_fact(problem.fact, random)}"


def say_edit(wish: Fact, random: Random) -> str:
    """Reports an edit of the plan that was made for a wish."""
    return f"{random.choice(_EDITED)} {say_fact(wish, random)}"


_REQUESTS: Final = ("Can you fix that?", "Please put that right.", "Could you sort that out?")
_EDITED: Final = (
    "I have changed the plan a little myself.",
    "I took the liberty of swapping something in the plan.",
    "I edited the plan on my side.",
)


def _failed(plan: Plan, fact: Fact, known: Knowledge, finds: Finds) -> list[PlanProblem]:
    value = fact.value
    match fact.slot:
        case "cities":
            cities = visited(plan)
            if len(cities) == value:
                return []
            return [
                PlanProblem(f"The plan takes us to {counted(len(cities), 'city', 'cities')}.", fact)
            ]
        case "budget" if isinstance(value, int):
            dollars = plan_cost(plan, finds, known.party).dollars
            text = f"By my count it comes to at least ${dollars:,.0f}, which is too much."
            return [PlanProblem(text, fact)] if dollars > value else []
        case "transportation":
            return _unwanted_legs(plan, fact)
        case "cuisine" if isinstance(value, tuple):
            return _missing_cuisines(plan, fact, value, finds)
        case "house_rule" | "room_type":
            return _unfit_rooms(plan, fact, finds)
    return []


def _unwanted_legs(plan: Plan, fact: Fact) -> list[PlanProblem]:
    word = str(fact.value).removeprefix("no ")
    days = tuple(index + 1 for index, day in enumerate(plan) if word in day.transportation.lower())
    how = "in the air" if word == "flight" else "at the steering wheel"
    return [PlanProblem(f"The plan has us {how} on day {days[0]}.", fact, days)] if days else []


def _missing_cuisines(
    plan: Plan, fact: Fact, wanted: tuple[str, ...], finds: Finds
) -> list[PlanProblem]:
    """The cuisines that no meal offers, if every meal's restaurant is known."""
    served = []
    for meal in meals(plan):
        restaurant = look_up(finds.restaurants.get(meal.city, ()), meal.name)
        if restaurant is None:
            return []
        served.append(restaurant.cuisines)
    missing = tuple(c for c in wanted if not any(c in cuisines for cuisines in served))
    return [PlanProblem(f"I see no {spelled(missing)} food in it.", fact)] if missing else []


def _unfit_rooms(plan: Plan, fact: Fact, finds: Finds) -> list[PlanProblem]:
    found = []
    for stay in stays(plan):
        room = look_up(finds.accommodations.get(stay.city, ()), stay.name)
        if room is not None and not _meets(room, fact):
            text = f"The place in {stay.city} is not right: {_flaw(room, fact)}."
            found.append(PlanProblem(text, fact, tuple(day + 1 for day in stay.days)))
    return found


def _meets(room: Accommodation, fact: Fact) -> bool:
    if fact.slot == "house_rule":
        return allows(room, str(fact.value))
    return fits_type(room, str(fact.value))


def _flaw(room: Accommodation, fact: Fact) -> str:
    if fact.slot == "house_rule":
        return f"it says no {fact.value}"
    return f"it is listed as {room.room_type.lower()}"


def _returns(plan: Plan) -> bool:
    """Whether the last day leads to where the first began."""
    first, last = route_of(plan[0]), route_of(plan[-1])
    return first is not None and last is not None and first[0] == last[1]
