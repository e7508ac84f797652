"""Copies the values that a product records into plain JSON and clean text that the log can hold.

Whatever a value is or does, it is recorded; only ``text`` refuses a value that is not a text. A
value that the log cannot hold (see ``engine.validation``) is replaced with a shortened text that
says so, and a warning is logged.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Final

import msgspec

from ..engine.budget import Budget, too_deep
from ..engine.errors import InvalidInput
from ..engine.events import JSON, Event, SnapshotTaken, Unknown
from ..engine.files import with_digests
from ..engine.logger import get_logger
from ..engine.session.commands import Command, TakeAction
from ..engine.validation import BODY

__all__ = ("plain", "plain_mapping", "shown", "storable", "text")

# An event may hold the value some levels below its own.
_VALUE: Final = Budget(size=BODY.size - 2**20, objects=BODY.objects - 1000, depth=BODY.depth - 4)
_HEAD: Final = 1000  # characters that are left of a shortened text
_SHOWN: Final = 100_000  # characters of the ``repr`` of a value that JSON cannot express

_ODD = (Exception, asyncio.CancelledError)  # nothing is awaited here, so the value itself raised it


def text(value: str, what: str) -> str:
    """A text that JSON can express: half a surrogate pair is spelled out.

    Raises:
        InvalidInput: it is not a text.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a text, not {type(value).__name__}")
    if value.isascii() and len(value) < _VALUE.size:
        return value
    return _clean(value)


def shown(value: object) -> str:
    """A value as Python shows it (``repr``), whatever that does."""
    try:
        return _clean(repr(value), _SHOWN)
    except _ODD as error:
        kind = type(value).__name__
        if type(value) is int:
            return _shortened(f"an integer of {value.bit_length():,} bits", f"{value:#x}")
        return _shortened(f"a {kind} that cannot be shown", type(error).__name__)


def plain(value: object) -> JSON:
    """A copy of a value in JSON, so its owner may keep changing the original.

    A value that JSON cannot express is written as its ``repr``. A tool's odd result must not lose
    the event, or fail in the product.
    """
    if value is None or type(value) is bool:
        return value
    if type(value) is str:
        return text(value, "a value")
    if type(value) is float:
        return value if math.isfinite(value) else repr(value)
    try:
        encoded = _encode(value)
        if why := _excess(encoded):
            return _shortened(why, encoded[:_HEAD].decode(errors="replace"))
        copy: JSON = _decode(encoded)
    except RecursionError:
        return _shortened("nested without end", type(value).__name__)
    except _ODD:  # JSON cannot say it
        return shown(value)
    return copy


def _excess(encoded: bytes) -> str:
    """Why a value is more than an event may hold; empty if it is not."""
    if len(encoded) > _VALUE.size:
        return f"{len(encoded):,} bytes"
    if too_deep(encoded, _VALUE.depth):
        return f"nested deeper than {_VALUE.depth} levels"
    try:
        _VALUE.check_json(encoded)
    except InvalidInput:
        return f"more than {_VALUE.objects:,} values"
    return ""


def plain_mapping(value: object) -> dict[str, JSON]:
    """A copy of a mapping in JSON; anything else is put under the name ``value``."""
    copy = plain(value)
    return copy if isinstance(copy, dict) else {"value": copy}


def storable(command: Command) -> Command:
    """A command whose events have only values that a log can hold, shortened if needed."""
    changed = {"event": _storable(command.event)}
    if isinstance(command, TakeAction) and command.outcome is not None:
        changed["outcome"] = _storable(command.outcome)
    return msgspec.structs.replace(command, **changed)


def _storable(event: Event | Unknown) -> Event | Unknown:
    if isinstance(event, Unknown):
        return msgspec.structs.replace(event, body=_encode(_body(event)))
    given = {name: getattr(event, name) for name in event.__struct_fields__}
    values: dict[str, JSON] = {
        name: plain_mapping(value) if isinstance(value, Mapping) else plain(value)
        for name, value in given.items()
        if not isinstance(value, msgspec.Struct)
    }
    stored = msgspec.structs.replace(event, **values)
    return with_digests(stored) if isinstance(stored, SnapshotTaken) else stored


def _body(event: Unknown) -> JSON:
    """The body of an event that Duolog does not define; replaced with a text if it is not JSON."""
    try:
        body = plain(_decode(event.body))
    except _ODD:
        body = _shortened("no JSON", event.body[:_HEAD].decode(errors="replace"))
    return body if isinstance(body, dict) else {"kind": event.kind, "value": body}


def _clean(value: str, most: int = _VALUE.size) -> str:
    """A text in valid UTF-8, shortened if it is too long for a log."""
    try:
        data = value.encode()
    except UnicodeEncodeError:
        data = value.encode("utf-8", "backslashreplace")
        value = data.decode()
    if len(data) <= most:
        return value
    return _shortened(f"{len(data):,} bytes", value)


def _shortened(why: str, head: str) -> str:
    """The text that replaces a value that the log cannot hold."""
    get_logger("telemetry").warning("a value was replaced, since no log can hold it", why=why)
    left = head if len(head) <= _HEAD else f"{head[:_HEAD]}..."
    return f"[shortened by Duolog: {why}] {left}"


_encode = msgspec.json.Encoder(enc_hook=shown).encode
_decode = msgspec.json.Decoder().decode
