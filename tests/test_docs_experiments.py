"""What ``docs/experiments.md`` shows is what happens: every snippet of it is run, against a server of
models on loopback in place of a provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import documents
import pytest
import toast_model
import travel_model
from documents import OFFLINE, Snippet, commands, snippets
from openai_server import Answer, Body, OpenAIServer

PYTHON = (sys.executable, "-P", "-m")
KEY = "sk-proj-the-key-of-this-page-1234567890"


def play(body: Body) -> Answer:
    toast = "toast" in json.dumps(body["messages"]).lower()
    return toast_model.play(body) if toast else travel_model.play(body)


@pytest.mark.slow
@pytest.mark.timeout(600)  # each command on models imports LiteLLM, which takes seconds
def test_every_snippet_runs(root: Path, tmp_path: Path) -> None:
    shown: dict[str, str] = {}
    installed = (str(tmp_path / "installed"), os.environ.get("PYTHONPATH"))
    with OpenAIServer(answer=play).running() as server:
        environment = {
            **os.environ,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": server.url,
            "PYTHONPATH": os.pathsep.join(filter(None, installed)),
            "COLUMNS": "120",
        }
        for snippet in snippets((root / "docs" / "experiments.md").read_text(encoding="utf-8")):
            if snippet.language == "console":
                for command in commands(snippet.text):
                    shown[" ".join(command)] = run(command, tmp_path, environment, snippet)
            else:
                assert snippet.file, f"line {snippet.line}: nothing says what file this is"
                (tmp_path / snippet.file).write_text(snippet.text, encoding="utf-8")
        asked = len(server.requests)
        options = "--models gpt-4o-mini --user-model gpt-4o-mini --sessions 2 --log no.db --dry-run"
        unruly = [*PYTHON, "duolog", "run", "toast", *options.split()]
        refused = subprocess.run(
            unruly, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    # A task without rules has nothing that could play the models' parts.
    assert refused.returncode == 2
    assert "this task ships no rules for" in refused.stderr
    assert "nothing can be estimated" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "no.db").exists()

    assert asked > 100
    ran = [command for command in shown if command.startswith("duolog run")]
    assert len([command for command in ran if "--dry-run" in command]) == 2
    [toasts] = [text for command, text in shown.items() if command == "duolog report toast.db"]
    assert "one-stage" in toasts
    assert "1.000" in toasts  # all wishes came true in the end
    groups = json.loads(shown["duolog report paper-grid.db --group-by agent,model,user --json"])
    assert len(groups["groups"]) == 10  # two kinds with two users each, and auto, on two models
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path
    assert KEY not in "".join(shown.values())


def run(command: list[str], where: Path, environment: Mapping[str, str], snippet: Snippet) -> str:
    """Runs a command of the page; gives what it shows."""
    name, *arguments = command
    place = f"experiments.md, line {snippet.line}"
    if name == "export" or arguments[-1:] == [".[llm]"]:
        return ""  # the environment has it
    if name == "pip":
        assert arguments == ["install", "."]
        return documents.run([*PYTHON, *command, *OFFLINE], where, place, environment, shows=False)
    assert name == "duolog", f"{place}: who runs {name}?"
    return documents.run([*PYTHON, *command], where, place, environment)
