"""``duolog profile``: shipped agents are told apart, the page says why, and wrong inputs are one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from duolog.cli import main

QUICK = ("--tasks", "finance", "--bootstrap", "50")


def profiled(
    capsys: pytest.CaptureFixture[str], log: Path, *more: str, code: int = 0
) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["profile", *more, *QUICK, "--log", str(log), "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("agent", "kind"), [("looper", "loop"), ("polisher", "early polish"), ("flatterer", "plateau")]
)
def test_a_weak_agent_is_named_for_what_it_is(
    agent: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = profiled(capsys, tmp_path / "p.db", agent)
    assert {name: one["kind"] for name, one in found["diagnoses"].items()} == {agent: kind}
    assert found["published"]
    assert found["planned"] == found["played"] == 28
    assert {one["name"] for one in found["recommendation"]["choices"]} == {
        agent,
        "auto",
        "human-alone",
    }


def test_the_page_has_the_verdict_its_evidence_and_what_it_cannot_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], plain: None
) -> None:
    page = tmp_path / "page.html"
    told = [
        "profile",
        "two-stage",
        *QUICK,
        "--log",
        str(tmp_path / "p.db"),
        "--secret",
        "only-we-know",
    ]
    assert main([*told, "--html", str(page), "--markdown"]) == 0
    shown = capsys.readouterr().out
    verdict, _, rest = shown.partition("**Kind of collaborator**")
    assert verdict.startswith(
        "**Verdict**\n\nWith two-stage it turns the human's effort into a better output"
    )
    assert "Evidence with two-stage:" in verdict
    assert "the best choice in" in verdict
    assert "**Public and secret half**" in rest
    assert "A profile cannot know how people work with this model" in rest
    assert "still to be played" not in rest
    text = page.read_text(encoding="utf-8")
    assert 'href="#t0"' in text
    assert '<details id="t0">' in text
    assert "only-we-know" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["profile", "looper", "--tasks", "trvel"], "unknown task 'trvel' in suite-1"),
        (["profile", "looper", "--suite", "suite-0"], "unknown suite 'suite-0'"),
        (["profile", "looper", "--secret", " "], "the secret of a suite is empty"),
        (["profile", " "], "name what to profile"),
        (["profile", "looper", "--dry-run"], "no model is named"),
        (["profile", "exec:", "--tasks", "travel"], "exec:"),
        (["profile", "looper", "--log", "memory://"], "would be gone"),
    ],
)
def test_wrong_inputs_are_one_clear_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_the_users_are_compared_with_real_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], plain: None
) -> None:
    talk = [{"from": who, "value": "Which one is nearer?"} for who in ("human", "gpt") * 3]
    source, people = tmp_path / "chats.json", tmp_path / "people.db"
    source.write_text(
        json.dumps([{"id": f"chat-{n}", "conversations": talk} for n in range(3)]), "utf-8"
    )
    assert main(["import", str(source), "--format", "sharegpt", "--log", str(people)]) == 0
    capsys.readouterr()
    told = [
        "profile",
        "polisher",
        *QUICK,
        "--log",
        str(tmp_path / "p.db"),
        "--against",
        str(people),
    ]
    assert main(told) == 0
    shown = capsys.readouterr().out
    words = " ".join(shown.split())
    assert "Fidelity to 3 sessions of people, 1 if nothing tells them apart: bounded 0." in words
    rows = [line.split() for line in shown.splitlines() if line.startswith("lazy ")]
    rows = [row for row in rows if row[1] in ("all", "finance")]
    assert len(rows) == 2
    assert all(0 <= float(row[4].rstrip("*")) <= 1 for row in rows)
    assert rows[1][4].endswith("*")
    assert "no person worked on this task" in words
