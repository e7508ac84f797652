"""The command line's frame: exit codes, and one line for whatever is wrong with the input."""

from __future__ import annotations

import errno
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import duolog
import pytest
import typer
from duolog import InvalidInput
from duolog.cli import app as app_module
from duolog.cli import main
from duolog.cli import root as root_module
from duolog.cli.output import say
from duolog.engine.task import Cell, Setting, find_task
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"duolog {duolog.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("Usage: duolog [OPTIONS] COMMAND")


def test_the_help_that_is_made_sooner_is_the_help_of_all_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = app_module.built_from(app_module.app)
    assert isinstance(made, TyperGroup)
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    made(args=["--help"], prog_name="duolog", standalone_mode=False)
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("arguments", "named"), [(["frobnicate"], "'frobnicate'"), (["--frobnicate"], "--frobnicate")]
)
def test_a_usage_error_is_one_line_and_2(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("duolog: ")
    assert err.endswith(" (see duolog --help)\n")
    assert named in err
    assert err.count("\n") == 1


COMMANDS = [c.name for c in app_module.app.registered_commands if c.name]
ALONE = ["tour"]
"""Commands that run without an argument."""


@pytest.mark.parametrize("command", sorted({*COMMANDS} - {*ALONE}))
def test_a_command_without_arguments_prints_its_help_and_is_refused(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command]) == 2
    out, err = capsys.readouterr()
    assert out == ""  # which may go to a file
    assert err.startswith(f"Usage: duolog {command} ")
    assert "Example" in err


def test_a_group_without_a_command_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for group in app_module.app.registered_groups:
        assert main([str(group.name)]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert out.startswith(f"Usage: duolog {group.name} [OPTIONS] COMMAND")
        assert "Commands:" in out


def application(error: BaseException) -> Callable[[], Callable[..., object]]:
    """What makes a command line with nothing but a command that raises."""
    made = typer.Typer()

    @made.command()
    def fail() -> None:
        raise error

    return partial(app_module.built_from, made)


def test_an_error_of_ours_is_one_line_and_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        root_module, "outline", application(InvalidInput("no such task:\n  'cooking'"))
    )
    assert main([]) == 2
    assert capsys.readouterr() == ("", "duolog: no such task: 'cooking'\n")


def test_a_usage_error_names_the_help_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "some.db", "some session", "--rounds", "many"]) == 2
    assert capsys.readouterr().err == (
        "duolog: --rounds expects handoff or human-turn, got 'many' (see duolog show --help)\n"
    )


def test_an_error_of_the_operating_system_is_one_line_and_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(root_module, "outline", application(full))
    assert main([]) == 2
    assert capsys.readouterr() == ("", "duolog: No space left on device\n")


def test_an_interrupt_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(root_module, "outline", application(KeyboardInterrupt()))
    assert main([]) == 130
    assert capsys.readouterr() == ("", "duolog: interrupted\n")


@pytest.mark.parametrize(
    ("error", "code"), [(typer.Exit(3), 3), (typer.Abort(), 1), (KeyboardInterrupt(), 130)]
)
def test_exit_codes(error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root_module, "outline", application(error))
    assert main([]) == code


def test_errors_of_several_tasks_are_one_line_unless_one_is_a_defect(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full = [InvalidInput("the disk is full"), OSError(errno.ENOSPC, "No space left on device")]
    monkeypatch.setattr(root_module, "outline", application(ExceptionGroup("tasks", full)))
    assert main([]) == 2
    assert capsys.readouterr() == ("", "duolog: the disk is full\n")

    oops = ExceptionGroup("tasks", [*full, ZeroDivisionError("oops")])
    monkeypatch.setattr(root_module, "outline", application(oops))
    with pytest.raises(ExceptionGroup):
        main([])


def test_what_a_message_names_does_nothing_to_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say("session \x1b[2J is gone")
    assert main(["run", "no\x1b[2J.toml"]) == 2
    assert "\x1b" not in (said := capsys.readouterr().err)
    assert said.count("␛[2J") == 2


def test_a_defect_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root_module, "outline", application(ZeroDivisionError("oops")))
    with pytest.raises(ZeroDivisionError, match="oops"):
        main([])


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_shows_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Usage: duolog {command} ")
    assert f"duolog {command} " in out.partition("Example")[2]


def every_command() -> Iterator[tuple[str, TyperCommand]]:
    """All commands, those of groups too, each with its words."""
    waiting: list[tuple[tuple[str, ...], object]] = [((), get_command(app_module.app))]
    for words, command in waiting:
        if isinstance(command, TyperGroup):
            waiting += [((*words, name), one) for name, one in command.commands.items()]
        elif isinstance(command, TyperCommand):
            yield " ".join(words), command


@pytest.mark.parametrize(("words", "command"), list(every_command()), ids=str)
def test_what_an_example_shows_can_be_typed(words: str, command: TyperCommand) -> None:
    start = f"  duolog {words} "
    lines = [line for line in (command.epilog or "").splitlines() if f"{line} ".startswith(start)]
    assert lines
    for line in lines:
        arguments, *_ = line.removeprefix(start.rstrip()).split(" | ")
        assert command.make_context(words, shlex.split(arguments)).args == []


def test_what_forget_shows_is_a_session_of_the_demo(capsys: pytest.CaptureFixture[str]) -> None:
    cell = Cell(agent="two-stage", user="proactive", instance="3", seed=7)
    assert main(["forget", "--help"]) == 0
    assert find_task("travel").session(cell, Setting()).id in capsys.readouterr().out


def duolog_process(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "duolog", *arguments]


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [["sessions"], ["sessions", "--json"], ["replay"], ["replay", "--json"], ["report"]],
)
def test_a_reader_that_goes_away_ends_it_silently(arguments: list[str], dinner: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command, *options = arguments
    with open(writing, "wb") as nobody:
        done = subprocess.run(
            duolog_process(command, str(dinner), *options),
            stdout=nobody,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
def test_a_disk_that_is_full_is_one_line(dinner: Path) -> None:
    full = Path("/dev/full")
    if not full.is_char_device():
        pytest.skip("needs /dev/full")
    buffered = {name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for environment in (buffered, {**buffered, "PYTHONUNBUFFERED": "1"}):
        with full.open("wb") as nowhere:
            done = subprocess.run(
                duolog_process("replay", str(dinner), "--json"),
                stdout=nowhere,
                stderr=subprocess.PIPE,
                env=environment,
                check=False,
            )
        assert (done.returncode, done.stderr) == (2, b"duolog: No space left on device\n")


@pytest.mark.slow
def test_control_c_ends_it_with_one_line(dinner: Path) -> None:
    """A replay that would take days is interrupted once it has printed something."""
    running = subprocess.Popen(
        duolog_process("replay", str(dinner), "--session", "chat", "--speed", "0.01"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdout is not None
    assert b"begins" in running.stdout.readline()
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=300)
    assert (running.returncode, err) == (130, b"duolog: interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize("command", [["show", "menu-1-two"], ["sessions"], ["report"]])
def test_a_terminal_that_lacks_characters_gets_question_marks(
    command: list[str], dinner: Path
) -> None:
    name, *options = command
    done = subprocess.run(
        duolog_process(name, str(dinner), *options),
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert b"menu" in done.stdout
    assert done.stdout.isascii()
    assert done.stderr == b""
