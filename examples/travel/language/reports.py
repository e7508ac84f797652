"""An agent's reports on a plan: what it has understood, and what it could not meet; and reading them."""

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
    """What was understood, so that it can be corrected; empty where there is nothing."""
    parts = tuple(_short(fact) for fact in facts if fact.value != ANY and fact.slot != "generic")
    return f" As I understand you: {spelled(parts)}." if parts else ""


def say_unmet(unmet: Collection[str], dollars: float) -> str:
    """What nothing that was found can meet; empty where all is met."""
    said = ""
    if "budget" in unmet:
        said += f" Nothing that I found keeps to your budget: this one comes to ${dollars:,.0f}."
    rooms = [name for name in ("room_type", "house_rule") if name in unmet]
    if rooms:
        said += " I found no place to stay that is all that you asked for."
    return said


def read_price(text: str) -> int | None:
    """What a plan costs that is said to be the nearest to the budget; None where nothing is said."""
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
