"""A tally of what waits in memory alone, which outlives a kill of its process.

It has counts, and the opening of each session that the log does not have yet, so that its labels are kept;
no event, and nothing private. If the process is killed, the next one that opens the log on this machine reads
the tally and marks what was lost. Only a machine that stops takes the latest counts along. If the disk is
full, events are not counted, and recording continues.
"""

from __future__ import annotations

import os
import secrets
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, cast, final

import msgspec

from ..engine import codec
from ..engine.errors import DuologError
from ..engine.events import SessionOpened
from ..engine.records import ENGINE, Draft, Redact

__all__ = ("Killed", "Tally", "TallyFiles", "lock_file", "read_tally", "take_file")

_ENDING: Final = ".tally"
_SLOT: Final = 2048
# Events, trace version, begin, end, lengths of the id and the opening, schema of the opening.
_HEAD: Final = struct.Struct("<IIddHHH")
_LONGEST: Final = 480  # bytes of an id
_EMPTY: Final = bytes(_HEAD.size)
_LABELS: Final = "group"  # in the configuration of an opening


class Killed(NamedTuple):
    """The events of a session that a killed process had in memory alone.

    Attributes:
        session: session id.
        events: how many.
        version: trace version up to which the process knew the session to be written.
        begin: when the first of them happened, UTC epoch seconds.
        end: when the last of them happened.
        opened: how it was opened, if the process did not know it to be in the log; None if that is
            unknown, or did not fit.
    """

    session: str
    events: int
    version: int
    begin: float
    end: float
    opened: SessionOpened | None = None


class _Slot:
    """The count of a session, and its place in the file."""

    __slots__ = ("at", "begin", "end", "events", "name", "opening", "version")

    def __init__(self, at: int, name: bytes, begin: float, opening: bytes) -> None:
        self.at = at
        self.name = name
        self.opening = opening
        self.begin = self.end = begin
        self.events = self.version = 0


