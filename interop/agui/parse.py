"""Parses events in the forms that apps have them in: objects, models, JSON, server-sent events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Protocol, TypeAlias, runtime_checkable

import msgspec

from ...engine.errors import malformed
from ...engine.events import JSON
from ...telemetry.jsonable import plain, text
from .names import AguiEvent

__all__ = ("AguiInput", "PydanticModel", "Unreadable", "parse_events")


@runtime_checkable
class PydanticModel(Protocol):
    """An object of the protocol's own package, or any other model of pydantic's."""

    def model_dump(self, *, mode: str, by_alias: bool) -> dict[str, object]:
        """Its fields."""
        ...


AguiInput: TypeAlias = Mapping[str, object] | PydanticModel | str | bytes
"""An event: an object, a model, JSON in text or bytes, or server-sent events, whole lines of them."""


class Unreadable(msgspec.Struct, frozen=True):
    """Input that is not a JSON object: why, and the input."""

    why: str
    what: str


_NULLS: Final = frozenset({"value", "event", "snapshot", "result"})

_decode = msgspec.json.Decoder().decode


def parse_events(given: AguiInput) -> Iterator[AguiEvent | Unreadable]:
    """The events in the input: one, or one for each server-sent event in it."""
    if isinstance(given, bytes):
        try:
            given = given.decode()
        except UnicodeDecodeError as error:
            yield Unreadable(f"it is not UTF-8: byte {error.start}", repr(given))
            return
    if isinstance(given, str):
        for piece in _pieces(given):
            yield _parsed(piece)
    elif isinstance(given, dict):  # the usual case; asking for a protocol takes its time
        yield _object(given)
    elif isinstance(given, PydanticModel):
        dumped = given.model_dump(mode="json", by_alias=True)
        # Models of version 0.1 write unset fields.
        yield _object({k: v for k, v in dumped.items() if v is not None or k in _NULLS})
    else:
        yield _object(given)


def _pieces(given: str) -> Iterator[str]:
    """The JSON documents in a text; the data lines of a server-sent event are one document."""
    stripped = given.strip()
    if not stripped or stripped.startswith(("{", "[")):
        yield from (stripped,) if stripped else ()
        return
    data: list[str] = []
    for line in (*stripped.splitlines(), ""):
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []
        elif line and not line.startswith(("event:", "id:", "retry:", ":")):
            yield line


def _parsed(piece: str) -> AguiEvent | Unreadable:
    try:
        found: JSON = _decode(piece)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return Unreadable(f"it is no JSON: {malformed(error)}", text(piece, "a piece"))
    if not isinstance(found, dict):
        return Unreadable("it is no JSON object", piece)
    return found


def _object(given: object) -> AguiEvent | Unreadable:
    found = plain(given)
    if isinstance(found, dict):
        return found
    what = found if isinstance(found, str) else msgspec.json.encode(found).decode()
    return Unreadable(f"it is no JSON object, but {type(given).__name__}", what)
