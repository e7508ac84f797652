"""Messages about a trip: facts in a traveller's own words, questions, and ways not to answer.

Agents and users understand each other only through such texts. `understand_message` and
`understand_question` read them, from any writer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Final

from ....tasks.phrases import counted, sentences, spelled
from .facts import ANY, SLOTS, Fact, Slot, Value
from .reading import read_facts

__all__ = (
    "ask",
    "say_fact",
    "understand_message",
    "understand_question",
    "wordings",
)

_OPENINGS: Final = ("", "", "By the way: ", "Just so you know: ", "Oh, and one thing: ")

_NUMBERED: Final[Mapping[Slot, tuple[str, ...]]] = {
    "people": (
        "there will be {n} of us.",
        "we are a group of {n}.",
        "it's {people} in total.",
        "{people} are going.",
    ),
    "cities": (
        "I'd like to visit {cities}.",
        "please make it {cities}.",
        "we were thinking of {cities}.",
    ),
    "budget": (
        "our budget is ${dollars}.",
        "we can spend ${dollars} at most.",
        "all of it together should stay within ${dollars}.",
        "please don't go over ${dollars} in total.",
    ),
}
_ALONE: Final = ("it's just me.", "I'm travelling alone.", "I'm going by myself.")
_ONE_CITY: Final = ("one city is enough for us.", "I'd like to stay in a single city.")

_CUISINES: Final = (
    "we'd love some {cuisines} food.",
    "could you work in {cuisines} meals?",
    "we really want to eat {cuisines} on this trip.",
)

_FIXED: Final[Mapping[str, tuple[str, ...]]] = {
    "children under 10": (
        "our kids are small, so the places have to accept them.",
        "we have young children with us and need places that take them.",
    ),
    "parties": (
        "we'd like to throw parties where we stay, so that has to be fine there.",
        "we need places that don't mind parties.",
    ),
    "pets": (
        "our dog comes with us, so we need places that take pets.",
        "the places should be fine with pets.",
    ),
    "smoking": (
        "some of us smoke, so that has to be fine at the place.",
        "we need to be able to smoke where we stay.",
    ),
    "visitors": (
        "friends want to drop by, so visitors have to be fine at the place.",
        "we need to be able to have visitors over.",
    ),
    "entire room": (
        "we'd like an entire place to ourselves.",
        "please find us whole apartments.",
    ),
    "private room": ("a private room would be right for us.", "please book private rooms."),
    "shared room": ("shared rooms would be right for us.", "please put us in shared rooms."),
    "not shared room": (
        "we don't want to share a room with strangers.",
        "please, no shared rooms.",
    ),
    "no flight": ("we'd rather not fly.", "no planes, please.", "we don't want to take a flight."),
    "no self-driving": (
        "we'd rather not drive ourselves.",
        "none of us drives, so no rental car please.",
        "I don't want to sit behind the wheel.",
    ),
}

_TOPIC_NAMES: Final[Mapping[Slot, str]] = {
    "people": "the number of people",
    "cities": "the number of cities",
    "budget": "the budget",
    "house_rule": "house rules",
    "room_type": "the type of room",
    "cuisine": "food",
    "transportation": "how we get around",
}
_INDIFFERENT: Final = ("I have no preference about {topic}.", "no wish on my side about {topic}.")

_QUESTIONS: Final[Mapping[Slot, tuple[str, ...]]] = {
    "people": ("How many people are travelling?", "How many of you will be going?"),
    "cities": (
        "How many cities would you like to visit?",
        "How many cities should the trip take in?",
    ),
    "budget": (
        "What is your budget for the whole trip?",
        "How much do you want to spend altogether?",
    ),
    "house_rule": (
        "Is there anything the house rules have to allow, such as pets or smoking?",
        "Do the house rules matter to you, for instance about children or parties?",
    ),
    "room_type": (
        "What type of room would you like: an entire place, a private room, a shared one?",
        "Which type of room should I look for?",
    ),
    "cuisine": (
        "Which cuisines would you like to try?",
        "Is there any cuisine that you would like me to include?",
    ),
    "transportation": (
        "Is there a means of transport that you want to avoid?",
        "How do you want to get around: is any means of transport out of the question?",
    ),
    "generic": (
        "Is there anything else that I should know?",
        "Do you have any other wishes for this trip?",
    ),
}
_ABOUT: Final[Mapping[Slot, re.Pattern[str]]] = {
    "people": re.compile(r"how many (?:people|persons|travell?ers|of you|are you)|who (?:is|else)"),
    "cities": re.compile(r"how many (?:cities|stops|places)"),
    "budget": re.compile(r"budget|\bspend\b|\bcost\b"),
    "house_rule": re.compile(r"house rules?|\bpets?\b|\bsmok"),
    "room_type": re.compile(r"\brooms?\b|kind of (?:place|accommodation)"),
    "cuisine": re.compile(r"cuisines?|\bfood\b|\beat\b"),
    "transportation": re.compile(r"transport|get around|\bfly\b|\bdriv"),
    "generic": re.compile(r"anything else|other (?:wishes|preferences)|preferences in general"),
}

_GENERIC: Final = (
    (re.compile(r"^(?:Require|Requires|Need|Needs)\b", re.IGNORECASE), "we need"),
    (re.compile(r"^(?:Prefer|Prefers|Preference for)\b", re.IGNORECASE), "we'd prefer"),
    (re.compile(r"^(?:Travel dates)\b", re.IGNORECASE), "our dates are"),
)


def wordings(fact: Fact) -> tuple[str, ...]:
    """All the ways in which `say_fact` may put a fact, without openings."""
    value = fact.value
    if value == ANY:
        return tuple(text.format(topic=_TOPIC_NAMES[fact.slot]) for text in _INDIFFERENT)
    if fact.slot == "generic":
        return (_reworded(str(value)),)
    if isinstance(value, tuple):
        return tuple(text.format(cuisines=spelled(value)) for text in _CUISINES)
    if isinstance(value, str):
        return _FIXED[value]
    if value == 1 and fact.slot in ("people", "cities"):
        return _ALONE if fact.slot == "people" else _ONE_CITY
    return tuple(
        text.format(
            n=value,
            people=counted(value, "person", "people"),
            cities=counted(value, "city", "cities"),
            dollars=f"{value:,}",
        )
        for text in _NUMBERED[fact.slot]
    )


def say_fact(fact: Fact, random: Random) -> str:
    """States a fact in a traveller's own words, never in those of the profile."""
    text = random.choice(_OPENINGS) + random.choice(wordings(fact))
    return text[0].upper() + text[1:]


