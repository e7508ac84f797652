"""What the README shows is what happens: every snippet of it is run, in order, in one directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import Snippet, commands, snippets

ELSEWHERE = ("make", "pip")
"""Commands that set up the machine: the continuous integration runs them."""

QUIET = ("-o", "asyncio_default_fixture_loop_scope=function", "-p", "no:cacheprovider")
"""For a run of pytest where there are no settings."""


@pytest.mark.slow
def test_every_snippet_runs(root: Path, tmp_path: Path) -> None:
    ran = []
    for snippet in snippets((root / "README.md").read_text(encoding="utf-8")):
        if "def test_" in snippet.text:
            (tmp_path / "test_snippet.py").write_text(snippet.text, encoding="utf-8")
            run(
                [sys.executable, "-P", "-m", "pytest", *QUIET, "test_snippet.py"], tmp_path, snippet
            )
            ran.append("pytest")
        elif snippet.language == "python":
            run([sys.executable, "-P", "-W", "error", "-c", snippet.text], tmp_path, snippet)
            ran.append("python")
        elif snippet.language == "console":
            for command in commands(snippet.text):
                if command[0] in ELSEWHERE:
                    continue
                assert command[0] == "duolog", f"line {snippet.line}: who runs {command[0]}?"
                run([sys.executable, "-P", "-m", *command], tmp_path, snippet)
                ran.append("duolog")
        else:
            pytest.fail(f"line {snippet.line}: nothing checks a snippet in {snippet.language}")
    assert ran.count("python") >= 3
    assert ran.count("duolog") >= 4
    assert ran.count("pytest") >= 1


def run(command: list[str], where: Path, snippet: Snippet) -> None:
    done = subprocess.run(
        command,
        check=False,
        cwd=where,
        env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},  # else it looks for prices
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, f"line {snippet.line} of the README: {done.stderr}"
    assert done.stdout.strip(), f"line {snippet.line} of the README shows nothing"


def test_the_pictures_and_pages_that_it_points_to_are_there(root: Path) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    local = [link for link in re.findall(r"\]\(([^)]+)\)", readme) if "://" not in link]
    assert local
    assert [link for link in local if not (root / link).is_file()] == []
