"""A travel plan as data: one entry a day, from and to TravelPlanner's submission format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from ....engine.errors import InvalidInput, malformed

__all__ = (
    "BLANK",
    "FIELDS",
    "DayPlan",
    "Plan",
    "PlanJson",
    "attractions_of",
    "plan_from_json",
    "plan_to_json",
)

BLANK = "-"
"""The value of an empty field."""

FIELDS = (
    "current_city",
    "transportation",
    "breakfast",
    "attraction",
    "lunch",
    "dinner",
    "accommodation",
)
"""The fields of a day, in the order in which a plan states them."""


class DayPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One day of a plan; every field is text, `BLANK` if it is empty.

    Attributes:
        days: number of the day, from 1 (the name is that of TravelPlanner's submissions).
        current_city: the city of a stay, or ``from A to B`` on a day of travel.
        transportation: ``Flight Number: F1234567, from A to B, ...``, ``Self-driving, from A to B,
            ...`` or ``Taxi, from A to B, ...``.
        breakfast: a restaurant as ``Name, City``.
        attraction: any number of ``Name, City;``, each with its semicolon.
        lunch: as breakfast.
        dinner: as breakfast.
        accommodation: the place for the night, as ``Name, City``.
    """

    days: int
    current_city: str = BLANK
    transportation: str = BLANK
    breakfast: str = BLANK
    attraction: str = BLANK
    lunch: str = BLANK
    dinner: str = BLANK
    accommodation: str = BLANK


Plan: TypeAlias = tuple[DayPlan, ...]
PlanJson: TypeAlias = list[dict[str, str | int]]


def plan_to_json(plan: Plan) -> PlanJson:
    """The plan as the list of days that TravelPlanner's evaluation takes."""
    return [{"days": day.days, **{field: getattr(day, field) for field in FIELDS}} for day in plan]


def plan_from_json(value: object) -> Plan:
    """Read the plan of a submission, forgiving what can be understood.

    A missing, empty or null field becomes `BLANK`; a list of texts is joined with semicolons; the
    number of a day may stand under ``days`` or ``day``, or be left out; further keys are ignored.

    Args:
        value: decoded JSON: a list of days, or an object that holds it under ``plan``.

    Raises:
        InvalidInput: there is no list of days, or a day is no object.
    """
    if isinstance(value, Mapping) and "plan" in value:
        value = value["plan"]
    if not isinstance(value, list | tuple):
        raise InvalidInput(f"a plan is a list of days, not {_shown(value)}")
    return tuple(_day_from_json(day, number) for number, day in enumerate(value, 1))


def attractions_of(day: DayPlan) -> tuple[str, ...]:
    """The attractions of a day, one by one, without their semicolons."""
    listed = (part.strip() for part in day.attraction.split(";"))
    return tuple(part for part in listed if part not in ("", BLANK))


def _day_from_json(value: object, number: int) -> DayPlan:
    if isinstance(value, DayPlan):
        return value
    if not isinstance(value, Mapping):
        raise InvalidInput(f"day {number} of the plan is not an object, but {_shown(value)}")
    given = next((value[key] for key in ("days", "day") if _is_number(value.get(key))), number)
    texts = {field: _text(value.get(field)) for field in FIELDS}
    if isinstance(value.get("attraction"), list | tuple) and texts["attraction"] != BLANK:
        texts["attraction"] += ";"
    return DayPlan(days=int(given), **texts)


def _is_number(value: object) -> bool:
    if isinstance(value, bool):
        return False
    # A longer number cannot be a day, and Python would convert it slowly or refuse to.
    return isinstance(value, int) or (
        isinstance(value, str) and value.strip().isdecimal() and len(value) < 10
    )


def _text(value: object) -> str:
    try:
        if isinstance(value, list | tuple):
            parts = (str(part).strip().rstrip(";") for part in value if part is not None)
            return ";".join(part for part in parts if part) or BLANK
        return ("" if value is None else str(value).strip()) or BLANK
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"a field of the plan cannot be written as text: {malformed(error)}"
        ) from error


def _shown(value: object) -> str:
    if isinstance(value, list | tuple | Mapping):
        return f"a {type(value).__name__} of {len(value)}"
    text = str(value)[:60]
    return f"{type(value).__name__} {text!r}"
