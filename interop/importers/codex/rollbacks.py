"""Turns that a person took back: they are a branch that was left.

A rollout only grows. Where a person goes back, a line says how many turns are void from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ..json_files import Piece, decode
from .steps import is_typed

__all__ = ("Branch", "branches_in")

_BACK: Final = b"thread_rolled_back"
_USER: Final = b"response_item"


class Branch(NamedTuple):
    """Lines that were left: their numbers, from the first to the last."""

    first: int
    last: int

    def holds(self, number: int) -> bool:
        """Whether a line lies in it."""
        return self.first <= number <= self.last


class _Part(msgspec.Struct):
    text: str = ""


class _Payload(msgspec.Struct):
    type: str = ""
    role: str = ""
    content: list[_Part] | str = []
    num_turns: int = 0


class _Line(msgspec.Struct):
    payload: _Payload | None = None


def branches_in(pieces: Iterator[Piece]) -> list[Branch]:
    """The branches of a rollout, in the order in which they were left."""
    turns: list[int] = []
    left: list[Branch] = []
    for piece in pieces:
        data = bytes(piece.data)
        if _BACK not in data and _USER not in data[:200]:
            continue
        payload = _payload(data)
        if payload is None:
            continue
        if payload.type == "message" and payload.role == "user" and _said(payload):
            turns.append(piece.number)
        elif payload.type == _BACK.decode() and payload.num_turns > 0 and turns:
            back = min(payload.num_turns, len(turns))
            left.append(Branch(turns[-back], piece.number))
            del turns[-back:]
    return left


def _payload(data: bytes) -> _Payload | None:
    try:
        return decode(data, _Line).payload
    except InvalidInput:
        return None  # of another shape, or broken, which is remarked on when it is read


def _said(payload: _Payload) -> bool:
    content: JSON = payload.content if isinstance(payload.content, str) else None
    if content is None and not isinstance(payload.content, str):
        content = "\n".join(part.text for part in payload.content)
    return is_typed(str(content))
