"""Checks the log before a session continues: the opening has to match, and a fork needs the part
that it inherits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ..errors import Divergence
from ..events import SessionOpened
from ..log.contract import EventLog
from ..records import ENGINE, TRACE, Draft, Record
from .inheritance import Inheritance

__all__ = ("ENGINE_NUMBER", "check_opening", "is_closed", "take_over_records")

ENGINE_NUMBER: Final = 4
"""The engine that plays sessions now. Raise it with each change that makes an older session diverge
from its log when it is executed again: a new decision, a new event, a new setting in its opening.
"""


def check_opening(session: str, first: Record, opened: SessionOpened) -> SessionOpened:
    """Compares a session's opening with the one that the log holds.

    Returns:
        The recorded opening. Another version of the package may have recorded it.

    Raises:
        Divergence: the openings differ, or an engine with another number played the session.
    """
    held = first.event
    if not isinstance(held, SessionOpened):
        raise Divergence(session, first.version, "its first record is not an opening")
    if held.engine != ENGINE_NUMBER:
        known = f"Duolog {held.package}" if held.package else "the Duolog that recorded it"
        raise Divergence(
            session,
            first.version,
            f"engine {held.engine} played it, and this is engine {ENGINE_NUMBER}; use {known} to "
            "resume it, or fork it from its view",
        )
    for field in held.__struct_fields__:
        if field in ("engine", "package"):
            continue
        then, now = getattr(held, field), getattr(opened, field)
        if msgspec.json.encode(then) != msgspec.json.encode(now):
            raise Divergence(
                session,
                first.version,
                f"{field} was {_short(then)}, and now it would be {_short(now)}; use another "
                "id or seed, or the original settings",
            )
    return held


def is_closed(trace: Sequence[Record]) -> bool:
    """Whether a trace, or the end of one, holds the close of its session."""
    return any(record.kind == "SessionClosed" for record in reversed(trace))


async def take_over_records(
    log: EventLog,
    session: str,
    opened: SessionOpened,
    inherited: Inheritance,
    trace: Sequence[Record],
    measured: Sequence[Record],
) -> tuple[list[Record], list[Record]]:
    """Appends the records that a fork inherits from its origin, unless the log already holds them.

    Returns:
        The fork's trace and its measurements, as the log holds them now.
    """
    held, scored = list(trace), list(measured)
    if not held:
        drafts = [Draft(opened, ENGINE, "environment", inherited.time), *inherited.trace]
        held = await log.append(session, drafts, expected_version=0)
    streams = {record.stream for record in scored}
    for stream, measured_then in inherited.measured.items():
        if stream != TRACE and stream not in streams:
            scored += await log.append(session, measured_then, stream=stream)
    return held, scored


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "..."
