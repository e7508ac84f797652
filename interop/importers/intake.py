"""What is done with every event that is imported before a log takes it, whatever door it comes by."""

from __future__ import annotations

from ...engine import codec
from ...engine.errors import CodecError
from ...engine.records import Draft
from ...engine.validation import written
from .protocol import Foreign, Remark
from .secrets import without_secrets

__all__ = ("taken_in", "unfit")


def taken_in(one: Foreign) -> tuple[Foreign, bytes] | Remark:
    """The event without secrets, and its body; a remark where it cannot be written as JSON.

    What else a log may refuse is left to the log, which looks at every event itself: see ``unfit``.
    """
    try:
        body = codec.encode_body(one.draft.event)
    except CodecError as error:
        return _remark(one.session, error)
    return without_secrets(one, body)


def unfit(session: str, draft: Draft) -> Remark | None:
    """Why no log can hold an event; None where it can."""
    try:
        written(draft.event, *codec.kind_of(draft.event))
    except CodecError as error:
        return _remark(session, error)
    return None


def _remark(session: str, error: CodecError) -> Remark:
    return Remark("problem", str(error), f"session {session}", session)
