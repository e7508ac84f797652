"""How TravelPlanner's evaluator reads the texts of a plan: routes, names, cities, blanks.

The readings keep its exact behaviour, mistakes and exceptions included, since every published
number rests on them. A plan is any JSON value here. The evaluator leaves wrong types to Python, with
an exception or an accidental match as the result; hence `Loose`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from ..data.tables import Mode

__all__ = (
    "MEALS",
    "Loose",
    "before_parenthesis",
    "car_of",
    "days_within",
    "filled",
    "flight_number",
    "name_and_city",
    "route_in",
    "route_of",
    "vehicle_of",
)

Loose: TypeAlias = Any
"""A JSON value of any type: the operations on it decide what happens, as in the original."""

MEALS = ("breakfast", "lunch", "dinner")

# The first city is as short as it can be and stays on one line; the second runs to the next comma.
_ROUTE = re.compile(r"from\s+(.+?)\s+to\s+([^,]+)")

_NUMBER_LABEL = "Flight Number: "


def days_within(plan: Loose, days: int) -> Iterator[tuple[int, Loose]]:
    """The days of a plan within the trip, with their index.

    Raises:
        TypeError, KeyError, IndexError: the plan is no list.
    """
    for index in range(min(days, len(plan))):
        yield index, plan[index]


def filled(value: Loose) -> bool:
    """Whether a field has a value."""
    return bool(value) and bool(value != "-")


def route_in(text: Loose) -> tuple[str | None, str | None]:
    """Origin and destination of the first ``from A to B``, or None twice.

    Raises:
        TypeError: `text` is no text.
    """
    found = _ROUTE.search(text)
    return (found[1], found[2]) if found else (None, None)


def route_of(day: Loose) -> tuple[str | None, str | None]:
    """The route that a day's transportation states, else the one of its current city.

    Raises:
        TypeError: what is looked into is no text.
        KeyError: the current city is looked into and missing.
    """
    origin, destination = route_in(day["transportation"])
    return (origin, destination) if origin is not None else route_in(day["current_city"])


def car_of(lowered: str) -> Mode | None:
    """The kind of car that a transportation in lower case speaks of, if any."""
    if "self-driving" in lowered:
        return "self-driving"
    return "taxi" if "taxi" in lowered else None


def vehicle_of(text: Loose) -> str | None:
    """The vehicle of a transportation: the first of these that it mentions anywhere.

    Raises:
        AttributeError: `text` is no text.
    """
    lowered = text.lower()
    return next((v for v in ("taxi", "self-driving", "flight") if v in lowered), None)


def before_parenthesis(text: Loose) -> str:
    """The text before the first complete parenthesis of the first line, spaces included.

    Raises:
        TypeError: `text` is no text.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected text, got {type(text).__name__}")
    start = text.find("(")
    if start < 0 or text.find(")", start) < 0 or "\n" in text[:start]:
        return text
    return text[:start]


def name_and_city(text: Loose) -> tuple[str, str]:
    """The name before the last comma and the city after it; two dashes if there is neither.

    A name starts after the last line break before that comma, and may be empty.

    Raises:
        TypeError: `text` is no text.
    """
    if not isinstance(text, str):
        raise TypeError(f"expected text, got {type(text).__name__}")
    comma = text.rfind(",")
    if comma < 0 or comma == len(text) - 1:
        return "-", "-"
    name = text[text.rfind("\n", 0, comma) + 1 : comma].strip()
    return name, before_parenthesis(text[comma + 1 :].strip()).strip()


def flight_number(text: str) -> str:
    """The number after ``Flight Number: ``, up to the next comma.

    Raises:
        IndexError: it does not say so in exactly these letters.
    """
    _, label, rest = text.partition(_NUMBER_LABEL)
    if not label:
        raise IndexError(f"{text!r} lacks {_NUMBER_LABEL!r}, which a number follows")
    return rest.partition(_NUMBER_LABEL)[0].partition(",")[0]
