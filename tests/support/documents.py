"""Reads pages in Markdown, for tests that run their code and look up the names in them.

A block of Python is a program and is run. One whose first line is a comment with a file name is
written to that file instead, for the blocks after it; one that holds tests is run by pytest. In a
console block, the lines that begin with a dollar sign are run. ``make demo`` runs the commands of the
Makefile, with only the extras that it installs. A comment before a block says that it is not run, and why::

    <!-- not run: run_agent is the reader's own -->

or that it shows a part of the output of the block before it::

    <!-- output -->

The imports of such a block are still tried. All blocks of a page share a directory, which also has the
``samples`` next to the page or in the folder above it.

Commands, programs and runs of pytest are forks of a process that has imported Duolog. The demo and
installations start new processes.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from extras import hide_extras
from forked import run_forked

__all__ = (
    "OFFLINE",
    "Snippet",
    "check",
    "code_spans",
    "commands",
    "demo",
    "page_files",
    "prose",
    "run",
    "run_page",
    "snippets",
)

_FENCE = re.compile(
    r"^(?:<!-- (?:not run: (?P<why>.*?)|file: (?P<file>\S+)|(?P<output>output)) -->\n+)?```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_BLOCK = re.compile(r"^(`{3,}).*?^\1`*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"# (\S+\.\w+)\n")

_SETS_UP = ("make", "pip", "git", "export", "cd", "python3", ".")
"""Commands that set up the machine: the continuous integration runs them."""

OFFLINE = ("--no-build-isolation", "--no-deps", "--quiet", "--target", "installed")
"""For an installation of a package that a page has written, into the page's directory."""

_QUIET = ("-q", "-o", "asyncio_default_fixture_loop_scope=function", "-o", "asyncio_mode=auto")
"""For a run of pytest without settings."""

_SHOWN = ("text", "json", "html", "toml", "ini")
"""Languages of blocks that show something and are not run."""


class Snippet(NamedTuple):
    """A fenced block, its first line, and the reason if it is not run."""

    line: int
    language: str
    text: str
    not_run: str | None = None
    named: str | None = None
    output: bool = False

    @property
    def file(self) -> str | None:
        """The file that it says it is, before it or in a comment on its first line."""
        found = _NAME.match(self.text)
        return found[1] if found else self.named


def page_files(root: Path) -> list[Path]:
    """All pages: those at the top of the checkout, but the changelog, and those of the docs."""
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]


