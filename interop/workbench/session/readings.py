"""The sessions that are being looked at: one reading for each role, shared by all who look at it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, final

import anyio

from ....engine.log.session_states import SessionStates
from ....engine.log.summary import FORGOTTEN
from ..access.identity import Identity
from ..state import Workbench
from .reading import Growth, SessionReading

__all__ = ("Readings",)

_KEPT: Final = 16
_MOST: Final = 400  # records in one message: if more have come, the page asks for them itself


@final
class Readings:
    """Readings of sessions; those that were not used for the longest time are dropped.

    Args:
        workbench: the shared state of the workbench.
    """

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._held: SessionStates[SessionReading] = SessionStates(_KEPT)

    async def of(self, session: str, identity: Identity) -> SessionReading:
        """A session as a user may see it now.

        Raises:
            SessionNotFound: the log has no such session.
            LogError: the log cannot be read.
        """
        name = f"{identity.role}/{identity.actor}/{session}"
        summary = await self._workbench.log.summary(session)  # raises if there is none
        held = self._held.get(name)
        if held is None or (summary.state == FORGOTTEN and not held.erased):
            held = SessionReading(self._workbench.log, session, identity, self._workbench.options)
        self._held.keep(name, held)
        await held.refresh()
        return held

    async def follow(self, session: str, identity: Identity, after: int) -> AsyncIterator[Growth]:
        """Yields the new parts of a session after a position of the log, at a limited rate.

        Raises:
            SessionNotFound: the log has no such session.
            LogError: the log cannot be read.
        """
        index = self._workbench.sessions
        reading = await self.of(session, identity)  # held here, however many others are looked at
        done = reading.count_at(after)
        while True:
            while reading.count > done:
                growth = reading.growth(max(done, reading.count - _MOST))
                yield growth
                done = growth.count
            if not index.has_news(session, reading.position):
                await index.wait()
            await anyio.sleep(self._workbench.limits.pace)
            await reading.refresh()
