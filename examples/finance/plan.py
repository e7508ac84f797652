"""A plan for a household's money: its lines, how they are written and how they are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from ...engine.errors import InvalidInput

__all__ = ("LABELS", "Plan", "parse_plan", "render_plan", "try_plan")


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens with a household's savings and with what it has left each month.

    Attributes:
        emergency: kept at hand, of today's savings.
        cards: paid on credit cards at once, of today's savings.
        project: set aside for what comes within two years, of today's savings.
        invested: put into retirement savings at once, of today's savings.
        cards_monthly: paid on credit cards a month.
        study: saved for the child's studies a month.
        retirement: saved for retirement a month.
        prepay: paid extra on the mortgage a month.
        cover: life cover.
        stocks: share of stocks in all that is invested, in per cent; the rest is in bonds.
    """

    emergency: int = 0
    cards: int = 0
    project: int = 0
    invested: int = 0
    cards_monthly: int = 0
    study: int = 0
    retirement: int = 0
    prepay: int = 0
    cover: int = 0
    stocks: int = 0

    @property
    def at_once(self) -> int:
        """The sum it takes from today's savings."""
        return self.emergency + self.cards + self.project + self.invested

    @property
    def monthly(self) -> int:
        """The sum it takes per month, without the price of the life cover."""
        return self.cards_monthly + self.study + self.retirement + self.prepay


LABELS: Final[Mapping[str, str]] = {
    "emergency": "Emergency fund",
    "cards": "Paid on the cards now",
    "project": "Set aside for the next two years",
    "invested": "Invested now for retirement",
    "cards_monthly": "Cards, a month",
    "study": "Studies, a month",
    "retirement": "Retirement, a month",
    "prepay": "Extra on the mortgage, a month",
    "cover": "Life cover",
    "stocks": "Stocks",
}
"""The lines of a plan, by the fields of `Plan`."""

_BY_LABEL: Final = {label.casefold(): field for field, label in LABELS.items()}
_LINE: Final = re.compile(r"^\s*(?:[-*]\s*)?(?P<label>[^:]+?)\s*:\s*(?P<rest>.*)$")
_NUMBER: Final = re.compile(r"^\$?\s?(\d[\d,]{0,14})(?:\.\d+)?\s*%?\s*\.?$")
_MOST: Final = 100_000_000


def render_plan(plan: Plan) -> str:
    """The plan in text, a line for each part."""
    return "\n".join(
        f"{label}: {getattr(plan, field)}%"
        if field == "stocks"
        else f"{label}: {getattr(plan, field):,}"
        for field, label in LABELS.items()
    )


def parse_plan(text: str) -> Plan:
    """Reads a plan; a line that is missing counts as 0, and other lines are passed over.

    Raises:
        InvalidInput: the text has no line of a plan, repeats one, or has one without a number.
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        match = _LINE.match(line)
        field = _BY_LABEL.get(match["label"].strip("*_ ").casefold()) if match else None
        if match is None or field is None:
            continue
        number = _NUMBER.match(match["rest"].strip("*_ "))
        if number is None:
            raise InvalidInput(
                f"{line.strip()!r} needs one number after the colon, 0 or more, such as 12,000"
            )
        if field in found:
            raise InvalidInput(f"{LABELS[field]!r} appears in the plan twice; keep one")
        found[field] = int(number[1].replace(",", ""))
        most = 100 if field == "stocks" else _MOST
        if found[field] > most:
            raise InvalidInput(f"{line.strip()!r} is more than a plan can hold: {most:,} at most")
    if not found:
        raise InvalidInput(
            f"the text contains no plan; write lines such as {LABELS['emergency']!r}: 12,000"
        )
    return msgspec.convert(found, Plan)


@lru_cache(maxsize=1024)
def try_plan(text: str) -> Plan | None:
    """Reads a plan; None if the text is not a plan."""
    try:
        return parse_plan(text)
    except InvalidInput:
        return None
