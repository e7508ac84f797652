"""Takes secrets out of what is imported: keys and tokens that stand in messages, calls and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ...engine import codec
from ...engine.events import JSON, SnapshotTaken, Unknown
from ...engine.redaction import may_hold_forms, redact_forms
from .protocol import Foreign

__all__ = ("without_secrets",)


def without_secrets(one: Foreign, body: bytes) -> tuple[Foreign, bytes]:
    """The event with keys and tokens of documented forms replaced; the same where it holds none.

    Args:
        one: the event.
        body: of the event, encoded.
    """
    if not may_hold_forms(body.decode()):
        return one, body
    before = msgspec.json.decode(body)
    held = _redacted(before)
    if held == before:
        return one, body
    event = one.draft.event
    if isinstance(event, Unknown):
        event = Unknown(event.kind, event.schema, msgspec.json.encode(held))
    else:
        event = msgspec.convert(held, type=type(event))
        if isinstance(event, SnapshotTaken):
            event = msgspec.structs.replace(event, digest=codec.digest(event.content))
    clean = one._replace(draft=msgspec.structs.replace(one.draft, event=event))
    return clean, codec.encode_body(event)


def _redacted(value: JSON) -> JSON:
    if isinstance(value, str):
        return redact_forms(value)
    if isinstance(value, Mapping):
        return {redact_forms(key): _redacted(held) for key, held in value.items()}
    if isinstance(value, Sequence):
        return [_redacted(held) for held in value]
    return value
