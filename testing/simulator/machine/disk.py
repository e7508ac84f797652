"""A disk that fails as disks do: readers see a write at once, but it is durable only after a sync.
A loss of power keeps all durable writes, and those of the others that a seed draws.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final, final

from .vfs import IOERR, OK

__all__ = ("DISK_FAULTS", "SimulatedDisk")

FULL: Final = 13
_IOERR_READ: Final = IOERR | 1 << 8
_IOERR_WRITE: Final = IOERR | 3 << 8
_IOERR_FSYNC: Final = IOERR | 4 << 8

_SECTOR = 512

DISK_FAULTS: Final = ("write", "torn", "full", "sync", "lie", "read", "slow", "power")
"""A write fails; it fails half way; the disk is full; a sync fails; a sync does nothing, but reports
success; a read fails; an operation takes long; the power is lost."""

_SLOW: Final = (0.01, 0.01, 0.05, 1.0, 60.0)
"""Seconds that a slow operation takes; a process that is paused in the middle of one is as slow."""

_PATIENCE: Final = 0.1  # seconds of that for which others wait without a word
_LONG: Final = 200  # operations for which a disk keeps failing
_SLOWLY: Final = 5  # operations one after the other that are a little slow


class _File:
    """One file as it is on the platter, and the writes since it was last synced."""

    def __init__(self, durable: bytes) -> None:
        self.durable = durable
        self.pending: list[tuple[int, bytes | None]] = []


@final
class SimulatedDisk:
    """The disk of one run; see ``duolog.testing.simulator.machine.vfs.Medium``.

    Args:
        directory: where its files are.
        faults: what happens at which operation, counted from 1; reads are not counted.
        random: draws what survives a loss of power.
        wait: lets others go on for some seconds, if who asks is a thread.
    """

    def __init__(
        self,
        directory: Path,
        faults: Mapping[int, str],
        random: Random,
        wait: Callable[[float], bool] = lambda seconds: False,
    ) -> None:
        self.directory = directory
        self.operations = 0
        self.happened: list[str] = []
        self.slowed: list[str] = []
        self.lost_power = False
        self.sync_failed = False
        self.alarm = False  # a failed sync or a loss of power, until it is looked at
        self._prefix = f"{directory}/"
        self._faults = faults
        self._random = random
        self._wait = wait
        self._ended = False
        self._slowly = 0
        self._files: dict[str, _File] = {}
        self._image: dict[str, bytes] = {}
        self._read_fails = False
        self._lied = False

    @property
    def dead(self) -> bool:
        """Whether nothing reaches it any more: the power is lost, or the process has ended."""
        return self.lost_power or self._ended

    def end(self) -> None:
        """The process was killed: its unfinished operations stop."""
        self._ended = True

    @property
    def lied(self) -> bool:
        """Whether something was said to be durable that was not."""
        return self._lied

    def opens(self, path: str) -> bool:
        """Whether a file is on this disk; it is watched from now on."""
        if not path.startswith(self._prefix) or path.endswith("-shm"):
            return False
        if path not in self._files:
            self._files[path] = _File(Path(path).read_bytes() if Path(path).exists() else b"")
        return True

    def write(self, path: str, offset: int, data: bytes, go: Callable[[], int]) -> int:
        """Bytes are written, or not, or half of them."""
        fault = self._next()
        if self.dead or fault == "write":
            return _IOERR_WRITE
        if fault == "full":
            return FULL
        if fault == "torn":
            self._files[path].pending.append((offset, data[: len(data) // 2]))
            with Path(path).open("r+b") as file:
                file.seek(offset)
                file.write(data[: len(data) // 2])
            return _IOERR_WRITE
        self._files[path].pending.append((offset, data))
        return go()

    def truncate(self, path: str, size: int, go: Callable[[], int]) -> int:
        """A file is cut."""
        if self._next() in ("write", "torn") or self.dead:
            return IOERR
        self._files[path].pending.append((size, None))
        return go()

    def sync(self, path: str) -> int:
        """Makes writes durable, or only seems to."""
        fault = self._next()
        if fault == "sync":
            self.sync_failed = self.alarm = True
        if self.dead or fault == "sync":
            return _IOERR_FSYNC
        if fault == "lie":
            self._lied = True
            return OK
        file = self._files[path]
        file.durable = _after(file.durable, file.pending)
        file.pending.clear()
        return OK

    def read(self, path: str, go: Callable[[], int]) -> int:
        """Bytes are read."""
        if self.dead:
            return _IOERR_READ
        if self._read_fails:
            self._read_fails = False
            return _IOERR_READ
        return go()

    def delete(self, path: str, go: Callable[[], int]) -> int:
        """A file is deleted, durably."""
        if self.dead:
            return IOERR
        self._files.pop(path, None)
        return go()

    def _next(self) -> str:
        if self.dead:
            return ""
        self.operations += 1
        fault = self._faults.get(self.operations, "")
        if fault == "slow":
            self._be_slow()
            return ""
        if self.operations < self._slowly:
            self._wait(_SLOW[0])
        if fault:
            self.happened.append(fault)
        if fault == "power":
            self.lose_power()
        elif fault == "read":
            self._read_fails = True
        return fault

    def _be_slow(self) -> None:
        seconds = self._random.choice(_SLOW)
        if seconds < _PATIENCE:
            self._slowly = self.operations + _SLOWLY
        # Others may find that the log is held for too long.
        where = self.slowed if seconds < _PATIENCE else self.happened
        where.append("slow")
        if not self._wait(seconds):
            where.pop()

    def fail(self, what: str, after: int) -> None:
        """From the n-th operation on, many fail in one way; with none, nothing fails any more."""
        self.stop_failing()
        if what:
            begin = self.operations + after
            self._faults = dict.fromkeys(range(begin, begin + _LONG), what)

    def stop_failing(self) -> None:
        """From here on nothing goes wrong."""
        self._faults = {}
        self._read_fails = False
        self.happened, self.slowed = [], []

    def reopened(self) -> SimulatedDisk:
        """The same disk for the next process; unsynced writes stay unsynced."""
        self.happened, self.slowed = [], []
        self._read_fails = False
        return self

    def lose_power(self) -> None:
        """From here on nothing works; ``restore`` gives the files that survive."""
        self.lost_power = self.alarm = True
        self._image = {path: self._survives(file) for path, file in self._files.items()}
        for path in self.directory.glob("*-head"):  # not SQLite's, and never synced
            if self._random.random() < 0.7:
                self._image[str(path)] = path.read_bytes()

    def _survives(self, file: _File) -> bytes:
        """The durable bytes, and some of those that were not: none, a part in order, any, torn."""
        random, pending = self._random, file.pending
        style = random.randrange(4)
        if style == 0 or not pending:
            return file.durable
        if style == 1:
            return _after(file.durable, pending[: random.randrange(len(pending) + 1)])
        kept = [each for each in pending if random.random() < 0.7]
        if style == 3:
            kept = [self._torn(*each) for each in kept]
        return _after(file.durable, kept)

    def _torn(self, offset: int, data: bytes | None) -> tuple[int, bytes | None]:
        if data is None or len(data) <= _SECTOR or self._random.random() < 0.5:
            return offset, data
        return offset, data[: _SECTOR * self._random.randrange(1, len(data) // _SECTOR + 1)]

    def restore(self, directory: Path) -> None:
        """Puts what a new start finds into another directory: after a loss of power what survived
        it, after the end of a process all that was written.
        """
        directory.mkdir()
        if not self.lost_power:
            for path in self.directory.iterdir():
                if not path.name.endswith("-shm"):
                    shutil.copy(path, directory / path.name)
            return
        for name, content in self._image.items():
            if content or not name.endswith("-wal"):
                (directory / Path(name).name).write_bytes(content)


def _after(content: bytes, writes: list[tuple[int, bytes | None]]) -> bytes:
    """A file's content after writes and cuts."""
    result = bytearray(content)
    for offset, data in writes:
        if data is None:
            if offset < len(result):
                del result[offset:]
            else:
                result.extend(bytes(offset - len(result)))
            continue
        if offset > len(result):
            result.extend(bytes(offset - len(result)))
        result[offset : offset + len(data)] = data
    return bytes(result)
