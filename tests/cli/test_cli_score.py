"""``duolog score``: what it adds to a log and prints, how it resumes, and how it keeps a budget."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from duolog.cli import main
from duolog.engine.events import ModelCalled
from duolog.engine.log.open import open_log
from foreign_logs import write_lines
from openai_server import Answer, Body, OpenAIServer

pytestmark = [pytest.mark.usefixtures("plain"), pytest.mark.slow]

AT = " (own_scorers.py, line 8, in fails)"

Json = dict[str, Any]
Capture = pytest.CaptureFixture[str]

MODEL = "openai/gpt-4o-mini"
OWN = """
from duolog import InvalidInput, Score, SnapshotUtility

def half(snapshot, opened):
    return Score(0.5)

def fails(snapshot, opened):
    raise ValueError("not today")

half_of_it = SnapshotUtility("half", "1", half)

def made():
    return SnapshotUtility("made", "1", half)

def picky(setting):
    if setting.opened.task != "menu":
        raise InvalidInput("only menus")
    return SnapshotUtility("picky", setting.rounds, half)

class Failing:
    def __new__(cls):
        return SnapshotUtility("failing", "1", fails)

nothing = 3

def wrong():
    return object()
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own_scorers.py"
    path.write_text(OWN, encoding="utf-8")
    return path


@pytest.fixture
def menus(dinner: Path, tmp_path: Path) -> Path:
    """A private copy of the log with everything in it."""
    return Path(shutil.copy(dinner, tmp_path / "menus.db"))


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    """A log of three chats, imported, of two rounds with an agent's answer each."""
    lines = [
        {
            "messages": [
                {"role": "user", "content": f"Where is it, {number}?"},
                {"role": "assistant", "content": "There."},
                {"role": "user", "content": "No, that is wrong."},
                {"role": "assistant", "content": "Here, then."},
                {"role": "user", "content": "Thanks!"},
            ]
        }
        for number in range(3)
    ]
    log = tmp_path / "chats.db"
    assert main(["import", str(write_lines(tmp_path / "c.jsonl", lines)), "--log", str(log)]) == 0
    return log


def score(capsys: Capture, log: Path, *more: str, code: int = 0) -> tuple[Json, str]:
    """Runs the command with --json; returns its output, and its messages."""
    capsys.readouterr()
    assert main(["score", str(log), *more, "--json"]) == code
    out, err = capsys.readouterr()
    found: Json = json.loads(out)
    return found, err


