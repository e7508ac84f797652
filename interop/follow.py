"""The protocol of functions that follow a log for a stream: records with their updates."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeAlias

import msgspec

from ..engine.log.contract import EventLog
from ..engine.records import Record

__all__ = ("Follow", "Step", "follow_records")

Step: TypeAlias = tuple[Record, Sequence[msgspec.Struct]]
"""A record, and its updates, each a separate object."""


class Follow(Protocol):
    """Follows a log from after a position on: catches up, then goes live, and leaves nothing out."""

    def __call__(
        self, log: EventLog, session: str | None, after: int, /
    ) -> AbstractAsyncContextManager[AsyncIterator[Step]]:
        """Steps in order of position. Raises LogClosed."""
        ...


@asynccontextmanager
async def follow_records(
    log: EventLog, session: str | None, after: int
) -> AsyncIterator[AsyncIterator[Step]]:
    """Follows a log with nothing but its records."""
    async with log.subscribe(session=session, after_position=after) as records:
        yield ((record, ()) async for record in records)