def prose(page: Path) -> str:
    """A page without its blocks."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def code_spans(text: str) -> list[str]:
    """The texts in backticks within lines."""
    return _CODE.findall(text)


def snippets(page: str) -> Iterator[Snippet]:
    """The fenced blocks of a page, in order."""
    for found in _FENCE.finditer(page):
        line = page.count("\n", 0, found.start("language")) + 1
        about = found["why"], found["file"], found["output"] is not None
        yield Snippet(line, found["language"], found["text"], *about)


def commands(text: str) -> Iterator[list[str]]:
    """The commands of a console: lines that begin with a dollar sign, and their continuation lines."""
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            yield shlex.split(line[2:], comments=True)


def run_page(page: Path, where: Path) -> list[str]:
    """Runs the blocks of a page, in order, in one directory; gives what ran each.

    Where a page has written a ``pyproject.toml``, ``pip install .`` installs it for the commands that
    follow.

    Raises:
        AssertionError: one fails, shows nothing, or nothing can run it.
    """
    ran = []
    shown = ""
    _copy_samples(page, where)
    for snippet in snippets(page.read_text(encoding="utf-8")):
        place = f"{page.name}, line {snippet.line}"
        if snippet.not_run is not None:
            check(snippet, place)
            continue
        if snippet.file:
            (where / snippet.file).write_text(snippet.text, encoding="utf-8")
            if snippet.language == "python" and "def test_" in snippet.text:
                _pytest(snippet.file, where, place)
                ran.append("pytest")
        elif snippet.language == "python" and "def test_" in snippet.text:
            name = f"test_line_{snippet.line}.py"
            (where / name).write_text(snippet.text, encoding="utf-8")
            _pytest(name, where, place)
            ran.append("pytest")
        elif snippet.language == "python":
            program = [sys.executable, "-W", "error", "-c", snippet.text]
            models = "\nimport litellm" in snippet.text
            shown = run(program, where, place, forked=True, models=models)
            ran.append("python")
        elif snippet.language == "console":
            for command in commands(snippet.text):
                if command == ["pip", "install", "."] and (where / "pyproject.toml").exists():
                    pip = [sys.executable, "-P", "-m", *command, *OFFLINE]
                    run(pip, where, place, shows=False)
                    ran.append("pip")
                elif command == ["make", "demo"]:
                    _run_demo(page.parent, where, place)
                    ran.append("demo")
                elif command[0] not in _SETS_UP:
                    shown = _run_program(command, where, place)
                    ran.append(command[0])
        else:
            assert snippet.language in _SHOWN, f"{place}: who runs {snippet.language}?"
            missing = set(snippet.text.splitlines()) - set(shown.splitlines()) - {""}
            assert not (snippet.output and missing), f"{place}: nothing printed {missing}"
    return ran


def _copy_samples(page: Path, where: Path) -> None:
    for folder in (page.parent, page.parent.parent):
        if (folder / "samples").is_dir():
            shutil.copytree(folder / "samples", where / "samples")
            return


def _run_program(command: Sequence[str], where: Path, place: str) -> str:
    name, *arguments = command
    if name == "python":
        return run([sys.executable, "-W", "error", *arguments], where, place)
    assert name == "duolog", f"{place}: who runs {name}?"
    return run([sys.executable, "-P", "-m", *command], where, place, forked=True)


def _run_demo(root: Path, where: Path, place: str) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    [extras] = re.findall(
        r"^\$\(WITH_PLOTS\):(?:.*\n)*?.*\.ci/install \S+ (.*)$", makefile, re.MULTILINE
    )
    hidden = hide_extras(root, extras.split(","), where)
    environment = os.pathsep.join([str(hidden), os.environ.get("PYTHONPATH", "")])
    for command in demo(root):
        if "travel" in command:  # of which the pages show one session, and no numbers
            command[command.index("--sessions") + 1] = "5"
        shows = "--figures" not in command  # these are shown by a viewer of pictures
        run(
            [sys.executable, "-P", "-m", *command],
            where,
            place,
            {**os.environ, "PYTHONPATH": environment.rstrip(os.pathsep)},
            shows=shows,
        )


def demo(root: Path) -> list[list[str]]:
    """The commands of ``make demo``."""
    make = ["make", "--dry-run", "--no-print-directory", "-C", str(root), "demo"]
    done = subprocess.run(make, check=True, capture_output=True, text=True)
    lines = done.stdout.replace("\\\n", " ").splitlines()
    runs = [shlex.split(line.split(">")[0]) for line in lines if " -m duolog " in line]
    assert any("run" in words for words in runs), "make demo runs nothing"
    return [words[words.index("duolog") :] for words in runs]


def check(snippet: Snippet, place: str) -> None:
    """Checks a block that is not run: there is a reason, it compiles, and its imports work.

    Raises:
        AssertionError: it is not so.
    """
    assert snippet.not_run, f"{place}: why is it not run?"
    if snippet.language != "python":
        return
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = compile(snippet.text, place, "exec", flags)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in imports:
        exec(compile(ast.Module([node], []), place, "exec"), {})


def run(
    command: Sequence[str],
    where: Path,
    place: str,
    environment: Mapping[str, str] = os.environ,
    *,
    shows: bool = True,
    forked: bool = False,
    models: bool = False,
) -> str:
    """Runs a command of a page; what it shows.

    Args:
        command: what to run.
        where: the directory of the page.
        place: where the command stands.
        environment: the variables that it has besides those of a page.
        shows: whether it has to show something.
        forked: it is a program in Python that need not begin anew: see ``forked.py``.
        models: it does so from a process that has loaded LiteLLM, as this one has.

    Raises:
        AssertionError: it fails, or shows nothing although it should.
    """
    installed = [str(where / "installed"), environment.get("PYTHONPATH", "")]
    variables = {
        **environment,
        "PYTHONPATH": os.pathsep.join(path for path in installed if path),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it looks for prices
        "COLUMNS": "100",
        "TZ": "UTC",
    }
    if forked:
        done = run_forked(command[1:], where, variables, models=models)
    else:
        done = subprocess.run(
            command,
            check=False,
            cwd=where,
            env=variables,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
    assert done.returncode == 0, f"{place}: {done.stdout}{done.stderr}"
    assert done.stdout.strip() or done.stderr.strip() or not shows, f"{place} shows nothing"
    return done.stdout


def _pytest(file: str, where: Path, place: str) -> None:
    command = [sys.executable, "-m", "pytest", *_QUIET, "-p", "no:cacheprovider", file]
    run(command, where, place, forked=True)
