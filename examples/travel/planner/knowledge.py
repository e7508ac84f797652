"""A planner's knowledge of the wishes for a trip: the request, and facts learnt later."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from ..language.facts import ANY, SLOTS, Fact, Slot, Value
from ..language.requests import understand_request

__all__ = ("Knowledge", "knowledge_from_request", "learn")


class Knowledge(msgspec.Struct, frozen=True, kw_only=True):
    """The knowledge so far; an unknown wish is None (or empty).

    Attributes:
        origin: city.
        destination: a city for trips of up to three days, a state for longer ones.
        dates: ISO dates, one a day.
        people: how many travel.
        cities: how many cities to visit.
        budget: dollars for the whole party and trip.
        house_rule: what the house must allow.
        room_type: the wish as in `language_facts.ROOM_TYPES`.
        cuisines: to be had on the trip, each at least once.
        transportation: ``no flight``, ``no self-driving``, or both.
        settled: slots that the traveller has mentioned, even to say that they have no wish.
    """

    origin: str
    destination: str
    dates: tuple[str, ...]
    people: int | None = None
    cities: int | None = None
    budget: int | None = None
    house_rule: str | None = None
    room_type: str | None = None
    cuisines: tuple[str, ...] = ()
    transportation: tuple[str, ...] = ()
    settled: tuple[Slot, ...] = ()

    @property
    def days(self) -> int:
        """How many days the trip takes."""
        return len(self.dates)

    @property
    def party(self) -> int:
        """How many to plan for; by default one, or two with children."""
        if self.people is not None:
            return self.people
        return 2 if self.house_rule == "children under 10" else 1

    @property
    def to_state(self) -> bool:
        """Whether the destination is a state, so that the cities are the planner's choice."""
        return self.days > 3

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The wishes, as facts: one for each means of transport to avoid."""
        held: dict[Slot, Value | None] = {
            "people": self.people,
            "cities": self.cities,
            "budget": self.budget,
            "house_rule": self.house_rule,
            "room_type": self.room_type,
            "cuisine": self.cuisines or None,
        }
        facts = [Fact(slot, value) for slot, value in held.items() if value is not None]
        return (*facts, *(Fact("transportation", word) for word in self.transportation))

    @property
    def open_slots(self) -> tuple[Slot, ...]:
        """The slots about which nothing is known, in the order of `SLOTS`."""
        return tuple(slot for slot in SLOTS if slot not in self.settled)


@lru_cache(maxsize=512)
def knowledge_from_request(text: str) -> Knowledge:
    """The knowledge in a short request: places and dates, and, for a city, that it is one city.

    Raises:
        InvalidInput: the request cannot be read.
    """
    request = understand_request(text)
    known = Knowledge(origin=request.origin, destination=request.destination, dates=request.dates)
    return known if known.to_state else learn(known, (Fact("cities", 1),))


def learn(known: Knowledge, facts: Iterable[Fact]) -> Knowledge:
    """Add facts: a later one replaces an earlier of its slot, but cuisines and means of
    transport to avoid add up. Generic facts change nothing.
    """
    for fact in facts:
        if fact.slot != "generic":
            known = _learn(known, fact)
    return known


def _learn(known: Knowledge, fact: Fact) -> Knowledge:
    settled = tuple(slot for slot in SLOTS if slot in known.settled or slot == fact.slot)
    value = fact.value
    field: str = fact.slot
    change: object = value
    if fact.slot == "cuisine":
        field = "cuisines"
        added = value if isinstance(value, tuple) else ()
        change = () if value == ANY else tuple(sorted({*known.cuisines, *added}))
    elif fact.slot == "transportation":
        change = () if value == ANY else tuple(sorted({*known.transportation, str(value)}))
    elif value == ANY:
        change = None
    return msgspec.structs.replace(known, **{field: change, "settled": settled})
