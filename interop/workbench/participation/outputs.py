"""Finds the versions of a session's output, without reading a record twice to learn which is the latest."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, final

import anyio

from ....engine.log.contract import EventLog
from ....engine.log.session_states import SessionStates
from ....engine.records import Record

__all__ = ("Outputs",)

_KEPT: Final = 1024


@final
class Outputs:
    """The outputs of the sessions that people take part in.

    Args:
        log: the log.
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._ends: SessionStates[_End] = SessionStates(_KEPT)

    async def latest(self, session: str) -> Record | None:
        """The latest version; None if there is none yet.

        Raises:
            LogError: the log cannot be read.
        """
        found = await self._snapshots(session)
        return await self.version(session, found[-1] if found else 0)

    async def number(self, session: str, version: int) -> int:
        """Which version of the output this is, from 1, by its trace version.

        Raises:
            LogError: the log cannot be read.
        """
        return bisect_right(await self._snapshots(session), version)

    async def _snapshots(self, session: str) -> Sequence[int]:
        """The trace versions of all versions so far, of which only the new records are read."""
        end = self._ends.get(session) or _End()
        self._ends.keep(session, end)
        async with end.lock:
            async for record in self._log.read(session, after_version=end.read):
                if record.kind == "SnapshotTaken":
                    end.snapshots.append(record.version)
                end.read = record.version
        return end.snapshots

    async def version(self, session: str, version: int) -> Record | None:
        """The output at a trace version; None if there is none.

        Raises:
            LogError: the log cannot be read.
        """
        if version < 1:
            return None
        async for record in self._log.read(session, after_version=version - 1):
            return record if record.kind == "SnapshotTaken" else None
        return None


@final
class _End:
    """How far a session was read, and the trace versions of its snapshots."""

    def __init__(self) -> None:
        self.read = 0
        self.snapshots: list[int] = []
        self.lock = anyio.Lock()
