"""Values of options, and options that several commands have: one name, one meaning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest
from duolog.cli.app import app, built_from
from duolog.cli.arguments import for_model, seconds_in
from duolog.engine.errors import InvalidInput
from typer import Context
from typer._click.core import Command
from typer.core import TyperGroup, TyperOption

DAY = 86_400.0

DIFFERENT = {
    "--effort": "report draws curves against some of the measures that watch lists",
    "--format": "export and import know different formats",
    "--group-by": "oversight groups by one label",
    "--outcome": "power computes for one quantity",
    "--output": "a file, a directory, or either",
    "--session": "replay streams one session in its own time",
}
"""Options with values of another form in another command, and why."""


def options(command: Command, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Each option with its command and the form of its value, as the help shows it."""
    context = Context(command)
    for parameter in command.get_params(context):
        shown = parameter.get_help_record(context)
        if isinstance(parameter, TyperOption) and shown is not None:
            for name in parameter.opts:
                yield name, path, shown[0].rpartition(name)[2].strip(" /")
    if isinstance(command, TyperGroup):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from options(below, f"{path} {name}".strip())


def test_an_option_has_values_of_one_form_in_all_commands() -> None:
    forms: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, command, form in options(built_from(app)):  # type: ignore[arg-type]
        forms[name][form].append(command)
    several = {name: dict(found) for name, found in forms.items() if len(found) > 1}
    assert several.keys() <= DIFFERENT.keys(), several


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90d", 90 * DAY), ("12h", 43_200.0), ("1.5w", 10.5 * DAY), (" 30 m", 1800), ("90s", 90)],
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_in(text, "--older-than") == seconds


@pytest.mark.parametrize("text", ["", "90", "0d", "-1d", "d", "1y", "nand", "infd", "1e999d"])
def test_other_texts_are_not_durations(text: str) -> None:
    with pytest.raises(InvalidInput, match="--older-than expects a duration such as 90s"):
        seconds_in(text, "--older-than")


def test_text_actions_are_for_the_model_that_is_played() -> None:
    assert for_model("gpt-4o", "gpt-4o")
    assert not for_model(None, "gpt-4o")
    with pytest.raises(InvalidInput, match="names 'b', but the model is 'a'"):
        for_model("b", "a")
    with pytest.raises(InvalidInput, match="no model is named"):
        for_model("b", None)
