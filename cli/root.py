"""The root of the command line: its name, ``--version``, and its commands, each loaded on demand."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cache
from importlib import import_module
from inspect import signature
from typing import Annotated, Final

import typer
from typer.models import CommandInfo, TyperInfo

from .._version import __version__
from .diagnostics import FORMATS, LEVELS
from .light_conversion import convert_lightly

__all__ = ("COMMANDS", "app", "built_from", "commands_of", "load_commands", "outline")

COMMANDS: Final = (
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
    "fork",
    "counterfactual",
    "profile",
    "tune",
    "export",
    "import",
    "bundle",
    "verify-bundle",
    "copy",
    "forget",
    "close",
    "verify",
    "vacuum",
    "serve",
    "acp",
    "user",
    "study",
    "travel",
)
"""All commands, as the help lists them."""

_MODULES: Final = {
    "import": "import_",
    "verify-bundle": "bundle",
    "forget": "maintenance",
    "close": "maintenance",
    "verify": "maintenance",
    "vacuum": "maintenance",
}
"""The modules in ``commands`` of commands with another name."""

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


def load_commands(*names: str) -> None:
    """Imports the modules of commands. Each registers its commands with the app.

    The modules import only what the help needs; the rest is imported when a command runs.
    """
    for name in names:
        import_module(f".commands.{_MODULES.get(name, name)}", __package__)
    app.registered_commands.sort(key=lambda one: COMMANDS.index(one.name or ""))
    app.registered_groups.sort(key=lambda one: COMMANDS.index(str(one.name)))


@cache
def commands_of(name: str = "") -> Callable[..., object]:
    """Commands as arguments are parsed by, made once: that takes longer than many a command.

    Args:
        name: make only the command of this name, if there is one; else all are made.
    """
    if name not in COMMANDS:
        load_commands(*COMMANDS)
        return built_from(app)
    load_commands(name)
    only = copy(app)
    only.registered_commands = [one for one in app.registered_commands if one.name == name]
    only.registered_groups = [one for one in app.registered_groups if one.name == name]
    return built_from(only)


def outline() -> Callable[..., object]:
    """All commands without their parameters. The help that lists them needs no more."""
    load_commands(*COMMANDS)
    bare = copy(app)
    bare.registered_commands = [_bare(one) for one in app.registered_commands]
    bare.registered_groups = [_bare_group(one) for one in app.registered_groups]
    return built_from(bare)


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


def _bare(command: CommandInfo) -> CommandInfo:
    if command.short_help is None:  # its line is then taken from its docstring
        return command
    bare = copy(command)
    bare.callback = _nothing
    return bare


def _bare_group(group: TyperInfo) -> TyperInfo:
    bare = copy(group)
    bare.typer_instance = copy(group.typer_instance)
    if bare.typer_instance is not None:
        bare.typer_instance.registered_commands = []
    return bare


def _nothing() -> None:
    """The callback of a command that is only listed."""
