"""``duolog sessions``: the list of a log's sessions, for people and for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import anyio
import pytest
from duolog.cli import main
from duolog.cli.arguments import FILTERS
from duolog.cli.commands import sessions
from duolog.engine.codec import digest
from duolog.engine.events import (
    JSON,
    CloseReason,
    ScorerRef,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from duolog.engine.log.open import open_log
from duolog.engine.log.stored import StoredLog
from duolog.engine.log.summary import FORGOTTEN
from duolog.engine.records import Draft
from duolog.scoring.index.query import KEYS, STATES
from duolog.testing.sessions import put_records
from rich.cells import cell_len, set_cell_size
from scripted_logs import script_of

pytestmark = pytest.mark.usefixtures("plain")

IDS = ["menu-1-two-stage-ab12", "menu-1-auto-cd34", "menu-2-two-stage-ef56", "chat-7"]


def test_each_session_is_a_line(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", str(dinner)]) == 0
    heading, columns, *lines = capsys.readouterr().out.splitlines()
    assert heading == "4 sessions: 2 finished, 1 failed, 1 open; utility by taste@2"
    assert columns.split() == "session task group state rounds utility reply opened lasted".split()
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


@pytest.fixture
def unscored(tmp_path: Path) -> str:
    """Sessions with a score, and without one for each reason there is."""
    path = str(tmp_path / "unscored.db")
    taste = ScorerRef(name="taste", version="2", config="")
    soup = SnapshotTaken(content="soup", digest=digest("soup"))

    async def make() -> None:
        async with open_log(path) as log:
            for name in ("scored", "no output", "failed", "unplaced", "chat", "erased"):
                config: dict[str, JSON] = {} if name == "chat" else {"utility": "taste"}
                opened = SessionOpened(
                    task="menu", instance="1", participants=(), clock="virtual", config=config
                )
                await log.append(name, [Draft(opened, "engine", "environment", 0.0)])
                if name in ("scored", "failed", "unplaced"):
                    await log.append(name, [Draft(soup, "bot", "agent", 1.0)])
                    score = UtilityScored(
                        scorer=taste,
                        snapshot=9 if name == "unplaced" else 2,
                        value=0.5 if name == "scored" else None,
                        missing=None if name == "scored" else "no taster",
                    )
                    draft = Draft(score, "taste", "scorer", 1.0)
                    await log.append(name, [draft], stream="taste@2")
            await log.forget("erased")

    anyio.run(make)
    return path


def test_json_of_many_sessions_is_written_in_few_pieces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, many = tmp_path / "many.db", 300

    async def write() -> None:
        opened = SessionOpened(task="t", instance="i", participants=(), clock="utc")
        async with open_log(f"sqlite:///{path}") as log, anyio.create_task_group() as tasks:
            for number in range(many):
                draft = Draft(opened, "engine", "environment", 0.0)
                tasks.start_soon(log.append, f"s{number}", [draft])

    anyio.run(write)
    pieces: list[str] = []
    monkeypatch.setattr(sessions, "print_text", pieces.append)
    monkeypatch.setattr(sessions, "_AT_ONCE", 1 << 14)
    assert main(["sessions", str(path), "--json"]) == 0
    listed = json.loads("".join(pieces))
    assert len({line["session"] for line in listed}) == many
    assert 1 < len(pieces) < 10


def test_where_utility_is_missing_the_list_says_why(
    unscored: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", unscored]) == 0
    cells = [re.split("  +", line) for line in capsys.readouterr().out.splitlines()[2:]]
    assert {row[0]: row[-2] for row in cells} == {
        "scored": "0.500",
        "no output": "0.000",
        "failed": "score missing",
        "unplaced": "score missing",
        "chat": "not evaluated",
        "erased": "erased",
    }
    assert main(["sessions", unscored, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["utility"], one["utility_missing"]) for one in found] == [
        (0.5, None),
        (0.0, None),
        (None, "no score of its output has a value"),
        (None, "no score of its output has a value"),
        (None, "not evaluated: no utility scorer ran"),
        (None, "erased: what was measured is gone"),
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["state=failed,open"], IDS[2:]),
        (["--state", "failed,open"], IDS[2:]),
        (["--state", "failed,open", "state=failed"], IDS[2:3]),
        (["agent=two-stage"], IDS[:1]),
        (["agent!=two-stage", "menu"], IDS[1:3]),
        (["utility=0.4..0.6"], IDS[:1]),
        (["tau=1"], IDS[:1]),
        (["tau=none", "state=failed"], IDS[2:3]),
        (["--sort", "-session"], [IDS[2], IDS[0], IDS[1], IDS[3]]),
        (["--sort", "-utility", "--limit", "1"], IDS[:1]),
        (["--sort", "agent", "--limit", "2"], [IDS[1], IDS[0]]),
        (["--limit", "2"], IDS[:2]),
        (["state=finished", "--limit", "1"], IDS[:1]),
        (["state=stalled"], []),
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
    assert main(["sessions", str(dinner), "state=stalled"]) == 0
    assert capsys.readouterr() == ("", f"no session of {dinner} meets state=stalled\n")


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
    assert main(["sessions", str(dinner), "state=open,finished,failed"]) == 0
    out = capsys.readouterr().out
    assert "\x1b[36m" in out  # open sessions are highlighted
    assert "  two-sta…  finished" in out
    assert IDS[0] in out


def test_the_help_names_all_states_and_keys() -> None:
    assert {"open", *get_args(CloseReason), FORGOTTEN} == {*STATES}
    words = set(re.findall(r"[a-z]+", FILTERS))
    assert words >= {*STATES, *KEYS}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["agnet=auto"], "unknown label or property 'agnet'; did you mean 'agent'?"),
        (["state=finnished"], "unknown state 'finnished'; did you mean 'finished'?"),
        (
            ["utility=high"],
            "utility expects a number, a range such as 0.5..0.8, or none, got 'high'",
        ),
        (["--sort", "utilty"], "cannot be sorted by 'utilty'; did you mean 'utility'?"),
    ],
)
def test_what_makes_no_sense_is_refused(
    options: list[str], complaint: str, dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", str(dinner), *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err


def test_a_label_value_that_never_occurs_is_named_with_the_nearest(
    dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", str(dinner), "agent=two-stag"]) == 0
    assert "agent is never 'two-stag'; did you mean 'two-stage'?" in capsys.readouterr().err


def test_tolerances_that_are_used_up_are_listed(
    dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sessions", str(dinner), "tau"]) == 0
    assert " stop " in capsys.readouterr().out
    assert main(["sessions", str(dinner), "tau", "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert found["stops"].keys() == {"1"}


def test_no_line_is_wider_than_the_terminal_and_no_two_names_are_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.db"
    names = [f"travel-planning-{n:04}-one-stage-proactive-rules" for n in range(40)]
    names += ["漢字の会話" * 30, "漢字の会話" * 30 + "!", "a  b", "a b", "long " * 100]

    async def make() -> None:
        async with open_log(str(path)) as log:
            for name in names:
                await put_records(log, script_of(["human"], name).records)

    anyio.run(make)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    for columns in (40, 80, 120, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(["sessions", str(path)]) == 0
        _, head, *lines = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).splitlines()
        assert max(map(cell_len, lines)) <= columns
        width = head.index("state")
        shown = {set_cell_size(line, width - 2) for line in lines}
        assert len(shown) == len(lines) == len(names)


def test_what_is_piped_is_not_shortened(
    dinner: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["sessions", str(dinner)]) == 0
    assert "two-stage, proactive  finished" in capsys.readouterr().out


async def _scored(path: str, values: Sequence[float | None]) -> None:
    scorer = ScorerRef(name="taste", version="2", config="")
    async with open_log(path) as log:
        for number, value in enumerate(values):
            opened = SessionOpened(
                task="menu",
                instance=str(number),
                participants=(),
                clock="virtual",
                config={"utility": "taste"},
            )
            plan = SnapshotTaken(content="soup", digest=digest("soup"))
            drafts = [Draft(opened, "engine", "environment", 0.0), Draft(plan, "bot", "agent", 1.0)]
            await log.append(f"s{number}", drafts)
            if value is not None:
                score = UtilityScored(scorer=scorer, value=value, snapshot=2)
                draft = Draft(score, "taste", "scorer", 1.0)
                await log.append(f"s{number}", [draft], stream="taste@2")


def test_the_best_sessions_are_read_and_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "log.db")
    anyio.run(_scored, path, [0.5, None, 0.9, 0.5, 0.1, 0.9])

    def listed(*options: str) -> list[str]:
        assert main(["sessions", path, "--json", *options]) == 0
        return [one["session"] for one in json.loads(capsys.readouterr().out)]

    whole = {key: listed("--sort", key) for key in ("utility", "-utility")}
    assert whole["-utility"] == ["s2", "s5", "s0", "s3", "s4", "s1"]
    assert whole["utility"] == ["s4", "s0", "s3", "s2", "s5", "s1"]

    def refuse(self: object) -> None:
        raise AssertionError("all sessions are read")

    monkeypatch.setattr(StoredLog, "sessions", refuse)
    for key, order in whole.items():
        for limit in (1, 3, 9):
            assert listed("--sort", key, "--limit", str(limit)) == order[:limit]


def test_a_terminal_shows_a_screen_of_sessions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "log.db")
    anyio.run(_scored, path, [0.5] * 12)
    assert main(["sessions", path]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 14
    monkeypatch.setenv("LINES", "8")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["sessions", path]) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 12
    assert shown.err == "there are more: --limit 100 shows more of them, and a pipe, | less, all\n"
    assert main(["sessions", path, "--limit", "12"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 14
