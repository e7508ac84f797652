"""Checks a plan as a traveller: which wishes it fails, and how to say so.

The check uses only the text of the plan and search results, which the traveller can see. A wish
counts as satisfied if neither shows otherwise (such as the rules of a house not looked up).
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

import msgspec

from ....engine.errors import InvalidInput
from ....tasks.phrases import counted, spelled
from ..data.tables import Accommodation, Mode, Restaurant
from ..plan.plan import BLANK, Plan
from ..plan.text import parse_plan
from ..planner.finds import Finds
from ..planner.knowledge import Knowledge, learn
from ..planner.legs import road_line
from ..planner.planner import Draft
from ..planner.reading import MEALS, Meal, Stay, look_up, meals, plan_cost, route_of, stays, visited
from ..planner.stays import allows, fits_type
from .facts import ANY, Fact
from .messages import say_fact

__all__ = (
    "PlanProblem",
    "check_plan",
    "edit_plan",
    "failed_by",
    "find_gaps",
    "is_plan",
    "keep_plan",
    "room_cities",
    "say_edit",
    "say_problem",
)

_COMFORT: Final = 0.5


def edit_plan(plan: Plan, facts: Iterable[Fact], finds: Finds, wish: Fact) -> Plan:
    """Changes a plan so that it meets a wish, and changes nothing else about it if possible.

    Rooms, meals and ways over land are swapped for others; the number of travellers or of cities
    needs a new plan, not an edit.

    Args:
        plan: the current plan.
        facts: all known wishes, so that an edit for one does not break another.
        finds: search results; only these can be added to the plan.
        wish: the wish to meet.

    Returns:
        The edited plan; the plan itself if the search results cannot meet the wish.
    """
    nowhere = Knowledge(origin="", destination="", dates=())
    known = learn(nowhere, (*facts, wish))
    if wish.value == ANY:
        return plan
    match wish.slot:
        case "house_rule" | "room_type":
            return _swap_rooms(plan, known, finds)
        case "cuisine":
            return _swap_meals(plan, known, finds)
        case "transportation":
            return _swap_legs(plan, known, finds)
        case "budget":
            return _save(plan, known, finds)
    return plan


def keep_plan(plan: Plan, known: Knowledge, finds: Finds) -> Draft:
    """Changes an edited plan only if the change meets more of the known wishes.

    Returns:
        The plan, its known cost, and the slots of the wishes that it still fails.
    """
    facts, failed = known.facts, failed_by(plan, known, finds)
    for fact in facts:
        if fact.slot in failed:
            other = edit_plan(plan, facts, finds, fact)
            fails = failed_by(other, known, finds)
            if fails < failed:
                plan, failed = other, fails
    return Draft(plan, plan_cost(plan, finds, known.party).dollars, failed)


def failed_by(plan: Plan, known: Knowledge, finds: Finds) -> frozenset[str]:
    """The slots of the known wishes that a plan can be seen to fail."""
    problems = check_plan(plan, known.facts, finds)
    return frozenset(one.fact.slot for one in problems if one.fact is not None)


def _swap_rooms(plan: Plan, known: Knowledge, finds: Finds) -> Plan:
    """Rooms that meet the wishes, in place of those that do not or that nothing is known of."""
    for stay in stays(plan):
        room = look_up(finds.accommodations.get(stay.city, ()), stay.name)
        if room is None or not _suits(room, known):
            plan = _move(plan, stay, known, finds, _COMFORT)
    return plan


def _suits(room: Accommodation, known: Knowledge) -> bool:
    return (known.house_rule is None or allows(room, known.house_rule)) and (
        known.room_type is None or fits_type(room, known.room_type)
    )


def _move(plan: Plan, stay: Stay, known: Knowledge, finds: Finds, comfort: float) -> Plan:
    """Another room for a stay, if there is one that fails nothing."""
    room, failed = finds.rooms.pick(known, stay.city, len(stay.days), comfort)
    if room is None or failed:
        return plan
    return _put(plan, stay.days, "accommodation", f"{room.name}, {stay.city}")


def _swap_meals(plan: Plan, known: Knowledge, finds: Finds) -> Plan:
    """One meal after the other swapped for one of a cuisine that is missing."""
    for cuisine in known.cuisines:
        there = {meal: _offers(meal, known, finds) for meal in meals(plan)}
        if any(cuisine in offers for offers in there.values()):
            continue
        swaps = [
            (restaurant.average_cost, meal.day, meal.field, restaurant)
            for meal, offers in there.items()
            if all(_served(wish, there, meal) for wish in offers)
            for restaurant in _untried(plan, meal.city, finds)
            if cuisine in restaurant.cuisines
        ]
        if swaps:
            _, day, field, restaurant = min(swaps, key=lambda swap: swap[:3])
            plan = _put(plan, (day,), field, f"{restaurant.name}, {restaurant.city}")
    return plan


def _offers(meal: Meal, known: Knowledge, finds: Finds) -> tuple[str, ...]:
    """The cuisines asked for that a meal is known to offer."""
    restaurant = look_up(finds.restaurants.get(meal.city, ()), meal.name)
    served = "" if restaurant is None else restaurant.cuisines
    return tuple(cuisine for cuisine in known.cuisines if cuisine in served)


def _served(cuisine: str, there: dict[Meal, tuple[str, ...]], but: Meal) -> bool:
    return any(cuisine in offers for meal, offers in there.items() if meal != but)


def _untried(plan: Plan, city: str, finds: Finds) -> list[Restaurant]:
    taken = {(meal.name, meal.city) for meal in meals(plan)}
    return [r for r in finds.tables.of(city) if (r.name, r.city) not in taken]


def _swap_legs(plan: Plan, known: Knowledge, finds: Finds) -> Plan:
    """All legs by own car, or else those that are unwanted by taxi: car and flights do not mix."""
    legs = {index: route for index, day in enumerate(plan) if (route := route_of(day)) is not None}
    unwanted = [word.removeprefix("no ") for word in known.transportation]
    wrong = [
        index
        for index in legs
        if any(word in plan[index].transportation.lower() for word in unwanted)
    ]
    ways: tuple[tuple[Mode, list[int]], ...] = (
        ("self-driving", list(legs) if "self-driving" not in unwanted else []),
        ("taxi", wrong),
    )
    for mode, days in ways:
        routes = {index: finds.routes.get((*legs[index], mode)) for index in days}
        lines = {index: road_line(route) for index, route in routes.items() if route is not None}
        if wrong and lines and len(lines) == len(days):
            for index, line in lines.items():
                plan = _put(plan, (index,), "transportation", line)
            return plan
    return plan


def _save(plan: Plan, known: Knowledge, finds: Finds) -> Plan:
    """The cheapest rooms that fit, then cheaper meals, until the budget holds."""
    people, budget = known.party, known.budget or 0
    for stay in stays(plan):
        if plan_cost(plan, finds, people).dollars > budget:
            plan = _move(plan, stay, known, finds, 0.0)
    for meal in meals(plan):
        had = look_up(finds.restaurants.get(meal.city, ()), meal.name)
        needed = set(_offers(meal, known, finds))
        cheaper = [
            restaurant
            for restaurant in _untried(plan, meal.city, finds)
            if had is not None
            and restaurant.average_cost < had.average_cost
            and all(cuisine in restaurant.cuisines for cuisine in needed)
        ]
        if cheaper and plan_cost(plan, finds, people).dollars > budget:
            best = min(cheaper, key=lambda restaurant: restaurant.average_cost)
            plan = _put(plan, (meal.day,), meal.field, f"{best.name}, {best.city}")
    return plan


def _put(plan: Plan, days: Iterable[int], field: str, text: str) -> Plan:
    changed = set(days)
    return tuple(
        msgspec.structs.replace(day, **{field: text}) if index in changed else day
        for index, day in enumerate(plan)
    )


# --- checks a plan as a traveller -----------------------------------------------------------------


class PlanProblem(msgspec.Struct, frozen=True):
    """A problem of a plan.

    Attributes:
        text: the problem, as a sentence.
        fact: the wish that it fails; None for a gap, which needs no wish.
        days: the days concerned, from 1; empty for the plan as a whole.
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
    """Things every trip needs that a plan lacks, and things that it has twice."""
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


def is_plan(text: str) -> bool:
    """Whether a text is a plan that can be read."""
    try:
        return bool(parse_plan(text))
    except InvalidInput:
        return False


def room_cities(plan: Plan | str) -> tuple[str, ...]:
    """The cities in which a plan spends nights; none if the plan cannot be read."""
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
    return f"{problem.text} {say_fact(problem.fact, random, asked=True)}"


def say_edit(wish: Fact, random: Random) -> str:
    """Reports an edit of the plan that was made for a wish."""
    return f"{random.choice(_EDITED)} {say_fact(wish, random, asked=True)}"


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
    """Whether the last day returns to the starting point of the first."""
    first, last = route_of(plan[0]), route_of(plan[-1])
    return first is not None and last is not None and first[0] == last[1]
