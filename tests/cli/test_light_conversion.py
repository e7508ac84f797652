"""Arguments converted without pydantic: the same values as by typer alone, and the same refusals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from duolog.cli.light_conversion import convert_lightly
from typer.core import TyperGroup
from typer.main import get_command


def command(*, lightly: bool) -> TyperGroup:
    app = typer.Typer()

    @app.callback()
    def root(version: bool = False, level: str | None = None) -> None: ...

    @app.command()
    def run(
        name: str,
        more: Annotated[list[str] | None, typer.Argument()] = None,
        tag: Annotated[list[str] | None, typer.Option()] = None,
        numbers: Annotated[list[int] | None, typer.Option()] = None,
        kind: Annotated[Literal["one", "two"], typer.Option()] = "one",
        most: Annotated[int | None, typer.Option(min=1, max=90)] = None,
        share: float = 0.5,
        whole: Annotated[int, typer.Option(parser=lambda text: int(str(text), 16))] = 7,
        loud: bool = False,
    ) -> object:
        return (name, more, tag, numbers, kind, most, share, whole, loud)

    made = get_command(app)
    assert isinstance(made, TyperGroup)
    if lightly:
        convert_lightly(made)
    return made


def outcome(made: TyperGroup, arguments: Sequence[str]) -> str:
    try:
        return repr(made(args=["run", *arguments], prog_name="p", standalone_mode=False))
    except typer.TyperException as error:
        if isinstance(error, typer.BadParameter):  # test_usage.py has the words
            return f"wrong value of {error.param.name if error.param else None}"
        return error.format_message()


@pytest.mark.parametrize(
    "arguments",
    [
        ["a"],
        ["a", "b", "c", "--tag", "x", "--tag", "y", "--loud"],
        ["", "", "--kind", "two", "--most", "90", "--share", "1", "--whole", "ff"],
        ["a", "--numbers", "1", "--numbers", "-2", "--most", " 5"],
        ["a", "--most", "0"],
        ["a", "--most", "91"],
        ["a", "--most", "٣"],
        ["a", "--most", "1" * 40],
        ["a", "--most", "1_0"],
        ["a", "--kind", "Two"],
        ["a", "--kind", ""],
        ["a", "--share", "x"],
        ["a", "--numbers", "x"],
        [],
    ],
)
def test_values_are_those_of_typer(arguments: list[str]) -> None:
    assert outcome(command(lightly=True), arguments) == outcome(command(lightly=False), arguments)


SHOW = """
import sys
from duolog.cli import main
assert main(["show", *sys.argv[1:]]) == 0
print(*{"jsonschema", "numpy", "pydantic", "rich"} & {*sys.modules})
"""


@pytest.mark.slow
def test_showing_a_session_loads_neither_numpy_nor_pydantic(dinner: Path) -> None:
    command = [sys.executable, "-P", "-c", SHOW, str(dinner), "menu-1-two"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "rich"
