"""What shells complete: commands, options, names that are installed, and session ids."""

from __future__ import annotations

from pathlib import Path

import pytest
from duolog.agents.kinds import KINDS
from duolog.cli import main
from duolog.cli.completion import AGENTS, FILTER_KEYS, USERS
from duolog.engine.task import NOBODY
from duolog.scoring.index.query import KEYS
from duolog.users.personas import PERSONAS

IDS = ["menu-1-two-stage-ab12", "menu-1-auto-cd34"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("duolog sess", ["sessions"]),
        ("duolog run --ag", ["--agents", "--agent-timeout", "--agent-env"]),
        ("duolog run trav", ["travel"]),
        ("duolog run travel --agents one-stage,t", ["one-stage,two-stage"]),
        ("duolog run travel --users l", ["lazy"]),
        ("duolog score {log} --scorers rub", ["rubric"]),
        ("duolog import x --format cog", ["cogym"]),
        ("duolog show {log} menu-1", IDS),
        ("duolog replay {log} --session menu-1-a", IDS[1:]),
        ("duolog report {log} --explain menu-1-a", IDS[1:]),
        ("duolog sessions {log} st", ["state="]),
        ("duolog show nothing.db a", []),
    ],
)
def test_a_shell_completes(
    line: str,
    expected: list[str],
    dinner: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = line.format(log=dinner)
    monkeypatch.setenv("_DUOLOG_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert (out.split(), err) == (expected, "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_too(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_DUOLOG_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "duolog run travel --users la")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    assert main([]) == 0
    assert "lazy" in capsys.readouterr().out


def test_the_names_are_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert {*AGENTS} == KINDS.keys()
    assert {*USERS} == {*PERSONAS, NOBODY}
    assert {*FILTER_KEYS} >= {*KEYS}
    assert main(["run", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert all(name in said for name in (*KINDS, *PERSONAS))