@final
class Tally:
    """Counts by session what waits in memory alone. Not for several threads at once.

    Args:
        path: the path of the file, which is there, empty and locked.
        descriptor: the descriptor of the open file.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._size = 0
        self._free: list[int] = []
        self._slots: dict[str, _Slot] = {}

    def add(self, session: str, events: int, at: float, version: int, opening: bytes = b"") -> None:
        """Notes that events wait.

        Args:
            session: session id; one of more than 480 bytes is not counted.
            events: how many.
            at: when they happened.
            version: trace version up to which the session is known to be written; 0 if unknown.
            opening: how the session is opened, see ``TallyFiles.opening``.
        """
        slot = self._slots.get(session)
        if slot is None:
            name = session.encode("utf-8", "surrogatepass")
            opening = b"" if version else opening
            if len(name) > _LONGEST:
                return
            if self._free:
                place = self._free.pop()
            else:
                place, self._size = self._size, self._size + _SLOT
            slot = self._slots[session] = _Slot(place, name, at, opening)
            slot.events, slot.version = events, version
            self._write(slot, (name + opening).ljust(_SLOT - _HEAD.size, b"\0"))
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
            self._write(slot, bytes(len(slot.name) + len(slot.opening)))  # nothing of it is left
        else:
            self._write(slot)

    def _write(self, slot: _Slot, rest: bytes = b"") -> None:
        head = _EMPTY
        if slot.events > 0:
            head = _HEAD.pack(
                slot.events,
                slot.version,
                slot.begin,
                slot.end,
                len(slot.name),
                len(slot.opening),
                SessionOpened.schema,
            )
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
        events, version, begin, end, length, more, schema = _HEAD.unpack_from(data, start)
        at = start + _HEAD.size
        name, opening = data[at : at + length], data[at + length : at + length + more]
        if events and 0 < length <= _LONGEST and name.strip(b"\0"):  # else it was erased
            session = name.decode("utf-8", "surrogatepass")
            yield Killed(session, events, version, begin, end, _opened(schema, opening))


def _opened(schema: int, body: bytes) -> SessionOpened | None:
    if not body.strip(b"\0"):
        return None
    try:
        return cast(SessionOpened, codec.decode_body("SessionOpened", schema, body))
    except (DuologError, ValueError):
        return None


@final
class TallyFiles:
    """The tallies of a log on this machine; a ``Cache``, from which sessions can be forgotten.

    Args:
        place: finds the directory that they are in, and what their names begin with, which is
            different for each log.
        redact: takes out of each opening what must not be written.
        make: make the directory if there is none.
    """

    def __init__(
        self,
        place: Callable[[], tuple[Path, str]],
        redact: Redact | None,
        *,
        make: bool = True,
    ) -> None:
        self._find = place
        self._redact = redact
        self._make = make
        self._taken: list[tuple[Path, int]] = []
        self._own: Path | None = None

    @property
    def name(self) -> str:
        """Its name in the report of an erasure."""
        return f"the tallies in {self._place[0]}"

    @cached_property
    def _place(self) -> tuple[Path, str]:
        return self._find()

    def open(self) -> Tally:
        """A tally of this process. Raises OSError if there can be none."""
        directory, prefix = self._place
        if self._make:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = directory / f"{prefix}-{os.getpid()}-{secrets.token_hex(4)}{_ENDING}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            lock_file(descriptor)
        except OSError:
            path.unlink()
            os.close(descriptor)
            raise
        self._own = path
        return Tally(path, descriptor)

    def opening(self, session: str, opened: SessionOpened, at: float) -> bytes:
        """An opening as a tally keeps it: redacted, without what is private; of a long one the labels.

        Nothing if it does not fit, or cannot be redacted.
        """
        room = _SLOT - _HEAD.size - len(session.encode("utf-8", "surrogatepass"))
        shown = msgspec.structs.replace(opened, private={}, request=None)
        labels = {_LABELS: shown.config[_LABELS]} if _LABELS in shown.config else {}
        brief = msgspec.structs.replace(shown, config=labels)
        for kept in (shown, brief, msgspec.structs.replace(brief, task="", instance="")):
            try:
                event = kept
                if self._redact is not None:
                    draft = self._redact(Draft(kept, ENGINE, "environment", at))
                    event = cast(SessionOpened, draft.event)
                body = codec.encode_body(event)
            except Exception:  # noqa: BLE001  (the hook's own; said when the opening is written)
                return b""
            if len(body) <= room:
                return body
        return b""

    def take(self) -> list[Killed]:
        """What processes that were killed had in memory alone; their files stay until ``drop``."""
        found: list[Killed] = []
        for path in self._paths():
            descriptor = take_file(path)
            if descriptor is not None:
                self._taken.append((path, descriptor))
                found += read_tally(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
        return found

    def drop(self) -> None:
        """Removes the tallies that were taken."""
        for path, descriptor in self._taken:
            path.unlink(missing_ok=True)
            os.close(descriptor)
        self._taken.clear()

    def exist(self) -> bool:
        """Whether another process has a tally of this log here."""
        return any(path != self._own for path in self._paths())

    def _paths(self) -> list[Path]:
        directory, prefix = self._place
        try:
            names = os.listdir(directory)
        except OSError:
            return []
        start = f"{prefix}-"
        return [directory / one for one in names if one.startswith(start) and one.endswith(_ENDING)]

    async def forget(self, sessions: Sequence[str]) -> None:
        """Erases what the tallies hold of sessions, those of other processes too."""
        from anyio.to_thread import run_sync

        await run_sync(self.erase, frozenset(sessions))

    def erase(self, sessions: frozenset[str]) -> None:
        """The same in this thread."""
        names = {one.encode("utf-8", "surrogatepass") for one in sessions}
        for path in self._paths():
            try:
                descriptor = os.open(path, os.O_RDWR)
            except FileNotFoundError:
                continue
            try:
                data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
                for start in range(0, len(data) - _SLOT + 1, _SLOT):
                    length = _HEAD.unpack_from(data, start)[4]
                    at = start + _HEAD.size
                    if data[at : at + length] in names:
                        os.pwrite(descriptor, bytes(_SLOT), start)
            finally:
                os.close(descriptor)


def lock_file(descriptor: int) -> None:
    """Locks a file for as long as this process has it open. Raises OSError if another has it."""
    if sys.platform == "win32":
        raise OSError("spill files need locks that this system does not have")
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def take_file(path: Path) -> int | None:
    """A descriptor of a file whose process is gone, locked; None if it lives, or the file is gone."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return None
    try:
        lock_file(descriptor)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
