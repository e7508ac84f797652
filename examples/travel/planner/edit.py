"""Small edits of a plan that meet one more wish."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ..data.tables import Accommodation, Mode, Restaurant
from ..language.facts import ANY, Fact
from ..plan.plan import Plan
from .finds import Finds
from .knowledge import Knowledge, learn
from .reading import Meal, Stay, look_up, meals, plan_cost, route_of, stays
from .routes import road_line
from .stays import allows, fits_type, pick_room

__all__ = ("edit_plan",)

_COMFORT: Final = 0.5


def edit_plan(plan: Plan, facts: Iterable[Fact], finds: Finds, wish: Fact) -> Plan:
    """Change a plan so that it meets a wish, and nothing else about it where that is possible.

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
    room, failed = pick_room(known, finds, stay.city, len(stay.days), comfort)
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
    return [r for r in finds.tables.get(city, ()) if (r.name, r.city) not in taken]


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
