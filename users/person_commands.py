"""The commands that a person can type: their names, their help, and how arguments are read."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from ..engine.errors import InvalidInput
from ..engine.events import JSON
from ..engine.session.environment import ActionSpec
from ..scoring.display.cards import card_of

__all__ = (
    "COMMANDS",
    "HELP",
    "CommandHelp",
    "action_help",
    "argument_names",
    "parse_action",
    "private_text",
)


class CommandHelp(NamedTuple):
    """One command, as ``/help`` and completion show it.

    Attributes:
        name: the word after the slash.
        arguments: its possible arguments, in words.
        help: its effect.
    """

    name: str
    arguments: str
    help: str

    @property
    def usage(self) -> str:
        """The command as typed."""
        return f"/{self.name} {self.arguments}".rstrip()


COMMANDS = (
    CommandHelp("edit", "", "change the output in $VISUAL or $EDITOR, and submit it"),
    CommandHelp("submit", "FILE", "submit what is in a file as the output"),
    CommandHelp("do", "NAME KEY=VALUE", "take an action"),
    CommandHelp("actions", "", "list the actions"),
    CommandHelp("yes", "[WHY]", "approve what you were asked to approve"),
    CommandHelp("no", "[WHY]", "deny what you were asked to approve"),
    CommandHelp("rate", "1..5 [WHY]", "rate the progress of the agent's latest round"),
    CommandHelp("retry", "", "have the agent's model asked again, after it has failed"),
    CommandHelp("output", "", "show the whole output"),
    CommandHelp("wishes", "", "show what you want, as your part has it"),
    CommandHelp("help", "", "show this help"),
    CommandHelp("finish", "[WHY]", "end the session: the output is good as it is"),
    CommandHelp("give-up", "[WHY]", "end the session: you no longer expect a good output"),
    CommandHelp("quit", "", "leave; the session stays open, and can be resumed"),
)
"""All commands, in the order in which help shows them."""

_WIDTH = max(len(command.usage) for command in COMMANDS)

HELP = "\n".join(
    [
        "What you type is sent to the agent. A line that begins with a slash is a command:",
        *(f"  {command.usage:<{_WIDTH}}  {command.help}" for command in COMMANDS),
    ]
)
"""The text of ``/help``."""


def private_text(private: JSON) -> str:
    """The card of the person's part, in lines; see ``card_of``."""
    return "\n".join(
        "\n".join((f"{title}:", *(f"- {line}" for line in lines)))
        for title, lines in card_of(private)
    )


def argument_names(spec: ActionSpec) -> tuple[str, ...]:
    """The names of an action's arguments."""
    properties = spec.parameters.get("properties")
    return tuple(properties) if isinstance(properties, Mapping) else ()


def action_help(spec: ActionSpec) -> str:
    """Explains an action: its syntax and its effect."""
    names = " ".join(f"{name}=..." for name in argument_names(spec))
    return f"/do {spec.name} {names}\n    {spec.description}"


def parse_action(text: str, actions: Mapping[str, ActionSpec]) -> tuple[str, Mapping[str, JSON]]:
    """Name and arguments of an action as they were typed.

    Args:
        text: e.g. ``SearchFlights origin='New York'``.
        actions: those that can be taken.

    Raises:
        InvalidInput: there is no such action, or an argument cannot be read.
    """
    try:
        name, *given = shlex.split(text)
    except ValueError as error:
        hint = "as in /do SearchFlights origin='New York' ..."
        raise InvalidInput(f"name an action and its arguments, {hint} ({error})") from None
    if name not in actions:
        known = ", ".join(actions) or "none"
        raise InvalidInput(f"unknown action {name!r}; choose from {known}")
    return name, dict(_argument(one) for one in given)


def _argument(text: str) -> tuple[str, JSON]:
    """A typed argument: parsed if it is valid JSON, otherwise a text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InvalidInput(f"{text!r} is not an argument; write NAME=VALUE")
    try:
        parsed: JSON = json.loads(value, parse_constant=_refuse)
    except ValueError:
        return name, value
    return name, parsed


def _refuse(constant: str) -> JSON:
    raise ValueError(f"{constant} is not a JSON value")
