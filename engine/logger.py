"""The program's own diagnostic log, by structlog: quiet by default, and never part of a session."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .events import ActorFailed, SessionClosed, SessionOpened

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger

    from .records import Record

__all__ = ("get_logger", "log_session_events")

_SESSIONS = frozenset({"ActorFailed", "SessionClosed", "SessionOpened"})


def get_logger(part: str) -> BoundLogger:
    """A logger of events with named values, for one part of the engine.

    If the program has configured structlog, that configuration applies. Else it goes to the standard
    library's logger ``duolog.<part>``, for structlog on its own would print.
    """
    import structlog  # slow to import, and most programs do not need it before this

    name = f"duolog.{part}"
    if structlog.is_configured():
        configured: BoundLogger = structlog.stdlib.get_logger(name)
        return configured
    plain: BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
    )
    return plain


def log_session_events(records: Iterable[Record]) -> None:
    """Logs the new records that matter to an operator: sessions opened and closed, and actors that
    failed.
    """
    for record in records:
        if record.kind not in _SESSIONS:
            continue
        event, logger = record.event, get_logger("session")
        if isinstance(event, SessionOpened):
            logger.info(
                "session opened", session=record.session, task=event.task, instance=event.instance
            )
        elif isinstance(event, SessionClosed):
            logger.info(
                "session closed",
                session=record.session,
                reason=event.reason,
                by=event.by,
                detail=event.detail,
                records=record.version,
            )
        elif isinstance(event, ActorFailed):
            logger.error(
                "an actor failed",
                session=record.session,
                actor=record.actor,
                error=f"{event.type}: {event.error}",
            )
