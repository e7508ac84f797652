"""The messages of JSON-RPC 2.0, as the Agent Client Protocol writes them: one on each line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from ...engine.budget import MESSAGE
from ...engine.errors import InvalidInput, TooLarge
from ...engine.events import JSON

__all__ = (
    "BAD_PARAMETERS",
    "NO_METHOD",
    "UNREADABLE",
    "Object",
    "call",
    "failure",
    "notification",
    "object_at",
    "read_message",
    "response",
)

UNREADABLE: Final = -32700
"""The code of an error: the line is not JSON."""
NO_METHOD: Final = -32601
"""The code of an error: the method is unknown."""
BAD_PARAMETERS: Final = -32602
"""The code of an error: the parameters cannot be used."""

_SHOWN = 300
Object: TypeAlias = Mapping[str, JSON]


def read_message(line: bytes) -> Object:
    """The message on a line.

    Raises:
        InvalidInput: it is not a JSON object, or too large.
    """
    try:
        MESSAGE.check_json(line)
    except TooLarge as error:
        raise InvalidInput(f"too much: {error}") from None
    try:
        message = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        message = None
    if not isinstance(message, Mapping):
        shown = line[:_SHOWN].decode("utf-8", "replace")
        raise InvalidInput(f"{shown!r}, which is not JSON-RPC")
    return message


def object_at(message: Object, name: str) -> Object:
    """The object under a name; empty if there is none."""
    value = message.get(name)
    return value if isinstance(value, Mapping) else {}


def call(number: int, method: str, parameters: Object) -> bytes:
    """A call of a method."""
    return msgspec.json.encode(
        {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
    )


def notification(method: str, parameters: Object) -> bytes:
    """A message that is not answered."""
    return msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": parameters})


def response(to: Object, result: JSON) -> bytes:
    """The result of a call."""
    return msgspec.json.encode({"jsonrpc": "2.0", "id": to.get("id"), "result": result})


def failure(to: Object, code: int, said: str) -> bytes:
    """The error of a call."""
    error = {"code": code, "message": said}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": to.get("id"), "error": error})
