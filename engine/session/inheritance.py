"""The part of its origin that a fork inherits, and the origin's players."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec

from ..events import SessionOpened
from ..records import Draft, Record
from .actors import Player
from .time.timing import Timing

__all__ = ("Inheritance", "Phase")


@final
class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a session's trace, with its players and settings.

    Attributes:
        opened: the opening that these players see. Its seed determines their randomness.
        players: the players of this stretch.
        timing: how long things take.
        until: the trace version after which others take over; None for the end.
        request: the initial request, which the first human sends at the opening.
    """

    opened: SessionOpened
    players: tuple[Player, ...]
    timing: Timing = Timing()
    until: int | None = None
    request: str | None = None


@final
class Inheritance(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a fork that it shares with its origin.

    Attributes:
        time: the time of the origin's opening.
        trace: the origin's trace after its opening, up to the cut.
        measured: its measurements by the fork's own scorers, by stream.
        outcomes: outcomes, recorded after the cut, of actions that were in flight there.
        phases: its players. They execute it again against the record, so that a player who continues
            has the state that it had at the cut. If empty, all players begin at the cut,
            from the view that it has there.
    """

    time: float
    trace: tuple[Draft, ...]
    measured: Mapping[str, tuple[Draft, ...]] = {}
    outcomes: tuple[Record, ...] = ()
    phases: tuple[Phase, ...] = ()

    @property
    def version(self) -> int:
        """The last trace version that is shared: the cut."""
        return 1 + len(self.trace)
