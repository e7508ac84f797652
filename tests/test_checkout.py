"""Ordinary tools work in a checkout, whatever its name, and on programs that use an installation."""

from __future__ import annotations

import json
import shutil
import site
import sqlite3
import subprocess
import sys
import sysconfig
import tomllib
import venv
from contextlib import closing
from pathlib import Path

import pytest
from distribution import copy_of_the_tree

pytestmark = pytest.mark.slow

CONSUMER = """
from typing import assert_type

import duolog

with duolog.open_sync("sqlite:///letters.db") as log:
    assert_type(log, duolog.SyncLog)
    log.session("letter-1", task="letters").close("ended")


def accuracy(snapshot: duolog.SnapshotTaken, opened: duolog.SessionOpened) -> duolog.Score:
    return duolog.Score(0.5)


assert_type(duolog.Score(0.5).value, float)
"""
"""Passes the checkers only if they see the types of Duolog: otherwise all of it is Any."""


class Environment:
    """A virtual environment that shares the libraries of this one, but not its Duolog."""

    def __init__(self, where: Path) -> None:
        self.where = where
        venv.create(where, symlinks=sys.platform != "win32")
        windows = sys.platform == "win32"
        self.python = where / ("Scripts/python.exe" if windows else "bin/python")
        paths = {"base": str(where), "platbase": str(where)}
        [purelib] = {
            sysconfig.get_path("purelib", vars=paths),
            sysconfig.get_path("platlib", vars=paths),
        }
        shared = [*site.getsitepackages(), *(path for path in sys.path if "site-packages" in path)]
        (Path(purelib) / "zz_shared.pth").write_text(
            "\n".join(dict.fromkeys(shared)), encoding="utf-8"
        )

    def run(self, *arguments: str | Path, where: Path, fails: bool = False) -> str:
        """Runs ``python -m`` with these arguments in the environment, and returns what is printed."""
        command = [str(self.python), "-m", *map(str, arguments)]
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout + done.stderr

    def install(self, *what: str | Path, where: Path) -> None:
        options = (
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "--no-compile",  # a thousand modules, of which the tests import few
            "--force-reinstall",
        )
        self.run("pip", "install", *options, *what, where=where)


@pytest.fixture(scope="session")
def checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Environment]:
    """A checkout whose name is not one of a module, with one file of tests, installed as editable."""
    where = tmp_path_factory.mktemp("checkout")
    tree = copy_of_the_tree(root, where / "duolog-2 (copy)", compiled=True)
    for folder in (tree / "tests").iterdir():
        if folder.is_dir() and folder.name not in ("engine", "support"):
            shutil.rmtree(folder)
    for tests in (tree / "tests").rglob("test_*.py"):
        if tests.name != "test_patterns.py":
            tests.unlink()
    environment = Environment(where / "environment")
    environment.install("--editable", ".", where=tree)
    return tree, environment


