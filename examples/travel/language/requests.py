"""The short request that a session begins with: origin, destination and dates, nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date as Date
from datetime import timedelta
from random import Random
from typing import Final, NamedTuple

from ....engine.errors import InvalidInput

__all__ = ("Request", "say_request", "understand_request")

_TEXTS: Final = (
    "Help me plan a {days}-day trip from {origin} to {destination} starting on {first}.",
    "Please plan {days} days of travel from {origin} to {destination}, leaving on {first}.",
    "I need a {days}-day itinerary from {origin} to {destination} that begins on {first}.",
    "We go from {origin} to {destination} for {days} days, starting on {first}: please plan it.",
)

_LONGEST: Final = 14

_DAYS = re.compile(r"\b(\d{1,3})[- ]days?\b")
_FIRST = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_PLACES = re.compile(
    r"\bfrom ([A-Z].*?) to ([A-Z].*?)"
    r"(?:,| for \d| starting| beginning| that begins| leaving| on \d|(?<!\bSt)[.?!](?:\s|$)|$)"
)


class Request(NamedTuple):
    """The content of a request.

    Attributes:
        origin: a city.
        destination: a city, or a state for trips of more than three days.
        dates: ISO dates, one a day.
    """

    origin: str
    destination: str
    dates: tuple[str, ...]


def say_request(origin: str, destination: str, dates: Sequence[str], random: Random) -> str:
    """A request in plain words with places and dates, and without any wish."""
    return random.choice(_TEXTS).format(
        days=len(dates), origin=origin, destination=destination, first=dates[0]
    )


def understand_request(text: str) -> Request:
    """Read a request.

    Raises:
        InvalidInput: places, length or first day are missing, or the length is out of range.
    """
    days, first, places = _DAYS.search(text), _FIRST.search(text), _PLACES.search(text)
    if days is None or first is None or places is None:
        raise InvalidInput(
            f"cannot read the request {text!r}: it should say from where to where, for how many "
            f"days and from which date, as in {_TEXTS[0]!r}"
        )
    if not 2 <= int(days[1]) <= _LONGEST:
        raise InvalidInput(
            f"cannot plan a trip of {days[1]} days: one takes from 2 to {_LONGEST} days"
        )
    try:
        start = Date.fromisoformat(first[0])
        dates = tuple(str(start + timedelta(days=day)) for day in range(int(days[1])))
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"cannot read the dates of the request {text!r}: {error}") from None
    return Request(places[1], places[2], dates)
