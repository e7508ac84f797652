"""Writes and reads an agent's reports on a plan: the wishes that it understood, and those not met."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from ....tasks.phrases import counted, spelled
from .facts import ANY, Fact

__all__ = ("read_price", "say_understood", "say_unmet")

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

_PRICE = re.compile(r"keeps to your budget: this one comes to \$(\d[\d,]{0,14})")


def say_understood(facts: Iterable[Fact]) -> str:
    """States the understood wishes, so that the traveller can correct them; empty if there are none."""
    parts = tuple(_short(fact) for fact in facts if fact.value != ANY and fact.slot != "generic")
    return f" As I understand you: {spelled(parts)}." if parts else ""


def say_unmet(unmet: Collection[str], dollars: float) -> str:
    """States the wishes that no search result can meet; empty if all are met."""
    said = ""
    if "budget" in unmet:
        said += f" Nothing that I found keeps to your budget: this one comes to ${dollars:,.0f}."
    rooms = [name for name in ("room_type", "house_rule") if name in unmet]
    if rooms:
        said += " I found no place to stay that is all that you asked for."
    return said


def read_price(text: str) -> int | None:
    """The cost of the plan said to be nearest to the budget; None if the message names none."""
    found = _PRICE.search(text)
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
