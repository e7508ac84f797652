"""Limits that close a session cleanly."""

from __future__ import annotations

import msgspec

__all__ = ("Limits",)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a session; None for unlimited.

    Attributes:
        rounds: rounds by handoff; the act that would open one more closes the session instead.
        actions: acts of humans and agents together.
        tokens: prompt and completion tokens of all recorded model calls.
        cost: US dollars, of the calls whose price is known.
        seconds: session time, from the opening.
        patience: unproductive rounds in a row (rated 1 or 2) after which a human gives up: their
            next act closes the session as ``abandoned`` instead. None if they never give up, as in
            the paper.
    """

    rounds: int | None = 30
    actions: int | None = 200
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    patience: int | None = None
