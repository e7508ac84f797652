"""Reads a plan for the strict variant: days with places, each in its city."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ....engine.errors import InvalidInput
from ..plan.plan import BLANK, DayPlan, Plan, attractions_of, plan_from_json
from .commonsense import NOTHING_TO_FILL_IN
from .reading import MEALS, before_parenthesis, route_in

__all__ = ("NamedPlace", "StrictDay", "plan_of", "read_day")


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
    """The days of any JSON value: none if it is no list, and a blank one for what is no day."""
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
