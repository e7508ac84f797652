"""Limits that close a session cleanly."""

from __future__ import annotations

import msgspec

__all__ = ("Limits",)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How far a session may go; None for no limit.

    Attributes:
        rounds: rounds by handoff; the act that would open one more closes the session instead.
        actions: acts of humans and agents together.
        tokens: prompt and completion tokens of all recorded model calls.
        cost: US dollars, of the calls whose price is known.
        seconds: session time, from the opening.
        patience: rounds in a row that a person rates as unproductive (1 or 2) after which they
            give up: their next act closes the session as ``abandoned`` instead. None, as in the
            paper, where nobody does.
    """

    rounds: int | None = 30
    actions: int | None = 200
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    patience: int | None = None
