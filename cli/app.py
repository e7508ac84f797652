"""The root of the command line: its name, its commands, and ``--version``."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Annotated

import typer

from .._version import __version__
from .diagnostics import FORMATS, LEVELS
from .light_conversion import convert_lightly

__all__ = ("COMMANDS", "app", "built_from", "commands_of")

COMMANDS = (
    "tour",
    "run",
    "chat",
    "new",
    "report",
    "power",
    "audit",
    "oversight",
    "sessions",
    "show",
    "review",
    "replay",
    "score",
    "watch",
    "workbench",
    "study",
    "fork",
    "counterfactual",
    "profile",
    "tune",
    "export",
    "import_",
    "bundle",
    "copy",
    "maintenance",
    "serve",
    "acp",
    "user",
    "travel",
)
"""Modules of ``commands``, in the order in which the help lists them."""

app = typer.Typer(
    name="duolog",
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"duolog {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    log_level: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(LEVELS),
            help="How much to log to standard error; here or after a command.",
            show_default="off, or warning for serve and acp",
        ),
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(FORMATS),
            help="Format of the log lines; alone, it implies --log-level info.",
        ),
    ] = None,
) -> None:
    """Simulates and scores what people and agents do together, and keeps it in an event log."""
    # The options of the log are here for the help: ``main`` has taken them out already.
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


# A command registers itself with the app when its module is imported. The modules import only what
# the help needs; the rest is imported when a command runs.
for _name in COMMANDS:
    import_module(f".commands.{_name}", __package__)


@cache
def commands_of(declared: typer.Typer, name: str = "") -> Callable[..., object]:
    """Commands as arguments are parsed by, made once: that takes longer than many a command.

    Args:
        declared: what is declared.
        name: make only the command of this name, if there is one; else all are made.
    """
    commands = [one for one in declared.registered_commands if one.name == name]
    groups = [one for one in declared.registered_groups if one.name == name]
    if not commands and not groups:
        return built_from(declared)
    only = copy(declared)
    only.registered_commands, only.registered_groups = commands, groups
    return built_from(only)


def built_from(declared: typer.Typer) -> Callable[..., object]:
    """Builds the command-line parser from the commands declared so far."""
    _show_help_of_bare_commands(declared)
    commands = typer.main.get_command(declared)
    convert_lightly(commands)
    return commands


def _show_help_of_bare_commands(declared: typer.Typer) -> None:
    """Makes a command that needs arguments and is given none print its help, as a group does.

    Commands are looked at now: one whose module is imported before this one registers late.
    """
    for command in declared.registered_commands:
        parameters = signature(command.callback).parameters.values() if command.callback else ()
        # The workbench needs a log or a task, whichever.
        needed = any(one.default is one.empty for one in parameters)
        command.no_args_is_help = needed or command.name == "workbench"