@pytest.fixture(scope="session")
def plain(
    checkout: tuple[Path, Environment], tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """An environment in which the checkout is installed plainly."""
    environment = Environment(tmp_path_factory.mktemp("plain") / "environment")
    environment.install(".", where=checkout[0])
    return environment


@pytest.fixture
def consumer(tmp_path: Path) -> Path:
    (tmp_path / "letters.py").write_text(CONSUMER, encoding="utf-8")
    return tmp_path


def test_pytest_runs_a_file_of_the_checkout(checkout: tuple[Path, Environment]) -> None:
    tree, environment = checkout
    arguments = ("-q", "-n", "0", "-p", "no:cacheprovider")
    for where, path in (
        (tree, "tests/engine/test_patterns.py"),
        (tree / "tests/engine", "test_patterns.py"),
    ):
        assert " passed" in environment.run("pytest", path, *arguments, where=where)


@pytest.mark.late
def test_mypy_checks_a_file_of_the_checkout(checkout: tuple[Path, Environment], root: Path) -> None:
    tree, environment = checkout
    _copy_cache(root / ".mypy_cache", tree / ".mypy_cache")
    wrong = tree / "engine" / "wrong.py"
    wrong.write_text(
        "from .rounds import RoundProjector\n\nx: int = RoundProjector\n", encoding="utf-8"
    )
    said = environment.run("mypy", "engine/wrong.py", where=tree, fails=True)
    assert "engine/wrong.py:3: error: Incompatible types" in said
    assert "Found 1 error in 1 file" in said
    wrong.unlink()


def _copy_cache(cache: Path, to: Path) -> None:
    """What `make types` found out about the same files, so that mypy need not find it out again. It may
    be at work, so each file is copied by SQLite."""
    for path in cache.rglob("*.db"):
        target = to / path.relative_to(cache)
        target.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as known, closing(sqlite3.connect(target)) as copied:
            known.backup(copied)


def test_the_link_to_the_checkout_is_made_once(checkout: tuple[Path, Environment]) -> None:
    tree, environment = checkout
    environment.install("--editable", ".", where=tree)
    link = tree / "build" / "editable" / "duolog"
    assert link.samefile(tree)
    assert environment.run("duolog", "--version", where=tree.parent)


def test_tools_do_not_follow_the_link(checkout: tuple[Path, Environment]) -> None:
    tree, environment = checkout
    found = environment.run(
        "pytest", ".", "--collect-only", "-q", "-k", "test_patterns", where=tree
    )
    assert "tests/engine/test_patterns.py" in found
    assert "build/" not in found
    assert "build/" not in environment.run("ruff", "check", "--show-files", where=tree)


MYPY = ("mypy", "--strict")
PYRIGHT = ("pyright",)


@pytest.mark.parametrize(
    "checker", [pytest.param(MYPY, marks=pytest.mark.late), PYRIGHT], ids=" ".join
)
def test_a_program_sees_the_types_of_an_editable_installation(
    checker: tuple[str, ...], checkout: tuple[Path, Environment], consumer: Path, root: Path
) -> None:
    if checker == MYPY:
        checker = (*MYPY, f"--config-file={_known_settings(root, consumer)}")
    _passes_and_would_fail(checkout[1], checker, consumer)


@pytest.mark.parametrize(
    "checker", [pytest.param(MYPY, marks=pytest.mark.release), PYRIGHT], ids=" ".join
)
def test_a_program_sees_the_types_of_a_plain_installation(
    checker: tuple[str, ...], plain: Environment, consumer: Path
) -> None:
    _passes_and_would_fail(plain, checker, consumer)


def _known_settings(root: Path, consumer: Path) -> Path:
    """Settings under which mypy believes what `make types` found out about the same files: all that decide of
    types, those of single modules too. None of them says where the package is."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    apart = ("packages", "mypy_path", "exclude", "overrides")
    tables = [("[tool.mypy]", {key: said for key, said in settings.items() if key not in apart})]
    tables += [("[[tool.mypy.overrides]]", one) for one in settings["overrides"]]
    lines = [
        line
        for heading, said in tables
        for line in (heading, *(f"{key} = {json.dumps(value)}" for key, value in said.items()))
    ]
    shutil.copytree(root / ".ci", consumer / "settings" / ".ci")
    _copy_cache(root / ".mypy_cache", consumer / ".mypy_cache")
    written = consumer / "settings" / "pyproject.toml"
    written.write_text("\n".join(lines), encoding="utf-8")
    return written


def _passes_and_would_fail(
    environment: Environment, checker: tuple[str, ...], consumer: Path
) -> None:
    """Checks a program that is right, and one with a mistake that shows only if types are known."""
    if checker[0] == "pyright":
        checker = (*checker, "--pythonpath", str(environment.python))
    wrong = CONSUMER.replace("duolog.Score(0.5)\n", 'duolog.Score("much")\n', 1)
    assert wrong != CONSUMER
    (consumer / "mistaken.py").write_text(wrong, encoding="utf-8")
    said = environment.run(*checker, "letters.py", "mistaken.py", where=consumer, fails=True)
    assert "mistaken.py:12:" in said
    assert said.count("error:") == 1
