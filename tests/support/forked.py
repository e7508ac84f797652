"""Programs in Python that begin as forks of a clean process which has imported Duolog already.

A short program spends most of its time on importing the same modules. These forks are still separate
processes, each with its directory, environment and files. They are forked from a process without
threads that has run nothing, and so know nothing of the tests or of each other.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

__all__ = ("run_forked",)

_IMPORTED = (
    *(f"duolog.cli.commands.{name}" for name in ("export", "fork", "replay", "report", "run")),
    *(f"duolog.cli.commands.{name}" for name in ("score", "sessions", "show")),
    "duolog.cli.app",
    "duolog.cli.reporting",
    "duolog.experiments.running",
    "duolog.experiments.sources",
    "duolog.cli.scoring",
    "duolog.engine.log.sqlite",
    "duolog.engine.session.simulation",
    "duolog.agents.players",
    "duolog.users.players",
    "duolog.tasks.rule_user",
    "duolog.examples.travel",
    "duolog.scoring.report",
    "anyio._backends._asyncio",
    "rich.progress",
    "rich.table",
    "structlog",
)
"""What most programs import; one that is missing here only costs time."""

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([*_IMPORTED])


def run_forked(
    arguments: Sequence[str], where: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Runs a program as ``subprocess.run`` does with the interpreter; gives exit code and output.

    Args:
        arguments: the arguments of the interpreter: ``-P`` and ``-W`` if wanted, then ``-m`` or
            ``-c`` and what is the program's own.
        where: the working directory.
        environment: all variables of the program.
    """
    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory, "out"), Path(directory, "err")
        for file in files:
            file.touch()
        given = (arguments, where, {**environment}, _paths(), files)
        process = _FORKS.Process(target=_become, args=given)
        process.start()
        process.join()
        assert process.exitcode is not None
        texts = (file.read_text(encoding="utf-8") for file in files)
        return subprocess.CompletedProcess([*arguments], process.exitcode, *texts)


@cache
def _paths() -> tuple[str, ...]:
    """The default module path of an interpreter."""
    show = [sys.executable, "-P", "-c", "import sys; print(*sys.path, sep='\\n')"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(show, check=True, capture_output=True, text=True, env=environment)
    return tuple(done.stdout.splitlines())


def _become(
    arguments: Sequence[str],
    where: Path,
    environment: dict[str, str],
    paths: Sequence[str],
    files: tuple[Path, Path],
) -> None:
    """Makes the forked process what the interpreter would be, and runs the program."""
    gc.freeze()  # imported modules are not examined again in each fork
    os.chdir(where)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    for number, file in enumerate((Path(os.devnull), *files)):
        opened = os.open(file, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False, errors="backslashreplace")

    said = environment.get("PYTHONPATH")  # in which an empty entry is the working directory
    found = [entry or str(where) for entry in said.split(os.pathsep)] if said else []
    sys.path[:] = [*found, *paths]
    words = [*arguments]
    safe = False
    while words[0] in ("-P", "-W"):
        if words.pop(0) == "-P":
            safe = True
        else:
            warnings.simplefilter(words.pop(0))  # type: ignore[arg-type]  # as the option has it
    kind, what, *rest = words
    if not safe:
        sys.path.insert(0, "" if kind == "-c" else str(where))
    sys.argv = [kind, *rest]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        assert kind == "-c", f"what is {kind}?"
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(compile(what, "<string>", "exec"), main.__dict__)
