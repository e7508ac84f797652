"""How a traveller's goals change while they see options.

Preferences are made while choosing, not only found (Slovic 1995; Bettman, Luce and Payne 1998): a long
drive in a plan puts a traveller off driving, or a friend who sees the plan joins the trip. Something
in the plan or in a message causes each change. The change is final: from then on, the new wishes count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil
from random import Random
from typing import Final

import msgspec

from ...engine.events import JSON
from ...engine.session.decisions import ChangeProfile
from .data.tables import Trip
from .language.facts import CUISINES, Fact, Slot
from .language.profiles import understand_preference, understand_preferences, write_preference

__all__ = ("give_way", "second_thought", "sentences_of", "trip_as_changed", "wishes_of")

_DROPPED: Final = "no longer"
_LONG_DRIVE = re.compile(r"Self-driving, from [^\n]*?Duration: (\d{1,4}) hours?")
_TIRING: Final = 5  # hours at the wheel
_STEP: Final = 50  # dollars
_MOST_CUISINES: Final = 4


def sentences_of(profile: JSON, part: str = "profile") -> tuple[str, ...]:
    """The sentences of a profile: its wishes."""
    found = profile.get(part) if isinstance(profile, Mapping) else None
    return tuple(str(one) for one in found) if isinstance(found, list | tuple) else ()


def wishes_of(profile: JSON) -> tuple[Fact, ...]:
    """The wishes of a profile that a plan can satisfy."""
    facts = understand_preferences(sentences_of(profile))
    return tuple(fact for fact in facts if fact.slot != "generic")


def second_thought(profile: JSON, plan: str, chance: Random) -> ChangeProfile | None:
    """The change of mind of a traveller who sees a plan; None if nothing in it moves them.

    Args:
        profile: their wishes.
        plan: the plan they see.
        chance: decides the change; it is a trait of theirs.
    """
    wishes = {fact.slot: fact for fact in understand_preferences(sentences_of(profile))}
    kinds = [_tired, _joined, _hungry, _at_home, _visited]
    chance.shuffle(kinds)
    for kind in kinds:
        found = kind(wishes, plan, chance)
        if found is not None:
            facts, reason = found
            return _changed(profile, facts, reason, chance)
    return None


def give_way(profile: JSON, dollars: int, chance: Random) -> ChangeProfile:
    """They spend what the rest of their wishes costs."""
    budget = Fact("budget", ceil(dollars / _STEP) * _STEP)
    reason = "nothing that meets the other wishes can be had for less"
    return _changed(profile, (budget,), reason, chance)


def trip_as_changed(trip: Trip, profile: JSON) -> Trip:
    """The trip by which plans are judged, with any changed goals; the trip itself if none changed."""
    if not isinstance(profile, Mapping) or _DROPPED not in profile:
        return trip
    dropped = understand_preferences(sentences_of(profile[_DROPPED], "wishes"))
    now = {fact.slot: fact.value for fact in understand_preferences(sentences_of(profile))}
    for slot in {fact.slot for fact in dropped} | set(now):
        trip = _with(trip, slot, now.get(slot))
    return trip


_Wishes = Mapping[Slot, Fact]
_Found = tuple[tuple[Fact, ...], str]


def _tired(wishes: _Wishes, plan: str, chance: Random) -> _Found | None:
    hours = max((int(hours) for hours in _LONG_DRIVE.findall(plan)), default=0)
    if hours < _TIRING or "transportation" in wishes:
        return None
    return (Fact("transportation", "no self-driving"),), f"they saw {hours} hours at the wheel"


def _joined(wishes: _Wishes, plan: str, chance: Random) -> _Found | None:
    people, budget = wishes.get("people"), wishes.get("budget")
    if people is None or budget is None:
        return None
    if not isinstance(people.value, int) or not isinstance(budget.value, int):
        return None
    more = people.value + 1
    dollars = ceil(budget.value * more / people.value / _STEP) * _STEP
    facts = Fact("people", more), Fact("budget", dollars)
    return facts, "a friend who saw the plan comes along, and pays a share"


def _hungry(wishes: _Wishes, plan: str, chance: Random) -> _Found | None:
    had = wishes["cuisine"].value if "cuisine" in wishes else ()
    if not isinstance(had, tuple) or len(had) >= _MOST_CUISINES:
        return None
    new = chance.choice([cuisine for cuisine in CUISINES if cuisine not in had])
    facts = (Fact("cuisine", tuple(sorted((*had, new)))),)
    return facts, f"they read about the places to eat in the plan, and about {new} ones"


def _at_home(wishes: _Wishes, plan: str, chance: Random) -> _Found | None:
    if "room_type" in wishes:
        return None
    kind = chance.choice(("entire room", "private room"))
    return (Fact("room_type", kind),), "they looked up the places to stay in the plan"


def _visited(wishes: _Wishes, plan: str, chance: Random) -> _Found | None:
    if "house_rule" in wishes:
        return None
    return (Fact("house_rule", "visitors"),), "they told a friend who lives there of the plan"


def _changed(profile: JSON, facts: Sequence[Fact], reason: str, chance: Random) -> ChangeProfile:
    """The profile with these wishes in place of those of the same slots."""
    slots = {fact.slot for fact in facts}
    kept: list[str] = []
    dropped: list[str] = []
    for sentence in sentences_of(profile):
        about = {fact.slot for fact in understand_preference(sentence)}
        (dropped if about & slots else kept).append(sentence)
    new = [write_preference(fact, chance) for fact in facts]
    earlier = profile.get(_DROPPED) if isinstance(profile, Mapping) else None
    gone = [*sentences_of(earlier, "wishes"), *dropped]
    # An object, so that the scorer can read it, but a model that plays the traveller is not shown it.
    return ChangeProfile({"profile": [*kept, *new], _DROPPED: {"wishes": gone}}, reason)


def _with(trip: Trip, slot: Slot, value: object) -> Trip:
    match slot:
        case "people" | "cities":
            return trip if value is None else msgspec.structs.replace(trip, **{slot: value})
        case "budget":
            budget = float(value) if isinstance(value, int) else None
            return msgspec.structs.replace(trip, budget=budget)
        case "house_rule" | "room_type" | "cuisine" | "transportation":
            limits = msgspec.structs.replace(trip.constraints, **{slot: value})
            return msgspec.structs.replace(trip, constraints=limits)
    return trip