def refused(capsys: Capture, log: Path, *more: str) -> str:
    capsys.readouterr()
    assert main(["score", str(log), *more]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err.removeprefix("duolog: ").strip()


# --- what it adds ---------------------------------------------------------------------------------


def test_it_measures_once_and_says_what_it_did(menus: Path, capsys: Capture) -> None:
    first, _ = score(capsys, menus, "--scorers", "rule-judge,retention")
    counts = {one["scorer"]: one for one in first["scorers"]}
    assert counts["rule-judge@2"]["added"] > 0
    assert counts["retention@3"]["added"] > 0
    assert first["added"] == sum(one["added"] for one in first["scorers"])
    again, _ = score(capsys, menus, "--scorers", "rule-judge,retention")
    assert again["added"] == 0
    assert {one["scorer"]: one["known"] for one in again["scorers"]} == {
        name: one["added"] for name, one in counts.items()
    }


def test_it_says_so_to_a_person_too(chats: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["score", str(chats), "--scorers", "rule-judge"]) == 0
    first = capsys.readouterr().out
    assert main(["score", str(chats), "--scorers", "rule-judge"]) == 0
    again = capsys.readouterr().out
    assert first.startswith("rule-judge@2: 6 measurements added")
    assert again.startswith("rule-judge@2: 0 measurements added, 6 there already")
    assert first.endswith("; 3 sessions\n")


def test_it_says_where_there_is_nothing_to_measure(chats: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["score", str(chats), "--scorers", "retention"]) == 0
    assert capsys.readouterr().out == (
        "retention@3: 0 measurements added; 3 sessions. They hold nothing that it measures: "
        "docs/scorers.md says what it needs\n"
    )


def test_what_it_adds_counts_in_the_report(chats: Path, capsys: Capture) -> None:
    score(capsys, chats, "--scorers", "rule-judge")
    assert main(["report", str(chats), "--json"]) == 0
    [group] = json.loads(capsys.readouterr().out)["groups"]
    assert group["counts"]["unrated_sessions"] == 0


def test_a_plain_chat_has_a_utility_by_the_words_of_its_human(chats: Path, capsys: Capture) -> None:
    scored, _ = score(capsys, chats, "--scorers", "resolution")
    assert scored["added"] == 6
    assert main(["report", str(chats), "--json"]) == 0
    [group] = json.loads(capsys.readouterr().out)["groups"]
    assert group["utility"]["final"] == 1.0


def test_what_was_erased_is_not_scored(menus: Path, capsys: Capture) -> None:
    assert main(["forget", str(menus), "chat-7", "--yes"]) == 0
    found, _ = score(capsys, menus, "--scorers", "retention")
    assert (found["sessions"], found["forgotten"]) == (4, 1)
    assert found["scorers"][0]["sessions"] == 3


def test_only_some_sessions(menus: Path, own: Path, capsys: Capture) -> None:
    found, _ = score(capsys, menus, "--scorers", f"{own}:made", "--session", "menu-1-two")
    assert (found["sessions"], found["scorers"][0]["sessions"]) == (1, 1)


# --- your own scorers -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["half_of_it", "made"])
def test_a_scorer_out_of_a_file(name: str, menus: Path, own: Path, capsys: Capture) -> None:
    found, _ = score(capsys, menus, "--scorers", f"{own}:{name}")
    assert found["added"] > 0


def test_a_scorer_that_is_for_some_sessions_only(
    menus: Path, chats: Path, own: Path, capsys: Capture
) -> None:
    found, _ = score(capsys, menus, "--scorers", f"{own}:picky", "--rounds", "human-turn")
    assert {one["scorer"] for one in found["scorers"]} == {"picky@human-turn"}
    assert "picky scored nothing: only menus" in refused(capsys, chats, "--scorers", f"{own}:picky")


def test_a_scorer_that_fails_is_said(menus: Path, own: Path, capsys: Capture) -> None:
    for added in (True, False):  # and it stays so
        found, _ = score(capsys, menus, "--scorers", f"{own}:Failing", code=1)
        [one] = found["scorers"]
        assert (one["error"], bool(one["added"])) == (f"ValueError: not today{AT}", added)
        assert one["failed"] > 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{own}:nobody", "has no 'nobody'"),
        ("{own}:nothing", "neither a scorer nor a function that makes one"),
        ("{own}:wrong", "is not a scorer"),
        ("{own}.py:x", "No such file"),
        (
            "nope",
            "unknown scorer 'nope'; choose from chat-rubric, data, feedback, finance, labels-judge,",
        ),
        ("travel", "travel scored nothing: a session of the task"),
    ],
)
def test_what_is_no_scorer_is_refused(
    name: str, message: str, chats: Path, own: Path, capsys: Capture
) -> None:
    assert message in refused(capsys, chats, "--scorers", name.format(own=own))


def test_a_file_that_breaks_is_refused(chats: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "broken_scorers.py"
    path.write_text("1 / 0\n", encoding="utf-8")
    assert "ZeroDivisionError" in refused(capsys, chats, "--scorers", f"{path}:x")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--scorers", "rubric"], "--scorers rubric asks a model: name it with --judge"),
        (["--scorers", "retention", "--rubric", "x"], "--rubric is for --scorers rubric"),
        (["--scorers", "retention", "--session", "nobody"], "no session 'nobody'"),
    ],
)
def test_options_that_do_not_fit(
    options: list[str], message: str, chats: Path, capsys: Capture
) -> None:
    assert refused(capsys, chats, *options).startswith(message)


