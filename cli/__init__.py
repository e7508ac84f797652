"""The command line, ``duolog``. Invalid input gives one line of error and exit code 2.

Its modules are loaded when ``main`` is called, not before.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .._version import __version__

if TYPE_CHECKING:
    from typer import Context

__all__ = ("main",)

_OBJECTS = (
    50_000  # between two searches for garbage: with Python's 700 they take a tenth of the start
)
_READING = frozenset(
    (
        *("audit", "oversight", "power", "report", "sessions", "show"),
        *("-h", "--help", "--version"),
    )
)
"""Commands that run only Duolog's own code, and options that run none."""
_REFUSED = 2
_INTERRUPTED = 130  # the exit code in shells of a process that SIGINT ended
_HUNG_UP = 141  # and of one that SIGPIPE ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line, and returns its exit code.

    A ``DuologError``, a usage error, or an error of the operating system such as a full disk is
    printed as one line on the standard error. Any other exception is a defect and propagates.

    Args:
        arguments: without the name of the program; None for those of this process.

    Returns:
        0 for success, 1 if the person gave up, 2 for invalid input, 130 for an interrupt, 141 if
        the reader of the output is gone, or the exit code of the command.
    """
    _replace_what_cannot_be_encoded()
    if arguments is None:  # else the process is not ours
        gc.set_threshold(_OBJECTS)
        if sys.argv[1:2] == ["report"]:
            # Products of its matrices are small: two threads wait for each other for as long as they compute.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        code = _log_and_run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        if arguments is None and not _READING.isdisjoint(sys.argv[1:2]):
            # Python searches for garbage at exit, a fifth of a short command. Duolog leaves nothing
            # to be found there; a user's own code may, such as a file that is still open.
            gc.freeze()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BrokenPipeError:
        return _hang_up()
    except OSError as error:
        try:
            sys.stdout.flush()
        except OSError:  # it was the output that failed
            _discard_output()
        name = f"{error.filename}: " if error.filename else ""
        return _refuse(f"{name}{error.strerror or error}")
    if code == _INTERRUPTED:
        sys.stderr.write("duolog: interrupted\n")
    return code


def _log_and_run(arguments: Sequence[str]) -> int:
    from ..engine.errors import InvalidInput
    from .diagnostics import diagnostics, take_log_options

    try:
        rest, options = take_log_options(arguments)
    except InvalidInput as error:
        return _refuse(str(error))
    own = rest[: rest.index("--")] if "--" in rest else rest  # what follows is another program's
    helps = not {"-h", "--help"}.isdisjoint(own)  # which is to load nothing that it can do without
    command = next((one for one in own if not one.startswith("-") and not helps), None)
    with diagnostics(options, command):
        return _run(rest)


def _run(arguments: Sequence[str]) -> int:
    if [*arguments] == ["--version"]:  # the parser takes longer to load
        sys.stdout.write(f"duolog {__version__}\n")
        return 0
    from typer import Abort, TyperException

    from ..engine.errors import DuologError

    completing = "_DUOLOG_COMPLETE" in os.environ  # as the completions of shells set it
    if completing:
        from .app import app, built_from
        from .completion import offer_completions

        offer_completions(app)
        commands = built_from(app)
    else:
        from .root import commands_of, outline

        helps = {*arguments} <= {"-h", "--help"}
        commands = outline() if helps else commands_of(arguments[0])
    try:
        code = _ungrouped(commands, arguments)
    except TyperException as error:
        context = getattr(error, "ctx", None)
        if context is not None and error.message == context.get_help():
            return _help_with(context)
        command = _path_in(arguments, commands) if context is None else context.command_path
        from .usage import in_our_words

        return _refuse(f"{in_our_words(error.format_message())} (see {command} --help)")
    except DuologError as error:
        return _refuse(str(error))
    except Abort:
        return 1
    except SystemExit as end:  # with 1 typer and rich exit if the reader of the output is gone
        return int(end.code or 0) if completing or not end.code else _hang_up()
    return code if isinstance(code, int) else 0


def _path_in(arguments: Sequence[str], commands: object) -> str:
    """The command that arguments begin with, as its help is asked for."""
    from typer.core import TyperGroup

    path = ["duolog"]
    for name in arguments:
        if not isinstance(commands, TyperGroup) or name not in commands.commands:
            break
        path.append(name)
        commands = commands.commands[name]
    return " ".join(path)


def _ungrouped(commands: Callable[..., object], arguments: Sequence[str]) -> object:
    """Runs a command. If tasks raise several errors, the first counts, unless one is a defect."""
    try:
        return commands(args=arguments, prog_name="duolog", standalone_mode=False)
    except BaseExceptionGroup as group:
        from ..engine.errors import DuologError, first_error

        if group.split((DuologError, OSError))[1] is not None:
            raise
        raise first_error(group) from None


def _help_with(context: Context) -> int:
    """Prints the help if a command was given without any of its required arguments.

    Naming only a group asks for its contents. A command that lacks arguments is an error, so its
    help never ends up in the file meant for its output.
    """
    from typer.core import TyperGroup

    group = isinstance(context.command, TyperGroup)
    (sys.stdout if group else sys.stderr).write(f"{context.get_help()}\n")
    return 0 if group else _REFUSED


def _replace_what_cannot_be_encoded() -> None:
    """Prints question marks for characters that the encoding of the output does not have."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def _refuse(message: str) -> int:
    from ..scoring.display.texts import clean

    line = " ".join(clean(message).split())
    sys.stderr.write(f"duolog: {line}\n")
    return _REFUSED


def _hang_up() -> int:
    """The code if the reader of the output is gone."""
    _discard_output()
    return _HUNG_UP


def _discard_output() -> None:
    """Discards what could not be printed. Python would try again at exit, print an error and exit with 120."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
