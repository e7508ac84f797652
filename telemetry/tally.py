"""A tally of what waits in memory alone, which outlives a kill of its process: counts, and no contents.

If the process is killed, the next one that opens the log on this machine reads the tally and marks what was
lost. Only a machine that stops takes the latest counts along. If the disk is full, events are not counted, and
recording continues.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, final

__all__ = ("Killed", "Tally", "read_tally")

_SLOT: Final = 512
_HEAD: Final = struct.Struct("<IIddH")  # events, trace version, begin, end, length of the id
_LONGEST: Final = _SLOT - _HEAD.size
_EMPTY: Final = bytes(_HEAD.size)


class Killed(NamedTuple):
    """The events of a session that a killed process had in memory alone.

    Attributes:
        session: session id.
        events: how many.
        version: trace version up to which the process knew the session to be written.
        begin: when the first of them happened, UTC epoch seconds.
        end: when the last of them happened.
    """

    session: str
    events: int
    version: int
    begin: float
    end: float


class _Slot:
    """The count of a session, and its place in the file."""

    __slots__ = ("at", "begin", "end", "events", "name", "version")

    def __init__(self, at: int, name: bytes, begin: float) -> None:
        self.at = at
        self.name = name
        self.begin = self.end = begin
        self.events = self.version = 0


@final
class Tally:
    """Counts by session what waits in memory alone. Not for several threads at once.

    Args:
        path: of the file, which is there, empty and locked.
        descriptor: of the open file.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._size = 0
        self._free: list[int] = []
        self._slots: dict[str, _Slot] = {}

    def add(self, session: str, events: int, at: float, version: int) -> None:
        """Notes that events wait.

        Args:
            session: session id; one of more than 480 bytes is not counted.
            events: how many.
            at: when they happened.
            version: trace version up to which the session is known to be written; 0 if unknown.
        """
        slot = self._slots.get(session)
        if slot is None:
            name = session.encode("utf-8", "surrogatepass")
            if len(name) > _LONGEST:
                return
            if self._free:
                place = self._free.pop()
            else:
                place, self._size = self._size, self._size + _SLOT
            slot = self._slots[session] = _Slot(place, name, at)
            slot.events, slot.version = events, version
            self._write(slot, name.ljust(_LONGEST, b"\0"))
            return
        slot.events += events
        slot.version = version or slot.version
        slot.begin, slot.end = min(slot.begin, at), max(slot.end, at)
        self._write(slot)

    def remove(self, session: str, events: int, version: int) -> None:
        """Notes that events wait no more, and the trace version that is written by now; 0 if unknown."""
        slot = self._slots.get(session)
        if slot is None:
            return
        slot.events -= events
        slot.version = version or slot.version
        if slot.events <= 0:
            del self._slots[session]
            self._free.append(slot.at)
        self._write(slot)

    def _write(self, slot: _Slot, rest: bytes = b"") -> None:
        head = _EMPTY
        if slot.events > 0:
            head = _HEAD.pack(slot.events, slot.version, slot.begin, slot.end, len(slot.name))
        try:
            os.pwrite(self._descriptor, head + rest, slot.at)
        except OSError:
            return  # the disk is full

    def close(self) -> None:
        """Leaves the file to the next process if anything is in it, else removes it."""
        if not self._slots:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def read_tally(data: bytes) -> Iterator[Killed]:
    """The counts in the contents of a file."""
    for start in range(0, len(data) - _SLOT + 1, _SLOT):
        events, version, begin, end, length = _HEAD.unpack_from(data, start)
        name = data[start + _HEAD.size : start + _HEAD.size + min(length, _LONGEST)]
        if events and name:
            yield Killed(name.decode("utf-8", "surrogatepass"), events, version, begin, end)
