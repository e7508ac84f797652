"""Sessions of which events could not be recorded, as each view marks them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from duolog.cli import main
from duolog.engine.events import MessageSent, Participant, RecordsLost, SessionClosed, SessionOpened
from duolog.engine.log.open import open_log
from duolog.engine.records import RECORDING, Draft

pytestmark = pytest.mark.usefixtures("plain")


_TRAJECTORIES = ("--format", "trajectories", "--output")


@pytest.fixture
async def incomplete(tmp_path: Path) -> str:
    """Two sessions of one and of three rounds; of the second, 59 events were lost."""
    path = str(tmp_path / "log.db")
    async with open_log(path) as log:
        for session, rounds in (("whole", 1), ("torn", 3)):
            people = (
                Participant(name="ann", role="human"),
                Participant(name="bot", role="agent"),
            )
            opened = SessionOpened(task="t", instance="", participants=people, clock="utc")
            drafts = [Draft(opened, "engine", "environment", 1_800_000_100.0)]
            for _ in range(rounds):
                drafts.append(Draft(MessageSent(text="please"), "ann", "human", 1_800_000_101.0))
                drafts.append(Draft(MessageSent(text="done"), "bot", "agent", 1_800_000_102.0))
            closed = SessionClosed(reason="ended", by="engine")
            await log.append(
                session, [*drafts, Draft(closed, "engine", "environment", 1_800_000_103.0)]
            )
        for count in (50, 9):
            lost = RecordsLost(
                count=count, begin=1_800_000_101.0, end=1_800_000_104.0, why="the disk is full"
            )
            mark = Draft(lost, "engine", "environment", 1_800_000_104.0)
            await log.append("torn", [mark], stream=RECORDING)
    return path


def test_verify_says_so_and_the_log_is_whole(
    incomplete: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", incomplete]) == 0
    assert "1 session incomplete: 59 events could not be recorded (torn)" in capsys.readouterr().err
    assert main(["verify", incomplete, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lost"] == {"torn": 59}


def test_sessions_has_a_column_of_it(incomplete: str, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # folded, and then as the log keeps it
        assert main(["sessions", incomplete]) == 0
        _, columns, whole, torn = capsys.readouterr().out.splitlines()
        assert columns.split()[:5] == "session state rounds utility lost".split()
        assert "59" not in whole
        assert torn.split()[5] == "59"
    assert main(["sessions", incomplete, "--json"]) == 0
    assert [one["lost"] for one in json.loads(capsys.readouterr().out)] == [0, 59]


def test_show_says_when_and_why(incomplete: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", incomplete, "torn"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "engine could not record 50 events within 3 s: the disk is full" in shown


@pytest.mark.parametrize("through", ["log", "tables", "scored.jsonl"])
def test_report_leaves_it_out_of_means_of_rounds_and_effort(
    through: str, incomplete: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = incomplete
    if through != "log":
        source = str(tmp_path / through)
        form = ["--format", "parquet", "--output"] if through == "tables" else [*_TRAJECTORIES]
        assert main(["export", incomplete, *form, source]) == 0
        capsys.readouterr()
    assert main(["report", source, "--json"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["effort"]["all_rounds"] == 1.0
    assert (group["counts"]["incomplete_sessions"], group["counts"]["lost_events"]) == (1, 59)
    assert main(["report", source]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "59 events of 1 session could not be recorded, so that it is in no mean" in said


def test_stops_and_curves_leave_it_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scored = tmp_path / "scored.jsonl"
    rounds = [
        {"utility": value, "rating": rating} for value, rating in ((0.5, 1), (0.7, 1), (0.9, 5))
    ]
    torn = [{"utility": 0.1, "rating": 1} for _ in range(3)]
    sessions = [
        {"session": "whole", "rounds": rounds},
        {"session": "torn", "lost": 3, "rounds": torn},
    ]
    scored.write_text("".join(json.dumps(one) + "\n" for one in sessions), encoding="utf-8")
    assert main(["report", str(scored), "--json"]) == 0
    [group] = json.loads(capsys.readouterr().out)["groups"]
    assert (group["drop"]["2"]["sessions"], group["drop"]["2"]["abs"]) == (1, pytest.approx(-0.2))
    assert [(one["mean"], one["sessions"]) for one in group["curve"]] == [
        (0.5, 1),
        (0.7, 1),
        (0.9, 1),
    ]
