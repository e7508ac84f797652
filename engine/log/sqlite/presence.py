"""Whether a log's file is still the one that was opened: not removed, moved, replaced or cut off.

SQLite keeps writing to a file that was removed, and to one whose contents were replaced. Its
device and inode show a removal, at the price of a look into the directory. Otherwise the file
changes only when pages move to it from the write-ahead log. Each such change triggers a check of
its contents.
"""

from __future__ import annotations

import copy
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import final

from ...errors import LogGone, LogUnavailable
from .file import is_locked, look_freshly, look_inside
from .tables import APPLICATION

__all__ = ("FilePresence",)

_EVERY = 0.25  # seconds between looks before something is written
_PROBES = 16  # records that are looked for in a file that has changed

_PROBE = "SELECT length(body), stream FROM events WHERE position = ?"


@final
class FilePresence:
    """Watches one file, from one thread.

    Args:
        path: the path of the file, which is open.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._wal_path = path.with_name(path.name + "-wal")
        found = os.stat(path)
        self._file = (found.st_dev, found.st_ino)
        self._state = _state_of(found)
        self._wal: tuple[int, int] | None = None
        self._head = _alone(path) or 0
        self._last = time.monotonic()
        self._gone = ""

    def for_another_thread(self) -> FilePresence:
        """Another one, that watches for the same file."""
        return copy.copy(self)

    def check_now_and_then(self) -> None:
        """As ``check``, unless that was done a moment ago."""
        if self._gone or time.monotonic() - self._last > _EVERY:
            self.check()

    def check(self) -> None:
        """Looks whether the file is still there.

        Raises:
            LogGone: it is not, or was not before.
        """
        if not self._gone:
            self._gone = self._look()
            self._last = time.monotonic()
        if self._gone:
            raise LogGone(
                f"{self._path} {self._gone}; nothing more is written to it: open it again"
            )

    def _look(self) -> str:
        try:
            found = os.stat(self._path)
        except OSError as error:
            return f"was removed or moved while it was open ({error.strerror or error})"
        if (found.st_dev, found.st_ino) != self._file:
            return "was replaced by another file while it was open"
        state = _state_of(found)
        if state != self._state and (wrong := self._look_inside(state)):
            return wrong
        return self._look_at_wal()

    def _look_at_wal(self) -> str:
        try:
            found = os.stat(self._wal_path)
        except OSError:
            if self._wal is None:
                return ""
            return "has lost its write-ahead log (-wal) while it was open"
        wal = (found.st_dev, found.st_ino)
        if self._wal is None:
            self._wal = wal
        return (
            "" if wal == self._wal else "has another write-ahead log (-wal) than when it was opened"
        )

    def _look_inside(self, state: tuple[int, int, int]) -> str:
        """Looks into a file that has changed."""
        now, before = _alone(self._path), self._head
        if now is None or now < before:
            # It may lack pages that stay in the write-ahead log while a reader needs the old ones.
            try:
                if not _whole(self._path, before):
                    return "was overwritten or cut off while it was open"
            except LogUnavailable:
                return ""  # locked by another process: the next look will tell
        self._head = max(now or 0, before)
        self._state = state
        return ""


def _state_of(found: os.stat_result) -> tuple[int, int, int]:
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _alone(path: Path) -> int | None:
    """The last position in the file alone, without its write-ahead log; None if it is invalid."""
    try:
        with closing(look_inside(path)) as connection:
            if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
                return None
            (head,) = connection.execute("SELECT max(position) FROM events").fetchone()
            return head or 0
    except sqlite3.Error:
        return None


def _whole(path: Path, head: int) -> bool:
    """Whether the file and its write-ahead log make sense together, as far as a few looks tell.

    Raises:
        LogUnavailable: another process holds it.
    """
    try:
        with closing(look_freshly(path)) as connection:
            if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
                return False
            for number in range(1, _PROBES + 1):
                position = 1 + (head - 1) * number // _PROBES
                found = connection.execute(_PROBE, (position,)).fetchone()
                if head and found is None:
                    return False
    except sqlite3.Error as error:
        if is_locked(error):
            raise LogUnavailable(f"{path} is locked by another process") from error
        return False
    return True
