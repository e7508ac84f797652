"""``duolog replay``: records and updates as they came, up to a point, and the check."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from duolog.cli import main
from duolog.cli.lookup import parse_until
from duolog.engine.errors import InvalidInput
from duolog.engine.events import FeedbackGiven, Participant, ScorerRef, SessionOpened, UtilityScored
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft
from duolog.scoring.replay import Until
from duolog.scoring.scorers.feedback import FeedbackUtility

pytestmark = pytest.mark.usefixtures("plain")

DINNER = "menu-1-two-stage-ab12"


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["replay", *arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_json_has_each_record_with_its_updates(
    dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = lines(capsys, str(dinner))
    assert [step["record"]["position"] for step in steps] == list(range(1, len(steps) + 1))
    alone = lines(capsys, str(dinner), "--session", DINNER)
    assert alone == [step for step in steps if step["record"]["session"] == DINNER]
    updates = [update["update"] for step in alone for update in step["updates"]]
    assert updates[:3] == ["RoundOpened", "EffortUpdated", "UtilityUpdated"]
    assert {"RoundClosed", "StageChanged", "StopAdvice", "SessionEnded", "ScorerDown"} <= {*updates}


def test_a_session_is_told_as_it_goes(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(dinner), "--session", "menu-1-two"]) == 0
    told = [re.sub(" +", " ", line).strip() for line in capsys.readouterr().out.splitlines()]
    wanted = [
        "▸ round 1 begins (initial)",
        "2 0:00 ann Plan [bold]five[/bold] dinners, please.",
        "9 0:09 bot submits the first version of the output (5 lines)",
        "▸ utility of round 1: 0.500",
        "▸ progress of round 1: 2/5",
        "▸ tolerance τ = 1 is used up in round 1 (rated 2)",
        "▸ round 1 ends: utility 0.500",
        "▸ round 2 begins (refinement)",
        "▸ mood@1 measures no more: ValueError: moody",
        "▸ the session is closed: finished",
    ]
    places = [next(place for place, line in enumerate(told) if line == start) for start in wanted]
    assert sorted(places[:8]) == places[:8]


def test_a_round_without_utility_says_why(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(dinner), "--session", "chat-7"]) == 0
    why = "not evaluated: no utility scorer ran"
    assert f"▸ round 1 ends: utility missing: {why}" in capsys.readouterr().out
    updates = [
        u for step in lines(capsys, str(dinner), "--session", "chat-7") for u in step["updates"]
    ]
    kinds = {update["update"] for update in updates if update.get("missing") == why}
    assert kinds == {"RoundOpened", "RoundClosed"}


def test_several_sessions_are_told_apart(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(dinner)]) == 0
    out = capsys.readouterr().out
    assert "menu-1-auto-cd34" in out
    assert "ann: Still there?" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("until", "version"), [("r1", 12), ("round 2", 15), ("v4", 4), ("9s", 9), ("0:09", 9)]
)
def test_it_stops_at_a_point(
    until: str, version: int, dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = lines(capsys, str(dinner), "--session", DINNER, "--until", until)
    assert [s["record"]["version"] for s in steps if s["record"]["stream"] == "trace"][
        -1
    ] == version


def test_a_speed_waits(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = lines(capsys, str(dinner), "--session", DINNER)
    assert lines(capsys, str(dinner), "--session", DINNER, "--speed", "5000") == quick


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("r3", Until(round=3)),
        ("3", Until(round=3)),
        ("Round 12", Until(round=12)),
        ("round:3", Until(round=3)),
        ("v57", Until(version=57)),
        ("version=57", Until(version=57)),
        ("90s", Until(seconds=90.0)),
        ("1.5s", Until(seconds=1.5)),
        ("1:30", Until(seconds=90.0)),
        ("1:00:01.5", Until(seconds=3601.5)),
        ("2026-03-01T12:00:00+00:00", Until(time=1_772_366_400.0)),
    ],
)
def test_points(text: str, point: Until) -> None:
    assert parse_until(text) == point


@pytest.mark.parametrize("text", ["", "r", "r0", "v-1", "tomorrow", "1:2", "r3x", "-5s"])
def test_no_points(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_until(text)


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """A log with a measurement that comes out otherwise when it is repeated."""
    path = tmp_path / "measured.db"
    feedback = FeedbackUtility().ref

    async def write(scorer: ScorerRef, value: float) -> None:
        person = Participant(name="ann", role="human")
        opened = SessionOpened(task="none such", instance="", participants=(person,), clock="utc")
        async with open_log(str(path)) as log:
            await log.append("s", [Draft(opened, "engine", "environment", 0.0)])
            await log.append("s", [Draft(FeedbackGiven(thumbs="up"), "ann", "human", 1.0)])
            scored = UtilityScored(scorer=scorer, round=1, value=value)
            draft = Draft(scored, "feedback", "scorer", 1.0, "feedback@1/feedback/2")
            await log.append("s", [draft], stream="feedback@1")

    anyio.run(write, feedback, 0.25)
    return path


def test_the_check_names_what_differs(measured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(measured), "--check"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("s: measurement feedback@1/")
    assert '"value":0.25' in out
    assert "1 session with 3 records: " in out
    assert "1 of 1 measurement measured again" in out
    assert err == ""
    assert main(["replay", str(measured), "--check", "--json"]) == 1
    [found] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found["remeasured"] == 1
    assert found["differences"][0]["what"].startswith("measurement feedback@1/")


def test_a_sound_log_has_no_difference(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(dinner), "--check", "--session", "chat"]) == 0
    out, err = capsys.readouterr()
    assert out == "1 session with 4 records: nothing differs; 0 of 0 measurements measured again\n"
    assert err == ""


def test_what_cannot_be_measured_again_is_said(
    dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If nothing else was measured, the check fails."""
    assert main(["replay", str(dinner), "--check"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("4 sessions with 39 records: nothing differs; 0 of 6 ")
    assert err == (
        "not measured again, since no such scorer is available: mood@1, taste@2, tolerance@1\n"
        "duolog: no measurement was checked: none of 6 can be made again here\n"
    )
    assert main(["replay", str(dinner), "--check", "--json"]) == 1


def test_a_log_without_anything_to_check_is_not_sound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "empty.db"

    async def create() -> None:
        async with open_log(str(path)):
            pass

    anyio.run(create)
    assert main(["replay", str(path), "--check"]) == 1
    _, err = capsys.readouterr()
    assert err == "duolog: nothing was checked: the log holds no session with contents\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--speed", "0"], "--speed expects a number above 0, or max, got '0'"),
        (["--speed", "fast"], "--speed expects a number above 0, or max, got 'fast'"),
        (["--speed", "inf"], "--speed expects a number above 0, or max, got 'inf'"),
        (["--until", "noon"], "--until 'noon' is not a point"),
        (["--until", "r0"], "a round to stop at is at least 1, not 0"),
        (["--session", "nobody"], "no session 'nobody'"),
        (["--check", "--until", "r1"], "--check cannot be combined"),
        (["--rounds", "three"], "--rounds expects handoff or human-turn, got 'three'"),
    ],
)
def test_bad_input_is_one_line(
    options: list[str], message: str, dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(dinner), *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"duolog: {message}")
    assert err.count("\n") == 1
