"""``duolog sessions``: the list of a log's sessions, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import anyio
import pytest
from duolog.cli import main
from duolog.cli.commands.sessions import STATES
from duolog.engine.events import CloseReason
from duolog.engine.log.open import open_log
from duolog.engine.log.summary import FORGOTTEN

pytestmark = pytest.mark.usefixtures("plain")

IDS = ["menu-1-two-stage-ab12", "menu-1-auto-cd34", "menu-2-two-stage-ef56", "chat-7"]


def test_each_session_is_a_line(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", str(dinner)]) == 0
    heading, columns, *lines = capsys.readouterr().out.splitlines()
    assert heading == "4 sessions: 2 finished, 1 failed, 1 open"
    assert columns.split() == "session task group state rounds utility opened lasted".split()
    assert [line.split()[0] for line in lines] == IDS
    assert lines[0].split("  ")[1:4] == ["menu", "two-stage, proactive", "finished"]
    assert lines[0].split()[-2:] == ["–", "0:31"]
    assert lines[3].split()[-4:] == ["2026-03-01", "12:00:00", "1d", "1:00:00"]


def test_json_is_one_array_of_summaries(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", str(dinner), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["session"] for one in found] == IDS
    assert found[0]["group"] == {"agent": "two-stage", "user": "proactive"}
    assert (found[0]["state"], found[0]["rounds"], found[0]["utility"]) == ("finished", 4, 0.5)
    assert (found[0]["opened"], found[0]["last"], found[0]["task"]) == (0.0, 31.0, "menu")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--state", "failed,open"], IDS[2:]),
        (["--limit", "2"], IDS[:2]),
        (["--state", "finished", "--limit", "1"], IDS[:1]),
        (["--state", "stalled"], []),
    ],
)
def test_a_choice(
    options: list[str], expected: list[str], dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", str(dinner), "--json", *options]) == 0
    assert [one["session"] for one in json.loads(capsys.readouterr().out)] == expected


def test_no_session_is_said_on_the_standard_error(
    dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", str(dinner), "--state", "stalled"]) == 0
    assert capsys.readouterr() == ("", "no such sessions\n")


def test_an_empty_log_has_no_sessions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.db"

    async def make() -> None:
        async with open_log(str(path)):
            pass

    anyio.run(make)
    assert main(["sessions", str(path), "--json"]) == 0
    assert capsys.readouterr().out == "[]\n"


def test_a_narrow_terminal_shortens_the_group(
    dinner: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "88")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["sessions", str(dinner), "--state", "open,finished,failed"]) == 0
    out = capsys.readouterr().out
    assert "\x1b[36m" in out  # what is open stands out
    assert "  two-sta…  finished" in out
    assert IDS[0] in out


def test_the_states_are_those_of_the_engine() -> None:
    assert {*STATES} == {"open", *get_args(CloseReason), FORGOTTEN}
