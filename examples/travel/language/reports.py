"""Writes and reads an agent's reports on a plan: the wishes that it understood, and those not met."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from random import Random
from typing import Final

from ....tasks.phrases import counted, spelled
from .facts import ANY, Fact
from .messages import understand_message

__all__ = ("UNDERSTOOD", "read_price", "read_understood", "say_understood", "say_unmet")

_FIXED: Final[Mapping[str, str]] = {
    "children under 10": "children welcome",
    "parties": "parties allowed",
    "pets": "pets welcome",
    "smoking": "smoking allowed",
    "visitors": "visitors welcome",
    "entire room": "entire places",
    "private room": "private rooms",
    "shared room": "shared rooms",
    "not shared room": "unshared rooms",
    "no flight": "no flights",
    "no self-driving": "no driving",
}

_OVER: Final = (
    "Nothing that I found keeps to your budget: this one comes to ${dollars:,.0f}.",
    "I cannot get it below your budget: this one comes to ${dollars:,.0f}.",
    "It does not keep to your budget: this one comes to ${dollars:,.0f}, and I found nothing cheaper.",
)
_UNFIT: Final = (
    "I found no place to stay that is all that you asked for.",
    "No place to stay that I found has all that you asked for.",
    "Something is missing wherever you could stay, as far as I can see.",
)
_STATED: Final = "your budget: this one comes to $"  # searched for first: few messages have it
_PRICE = re.compile(r"\byour budget: this one comes to \$(\d[\d,]{0,14})")


UNDERSTOOD: Final = (
    "As I understand you:",
    "What I go by:",
    "I have noted this:",
    "So you want this:",
    "My notes say:",
    "This is what I planned for:",
)
"""Before the wishes that an agent has understood."""


def say_understood(facts: Iterable[Fact], words: Random) -> str:
    """States the understood wishes, so that the traveller can correct them; empty if there are none."""
    parts = tuple(_short(fact) for fact in facts if fact.value != ANY and fact.slot != "generic")
    return f" {words.choice(UNDERSTOOD)} {spelled(parts)}." if parts else ""


def read_understood(text: str) -> tuple[Fact, ...]:
    """The wishes that a message states, without the price of the plan."""
    return understand_message(_PRICE.sub("", text) if _STATED in text else text)


def say_unmet(unmet: Collection[str], dollars: float, words: Random) -> str:
    """States the wishes that no search result can meet; empty if all are met."""
    said = ""
    if "budget" in unmet:
        said += f" {words.choice([one.format(dollars=dollars) for one in _OVER])}"
    if {"room_type", "house_rule"} & {*unmet}:
        said += f" {words.choice(_UNFIT)}"
    return said


def read_price(text: str) -> int | None:
    """The cost of the plan said to be nearest to the budget; None if the message names none."""
    found = _PRICE.search(text) if _STATED in text else None
    return None if found is None else int(found[1].replace(",", ""))


def _short(fact: Fact) -> str:
    value = fact.value
    if isinstance(value, tuple):
        return f"{spelled(value)} food"
    if isinstance(value, str):
        return _FIXED.get(value, value)
    if fact.slot == "budget":
        return f"a budget of ${value:,}"
    return (
        counted(value, "person", "people")
        if fact.slot == "people"
        else counted(value, "city", "cities")
    )
