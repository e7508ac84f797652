"""A traveller's hidden profile: wishes as a list of plain sentences, written and read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from random import Random
from typing import Final

from ....tasks.phrases import counted, spelled
from ..data.tables import REMEMBERED
from .facts import Fact, Slot
from .reading import read_facts

__all__ = (
    "understand_preference",
    "understand_preferences",
    "write_preference",
)

_SENTENCES: Final[Mapping[Slot, tuple[str, ...]]] = {
    "people": ("Travelling party of {n}", "A trip for {people}", "Plan for {people} in all"),
    "cities": ("See {cities} on the way", "Stop in {cities}", "Spend the days in {cities}"),
    "budget": (
        "Total cost within ${dollars}",
        "A budget of ${dollars} for everything",
        "Costs limited to ${dollars} altogether",
    ),
    "cuisine": (
        "Meals should include {cuisines} food",
        "Wish to eat {cuisines} dishes",
        "Fond of {cuisines} cooking",
    ),
}

_FIXED: Final[Mapping[str, tuple[str, ...]]] = {
    "children under 10": (
        "Children under 10 come along, and must be welcome where they stay",
        "Lodging has to take children under 10",
    ),
    "parties": ("Lodging has to allow parties", "Wants to host parties at the accommodation"),
    "pets": ("Lodging has to take pets", "Pets come along, and must be welcome overnight"),
    "smoking": ("Smoking must be allowed at the accommodation", "Lodging has to allow smoking"),
    "visitors": ("Lodging has to allow visitors", "Visitors must be welcome where they stay"),
    "entire room": ("Wants entire places, with nobody else around", "Lodging must be entire homes"),
    "private room": ("Wants private rooms", "Lodging must be in private rooms"),
    "shared room": ("Content with shared rooms, and wants those", "Lodging must be shared rooms"),
    "not shared room": ("Will not stay in shared rooms", "Lodging must not be shared"),
    "no flight": ("Does not want to fly", "The journey must do without flights"),
    "no self-driving": ("Does not want to drive", "Getting around without driving"),
}


def write_preference(fact: Fact, random: Random) -> str:
    """A sentence of a profile that states a fact.

    Raises:
        KeyError: a fact that profiles of this package do not hold.
    """
    value = fact.value
    if isinstance(value, tuple):
        return random.choice(_SENTENCES[fact.slot]).format(cuisines=spelled(value))
    if isinstance(value, int):
        return random.choice(_SENTENCES[fact.slot]).format(
            n=value,
            people=counted(value, "person", "people"),
            cities=counted(value, "city", "cities"),
            dollars=f"{value:,}",
        )
    return random.choice(_FIXED[value])


@lru_cache(maxsize=REMEMBERED)
def understand_preference(sentence: str) -> tuple[Fact, ...]:
    """The facts in one sentence of a profile; a generic one if it states nothing else."""
    return read_facts(sentence) or (Fact("generic", sentence),)


def understand_preferences(sentences: Iterable[str]) -> tuple[Fact, ...]:
    """The facts in a profile, in the order of its sentences and each once."""
    return tuple(
        dict.fromkeys(fact for sentence in sentences for fact in understand_preference(sentence))
    )
