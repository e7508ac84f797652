"""What an import costs, by what it loads: nothing heavy before it is needed, and no socket ever."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from duolog.cli.app import app

pytestmark = pytest.mark.slow  # these tests start programs

PROBE = """
import json, sys
before, sockets = set(sys.modules), []
sys.addaudithook(lambda event, _: sockets.append(event) if event.startswith("socket.") else None)
{code}
print(json.dumps([sorted(set(sys.modules) - before), sockets]))
"""

HELP = """
import contextlib, io
from duolog.cli import main
with contextlib.redirect_stdout(io.StringIO()) as printed:
    assert main({arguments!r}) == 0
assert "Usage: duolog" in printed.getvalue()
"""

COMMANDS = [c.name or c.callback.__name__ for c in app.registered_commands if c.callback]

LIGHT = {"annotated_doc", "colorama", "duolog", "shellingham", "typer", "typing_extensions"}

# What typer itself loads once a command has options, and pydantic wants to know of the platform.
OPTIONS = {"annotated_types", "pydantic", "pydantic_core", "typing_inspection"}


def probe(code: str, directory: Path) -> tuple[set[str], list[str]]:
    """What a fresh interpreter loads when it runs ``code``, and its audit events on sockets."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(code=code)],
        cwd=directory,  # not the checkout, whose packages would be importable as they are
        check=True,
        capture_output=True,
        text=True,
    )
    modules, sockets = json.loads(done.stdout.splitlines()[-1])
    return set(modules), sockets


def foreign(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules} - sys.stdlib_module_names


def test_import_loads_nothing_but_itself(tmp_path: Path) -> None:
    modules, sockets = probe("import duolog", tmp_path)
    assert foreign(modules) == {"duolog"}
    assert modules.isdisjoint({"asyncio", "sqlite3", "socket"})
    assert sockets == []


def test_the_whole_public_api_loads_nothing_heavy(tmp_path: Path) -> None:
    code = "import duolog; [getattr(duolog, name) for name in duolog.__all__]"
    modules, sockets = probe(code, tmp_path)
    assert "msgspec" in modules
    heavy = {
        "jsonpatch",
        "jsonschema",
        "litellm",
        "matplotlib",
        "numpy",
        "referencing",
        "rich",
        "typer",
    }
    assert foreign(modules).isdisjoint(heavy)
    assert sockets == []


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_loads_what_it_needs_and_no_more(arguments: list[str], tmp_path: Path) -> None:
    modules, sockets = probe(HELP.format(arguments=arguments), tmp_path)
    if arguments == ["--help"]:
        assert foreign(modules) <= LIGHT
        assert modules.isdisjoint({"asyncio", "sqlite3", "socket"})
    else:
        loaded = {name for name in foreign(modules) if not name.startswith("_sysconfigdata")}
        assert loaded <= LIGHT | OPTIONS
        assert "sqlite3" not in modules
    assert sockets == []
