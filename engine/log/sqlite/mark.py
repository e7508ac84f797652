"""The head mark: a small file that notes how far a log had come, outside of its write-ahead log.

SQLite reads a write-ahead log only up to its first damage; commits behind a flipped bit vanish
silently. The mark proves that they existed. After each commit, it gets the position and the
checksum of the last record. The mark is not synced. It survives the end of the process; after a
loss of power it may be older than the log, which is not damage. When the last process closes a log,
both the write-ahead log and the mark are removed.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple, final
from zlib import crc32

from ...logger import get_logger

__all__ = ("HeadMark", "Mark", "mark_path", "read_mark")

_BINARY = getattr(os, "O_BINARY", 0)  # Windows has files of text
_LINE = re.compile(
    rb"duolog-head 1 (?P<log>[0-9a-f]{32}) (?P<position>[0-9]{20}) (?P<crc>[0-9a-f]{8}) "
    rb"(?P<durability>full|norm) (?P<check>[0-9a-f]{8})\n"
)


class Mark(NamedTuple):
    """The contents of a head mark.

    Attributes:
        log: id of the log.
        position: position of the record that was committed last.
        crc: checksum of that record's envelope.
        synced: whether the record was on the disk when the mark was written.
    """

    log: str
    position: int
    crc: int
    synced: bool


def _write_at_start(file: int, data: bytes) -> None:
    if sys.platform == "win32":
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, data)
    else:
        os.pwrite(file, data, 0)


def mark_path(path: Path) -> Path:
    """Path of a log's mark."""
    return path.with_name(path.name + "-head")


def read_mark(path: Path) -> Mark | None:
    """The mark of a log; None if there is none, or it cannot be read."""
    try:
        found = _LINE.fullmatch(mark_path(path).read_bytes())
    except OSError:
        return None
    if found is None or int(found["check"], 16) != crc32(found[0][:-10]):
        return None
    return Mark(
        found["log"].decode(),
        int(found["position"]),
        int(found["crc"], 16),
        found["durability"] == b"full",
    )


@final
class HeadMark:
    """Writes the mark of a log, from one thread.

    Args:
        path: the path of the log.
        synced: whether each commit is on the disk when it is over.

    Attributes:
        keep: never remove the mark on closing, since it shows damage.
    """

    def __init__(self, path: Path, *, synced: bool) -> None:
        self._path = mark_path(path)
        self._wal = path.with_name(path.name + "-wal")
        self._word = b"full" if synced else b"norm"
        self._file = -1
        self._failed = False
        self.keep = False

    def write(self, log: str, position: int, crc: int) -> None:
        """Writes how far the log has come."""
        line = b"duolog-head 1 %s %020d %08x %s" % (log.encode(), position, crc, self._word)
        try:
            if self._file < 0:
                self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | _BINARY, 0o666)
            _write_at_start(self._file, b"%s %08x\n" % (line, crc32(line)))
        except OSError as error:
            if not self._failed:
                self._failed = True
                get_logger("log").warning(
                    "a log's head mark cannot be written; verify will not notice a lost end",
                    path=str(self._path),
                    error=str(error),
                )

    def close(self) -> None:
        """Closes the mark; removes it if the log is whole without its write-ahead log."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if self.keep or self._wal.exists() or not self._path.exists():
            return  # without a mark nothing is unlinked: a file system may be there to read only
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:  # it stays: a mark older than its log is not damage
            get_logger("log").warning(
                "a log's head mark cannot be removed", path=str(self._path), error=str(error)
            )
