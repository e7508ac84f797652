"""Makes what a product hands over fit for a log: plain JSON and clean text, and a copy of its own."""

from __future__ import annotations

import msgspec

from ..engine.errors import InvalidInput
from ..engine.events import JSON

__all__ = ("plain", "plain_mapping", "text")

_encode = msgspec.json.Encoder(enc_hook=repr).encode
_decode = msgspec.json.Decoder().decode


def text(value: str, what: str) -> str:
    """A text as JSON can say it: half a surrogate pair is spelled out.

    Raises:
        InvalidInput: it is no text.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{what} must be a text, not {type(value).__name__}")
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def plain(value: object) -> JSON:
    """A copy of a value as JSON can say it, so that its owner may go on changing it.

    What JSON cannot say is written as Python shows it (``repr``): a tool's odd result is no reason
    to lose the event, or to fail in the product.
    """
    if value is None or type(value) in (bool, int, float):
        return value  # type: ignore[return-value]  # one of these, as type() says
    if type(value) is str:
        return text(value, "a value")
    try:
        copy: JSON = _decode(_encode(value))
    except (TypeError, ValueError, RecursionError):  # UnicodeEncodeError is a ValueError
        return text(repr(value), "a value")
    return copy


def plain_mapping(value: object) -> dict[str, JSON]:
    """A copy of a mapping as JSON can say it; anything else is put under the name ``value``."""
    copy = plain(value)
    return copy if isinstance(copy, dict) else {"value": copy}
