"""Hands copies of what passes to the recorder, without ever making it wait."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, final

from .wire import ENDED, LOST, Copy, pack

__all__ = ("ROOM", "Tap")

ROOM: Final = 256 * 2**20
"""Bytes that may wait for the recorder."""


@final
class Tap:
    """A pipe to the recorder, and a queue for what it cannot take at once.

    A copy that the pipe has room for is in it before the bytes are passed on, so that it is
    recorded even if this program is killed. Copies wait if the recorder is slow. If the queue is
    full, copies are left out, and the recorder gets a mark in their place. If the recorder is gone,
    copies are dropped. Both cases are reported.

    Args:
        sink: a descriptor that the recorder reads from; owned by this from now on, and made
            non-blocking. None if there is no recorder.
        say: prints a line for a person.
        room: bytes that may wait.
    """

    def __init__(self, sink: int | None, say: Callable[[str], None], room: int = ROOM) -> None:
        self._say = say
        self._room = room
        self._news = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tap", daemon=True)
        self._lock = threading.Lock()  # protects what follows
        self._sink = sink
        self._waiting: deque[memoryview] = deque()
        self._held = 0
        self._losing: set[int] = set()
        self._lost = 0
        self._error = ""
        self._ended = False
        if sink is not None and sys.platform != "win32":
            os.set_blocking(sink, False)

    def start(self) -> None:
        """Starts to hand over what waits."""
        self._thread.start()

    def put(self, side: int, data: bytes) -> None:
        """Takes a copy; returns at once."""
        now = time.time()
        with self._lock:
            if self._sink is None:
                return
            if self._held and self._held + len(data) > self._room:
                self._losing.add(side)
                self._lost += len(data)
                return
            if side in self._losing:
                self._losing.discard(side)
                self._hand_over(Copy(LOST, now, bytes([side])))
            self._hand_over(Copy(side, now, data))

    def end(self, status: int) -> None:
        """Notes that the agent has ended, and lets the recorder end.

        Args:
            status: the status of the agent; negative for a signal.
        """
        with self._lock:
            self._hand_over(Copy(ENDED, time.time(), str(status).encode()))
            self._ended = True
        self._news.set()

    def join(self, seconds: float) -> bool:
        """Waits until all is handed over; whether it is."""
        self._thread.join(seconds)
        if self._lost:
            self._say(f"{self._lost:,} bytes are not recorded: the recorder was too slow")
        return not self._thread.is_alive()

    def _hand_over(self, copy: Copy) -> None:
        data = memoryview(pack(copy))
        if not self._waiting:
            data = data[self._write(data) :]
        if data and self._sink is not None:
            self._waiting.append(data)
            self._held += len(data)
            self._news.set()

    def _write(self, data: memoryview) -> int:
        """How many bytes the recorder takes now."""
        if self._sink is None:
            return 0
        try:
            return os.write(self._sink, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            self._error = error.strerror or str(error)
            self._close()
            return 0

    def _close(self) -> None:
        if self._sink is not None:
            os.close(self._sink)
        self._sink = None
        self._waiting.clear()
        self._held = 0
        self._news.set()

    def _run(self) -> None:
        """Hands over what waits, until the recorder has all of it, or is gone."""
        while True:
            self._news.wait()
            with self._lock:
                sink = self._sink
                if not self._waiting:
                    self._news.clear()
                    if self._ended:
                        self._close()
                        break
                    if sink is None:
                        break
                    continue
            if sink is not None:
                select.select([], [sink], [])
            with self._lock:
                self._advance()
        if self._error and not self._ended:
            self._say(f"the session is no longer recorded: the recorder is gone ({self._error})")

    def _advance(self) -> None:
        if not self._waiting:
            return
        written = self._write(self._waiting[0])
        if not self._waiting:  # the recorder is gone
            return
        self._held -= written
        rest = self._waiting[0][written:]
        if rest:
            self._waiting[0] = rest
        else:
            self._waiting.popleft()
