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
from ..data.tables import REMEMBERED
from .facts import ANY, SLOTS, Fact, Slot, Value
from .reading import read_facts

__all__ = (
    "as_one",
    "ask",
    "name_of",
    "say_fact",
    "understand_message",
    "understand_question",
    "wordings",
)

_OPENINGS: Final = (
    "",
    "",
    "",
    "By the way: ",
    "Just so you know: ",
    "Oh, and one thing: ",
    "Please note: ",
    "Ah, before I forget: ",
    "What matters to us: ",
)

_REPLIES: Final = (*[""] * 7, "Well, ", "Let me see: ", "Hm, ")
"""Before an answer."""

_NUMBERED: Final[Mapping[Slot, tuple[str, ...]]] = {
    "people": (
        "there will be {n} of us.",
        "we are a group of {n}.",
        "it's {people} in total.",
        "{people} are going.",
        "we are {people}.",
        "please plan for {people}.",
        "our group of {n} is complete now.",
        "count {people} in.",
    ),
    "cities": (
        "I'd like to visit {cities}.",
        "please make it {cities}.",
        "we were thinking of {cities}.",
        "{cities} would suit us.",
        "we would love to get to know {cities}.",
        "plan for {cities}, please.",
        "{cities} is what we have in mind.",
    ),
    "budget": (
        "our budget is ${dollars}.",
        "we can spend ${dollars} at most.",
        "all of it together should stay within ${dollars}.",
        "please don't go over ${dollars} in total.",
        "the whole trip may cost ${dollars} at most.",
        "${dollars} is our limit for everything.",
        "we have ${dollars} for all of it.",
        "more than ${dollars} we cannot afford.",
    ),
}
_ALONE: Final = (
    "it's just me.",
    "I'm travelling alone.",
    "I'm going by myself.",
    "nobody comes along, I go on my own.",
    "it is a solo trip.",
)
_ONE_CITY: Final = (
    "one city is enough for us.",
    "I'd like to stay in a single city.",
    "please keep us in one city all the time.",
    "we don't want to change places: one city will do.",
)

_CUISINES: Final = (
    "we'd love some {cuisines} food.",
    "could you work in {cuisines} meals?",
    "we really want to eat {cuisines} on this trip.",
    "we all like {cuisines} dishes.",
    "please look for places that serve {cuisines} food.",
    "{cuisines} food has to be part of it.",
    "the meals should include {cuisines} dishes.",
)

_FIXED: Final[Mapping[str, tuple[str, ...]]] = {
    "children under 10": (
        "our kids are small, so the places have to accept them.",
        "we have young children with us and need places that take them.",
        "the kids come along, they have to be welcome where we stay.",
        "we travel with two small children, so they must be allowed.",
    ),
    "parties": (
        "we'd like to throw parties where we stay, so that has to be fine there.",
        "we need places that don't mind parties.",
        "we plan a party or two at the place, please make sure that they allow it.",
        "it has to be a place where parties are allowed.",
    ),
    "pets": (
        "our dog comes with us, so we need places that take pets.",
        "the places should be fine with pets.",
        "we won't leave the dog at home, so look for places where it may stay.",
        "pets have to be allowed, ours is coming.",
    ),
    "smoking": (
        "some of us smoke, so that has to be fine at the place.",
        "we need to be able to smoke where we stay.",
        "please only take places where smoking is allowed.",
        "I smoke, so the place must allow it.",
    ),
    "visitors": (
        "friends want to drop by, so visitors have to be fine at the place.",
        "we need to be able to have visitors over.",
        "we expect visitors, the place has to allow them.",
        "visitors should be allowed where we stay.",
    ),
    "entire room": (
        "we'd like an entire place to ourselves.",
        "please find us whole apartments.",
        "we want the whole place for ourselves.",
        "nothing less than an entire home, please.",
        "whole flats only, please.",
    ),
    "private room": (
        "a private room would be right for us.",
        "please book private rooms.",
        "private rooms, please.",
        "we each want a private room, that is all.",
    ),
    "shared room": (
        "shared rooms would be right for us.",
        "please put us in shared rooms.",
        "a shared room is just what we want.",
        "we like to meet people, so take shared rooms.",
    ),
    "not shared room": (
        "we don't want to share a room with strangers.",
        "please, no shared rooms.",
        "no shared rooms for us.",
        "I won't sleep in shared rooms, so not that.",
    ),
    "no flight": (
        "we'd rather not fly.",
        "no planes, please.",
        "we don't want to take a flight.",
        "please leave out flights.",
        "we want to stay on the ground, so no flights.",
        "flights are out for us.",
    ),
    "no self-driving": (
        "we'd rather not drive ourselves.",
        "none of us drives, so no rental car please.",
        "I don't want to sit behind the wheel.",
        "please plan it without driving ourselves.",
        "self-driving is out.",
        "we cannot drive, so please avoid rental cars.",
    ),
}

_ONE: Final = tuple(
    (re.compile(many), one)
    for many, one in (
        (
            r"\b([Oo])ur (?:kids are small|little ones are with us), so",
            "A small child joins me there, so",
        ),
        (
            r"\b[Ww]e have young children with us and need",
            "a small child joins me there, and I need",
        ),
        (r"\b[Tt]he kids come along, they have", "my brother's kids visit me there, they have"),
        (
            r"\b[Ww]e travel with two small children, so they",
            "two small children visit me there, so they",
        ),
        (r"\b[Ss]ome of us (smoke|step)\b", r"I \1"),
        (r"\b[Nn]one of us drives\b", "I do not drive"),
        (r"\b[Ww]e (?:all|each) ", "I "),
        (r"\b[Ww]e(?: are|'re)\b", "I am"),
        (r"\b[Ww]e were\b", "I was"),
        (r"\b[Ww]e\b", "I"),
        (r"\b([Oo])urselves\b", "myself"),
        (r"\b[Oo]urs\b", "mine"),
        (r"\bour\b", "my"),
        (r"\bOur\b", "My"),
        (r"\bus\b", "me"),
    )
)
"""How those speak who travel alone."""

_TOPIC_NAMES: Final[Mapping[Slot, str]] = {
    "people": "the number of people",
    "cities": "the number of cities",
    "budget": "the budget",
    "house_rule": "house rules",
    "room_type": "the type of room",
    "cuisine": "food",
    "transportation": "how we get around",
}
_INDIFFERENT: Final = (
    "I have no preference about {topic}.",
    "no wish on my side about {topic}.",
    "no preference on {topic}, really.",
    "I have no wish as to {topic}.",
)

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


def as_one(text: str) -> str:
    """A message as a person says it who travels alone: I, and not we."""
    for many, one in _ONE:
        text = many.sub(one, text)
    return text[:1].upper() + text[1:]


def name_of(slot: Slot) -> str:
    """A traveller's word for a slot."""
    return _TOPIC_NAMES.get(slot, "what else we asked for")


def say_fact(fact: Fact, random: Random, *, asked: bool = False) -> str:
    """States a fact in a traveller's own words, never in those of the profile; perhaps as an answer."""
    text = random.choice(_REPLIES if asked else _OPENINGS) + random.choice(wordings(fact))
    return text[0].upper() + text[1:]


@lru_cache(maxsize=REMEMBERED)
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


@lru_cache(maxsize=REMEMBERED)
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
