"""What ``docs/experiments.md`` shows is what happens: every snippet of it is run, against a server of
models on loopback in place of a provider.

Commands of Duolog's run in this process, as ``duolog.cli.main``: as programs each would load LiteLLM
anew, which takes seconds.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import toast_model
import travel_model
from documents import OFFLINE, Snippet, commands, snippets
from duolog.cli import main
from openai_server import Answer, Body, OpenAIServer

KEY = "sk-proj-the-key-of-this-page-1234567890"


def play(body: Body) -> Answer:
    toast = "toast" in json.dumps(body["messages"]).lower()
    return toast_model.play(body) if toast else travel_model.play_briefly(body)


@pytest.mark.long
@pytest.mark.slow
def test_every_snippet_runs(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    litellm_at_work: None,
) -> None:
    shown: dict[str, str] = {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "installed")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("COLUMNS", "120")
    with OpenAIServer(answer=play).running() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for snippet in snippets((root / "docs" / "experiments.md").read_text(encoding="utf-8")):
            if snippet.language == "console":
                for command in commands(snippet.text):
                    shown[" ".join(command)] = run(command, snippet, capfd)
            else:
                assert snippet.file, f"line {snippet.line}: nothing says what file this is"
                (tmp_path / snippet.file).write_text(snippet.text, encoding="utf-8")
        asked = len(server.requests)
        options = "--models gpt-4o-mini --user-model gpt-4o-mini --sessions 2 --log no.db --dry-run"
        code = main(["run", "toast", *options.split()])
        refused = capfd.readouterr().err

    # A task without rules has nothing that could play the models' parts.
    assert code == 2
    assert "this task ships no rules for" in refused
    assert "nothing can be estimated" in refused
    assert refused.count("\n") == 1
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


def run(command: list[str], snippet: Snippet, capfd: pytest.CaptureFixture[str]) -> str:
    """Runs a command of the page; what it shows."""
    name, *arguments = command
    if name == "export" or arguments[-1:] == [".[llm]"]:
        return ""  # the environment has it
    if name == "pip":
        assert arguments == ["install", "."]
        subprocess.run([sys.executable, "-P", "-m", *command, *OFFLINE], check=True)
        importlib.invalidate_caches()
        return ""
    assert name == "duolog", f"experiments.md, line {snippet.line}: who runs {name}?"
    capfd.readouterr()
    code = main(arguments)
    out, err = capfd.readouterr()
    assert code == 0, f"experiments.md, line {snippet.line}: {err}"
    assert out.strip(), f"experiments.md, line {snippet.line} shows nothing"
    return out if "--json" in arguments else out + err
