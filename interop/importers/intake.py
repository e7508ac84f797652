"""What is done with every event that is imported before a log takes it, whatever door it comes by."""

from __future__ import annotations

from ...engine import codec
from ...engine.errors import CodecError
from ...engine.validation import written
from .protocol import Foreign, Remark
from .secrets import without_secrets

__all__ = ("size_of", "taken_in", "unfit")


def taken_in(one: Foreign) -> tuple[Foreign, bytes] | Remark:
    """The event without secrets, and its body; a remark where it cannot be written as JSON.

    What else a log may refuse is left to the log, which looks at every event itself: see ``unfit``.
    """
    try:
        body = codec.encode_body(one.draft.event)
    except CodecError as error:
        return _remark(one, error)
    return without_secrets(one, body)


def unfit(one: Foreign) -> Remark | None:
    """Why no log can hold an event; None where it can."""
    found = size_of(one)
    return found if isinstance(found, Remark) else None


def size_of(one: Foreign) -> int | Remark:
    """Bytes of an event's body; a remark where no log can hold it."""
    try:
        return len(written(one.draft.event, *codec.kind_of(one.draft.event))[0])
    except CodecError as error:
        return _remark(one, error)


def _remark(one: Foreign, error: CodecError) -> Remark:
    return Remark("problem", str(error), f"session {one.session}", one.session)
