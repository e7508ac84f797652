"""Whose utility counts: one rule, and one number for a session, whichever door it is read through."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import duolog
import pytest
from duolog.cli import main
from duolog.engine.events import JSON
from duolog.engine.log.open import open_log
from duolog.engine.scorers.choice import last_utility
from duolog.scoring.live import score_sessions
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records

pytestmark = pytest.mark.usefixtures("plain")

Printed: TypeAlias = Any
"""JSON that a command printed."""

CHOOSE = "several scorers measured utility, and none is chosen (--utility): feedback, retention"


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def log(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A log of one session that two scorers measured: retention says 0.9, and feedback 0 after it."""
    script = RecordWriter("s")
    config: Mapping[str, JSON] = getattr(request, "param", {})
    script.opened(config=config)
    script.human("A letter, please.")
    draft = script.output("Dear all")
    script.scored(0.9, snapshot=draft, scorer="retention@2")
    script.scored(0.0, snapshot=draft, scorer="feedback@1")
    script.closed()
    place = tmp_path / "s.db"

    async def write() -> None:
        async with open_log(str(place)) as opened:
            await put_records(opened, script.records)

    anyio.run(write)
    return str(place)


def printed(capsys: pytest.CaptureFixture[str], *command: str) -> Printed:
    capsys.readouterr()
    assert main([*command, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def doors(capsys: pytest.CaptureFixture[str], log: str, *asked: str) -> list[object]:
    """The utility of the session and whose it is, as each command has it."""
    [listed] = printed(capsys, "sessions", log, *asked)
    shown = printed(capsys, "show", log, "s", *asked)
    report = printed(capsys, "report", log, "--bootstrap", "0", *asked)
    whose = [*report["scorers"], None][0]
    return [
        (listed["utility"], listed["scorer"]),
        (shown["rounds"][-1]["utility"], shown["scorer"]),
        (report["groups"][0]["utility"]["final"], whose),
    ]


def test_without_a_choice_there_is_no_number_and_the_candidates_are_named(
    log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doors(capsys, log) == [(None, None)] * 3
    report = printed(capsys, "report", log, "--bootstrap", "0")
    assert report["candidates"] == ["feedback", "retention"]
    assert report["groups"][0]["counts"]["undecided_sessions"] == 1
    assert report["groups"][0]["reasons"]["utility.overall"] == CHOOSE
    assert printed(capsys, "report", log, "--convention", "paper")["groups"][0]["counts"][
        "undecided_sessions"
    ]
    assert printed(capsys, "show", log, "s")["utility_missing"] == CHOOSE
    assert printed(capsys, "show", log, "s")["candidates"] == ["feedback", "retention"]
    assert main(["show", log, "s"]) == 0
    assert "utility by feedback or retention: choose by --utility" in capsys.readouterr().out
    assert printed(capsys, "sessions", log)[0]["utility_missing"] == CHOOSE
    assert printed(capsys, "sessions", log, "utility=0.5..") == []
    assert main(["report", log]) == 0
    text = capsys.readouterr().out
    assert "choose one with --utility (feedback, retention)" in " ".join(text.split())
    assert main(["sessions", log]) == 0
    assert "choose: feedback, retention" in capsys.readouterr().out


@pytest.mark.parametrize("scorer", ["retention", "retention@2"])
def test_the_scorer_that_is_asked_for_counts_at_every_door(
    log: str, scorer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doors(capsys, log, "--utility", scorer) == [(0.9, "retention@2")] * 3
    assert main(["sessions", log, "--utility", scorer]) == 0
    assert "utility by retention@2" in capsys.readouterr().out
    assert main(["show", log, "s", "--utility", scorer]) == 0
    assert "utility 0.900 by retention@2" in capsys.readouterr().out
    assert main(["report", log, "--utility", scorer]) == 0
    assert "Utility by retention@2." in capsys.readouterr().out


@pytest.mark.parametrize("log", [{"utility": "feedback"}], indirect=True)
def test_else_the_one_that_the_opening_names(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert doors(capsys, log) == [(0.0, "feedback@1")] * 3
    assert doors(capsys, log, "--utility", "retention") == [(0.9, "retention@2")] * 3


@pytest.mark.parametrize("command", ["sessions", "show", "report", "workbench", "replay", "watch"])
def test_an_unknown_scorer_is_refused_at_once(
    log: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    session = ["s"] if command == "show" else []
    assert main([command, log, *session, "--utility", "resolution"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "has no utility by 'resolution'; scorers there: feedback@1, retention@2" in said


def test_a_replay_goes_by_the_scorer_that_is_asked_for(
    log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def last(*asked: str) -> object:
        assert main(["replay", log, "--json", *asked]) == 0
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        updates = [update for one in lines for update in one["updates"]]
        values = [one["value"] for one in updates if one["update"] == "UtilityUpdated"]
        return values[-1] if values else None

    assert last("--utility", "retention") == 0.9
    assert last("--utility", "feedback") == 0.0
    assert main(["replay", log, "--check", "--utility", "retention"]) == 2
    assert "--check compares all measurements" in capsys.readouterr().err


@pytest.mark.parametrize("log", [{"utility": "travel"}], indirect=True)
def test_show_says_that_the_scorer_that_is_named_measured_nothing(
    log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", log, "s"]) == 0
    assert "no score of its output has a value" in capsys.readouterr().out
    found = printed(capsys, "show", log, "s")
    assert (found["scorer"], found["wanted"]) == (None, "travel")


def test_results_of_runs_go_by_the_same_rule() -> None:
    values = {"retention@1": 0.7, "retention@2": 0.9, "feedback@1": 0.0}
    assert last_utility(values, None) is None
    assert last_utility(values, "retention") == 0.9
    assert last_utility(values, "travel") is None
    assert last_utility({"retention@2": 0.9, "retention@1": 0.7}, None) == 0.9


async def test_a_log_can_name_the_scorer_for_all_sessions_that_are_opened_there() -> None:
    async with duolog.open("memory://", utility="retention") as log:
        for name, about in (("usual", {}), ("other", {"utility": "feedback"})):
            session = await log.session(name, task="letters", **about)  # type: ignore[arg-type]
            await session.human.says("A letter, please.")
            await session.agent.submits("Dear all")
            await session.close(durable=True)
        found = {one.session: one async for one in score_sessions(log)}
        opened = [
            record.event.config["utility"]  # type: ignore[union-attr]
            async for record in log.read_all()
            if record.kind == "SessionOpened"
        ]
    assert opened == ["retention", "feedback"]
    assert all(one.evaluated for one in found.values())


async def test_a_product_can_say_that_its_sessions_share_no_output() -> None:
    async with duolog.open("memory://") as log:
        for name, about in (("chat", {"output": None}), ("letter", {})):
            session = await log.session(name, **about)  # type: ignore[arg-type]
            await session.human.says("Hello?")
            await session.close(durable=True)
        found = {one.session: one.output async for one in score_sessions(log)}
    assert found == {"chat": False, "letter": True}
