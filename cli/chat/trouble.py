"""Messages to a person if another participant's model fails or replies with something unusable."""

from __future__ import annotations

from ...engine.events import ModelCalled, TurnYielded
from ...engine.records import TRACE, Record
from ...scoring.display.texts import one_line, shorten

__all__ = ("trouble_text",)

_WIDTH = 300  # characters of an error


def trouble_text(record: Record) -> str | None:
    """The trouble that a record reports, in one line; None if it reports none."""
    event = record.event if record.stream == TRACE and record.role == "agent" else None
    if isinstance(event, ModelCalled) and event.error is not None:
        error = shorten(event.error, _WIDTH)
        return f"{one_line(record.actor)}'s model failed (attempt {event.attempt}): {error}"
    if isinstance(event, TurnYielded) and event.reason:
        return f"{one_line(record.actor)} waits: {shorten(event.reason, _WIDTH)}"
    return None
