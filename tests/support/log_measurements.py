"""The measurements that a log holds of a session, read from its records."""

from __future__ import annotations

from duolog.engine.events import UtilityScored
from duolog.engine.log.contract import EventLog
from duolog.engine.rounds import RoundProjector

__all__ = ("last_utility", "rounds_of")


async def last_utility(log: EventLog, session: str) -> float | None:
    """The last utility recorded, of all scorers; None if there is none."""
    found = [
        record.event.value
        async for record in log.read_all(session=session)
        if isinstance(record.event, UtilityScored) and record.event.value is not None
    ]
    return found[-1] if found else None


async def rounds_of(log: EventLog, session: str) -> int:
    """The number of rounds so far, by handoff."""
    projector = RoundProjector()
    async for record in log.read(session):
        projector.feed(record)
    return projector.number
