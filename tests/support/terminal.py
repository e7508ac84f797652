"""A program at a pseudo-terminal: its screen, and simulated typing."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from forked import Forked

__all__ = ("Terminal", "at_terminal")

_PATIENCE = 600.0
"""Seconds after which what is waited for will not come; machines may be slow."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_=>78])")


class Terminal:
    """The terminal of one program, which is its controlling terminal: Ctrl-C reaches it.

    Attributes:
        process: the program.
    """

    def __init__(self, process: Forked, master: int) -> None:
        self.process = process
        self._master = master
        self._shown = b""
        self._looked_at = 0
        self._changed = threading.Condition()
        self._ended = False
        self._reading = threading.Thread(target=self._read, name="terminal")
        self._reading.start()

    def type(self, keys: str) -> None:
        """Presses keys."""
        os.write(self._master, keys.encode())

    def send(self, data: bytes) -> None:
        """Sends bytes, which need not be whole keys."""
        os.write(self._master, data)

    def until_read(self) -> None:
        """Waits until the program has read all that was sent, so that what follows comes apart."""
        with open(os.readlink(f"/proc/{self.process.pid}/fd/0"), "rb", buffering=0) as slave:
            while struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, b"\0" * 4))[0]:
                time.sleep(0.001)  # rather than take the program's core from it

    def until(self, text: str) -> None:
        """Waits until a text is shown, after what was waited for before."""

        def found() -> bool:
            return text in self.shown[self._looked_at :] or self._ended

        with self._changed:
            self._changed.wait_for(found, _PATIENCE)
        place = self.shown.find(text, self._looked_at)
        assert place >= 0, f"{text!r} is not shown, but: ...{self.shown[-3000:]}"
        self._looked_at = place + len(text)

    def end(self) -> int:
        """Waits until the program has ended; its exit code."""
        code = self.process.wait(_PATIENCE)
        with self._changed:
            self._changed.wait_for(lambda: self._ended, _PATIENCE)
        return code

    @property
    def sent(self) -> str:
        """All that the program has sent."""
        return self._shown.decode(errors="replace")

    @property
    def shown(self) -> str:
        """All that was shown, without what moves the cursor or sets colours."""
        return _ESCAPES.sub("", self.sent)

    @property
    def is_usual(self) -> bool:
        """Whether lines can be edited, and keys are echoed, as programs expect to find it."""
        local = termios.tcgetattr(self._master)[3]
        return bool(local & termios.ICANON and local & termios.ECHO)

    def close(self) -> None:
        """Ends the program, if it has not ended."""
        self.process.kill()
        self.process.wait()
        self._reading.join()
        os.close(self._master)

    def _read(self) -> None:
        data = b"..."
        while data:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # how Linux tells that the other end is closed
                data = b""
            with self._changed:
                self._shown += data
                self._ended = not data
                self._changed.notify_all()


@contextmanager
def at_terminal(
    arguments: Sequence[str],
    *,
    where: Path,
    environment: Mapping[str, str] | None = None,
    size: tuple[int, int] = (40, 120),
    screen: bool = False,
    models: bool = False,
) -> Iterator[Terminal]:
    """Runs a program at a terminal of so many lines and columns, with arguments of the interpreter."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    inherited = dict(os.environ)
    for size_of_another in ("COLUMNS", "LINES"):  # pytest-xdist sets them for its workers
        inherited.pop(size_of_another, None)
    process = Forked(
        arguments,
        where,
        {**inherited, "TERM": "xterm-256color", **(environment or {})},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        leads=True,
        screen=screen,
        models=models,
    )
    os.close(slave)
    terminal = Terminal(process, master)
    try:
        yield terminal
    finally:
        terminal.close()
