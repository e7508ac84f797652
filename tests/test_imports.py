"""The cost of an import, by the modules that it loads: nothing heavy early, and never a socket."""

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

HELPS = """
import contextlib, io, os
import duolog.cli.app
for command in {commands!r}:
    sys.stdout.flush()
    if os.fork() == 0:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            assert duolog.cli.main([*command, "--help"]) == 0
        assert "Usage: duolog" in printed.getvalue()
        break
    os.wait()
"""
"""Prints help in forks of one process that has loaded the command line: what each loads is its own."""

COMMANDS = [c.name or c.callback.__name__ for c in app.registered_commands if c.callback]

LIGHT = {"annotated_doc", "colorama", "duolog", "shellingham", "typer", "typing_extensions"}

# What typer itself loads once a command has options, and pydantic wants to know of the platform.
OPTIONS = {"annotated_types", "pydantic", "pydantic_core", "typing_inspection"}


def probe(code: str, directory: Path) -> tuple[set[str], list[str]]:
    """The modules that a fresh interpreter loads for ``code``, and its audit events on sockets."""
    [found] = probes(code, directory)
    return found


def probes(code: str, directory: Path) -> list[tuple[set[str], list[str]]]:
    """As ``probe``, for code that forks: for each process, in the order in which they ended."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(code=code)],
        cwd=directory,  # not the checkout, whose packages would be importable as they are
        check=True,
        capture_output=True,
        text=True,
    )
    found = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("[["))
    return [(set(modules), sockets) for modules, sockets in found]


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


def test_a_command_loads_the_module_of_no_other(tmp_path: Path) -> None:
    modules, _ = probe("import duolog.cli; duolog.cli.main(['show', '--help'])", tmp_path)
    commands = {name for name in modules if name.startswith("duolog.cli.commands.")}
    assert commands == {"duolog.cli.commands.show"}


def test_the_version_is_printed_without_the_command_line(tmp_path: Path) -> None:
    modules, _ = probe("import duolog.cli; duolog.cli.main(['--version'])", tmp_path)
    assert foreign(modules) == {"duolog"}


@pytest.mark.parametrize(
    ("arguments", "skipped"), [(["show", "--help"], True), (["new", "--nothing"], False)]
)
def test_only_commands_without_code_of_users_skip_the_last_search_for_garbage(
    arguments: list[str], skipped: bool, tmp_path: Path
) -> None:
    code = (
        "import gc, sys; from duolog.cli import main; before = gc.get_freeze_count(); "
        f"sys.argv[1:] = {arguments!r}; main(); sys.exit(gc.get_freeze_count() > before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=False, capture_output=True
    )
    assert done.returncode == skipped


def test_help_loads_what_it_needs_and_no_more(tmp_path: Path) -> None:
    commands = [[], *([name] for name in COMMANDS)]
    found = probes(HELPS.format(commands=commands), tmp_path)
    for command, (modules, sockets) in zip(commands, found, strict=False):
        if not command:
            assert foreign(modules) <= LIGHT
            assert modules.isdisjoint({"asyncio", "sqlite3", "socket"})
        else:
            loaded = {name for name in foreign(modules) if not name.startswith("_sysconfigdata")}
            assert loaded <= LIGHT | OPTIONS, command
            assert "sqlite3" not in modules, command
        assert sockets == [], command
    assert len(found) == len(commands) + 1  # the last is the process that they are forks of
