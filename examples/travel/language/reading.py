"""Reads facts from what people write: profile sentences, answers, comments on a plan.

A plain reader of plain English, by key words and their neighbourhood. It knows the ways in which
TravelPlanner's profiles put things and those of this package's own wordings, and is meant to be
right on sentences of that kind, not on all that can be said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from ....engine.text import NUMBER_WORDS
from ..data.tables import REMEMBERED
from .facts import ANY, CUISINES, SLOTS, Fact, Slot, Value

__all__ = ("read_facts",)

_NUMBER = rf"\b(\d{{1,9}}|{'|'.join(NUMBER_WORDS)})"

_PEOPLE = (
    re.compile(
        rf"{_NUMBER}[ -](?:other )?(?:people|persons?|travell?ers?|individuals|participants|adults|"
        r"of us)\b"
    ),
    re.compile(rf"\b(?:group|party|family) of {_NUMBER}\b"),
    re.compile(rf"\b(?:we are|we're|we will be|we'll be) {_NUMBER}\b(?=[.,;!?]| in\b|$)"),
)
_ALONE = re.compile(r"\b(?:just me|by myself|on my own|alone|solo)\b")
_COUPLE = re.compile(r"\b(?:couple|companion|duo|pair of travell?ers|my partner and (?:me|i))\b")

_CITIES = re.compile(rf"{_NUMBER}[ -](?:\w+ )?(?:cities|city|stops?)\b")
_ONE_CITY = re.compile(r"\b(?:a |the )?(?:single|solitary|same) city\b")

_MONEY = re.compile(
    r"\$\s?(\d[\d,]{0,14})|\b(\d[\d,]{0,14}) ?(?:dollars|bucks|usd)\b", re.IGNORECASE
)
_LIMIT = re.compile(
    r"budget|spend|afford|at most|no more than|limit|\bcap\b|maximum|up to|within|have",
    re.IGNORECASE,
)

_RULES: Final = {
    "pets": re.compile(r"\bpets?\b|\bpet-|\bdogs?\b"),
    "smoking": re.compile(r"\bsmok"),
    "parties": re.compile(r"\bpart(?:y|ies)\b(?! of\b)"),
    "children under 10": re.compile(r"\bchild|\bkids?\b"),
    "visitors": re.compile(r"\bvisitors?\b"),
}
_NO_RULES = re.compile(r"\bwithout specific house rules\b")

_NEGATION = (
    r"(?:\bno\b|\bnot\b|n't\b|\bnon\b|\bnone of\b|\bnever\b|\bwithout\b|\bavoid\w*\b|\bexclud\w*\b|"
    r"\brather than\b|\binstead of\b|\bskip\b|\bcannot\b|\bstay away from\b|\bleave out\b)"
)
_NEAR = r"(?:[ -]+[\w']+){0,5}?[ -]+"
_FLYING = r"(?:fly|flying|flights?|air|airlines?|planes?|airports?)\b"
_DRIVING = r"(?:self-driv\w*|driv(?:e|es|ing)\b|(?:behind )?the wheel\b|rental cars?\b)"
_NO_FLIGHT = re.compile(rf"{_NEGATION}{_NEAR}{_FLYING}|\bflights? (?:is|are) (?:out|not)\b")
_NO_DRIVING = re.compile(
    rf"{_NEGATION}{_NEAR}{_DRIVING}|self-driving is (?:not|out)\b|driving ourselves is out"
)
_ANY_TRANSPORT = re.compile(r"\bflexible transport")

_NOT_SHARED = re.compile(
    rf"\bnon-shared\b|{_NEGATION}(?:[ -]+[\w']+){{0,4}}? ?(?:shared?\b|sharing)|\bunshared\b"
)
_ENTIRE = re.compile(
    r"\b(?:entire|whole) (?:rooms?|homes?|places?|apartments?|flats?|houses?|units?)\b"
)
_PRIVATE = re.compile(r"\bprivate\b")
_SHARED = re.compile(r"\bshar(?:e|ed|ing)\b")

_CUISINE = re.compile(rf"\b(?:{'|'.join(CUISINES)})\b")
_ANY_CUISINE = re.compile(r"\bany cuisine")

_INDIFFERENT = re.compile(r"\bno (?:wish|preference)([^.?!]*)")
_TOPICS: Final[Mapping[Slot, re.Pattern[str]]] = {
    "people": re.compile(r"number of people"),
    "cities": re.compile(r"cities"),
    "budget": re.compile(r"budget|spend"),
    "house_rule": re.compile(r"house rules"),
    "room_type": re.compile(r"\broom"),
    "cuisine": re.compile(r"cuisine|food"),
    "transportation": re.compile(r"transport|get around"),
}


@lru_cache(maxsize=REMEMBERED)
def read_facts(text: str) -> tuple[Fact, ...]:
    """The facts that a text states, at most one a slot, in the order of `SLOTS`.

    A text that states none of them gives no fact, not a generic one.
    """
    low = text.lower().replace("’", "'")
    indifferent = _INDIFFERENT.search(low)
    if indifferent is not None:
        topics = (slot for slot in SLOTS if _TOPICS[slot].search(indifferent[1]))
        return tuple(Fact(slot, ANY) for slot in topics)
    found: dict[Slot, Value | None] = {
        "people": _people(low),
        "cities": _cities(low),
        "budget": _budget(text),
        "house_rule": _house_rule(low),
        "room_type": _room_type(low),
        "cuisine": _cuisine(text),
        "transportation": _transportation(low),
    }
    values = ((slot, found[slot]) for slot in SLOTS)
    return tuple(Fact(slot, value) for slot, value in values if value is not None)


def _number(word: str) -> int:
    return NUMBER_WORDS[word] if word in NUMBER_WORDS else int(word)


def _people(text: str) -> int | None:
    for pattern in _PEOPLE:
        match = pattern.search(text)
        if match is not None:
            return _number(match[1])
    if _COUPLE.search(text):
        return 2
    return 1 if _ALONE.search(text) else None


def _cities(text: str) -> int | None:
    match = _CITIES.search(text)
    if match is not None:
        return _number(match[1])
    return 1 if _ONE_CITY.search(text) else None


def _budget(text: str) -> int | None:
    """The amount that follows a word of limits, else the only amount there is."""
    amounts = list(_MONEY.finditer(text))
    limit = _LIMIT.search(text)
    after = [m for m in amounts if limit is not None and m.start() >= limit.end()]
    chosen = after[0] if after else amounts[0] if len(amounts) == 1 else None
    return None if chosen is None else int((chosen[1] or chosen[2]).replace(",", ""))


def _house_rule(text: str) -> str | None:
    if _NO_RULES.search(text):
        return ANY
    return next((rule for rule, pattern in _RULES.items() if pattern.search(text)), None)


def _room_type(text: str) -> str | None:
    # "private rooms (not shared)" asks for no more than a room that is not shared
    for kind, pattern in (
        ("entire room", _ENTIRE),
        ("not shared room", _NOT_SHARED),
        ("private room", _PRIVATE),
        ("shared room", _SHARED),
    ):
        if pattern.search(text):
            return kind
    return None


def _cuisine(text: str) -> tuple[str, ...] | str | None:
    if _ANY_CUISINE.search(text.lower()):
        return ANY
    return tuple(sorted(set(_CUISINE.findall(text)))) or None


def _transportation(text: str) -> str | None:
    if _ANY_TRANSPORT.search(text):
        return ANY
    if _NO_FLIGHT.search(text):
        return "no flight"
    return "no self-driving" if _NO_DRIVING.search(text) else None
