"""Parses a point in a session from the command line: a round, a version, or a time."""

from __future__ import annotations

import re
from datetime import datetime

from ..engine.errors import InvalidInput
from ..scoring.replay import Until

__all__ = ("parse_until",)

_ROUND = re.compile(r"(?:r|round[ :=]?)?\s*(\d+)")
_VERSION = re.compile(r"(?:v|version[ :=]?)\s*(\d+)")
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*s")
_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d{2}(?:\.\d+)?)")


def parse_until(text: str) -> Until:
    """The point that a text denotes.

    ``round 3``, ``r3`` or ``3``; ``version 57`` or ``v57``; session time since the opening as ``90s``,
    ``1:30`` or ``1:02:03``; a local date and time such as ``2026-03-01T14:30``.

    Raises:
        InvalidInput: it denotes none.
    """
    asked = text.strip().lower()
    if found := _ROUND.fullmatch(asked):
        return Until(round=int(found[1]))
    if found := _VERSION.fullmatch(asked):
        return Until(version=int(found[1]))
    if found := _SECONDS.fullmatch(asked):
        return Until(seconds=float(found[1]))
    if found := _CLOCK.fullmatch(asked):
        hours, minutes, seconds = found[1] or 0, found[2], found[3]
        return Until(seconds=3600 * int(hours) + 60 * int(minutes) + float(seconds))
    try:
        return Until(time=datetime.fromisoformat(text.strip()).timestamp())
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(
            f"--until {text!r} names no point: give a round (r3), a version (v57), session time "
            "(90s, 1:30) or a date and time (2026-03-01T14:30)"
        ) from None
