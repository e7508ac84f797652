"""Nudges or closes a session in which all actors wait, or whose time is up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import anyio

from ..events import CloseReason, Nudged
from ..records import ENGINE, Draft
from .sequencer import Sequencer
from .time.scheduler import Turns, WakeReason

__all__ = ("Watchdog",)


@final
class Watchdog:
    """The engine's own acts: it nudges waiting actors and closes sessions; see ``Turns``.

    Args:
        sequencer: records its nudges and closes.
        turns: the session's clock.
        seconds: session time from the opening after which it closes the session; None for never.
        nudges: how often all actors are nudged when they wait for each other, before the session
            closes as stalled. An act resets the count.
    """

    def __init__(
        self, sequencer: Sequencer, turns: Turns, *, seconds: float | None, nudges: int
    ) -> None:
        self._sequencer = sequencer
        self._turns = turns
        self._seconds = seconds
        self._nudges = nudges
        self._nudged = 0
        self._acts = -1

    @property
    def limit(self) -> float | None:
        """When the session's time is up; None for never."""
        return None if self._seconds is None else self._sequencer.state.first + self._seconds

    async def wait_for_limit(self) -> None:
        """Closes the session when its time is up, under a real clock."""
        if self.limit is not None:
            await anyio.sleep(max(0.0, self.limit - self._turns.now()))
            await self.look_after(WakeReason.TIME, ())

    async def look_after(self, why: WakeReason, present: Sequence[str]) -> None:
        """Closes the session if its time is up. Otherwise all present actors wait for each other:
        it nudges them, or closes the session as stalled.
        """
        if why is WakeReason.TIME:
            await self._close("limit", f"seconds: {self._seconds}")
        elif not present:
            await self._close("stalled", "everybody has left")
        else:
            await self._nudge(present)

    async def _nudge(self, present: Sequence[str]) -> None:
        sequencer = self._sequencer
        if sequencer.state.acts != self._acts:
            self._acts = sequencer.state.acts
            self._nudged = 0
        if self._nudged >= self._nudges:
            await self._close("stalled", f"everybody waited, after {self._nudged} nudges")
            return
        self._nudged += 1
        now = self._turns.now()
        drafts = [
            Draft(Nudged(to=name, reason="everybody is waiting"), ENGINE, "environment", now)
            for name in present
        ]
        await sequencer.emit("environment", lambda: drafts)

    async def _close(self, reason: CloseReason, detail: str) -> None:
        await self._sequencer.close(reason, ENGINE, "environment", detail)
