"""Numbers in plain words: sums of money, months, parts of a whole."""

from __future__ import annotations

import re
from typing import Final

from ....engine.text import NUMBER_WORDS

__all__ = ("MONEY", "MONTHS", "NUMBER", "SHARE", "money_in", "months_in", "number_of", "share_in")

NUMBER: Final = rf"(?:\d{{1,9}}|{'|'.join(NUMBER_WORDS)})"
"""A small number, in digits or as a word."""

MONEY: Final = r"(?:\$\s?)?(?<![\d,])\d[\d,]{0,14}(?:\.\d{1,9})?(?:\s?(?:k\b|thousand\b|grand\b))?"
"""A sum of money."""

_MONTHS: Final = {
    "half a year": 6,
    "a quarter of a year": 3,
    "three quarters of a year": 9,
    "a whole year": 12,
    "a year": 12,
}
MONTHS: Final = rf"(?:{'|'.join(sorted(_MONTHS, key=len, reverse=True))}|{NUMBER} months?)"
"""A number of months."""

_SHARES: Final = {
    "a tenth": 10,
    "a fifth": 20,
    "a quarter": 25,
    "a third": 33,
    "half": 50,
    "three quarters": 75,
    "all": 100,
    "the whole": 100,
}
SHARE: Final = rf"(?:\d{{1,9}}(?:\.\d{{1,9}})? ?(?:%|per ?cent)|{'|'.join(sorted(_SHARES, key=len, reverse=True))})"
"""A share of something."""


def number_of(text: str) -> int:
    """The value of what `NUMBER` matches."""
    low = text.lower().strip()
    return NUMBER_WORDS[low] if low in NUMBER_WORDS else int(low)


def money_in(text: str) -> int:
    """The value of what `MONEY` matches."""
    low = text.lower().strip(" $")
    figures = re.match(r"[\d,]+(?:\.\d+)?", low)
    value = float(figures[0].replace(",", "")) if figures else 0.0
    return round(value * (1000 if re.search(r"k$|thousand$|grand$", low) else 1))


def months_in(text: str) -> int:
    """The value of what `MONTHS` matches."""
    low = text.lower()
    return _MONTHS[low] if low in _MONTHS else number_of(low.split()[0])


def share_in(text: str) -> int:
    """The value of what `SHARE` matches, in per cent."""
    low = text.lower()
    if low in _SHARES:
        return _SHARES[low]
    found = re.match(r"\d+(?:\.\d+)?", low)
    return round(float(found[0])) if found else 0