@lru_cache(maxsize=1024)
def understand_message(text: str) -> tuple[Fact, ...]:
    """The facts that a message states, at most one a slot, in the order of `SLOTS`.

    Of two values for one slot the later sentence counts ("You have us in three cities. One is
    enough."), except for cuisines, which add up.
    """
    found: dict[Slot, Value] = {}
    for sentence in sentences(text):
        for fact in read_facts(sentence):
            before = found.get(fact.slot)
            if isinstance(before, tuple) and isinstance(fact.value, tuple):
                found[fact.slot] = tuple(sorted({*before, *fact.value}))
            else:
                found[fact.slot] = fact.value
    return tuple(Fact(slot, found[slot]) for slot in SLOTS if slot in found)


def ask(slot: Slot, random: Random) -> str:
    """An agent's question about a slot (about anything else, for the generic one)."""
    return random.choice(_QUESTIONS[slot])


@lru_cache(maxsize=1024)
def understand_question(text: str) -> tuple[Slot, ...]:
    """The slots that a message asks about, in the order of `SLOTS`, ``generic`` last."""
    questions = [part.lower() for part in sentences(text) if part.endswith("?")]
    return tuple(
        slot for slot in _ABOUT if any(_ABOUT[slot].search(question) for question in questions)
    )


def _reworded(sentence: str) -> str:
    """A profile's sentence that no slot holds, turned into something a traveller says."""
    for start, instead in _GENERIC:
        if start.search(sentence):
            return start.sub(instead, sentence).removesuffix(".") + "."
    return f"please keep in mind: {sentence[:1].lower()}{sentence[1:].removesuffix('.')}."
