"""``duolog audit``: simulated people compared with the people of another log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from duolog.cli import main


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> str:
    log = str(tmp_path_factory.mktemp("audit") / "simulated.db")
    run = ["run", "travel", "--agents", "one-stage", "--users", "lazy,bounded", "--sessions", "3"]
    assert main([*run, "--log", log]) == 0
    return log


def chats(path: Path) -> str:
    """A log of three made-up chats of people."""
    lines = []
    for number in range(3):
        said = ["Plan a trip", "Which hotel is nearer?", "Fine."][: number + 1]
        turns = [t for text in said for t in (("human", text), ("gpt", "Here you are."))]
        talk = [{"from": who, "value": text} for who, text in turns]
        lines.append({"id": f"chat-{number}", "conversations": talk})
    source = path / "chats.json"
    source.write_text(json.dumps(lines))
    log = str(path / "people.db")
    assert main(["import", str(source), "--format", "sharegpt", "--log", log]) == 0
    return log


def test_it_compares_each_persona_with_people(
    simulated: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = chats(tmp_path)
    capsys.readouterr()
    audit = ["audit", simulated, "--against", people, "--bootstrap", "20"]
    assert main([*audit, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["people"], found["left_out"], found["resamples"]) == (3, 0, 20)
    assert [(one["simulated"], one["sessions"]) for one in found["personas"]] == [
        ("bounded", 3),
        ("lazy", 3),
    ]
    gaps = {gap["measure"]: gap for gap in found["personas"][0]["measures"]}
    assert gaps["turn_length"]["people"]["value"] == pytest.approx(3.0)
    assert gaps["turn_length"]["people"]["sessions"] == 2
    assert gaps["survival"]["reason"] is None
    assert gaps["ratings"]["reason"] == "no human rates a round among the people"
    assert main(audit) == 0
    shown = capsys.readouterr().out
    assert "bounded  3 sessions, 3 of people" in shown
    assert "– bounded, ratings, points: no human rates a round among the people" in shown


def test_wrong_inputs_are_one_clear_line(
    simulated: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = chats(tmp_path)
    capsys.readouterr()
    for log, against, why in (
        (simulated, simulated, "the sessions to compare with contain no real people"),
        (people, simulated, "no human in these sessions is simulated"),
        (simulated, str(tmp_path / "none.db"), "no log at"),
    ):
        assert main(["audit", log, "--against", against]) == 2
        said = capsys.readouterr().err
        assert why in said
        assert said.count("\n") == 1


def test_real_chats(
    simulated: str,
    tmp_path: Path,
    test_data: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = test_data("formats/lmsys")
    log = str(tmp_path / "lmsys.db")
    assert main(["import", str(source), "--log", log]) == 0
    capsys.readouterr()
    assert main(["audit", simulated, "--against", log, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["people"] == 10
    words = next(g for g in found["personas"][0]["measures"] if g["measure"] == "turn_length")
    assert words["people"]["value"] > words["simulated"]["value"]
    assert words["wasserstein"]["low"] <= words["wasserstein"]["value"]
