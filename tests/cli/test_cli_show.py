"""``duolog show``: a session as a conversation by rounds, and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from duolog.cli import main
from duolog.cli.text.records import RecordFormatter
from duolog.engine.events import ApprovalAsked, CloseReason
from duolog.testing.records import RecordWriter

pytestmark = pytest.mark.usefixtures("plain")

DINNER = "menu-1-two-stage-ab12"


@pytest.fixture
def shown(dinner: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["show", str(dinner), DINNER]) == 0
    return capsys.readouterr().out


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["show", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_every_close_reason_is_worded_in_its_own_way() -> None:
    worded = set()
    for reason in get_args(CloseReason):
        shown = RecordFormatter().format(RecordWriter().closed(reason))
        assert shown is not None
        worded.add(shown.text.plain)
    assert len(worded) == len(get_args(CloseReason))


def test_it_begins_with_who_met_and_how_it_ended(shown: str) -> None:
    assert shown.splitlines()[:7] == [
        DINNER,
        "task menu, instance 1, seed 7, virtual clock",
        "ann (human, rules, persona proactive)",
        "bot (agent, two-stage, model gpt-x)",
        "finished after 4 rounds and 0:31, utility 0.500 by taste@2; tolerance used up: τ = 1 after round 1",
        "process: 3 initiatives of the agent, 1 of the human (entropy 0.81); 1 confirmation asked; 0",
        "approvals given, 1 denied; 0 halts; 0 interruptions; at most 17 words to read at once; 1 inquiry",
    ]


def test_each_round_has_a_heading_with_what_it_came_to(shown: str) -> None:
    headings = [line for line in shown.splitlines() if line.startswith("── ")]
    assert [re.sub(" ─+ ", " / ", line[3:]) for line in headings] == [
        "Round 1 · initial / utility 0.500 +0.500  progress 2/5",
        "Round 2 · refinement / utility 0.500 (stale)  progress –",
        "Round 3 · refinement / utility 0.500  progress –",
        "Round 4 · refinement / utility 0.500  progress –",
    ]
    assert {len(line) for line in headings} == {100}
    assert "effort by its end: 4 rounds led, 4 acts, 14 tokens written" in shown


@pytest.mark.parametrize(
    "line",
    [
        " 2  0:00  ann  Plan [bold]five[/bold] dinners, please.",
        " 3             bot calls gpt-x to act: 120 + 8 tokens",
        " 4  0:02  bot  Search(what=dinners)",
        " 5  0:02  bot  notes: she likes soup",
        " 6             → Search 4: 2 rows (1.5 s)",
        " 7  0:04  bot  Fry(oil=2) → failed: no oil",
        "10  0:10  bot  A first menu.",
        "               What do you dislike?  (waits)",
        "               taste scores draft 1: 0.500 (salt 0.25)",
        "12             ann rates round 1: 2/5: Too much pasta.",
        "14  0:15  bot  Is it for five days?  (before seeing 13)",
        "17             ✗ ann's submission 16 was refused: the output has changed",
        "18  0:22  bot  asks for approval: May I order? order()",
        "19  0:25  ann  denies 18: too dear",
        "20             engine nudges bot: everybody is waiting",
        "               taste scores draft 2: missing: no taster",
        "               ✗ mood@1 fails: ValueError: moody",
        "               mood finds a fault of the simulated user in 13: invented a dish",
        "               tolerance advises to stop after round 1 (τ = 1): 1 round in a row",
        "21  0:25  bot  (DishBroken, schema 3: not known to this version of Duolog)",
        "22  0:30  ann  ■ ends the session: full",
        "23  0:31  ann  feedback: thumbs up, 80% of the edits kept: tasty",
    ],
)
def test_it_tells(line: str, shown: str) -> None:
    assert line in shown.splitlines()


def test_the_first_output_is_shown_whole_and_the_next_as_a_change(shown: str) -> None:
    lines = [line.strip() for line in shown.splitlines()]
    first = lines.index("9  0:09  bot  submits the first version of the output (5 lines)")
    assert lines[first + 1 : first + 6] == [
        "│ Monday: soup",
        "│ Tuesday: pasta",
        "│ Wednesday: curry",
        "│ Thursday: rice",
        "│ Friday: fish",
    ]
    revised = lines.index("15  0:20  bot  revises the output (+1 −1 lines)")
    assert lines[revised + 1 : revised + 6] == [
        "│   Monday: soup",
        "│ - Tuesday: pasta",
        "│ + Tuesday: dumplings",
        "│   Wednesday: curry",
        "",
    ]


def test_edits_of_files_are_shown_by_path() -> None:
    log = RecordWriter()
    log.opened()
    formatter = RecordFormatter()
    records = [
        log.files({"a.py": "one\ntwo\n", "b.py": "x\n"}),
        log.files({"a.py": "one\nTWO\n"}),
        log.files({"b.py": "y\n"}, shown={"b.py": "@@ -1 +1 @@\n-x\n+y"}, by="human"),
        log.files({"b.py": "y\n"}),
        log.files({"a.py": None}),
    ]
    shown = [formatter.format(record) for record in records]
    texts = [[one.text.plain, *(line.plain for line in one.block)] for one in shown if one]
    assert texts == [
        ["writes 2 files: a.py, b.py (3 lines)", "… a.py", "+ one", "+ two", "… b.py", "+ x"],
        ["edits a.py (+1 −1 lines)", "  one", "- two", "+ TWO"],
        ["edits b.py (+1 −1 lines)", "- x", "+ y"],
        ["leaves the files as they are"],
        ["removes a.py (−2 lines)", "- one", "- TWO"],
    ]


def test_an_edited_file_is_shown_by_its_path_and_what_changed() -> None:
    log = RecordWriter()
    log.opened()
    edits = [
        {"path": "a.py", "text": "one\ntwo\n", "diff": "@@ -0,0 +1,2 @@\n+one\n+two"},
        {"path": "b.py", "text": "x\n", "diff": ""},
        {"path": "a.py", "text": "one\nTWO\n", "diff": "--- a.py\n@@ -2 +2 @@\n-two\n+TWO"},
        {"path": "b.py", "text": "x\n", "diff": ""},
    ]
    formatter = RecordFormatter()
    shown = [formatter.format(log.output(edit)) for edit in edits]
    texts = [[one.text.plain, *(line.plain for line in one.block)] for one in shown if one]
    assert texts == [
        ["writes a.py (2 lines)", "+ one", "+ two"],
        ["writes b.py (1 line)", "+ x"],
        ["edits a.py (+1 −1 lines)", "…", "- two", "+ TWO"],
        ["leaves b.py as it is"],
    ]


def test_what_is_asked_about_stands_below_a_question_of_several_lines() -> None:
    asked = ApprovalAsked(question="The plan:\n1. Look", action="Go", arguments={"to": "x"})
    shown = RecordFormatter().format(RecordWriter().agent(asked))
    assert shown is not None
    assert shown.text.plain == "asks for approval: The plan:\n1. Look\nGo(to=x)"


def test_what_nobody_knows_of_a_session_is_not_shown_as_a_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chat = tmp_path / "chat.json"
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi."}]
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    chat.write_text(json.dumps({"id": "c", "messages": said, "usage": usage}), encoding="utf-8")
    log = tmp_path / "log.db"
    assert main(["import", str(chat), "--log", str(log)]) == 0
    assert main(["show", str(log), "c"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "open after 1 round, utility not evaluated: no utility scorer ran" in lines
    assert "2  user       Hi" in lines
    assert "4             assistant calls a model to act (all calls): 3 + 2 tokens" in lines
    assert main(["sessions", str(log)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("  not evaluated       –")


def test_full_leaves_nothing_out(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(dinner), DINNER, "--full"]) == 0
    out = capsys.readouterr().out
    assert '│ "columns": [' in " ".join(out.split())
    assert "│ Monday: toast" in out


@pytest.mark.parametrize("width", [40, 80, 140])
def test_it_fits_the_terminal(
    width: int,
    dinner: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["show", str(dinner), DINNER, "--full"]) == 0
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= width


def test_colours_change_no_word(
    shown: str,
    dinner: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert main(["show", str(dinner), DINNER]) == 0
    coloured = capsys.readouterr().out
    assert (
        "\x1b[1;36mann\x1b[0m  No pasta.\n" in coloured
    )  # the name is highlighted, the text is plain
    assert "\x1b[31m- Tuesday: pasta\x1b[0m\n" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == shown


def test_a_real_clock_is_shown_as_local_time_and_nothing_reaches_the_terminal(
    dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(dinner), "chat"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "task chat, utc clock, opened 2026-03-01 12:00:00" in lines
    assert "2  12:00:01  ann  Hello ␛[31m\ufffdevil" in lines
    assert "3  12:01:00  bot  (to ann) Good day." in lines
    assert lines[-3:] == ["2026-03-02", "4  13:00:00  ann  Still there?", ""]
    mentions = [line for line in lines if "utility" in line]
    assert len(mentions) == 1  # none was measured, and that is said once
    assert mentions[0].endswith("utility not evaluated: no utility scorer ran")
    assert main(["show", str(dinner), "chat-7", "--json"]) == 0
    missing = json.loads(capsys.readouterr().out)["utility_missing"]
    assert missing == "not evaluated: no utility scorer ran"


def test_a_session_that_failed(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(dinner), "menu-2"]) == 0
    out = capsys.readouterr().out
    assert "✗ fails: RuntimeError: out of gas" in out
    assert "■ closes the session after a failure: out of gas" in out


def test_a_request_that_nobody_said(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(dinner), "menu-1-auto"]) == 0
    assert "request: Plan five dinners." in capsys.readouterr().out.splitlines()


def test_json_has_every_round_with_its_records(
    dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(capsys, str(dinner), DINNER)
    assert (found["session"], found["convention"], found["state"]) == (
        DINNER,
        "handoff",
        "finished",
    )
    assert found["group"]["model"] == "gpt-x"
    first, second, *_ = found["rounds"]
    assert [part["round"] for part in found["rounds"]] == [1, 2, 3, 4]
    assert (first["stage"], first["updated"], first["utility"]) == ("initial", True, 0.5)
    assert (first["rating"], first["stale"], second["stale"]) == (2, False, True)
    assert first["last_update"].startswith("Monday: soup\nTuesday: pasta\n")
    assert second["last_update"].startswith("Monday: soup\nTuesday: dumplings\n")
    assert found["rounds"][2]["last_update"] is None
    assert first["effort"]["rounds"] == 1
    records = [record for part in found["rounds"] for record in part["records"]]
    assert [record["position"] for record in records] == list(range(1, len(records) + 1))
    said = next(record for record in records if record["kind"] == "MessageSent")
    assert said["body"]["text"] == "Plan [bold]five[/bold] dinners, please."
    assert (said["actor"], said["role"], said["version"], said["time"]) == ("ann", "human", 2, 0.0)
    unknown = next(record for record in records if record["kind"] == "DishBroken")
    assert unknown["body"] == {"kind": "DishBroken", "n": 1}


def test_process_measures_of_a_session(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process = as_json(capsys, str(dinner), DINNER)["process"]
    assert process["initiatives"] == {"ann": 1, "bot": 3}
    assert process["confirmations_answered"] == 1
    alone = as_json(capsys, str(dinner), "menu-1-auto-cd34")["process"]
    assert alone["interruptions"] is None
    assert main(["show", str(dinner), "menu-1-auto-cd34"]) == 0
    assert "process:" not in capsys.readouterr().out


def test_rounds_by_human_turn(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handoff = as_json(capsys, str(dinner), DINNER)
    turns = as_json(capsys, str(dinner), DINNER, "--rounds", "human-turn")
    assert len(handoff["rounds"]) == 4  # the refused edit of the human's opens one
    assert len(turns["rounds"]) == 3  # and not by this way of counting
    assert turns["convention"] == "human-turn"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("menu", "'menu' matches 3 sessions, such as menu-1-two-stage-ab12, "),
        ("two-stage", "no session 'two-stage' in {log}; did you mean menu-1-two-stage-ab"),
        ("menu-9", "no session 'menu-9' in {log}; did you mean menu-"),
        ("zzzzzz", "no session 'zzzzzz' in {log}; duolog sessions lists all 4"),
        ("", "'' matches 4 sessions"),
    ],
)
def test_a_session_that_is_not_there(
    name: str, message: str, dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", str(dinner), name]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"duolog: {message.format(log=dinner)}")
    assert err.count("\n") == 1
