"""The command line, ``duolog``: bad input ends in one clear line and exit code 2.

Nothing of it is loaded before it is called.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

__all__ = ("main",)

_REFUSED = 2
_INTERRUPTED = 130  # as shells have it for a process that SIGINT ended
_HUNG_UP = 141  # and for one that SIGPIPE ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line, and returns its exit code.

    An error that Duolog raises on purpose, a usage error, or one of the operating system (a full
    disk, say), is printed as one line on the standard error; any other exception is a defect, and
    is left to propagate.

    Args:
        arguments: without the program's name; None for those of this process.

    Returns:
        0 where all went well, 2 for bad input, 1 where the person gave up, 130 for an interrupt,
        141 where nobody reads the output any more, or what the command asked for.
    """
    _spare_the_terminal()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except BrokenPipeError:
        return _hang_up()
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _refuse(f"{name}{error.strerror or error}")
    if code == _INTERRUPTED:
        sys.stderr.write("duolog: interrupted\n")
    return code


def _run(arguments: Sequence[str] | None) -> int:
    from typer import Abort, TyperException

    from ..engine.errors import DuologError
    from .app import app

    try:
        code = app(args=arguments, prog_name="duolog", standalone_mode=False)
    except TyperException as error:
        context = getattr(error, "ctx", None)
        command = "duolog" if context is None else context.command_path
        message = error.format_message().rstrip(".").replace("Value error, ", "")
        return _refuse(f"{message} (see {command} --help)")
    except DuologError as error:
        return _refuse(str(error))
    except Abort:
        return 1
    except SystemExit:  # how typer and rich leave where the reader of the output has gone
        return _hang_up()
    return code if isinstance(code, int) else 0


def _spare_the_terminal() -> None:
    """Where the output cannot hold all characters, has what it lacks replaced by question marks."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def _refuse(message: str) -> int:
    line = " ".join(message.split())
    sys.stderr.write(f"duolog: {line}\n")
    return _REFUSED


def _hang_up() -> int:
    """Nobody reads the output: what is left of it goes nowhere, so that the end is silent."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return _HUNG_UP
