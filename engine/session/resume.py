"""What a session that the log holds must be, to be run on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..errors import Divergence
from ..events import SessionOpened
from ..records import Record

__all__ = ("check_opening", "is_closed")


def check_opening(session: str, first: Record, opened: SessionOpened) -> None:
    """Compares who is to play, with what and how, with what the first record says of that.

    Raises:
        Divergence: something differs.
    """
    held = first.event
    if not isinstance(held, SessionOpened):
        raise Divergence(session, first.version, "its first record is no opening")
    for field in held.__struct_fields__:
        then, now = getattr(held, field), getattr(opened, field)
        if msgspec.json.encode(then) != msgspec.json.encode(now):
            raise Divergence(
                session,
                first.version,
                f"{field} was {_short(then)}, now it would be {_short(now)}; run it under another "
                "id or seed, or with what it was begun with",
            )


def is_closed(trace: Sequence[Record]) -> bool:
    """Whether a trace, or the end of one, holds the close of its session."""
    return any(record.kind == "SessionClosed" for record in reversed(trace))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "..."
