"""Turns a draft into the days of a plan: places for the meals, and sights for the days."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from ..data.tables import Accommodation, Restaurant
from ..plan.plan import BLANK, DayPlan, Plan
from .finds import Finds
from .routes import Journey, transfers

__all__ = ("Slot", "meal_slots", "write_days")

Meal = Literal["breakfast", "lunch", "dinner"]
_MEALS: Final[tuple[Meal, ...]] = ("breakfast", "lunch", "dinner")

# Hours of the day: a meal is before a later departure, and after an earlier arrival.
_BREAKFAST: Final = 7.5
_LUNCH: Final = 13.5
_DINNER: Final = 20.5
_LATER_MEALS: Final[tuple[tuple[Meal, float], ...]] = (("lunch", _LUNCH), ("dinner", _DINNER))
_SIGHTS_A_DAY: Final = 2
_LAST_SIGHT: Final = 16.0  # no sights on that day after a later arrival


class Slot(NamedTuple):
    """A meal to plan.

    Attributes:
        day: counted from 0.
        meal: which.
        city: where.
        travelling: whether the day is one of travel, on which a meal may be left out.
    """

    day: int
    meal: Meal
    city: str
    travelling: bool


def meal_slots(journey: Journey) -> list[Slot]:
    """The meals of a journey, without those for which a day of travel has no time."""
    slots: list[Slot] = []
    moves = transfers(journey.nights)
    for number, day in enumerate(moves):
        leg = journey.legs[number]
        left = journey.stops[number - 1] if number else None
        reached = journey.stops[number] if number < len(journey.stops) else None
        if left is not None and leg.departs >= _BREAKFAST:
            slots.append(Slot(day, "breakfast", left, True))
        for meal, hour in _LATER_MEALS:
            if reached is not None and leg.arrives <= hour:
                slots.append(Slot(day, meal, reached, True))
            elif left is not None and leg.departs >= hour:
                slots.append(Slot(day, meal, left, True))
        if reached is not None:
            for full in range(day + 1, moves[number + 1]):
                slots += (Slot(full, meal, reached, False) for meal in _MEALS)
    return slots


def write_days(
    home: str,
    journey: Journey,
    rooms: Sequence[Accommodation | None],
    meals: Mapping[str, Sequence[Restaurant]],
    slots: Iterable[Slot],
    finds: Finds,
) -> Plan:
    """The plan of a journey: each slot is filled as long as there are restaurants for it.

    Args:
        home: where it starts and ends.
        journey: cities, nights and legs.
        rooms: one a stop.
        meals: restaurants by city, at most one a slot there.
        slots: the meals.
        finds: for what there is to see.
    """
    waiting = {city: iter(chosen) for city, chosen in meals.items()}
    eaten: dict[tuple[int, Meal], str] = {}
    for slot in slots:
        restaurant = next(waiting.get(slot.city, iter(())), None)
        if restaurant is not None:
            eaten[slot.day, slot.meal] = f"{restaurant.name}, {slot.city}"
    cities = (home, *journey.stops, home)
    moves = transfers(journey.nights)
    days: list[DayPlan] = []
    for stop, leg in enumerate(journey.legs):
        before, city = cities[stop], cities[stop + 1]
        nights = journey.nights[stop] if stop < len(rooms) else 1
        room = rooms[stop] if stop < len(rooms) else None
        known = () if room is None else finds.attractions.get(city, ())
        sights = _spread(known, city, nights, leg.arrives <= _LAST_SIGHT)
        for index in range(nights):
            day = moves[stop] + index
            days.append(
                DayPlan(
                    days=day + 1,
                    current_city=city if index else f"from {before} to {city}",
                    transportation=BLANK if index else leg.line,
                    breakfast=eaten.get((day, "breakfast"), BLANK),
                    attraction=sights[index],
                    lunch=eaten.get((day, "lunch"), BLANK),
                    dinner=eaten.get((day, "dinner"), BLANK),
                    accommodation=BLANK if room is None else f"{room.name}, {city}",
                )
            )
    return tuple(days)


def _spread(names: Sequence[str], city: str, days: int, on_arrival: bool) -> list[str]:
    """The sights of each day in a city: first one for every full day, then one more for each."""
    shares: list[list[str]] = [[] for _ in range(days)]
    order = [*range(1, days)] * _SIGHTS_A_DAY
    if on_arrival:
        order.insert(days - 1, 0)
    for name, day in zip(names, order, strict=False):
        shares[day].append(f"{name}, {city};")
    return ["".join(share) or BLANK for share in shares]
