"""``duolog watch`` on the command line: in a terminal, and where it cannot be."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Self

import pytest
from duolog.cli import main

LIMIT = 60.0  # seconds for anything to show


class Terminal:
    """A command in a terminal of its own, and what it has written there."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "duolog", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm-256color", **environment},
            start_new_session=True,
        )
        os.close(slave)
        self._written = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(LIMIT)
        os.close(self._master)

    def until(self, text: str) -> None:
        """Waits until it has written this."""
        while text.encode() not in self._written:
            assert self._read(), f"{text!r} did not come: {self._written[-2000:]!r}"

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], LIMIT)
        try:
            data = os.read(self._master, 65536) if ready else b""
        except OSError:  # it has ended
            data = b""
        self._written += data
        return bool(data)

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def colours(self) -> set[str]:
        """The colours that it has set, as the terminal is told: 31, say, or 48;5;16."""
        told = re.findall(r"\x1b\[([\d;]*)m", self._written.decode(errors="replace"))
        return {code for code in told if re.search(r"(^|;)[34][0-8](;|$)", code)}

    def end(self) -> tuple[int, str]:
        """Waits for its end: the exit code, and the last line that it has written."""
        while self._read():
            pass
        code = self.process.wait(LIMIT)
        return code, self._written.decode().replace("\r\n", "\n").rpartition("\x1b")[2]


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_it_runs_in_a_terminal_until_q(dinner: Path, environment: dict[str, str]) -> None:
    with Terminal("watch", str(dinner), "--session", "menu-1-two", **environment) as terminal:
        terminal.until("menu-1-two-stage-ab12")
        terminal.until("ends the session: full")
        terminal.until("following")
        terminal.type("\x1b[D")
        terminal.until("looking back")
        terminal.type("q")
        code, told = terminal.end()
    assert code == 0
    assert "duolog:" not in told
    # The terminal's own colours, so that it can be read on a dark ground and on a light one.
    assert not {code for code in terminal.colours() if re.search("[34]8;", code)}
    assert bool(terminal.colours()) == ("NO_COLOR" not in environment)


@pytest.mark.parametrize("what", ["missing", "foreign"])
def test_what_is_no_log_is_one_clear_line(what: str, tmp_path: Path) -> None:
    path = tmp_path / "it.db"
    if what == "foreign":
        path.write_text("nothing of the kind\n" * 100, encoding="utf-8")
    with Terminal("watch", str(path)) as terminal:
        code, told = terminal.end()
    assert code == 2
    assert told.startswith("duolog: ")
    assert str(path) in told
    assert told.count("\n") == 1


def test_a_log_that_goes_away_is_told_at_the_end_too(tmp_path: Path, dinner: Path) -> None:
    path = tmp_path / "copy.db"
    path.write_bytes(dinner.read_bytes())
    with Terminal("watch", str(path)) as terminal:
        terminal.until("following")
        path.unlink()
        terminal.until("is gone")
        terminal.type("q")
        code, told = terminal.end()
    assert code == 2
    assert told.endswith(f"duolog: {path} is gone: it was moved, deleted or replaced\n")


def test_without_a_terminal_it_says_so(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(dinner)]) == 2
    assert "draws on a terminal" in capsys.readouterr().err


def test_without_textual_it_says_what_to_install(
    dinner: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    assert main(["watch", str(dinner)]) == 2
    told = capsys.readouterr().err
    assert told == "duolog: watching a log needs an extra: pip install 'duolog[tui]'\n"


def test_an_unknown_measure_is_refused(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(dinner), "--effort", "sweat"]) == 2
    assert "--effort knows no 'sweat'; choose from rounds, acts" in capsys.readouterr().err
