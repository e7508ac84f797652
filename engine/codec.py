"""Events to bytes and back, in two steps: the envelope first, the body only when a reader asks for it.

The codec keeps an unknown kind, or a known kind of a newer schema, byte for byte. The upcasters
registered here bring a body of an older schema up to date, one schema number at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import final

import msgspec

from .errors import CodecError, malformed
from .events import EVENTS, JSON, ActionResolved, Event, Forgotten, Unknown

__all__ = (
    "GAVE_UP",
    "UPCASTERS",
    "decode_body",
    "digest",
    "encode_body",
    "kind_of",
    "resolved_action",
)

GAVE_UP = "gave up: no progress"
"""Detail with which a simulated user that had lost patience closed its session, in schema 1 of
``SessionClosed``."""


def _close_2(fields: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Schema 1 recorded giving up as ``finished``; schema 2 has the reason ``abandoned``."""
    if fields.get("reason") == "finished" and fields.get("detail") == GAVE_UP:
        return {**fields, "reason": "abandoned"}
    return fields


UPCASTERS: Mapping[tuple[str, int], Callable[[Mapping[str, JSON]], Mapping[str, JSON]]] = {
    ("SessionClosed", 1): _close_2,
}
"""By (kind, schema number it was written with): the body as the next schema number has it."""


class _Resolved(msgspec.Struct):
    """As much of an ``ActionResolved`` as says which action it is about."""

    action: int


@final
class _Decoders(dict[str, Callable[[bytes], Event]]):
    """The decoders of bodies by kind, each made when it is first used: a log holds few of the kinds."""

    def __missing__(self, kind: str) -> Callable[[bytes], Event]:
        made = self[kind] = msgspec.json.Decoder(EVENTS[kind]).decode
        return made


_encoder = msgspec.json.Encoder()
_sorted_encoder = msgspec.json.Encoder(order="sorted")
_decoders = _Decoders()
_decode_resolved = msgspec.json.Decoder(_Resolved).decode
_schemas = {kind: cls.schema for kind, cls in EVENTS.items()}


def kind_of(event: Event | Unknown) -> tuple[str, int]:
    """The kind and schema number that an event is written with."""
    if isinstance(event, Unknown):
        return event.kind, event.schema
    return type(event).__name__, event.schema


def encode_body(event: Event | Unknown) -> bytes:
    """The JSON of an event, as it is stored; of an unknown one, its bytes as they came.

    Raises:
        CodecError: the event holds something that JSON cannot say.
    """
    if isinstance(event, Unknown):
        return event.body
    return _encode(_encoder, event)


def decode_body(kind: str, schema: int, body: bytes | None) -> Event | Unknown | Forgotten:
    """The event in a stored body.

    Raises:
        CodecError: a body of a known kind and schema that does not decode.
    """
    if body is None:
        return Forgotten(kind)
    current = _schemas.get(kind)
    if current is None or schema > current:
        return Unknown(kind, schema, bytes(body))
    try:
        if schema == current:
            return _decoders[kind](body)
        fields: Mapping[str, JSON] = msgspec.json.decode(body)
        for number in range(schema, current):
            fields = UPCASTERS[kind, number](fields)
        return msgspec.convert(fields, EVENTS[kind])
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        raise CodecError(
            f"a body of {kind} (schema {schema}) does not decode: {malformed(error)}"
        ) from error


def resolved_action(schema: int, body: bytes | None) -> int | None:
    """The trace version of the action that a stored ``ActionResolved`` is about.

    Nothing else of the body is decoded: observations are long. None if the body was erased, or its
    schema is newer.

    Raises:
        CodecError: a body that does not decode.
    """
    if body is None or schema > ActionResolved.schema:
        return None
    try:
        return _decode_resolved(body).action
    except (RecursionError, ValueError) as error:
        raise CodecError(f"a body of ActionResolved does not decode: {malformed(error)}") from error


def digest(value: object) -> str:
    """A short, stable digest of a value that JSON can say (keys sorted): 32 hexadecimal digits.

    Raises:
        CodecError: JSON cannot say it.
    """
    return hashlib.sha256(_encode(_sorted_encoder, value)).hexdigest()[:32]


def _encode(encoder: msgspec.json.Encoder, value: object) -> bytes:
    try:
        return encoder.encode(value)
    except (RecursionError, TypeError, ValueError) as error:
        raise CodecError(
            f"cannot write {type(value).__name__} as JSON: {malformed(error)}"
        ) from error
