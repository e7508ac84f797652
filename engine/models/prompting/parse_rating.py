"""Reads ratings that models wrote: a number from 1 to 5, or none. It never guesses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ("explanation_of", "read_rating", "read_ratings")

_LABEL = r"(?:(?:my|the|your|overall|final|likert|progress)\s+)*(?:rating|score|answer|judge?ment)"
_RATING = re.compile(
    r"(?:[\s*_#>\"'`(\[]|-\s)*"  # decoration
    rf"(?P<label>{_LABEL}[*_]*\s*(?:\(\s*1\s*(?:-|–|to)\s*5\s*\))?[*_]*\s*(?:is\b|of\b|[:=–-])?[*_]*\s*)?"
    r"[*_\"'`(\[]*(?P<value>[1-5])(?![\d.,]*\d)"
    r"[*_\"'`)\]]*\s*(?:/\s*5(?!\d)|out\s+of\s+5(?!\d))?[*_\"'`)\]]*"
    r"(?P<rest>.*)",
    re.IGNORECASE,
)
_HEAD = 200
"""A rating has to be within this many characters of a line's start; the rest is explanation."""
_MORE = re.compile(r"\s*(?:$|[.:;)]|[–—-](?!\s*\d)|\()")  # may separate rating and reason
_NUMBER_FIRST = re.compile(r"[\s.:;)(*_–—-]*\d")


def read_rating(text: str) -> int | None:
    """The rating in a text; None if it has none, or several that differ.

    A rating is a first line such as ``4``, ``4/5``, ``**4**``, ``4. Agree`` or ``4 - Agree``, or a
    line such as ``Rating: 4`` anywhere. ``3 or 4``, ``4.5`` and numbers in a sentence do not count.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    found = {_rating(line, labelled=index > 0) for index, line in enumerate(lines)} - {None}
    return found.pop() if len(found) == 1 else None


def read_ratings(text: str, names: Sequence[str]) -> Mapping[str, int | None]:
    """The ratings of several things, each on a line that begins with its name and a colon.

    Args:
        text: what a model wrote.
        names: the names of the things rated.

    Returns:
        For each name its rating; None if it has none, or several that differ.
    """
    found: dict[str, set[int | None]] = {name: set() for name in names}
    for line in text.split("\n"):
        head, colon, rest = line.partition(":")
        name = head.strip().strip("*_`\"'-• ").strip()
        match = next((one for one in names if one.casefold() == name.casefold()), None)
        if colon and match is not None:
            found[match].add(_rating(rest, labelled=False))
    return {
        name: next(iter(values)) if len(values) == 1 else None for name, values in found.items()
    }


def explanation_of(text: str) -> str:
    """The text without its rating, on one line."""
    lines = [line for line in text.split("\n") if line.strip()]
    kept: list[str] = []
    for index, line in enumerate(lines):
        rated = _rating(line, labelled=True) is not None
        if not rated and not (index == 0 and _rating(line, labelled=False) is not None):
            kept.append(line.strip())
            continue
        found = _RATING.fullmatch(line)
        rest = found["rest"].strip(" \t.:;)(*_–—-") if found else ""
        if rest:
            kept.append(rest)
    return " ".join(kept)


def _rating(line: str, *, labelled: bool) -> int | None:
    """The rating that a line gives; None if the line is something else."""
    found = _RATING.fullmatch(line[:_HEAD])
    if found is None or (labelled and not found["label"]):
        return None
    rest = found["rest"]
    if not _MORE.match(rest) or _NUMBER_FIRST.match(rest):
        return None
    return int(found["value"])
