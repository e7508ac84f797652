"""``duolog new``: writes the start of a new task, with a test."""

from __future__ import annotations

import keyword
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from string import Template
from typing import Annotated, Literal

import typer

from ...engine.errors import InvalidInput
from ..arguments import example
from ..output import command_name
from ..root import app

__all__ = ("new_command",)

_FILES = {"task.py.txt": "{}.py", "test_task.py.txt": "test_{}.py"}
"""The templates, and the name of the file made from each."""


@app.command(
    "new",
    short_help="Writes a task to start from, with a test.",
    epilog=example("duolog new task shop"),
)
def new_command(
    what: Annotated[Literal["task"], typer.Argument(metavar="WHAT", help="What to create: task.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the task and its module.")],
    directory: Annotated[Path, typer.Option(metavar="DIR", help="Where to write it.")] = Path(),
) -> None:
    """Writes NAME.py, a task with a utility, two agents and a user on rules, and test_NAME.py.

    The task runs as written. No existing file is overwritten.
    """
    from ...engine.installation import program
    from ...engine.log.exchange.output_file import OutputRules, output_file

    _check(name)
    if not directory.is_dir():
        known = "is not a directory" if directory.exists() else "does not exist"
        raise InvalidInput(f"--directory {directory} {known}")
    paths = {template: directory / made.format(name) for template, made in _FILES.items()}
    for path in paths.values():
        if path.exists() or path.is_symlink():
            raise InvalidInput(
                f"{path} exists already: choose another name, or another --directory"
            )
    from importlib.resources import files  # takes longer than most commands need for their help

    kind = "".join(part.capitalize() for part in name.split("_"))
    for template, path in paths.items():
        text = (files("duolog") / "cli" / "templates" / template).read_text(encoding="utf-8")
        with output_file(path, OutputRules(replace=False)) as file:
            file.write(Template(text).substitute(name=name, Class=kind).encode())
    shown = paths["task.py.txt"]
    typer.echo(f"Written: {', '.join(map(str, paths.values()))}. Next:")
    call, tests = command_name(), program("pytest")
    typer.echo(f"  {call} run {shown}:{kind} --sessions 20 --log {name}.db")
    typer.echo(f"  {call} report {name}.db")
    typer.echo(f"  {call} chat {shown}:{kind}")
    if tests is None:
        typer.echo(f"  {program('pip') or 'pip'} install pytest")
    typer.echo(f"  {tests or 'pytest'} {paths['test_task.py.txt']}")


def _check(name: str) -> None:
    """Refuses what cannot name a module, or names one that is there.

    Raises:
        InvalidInput: says why.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower() or name[0] == "_":
        raise InvalidInput(
            f"{name!r} cannot name a module: use lower-case letters, digits and _, as in my_shop"
        )
    installed = [folder for folder in sys.path if folder not in ("", os.getcwd())]
    taken = name in sys.stdlib_module_names
    if taken or PathFinder.find_spec(name, installed) is not None:
        raise InvalidInput(f"{name!r} is the name of an installed module: choose another name")
