"""The program's own log: what happened on the wall, which no session's record may depend on."""

from __future__ import annotations

import logging

import structlog

__all__ = ("note", "warn")

_standard = logging.getLogger("duolog.models")
_plain: structlog.stdlib.BoundLogger = structlog.wrap_logger(
    _standard,
    wrapper_class=structlog.stdlib.BoundLogger,
    processors=[
        structlog.stdlib.filter_by_level,
        structlog.processors.KeyValueRenderer(key_order=["event"]),
    ],
)


def _journal() -> structlog.stdlib.BoundLogger | None:
    """Where the program has set structlog up, what that says. Else the standard library's logger
    ``duolog.models``, for structlog on its own would print; None where that hears no notes.
    """
    if structlog.is_configured():
        return structlog.stdlib.get_logger("duolog.models")
    return _plain if _standard.isEnabledFor(logging.INFO) else None


def note(event: str, **values: object) -> None:
    """Writes an event down, with named values."""
    journal = _journal()
    if journal is not None:
        journal.info(event, **values)


def warn(event: str, **values: object) -> None:
    """Writes down an event that somebody should look at."""
    (_journal() or _plain).warning(event, **values)
