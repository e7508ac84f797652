"""Messages from the proxy to its recorder: copies of the traffic, with side and time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

__all__ = ("AGENT", "EDITOR", "ENDED", "LOST", "Copy", "pack", "unpack")

EDITOR: Final = 0
"""Bytes that the editor wrote."""
AGENT: Final = 1
"""Bytes that the agent wrote."""
LOST: Final = 2
"""Some bytes are missing here; the data is the side, as one byte."""
ENDED: Final = 3
"""The agent ended; the data is its exit status as text, negative for a signal."""

_HEAD: Final = struct.Struct("!BdI")


class Copy(NamedTuple):
    """A piece of what passed.

    Attributes:
        kind: one of the kinds above.
        time: UTC epoch seconds.
        data: the bytes.
    """

    kind: int
    time: float
    data: bytes


def pack(copy: Copy) -> bytes:
    """A copy as bytes."""
    return _HEAD.pack(copy.kind, copy.time, len(copy.data)) + copy.data


def unpack(read: Callable[[int], bytes]) -> Iterator[Copy]:
    """The copies in a stream, until it ends; one that is cut off is left out.

    Args:
        read: gives as many bytes as it is asked for, fewer only if the stream ends.
    """
    while len(head := read(_HEAD.size)) == _HEAD.size:
        kind, time, size = _HEAD.unpack(head)
        data = read(size)
        if len(data) < size:
            return
        yield Copy(kind, time, data)
