"""Passes bytes from one descriptor to another, in a separate thread, as they come."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from typing import Final, final

__all__ = ("Pump", "write_all")

_PIECE: Final = 2**16  # bytes that are read at once: the size of a pipe on Linux


@final
class Pump:
    """Passes bytes until the source ends or the sink is gone; then closes both descriptors.

    The descriptors stay blocking, because the parent process may share them. That is why a thread
    waits for them instead of the event loop. The thread does not keep the program from ending.

    Args:
        name: the name of the thread.
        source: what is read; owned by the pump from now on.
        sink: what is written; likewise.
        observe: called with each piece before it is passed; returns at once, and never raises.
        ended: called when the pump has ended.

    Attributes:
        waiting: whether it waits for the source.
        passed: how many bytes have been passed.
    """

    def __init__(
        self,
        name: str,
        source: int,
        sink: int,
        observe: Callable[[bytes], None],
        ended: Callable[[], None] | None = None,
    ) -> None:
        self._source = source
        self._sink = sink
        self._observe = observe
        self._ended = ended
        self.waiting = False
        self.passed = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts to pass."""
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return not self._thread.is_alive()

    def drain(self, pause: float) -> None:
        """Waits until it ends, or until its source has had nothing for a while.

        A process that the agent leaves behind may hold the source open for ever.

        Args:
            pause: seconds.
        """
        passed = -1
        while not self.over:
            if self.waiting and self.passed == passed and not self._has_more():
                return
            passed = self.passed
            self._thread.join(pause)

    def _has_more(self) -> bool:
        try:
            return bool(select.select([self._source], [], [], 0)[0])
        except (OSError, ValueError):  # it has just been closed
            return False

    def _run(self) -> None:
        try:
            while piece := self._read():
                self._observe(piece)
                write_all(self._sink, piece)
                self.passed += len(piece)
        except OSError:
            pass  # one of both is gone, which the other notices when this closes
        finally:
            os.close(self._sink)
            os.close(self._source)
            if self._ended is not None:
                self._ended()

    def _read(self) -> bytes:
        self.waiting = True
        try:
            while True:
                try:
                    return os.read(self._source, _PIECE)
                except BlockingIOError:  # another process made it non-blocking
                    select.select([self._source], [], [])
        finally:
            self.waiting = False


def write_all(sink: int, data: bytes) -> None:
    """Writes all of the data.

    Raises:
        OSError: the sink is gone.
    """
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(sink, left) :]
        except BlockingIOError:  # another process made it non-blocking
            select.select([], [sink], [])
