"""The program's own diagnostic log, by structlog: quiet by default, and never part of a session."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger

__all__ = ("get_logger",)


def get_logger(part: str) -> BoundLogger:
    """A logger of events with named values, for one part of the engine.

    Where the program has set structlog up, it goes where that says. Else it goes to the standard
    library's logger ``duolog.<part>``, for structlog on its own would print.
    """
    import structlog  # it loads a good deal, of which most programs need nothing before this

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
