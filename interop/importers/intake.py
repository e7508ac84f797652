"""What is done with every event that is imported before a log takes it, whatever door it comes by."""

from __future__ import annotations

from ...engine import codec
from ...engine.errors import CodecError
from ...engine.validation import written
from .protocol import Foreign, Remark
from .secrets import without_secrets

__all__ = ("body_of", "taken_in")


def body_of(one: Foreign) -> Remark | bytes:
    """The body of an event; a remark where no log can hold it."""
    try:
        return written(one.draft.event, *codec.kind_of(one.draft.event))[0]
    except CodecError as error:
        return Remark("problem", str(error), f"session {one.session}", one.session)


def taken_in(one: Foreign) -> tuple[Foreign, bytes] | Remark:
    """The event without secrets, and its body; a remark where no log can hold it."""
    body = body_of(one)
    return body if isinstance(body, Remark) else without_secrets(one, body)
