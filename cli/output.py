"""Writes results to the standard output, messages to the standard error; says what files may replace."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.errors import InvalidInput
from ..engine.installation import program
from ..scoring.display.texts import clean

if TYPE_CHECKING:  # the help loads this module, and no store
    from ..engine.log.exchange.output_file import OutputRules

__all__ = (
    "check_not_read",
    "command_name",
    "output_rules",
    "print_json",
    "print_text",
    "say",
    "say_left_out",
)


def print_json(value: object) -> None:
    """Prints a value as one line of JSON in UTF-8, for programs to read."""
    import msgspec

    _print(msgspec.json.encode(value) + b"\n")


def print_text(text: str) -> None:
    """Prints a text as it is, in UTF-8, for programs to read."""
    _print(text.encode())


def _print(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def say(text: str) -> None:
    """Prints a message for a person, as opposed to a result, on standard error."""
    sys.stderr.write(f"{clean(text)}\n")


def say_left_out(forks: int) -> None:
    """Says how many forks a report leaves out."""
    if forks:
        from ..engine.text import quantity

        origins = "its origin is" if forks == 1 else "their origins are"
        say(f"{quantity(forks, 'fork')} left out, since {origins} here: --forks compares them")


def command_name() -> str:
    """How Duolog can be called from where its user is: ``duolog``, if the shell finds this one."""
    return program("duolog") or f"{shlex.quote(sys.executable)} -m duolog"


def check_not_read(log: str, source: str) -> None:
    """Refuses a log that is the file which is imported into it, which might be empty yet.

    Raises:
        InvalidInput: they are the same file.
    """
    from ..engine.log.sqlite.file import parse

    path = parse(log).path if "://" not in log or log.startswith("sqlite:") else None
    if path is not None and path.exists() and Path(source).exists() and path.samefile(source):
        raise InvalidInput(f"{log} is the file to import; name another file for the log")


def output_rules(*sources: str | Path, force: bool) -> OutputRules:
    """The files that a command may overwrite: others if forced, but never a log or its own inputs.

    Args:
        sources: paths or URLs of all that the command reads.
        force: what ``--force`` says.
    """
    from ..engine.log.exchange.output_file import OutputRules, log_files
    from ..engine.log.sqlite.file import parse

    inputs: list[Path] = []
    for source in sources:
        if isinstance(source, str) and source.startswith("sqlite://"):
            source = parse(source).path
        inputs += log_files(Path(source))
    return OutputRules(tuple(inputs), replace=force)
