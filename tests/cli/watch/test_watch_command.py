"""``duolog watch`` on the command line: in a terminal, and without one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from duolog.cli import main
from duolog.engine.installation import install_command
from terminal import Terminal, at_terminal

COMMAND = ("-P", "-m", "duolog", "watch")


def watching(where: Path, *arguments: str, **environment: str) -> AbstractContextManager[Terminal]:
    """The command in a terminal."""
    command = [*COMMAND, *arguments]
    return at_terminal(command, where=where, environment=environment, size=(30, 100), screen=True)


def colours(terminal: Terminal) -> set[str]:
    """The colours that were set, as the terminal gets them: 31, say, or 48;5;16."""
    printed = re.findall(r"\x1b\[([\d;]*)m", terminal.sent)
    return {code for code in printed if re.search(r"(^|;)[34][0-8](;|$)", code)}


def last_words(terminal: Terminal) -> str:
    """The text written after the last frame."""
    return terminal.sent.replace("\r\n", "\n").rpartition("\x1b")[2]


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_it_runs_in_a_terminal_until_q(
    dinner: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    arguments = (str(dinner), "--select", "menu-1-two")
    with watching(tmp_path, *arguments, **environment) as terminal:
        terminal.until("menu-1-two-stage-ab12")
        terminal.until("ends the session: full")
        terminal.until("following")
        terminal.type("\x1b[D")
        terminal.until("looking back")
        terminal.type("q")
        assert terminal.end() == 0
    assert "duolog:" not in last_words(terminal)
    # The terminal's own colours, so that it can be read on a dark ground and on a light one.
    assert not {code for code in colours(terminal) if re.search("[34]8;", code)}
    assert bool(colours(terminal)) == ("NO_COLOR" not in environment)


@pytest.mark.slow
def test_it_ends_when_its_terminal_is_closed(dinner: Path) -> None:
    """Even without a signal: the terminal is not its controlling terminal."""
    master, slave = os.openpty()
    with subprocess.Popen(
        [sys.executable, *COMMAND, str(dinner)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    ) as process:
        os.close(slave)
        shown = b""
        while b"following" not in shown:
            shown += os.read(master, 65536)
        os.close(master)
        assert process.wait(300) == 0


@pytest.mark.slow
@pytest.mark.parametrize("what", ["missing", "foreign"])
def test_what_is_no_log_is_one_clear_line(what: str, tmp_path: Path) -> None:
    path = tmp_path / "it.db"
    if what == "foreign":
        path.write_text("nothing of the kind\n" * 100, encoding="utf-8")
    with watching(tmp_path, str(path)) as terminal:
        assert terminal.end() == 2
    printed = last_words(terminal)
    assert printed.startswith("duolog: ")
    assert str(path) in printed
    assert printed.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("directory", ["near", "far/away" * 20])
def test_a_log_that_goes_away_is_reported_at_the_end_too(
    directory: str, tmp_path: Path, dinner: Path
) -> None:
    """However long its path is, all of the message is seen."""
    path = Path(directory, "copy.db")
    there = tmp_path / path
    there.parent.mkdir(parents=True)
    there.write_bytes(dinner.read_bytes())
    with watching(tmp_path, str(path)) as terminal:
        terminal.until("following")
        there.unlink()
        terminal.until("replaced")
        terminal.type("q")
        assert terminal.end() == 2
    assert last_words(terminal).endswith(
        f"duolog: {path} is gone: it was moved, deleted or replaced\n"
    )


def test_without_a_terminal_it_says_so(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(dinner)]) == 2
    assert "draws on a terminal" in capsys.readouterr().err


def test_without_textual_it_says_what_to_install(
    dinner: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    assert main(["watch", str(dinner)]) == 2
    printed = capsys.readouterr().err
    assert printed == f"duolog: watching a log needs an extra: {install_command('tui')}\n"


def test_an_unknown_measure_is_refused(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(dinner), "--effort", "sweat"]) == 2
    assert "--effort: unknown value 'sweat'; choose from acts," in capsys.readouterr().err