def test_chats_without_an_output_have_a_default_and_outputs_have_none(
    chats: Path, menus: Path, capsys: Capture
) -> None:
    assert main(["score", str(chats)]) == 0
    out, err = capsys.readouterr()
    assert "resolution@" in out + err
    assert "scoring by resolution" in err
    assert refused(capsys, menus).startswith(
        "say what to score by: --scorers SCORERS, or --judge-model MODEL"
    )


def test_a_log_that_cannot_be_written_is_a_line(chats: Path, capsys: Capture) -> None:
    with closing(sqlite3.connect(chats)) as connection:
        connection.execute("PRAGMA user_version = 99")  # of a newer Duolog
    said = refused(capsys, chats, "--scorers", "rule-judge", "--concurrency", "1000000000000")
    assert "it can be read, and not written" in said


# --- judges ---------------------------------------------------------------------------------------


def judge(body: Body) -> Answer:
    """Rates whatever it is asked about, at a price."""
    criteria = "clear: <1 to 5>" in str(body["messages"])
    text = "clear: 4" if criteria else "4\nIt helped."
    return Answer(text=text, prompt_tokens=100, completion_tokens=10)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, litellm_at_work: None) -> Iterator[OpenAIServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with OpenAIServer(answer=judge).running() as server:
        yield server


def calls(path: Path) -> int:
    async def count() -> int:
        async with open_log(str(path), create=False) as log:
            return sum([isinstance(r.event, ModelCalled) async for r in log.read_all()])

    return anyio.run(count)


@pytest.mark.slow
def test_a_model_judges_and_is_asked_once(
    server: OpenAIServer, chats: Path, capsys: Capture
) -> None:
    options = ["--judge-model", MODEL, "--api-base", server.url]
    found, err = score(capsys, chats, *options)
    [one] = found["scorers"]
    assert one["scorer"].startswith("model-judge@1-")
    assert (one["sessions"], one["failed"]) == (3, 0)
    assert one["added"] - one["missing"] == len(server.requests) == calls(chats) > 0
    assert "models:" in err
    asked = len(server.requests)
    again, _ = score(capsys, chats, *options)
    assert (again["added"], len(server.requests)) == (0, asked)


@pytest.mark.slow
def test_a_budget_ends_it_and_a_larger_one_goes_on(
    server: OpenAIServer, chats: Path, capsys: Capture
) -> None:
    options = ["--judge-model", MODEL, "--api-base", server.url, "--concurrency", "1"]
    found, err = score(capsys, chats, *options, "--budget-tokens", "150", code=3)
    assert "the budget" in found["why"]
    assert found["unfinished"] > 0
    assert "the same command continues from here" in err
    few = len(server.requests)
    found, _ = score(capsys, chats, *options, "--budget-tokens", "150", code=3)
    assert len(server.requests) == few  # earlier use counts
    found, _ = score(capsys, chats, *options, "--budget-tokens", "100000")
    assert found["unfinished"] == 0
    assert calls(chats) == len(server.requests)


@pytest.mark.slow
def test_a_rubric(server: OpenAIServer, menus: Path, tmp_path: Path, capsys: Capture) -> None:
    rubric = tmp_path / "rubric.toml"
    rubric.write_text(
        '[[criterion]]\nname = "clear"\ndescription = "Is it clear?"\n', encoding="utf-8"
    )
    options = ["--scorers", "rubric", "--judge-model", MODEL, "--api-base", server.url]
    found, _ = score(capsys, menus, *options, "--rubric", str(rubric))
    [one] = found["scorers"]
    assert one["scorer"].startswith("rubric@")
    assert one["added"] > one["missing"]
    rubric.write_text("criterion = []\n", encoding="utf-8")
    assert "it lacks a criterion" in refused(capsys, menus, *options, "--rubric", str(rubric))
