"""Clocks: real time for products and people, virtual time for simulation.

A clock says how a session's time passes; whose turn it is under it is decided in ``scheduler``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, final

import msgspec

__all__ = ("Clock", "RealClock", "VirtualClock")


@final
class VirtualClock(msgspec.Struct, frozen=True, kw_only=True):
    """Time as part of the model: it starts at 0, and jumps to the earliest wake-up when every
    actor is parked. An actor that waits for a model, a file or a thread still holds the turn, so
    the clock never jumps over work in flight.

    Attributes:
        hold: seconds of wall time that an actor may hold the turn before it fails by name.
    """

    hold: float = 600.0

    @property
    def name(self) -> Literal["virtual"]:
        """As ``SessionOpened.clock`` has it."""
        return "virtual"


@final
class RealClock(msgspec.Struct, frozen=True, kw_only=True):
    """The wall clock, in UTC epoch seconds; it never runs backward within a session.

    Attributes:
        wall: seconds since the epoch (for tests).
        monotonic: seconds that never run backward.
    """

    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic

    @property
    def name(self) -> Literal["utc"]:
        """As ``SessionOpened.clock`` has it."""
        return "utc"


Clock = VirtualClock | RealClock
"""The clock of a session."""
