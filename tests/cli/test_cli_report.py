"""``duolog report``: from logs and files of trajectories to the table, in every form."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from duolog.cli import main, reporting
from duolog.cli.commands.report import print_report
from duolog.engine.log.open import open_log
from duolog.engine.log.stored import StoredLog
from duolog.scoring.columns import log as columns_log

pytestmark = pytest.mark.usefixtures("plain")

LINES = """\
{"session": "s1", "group": {"agent": "a"}, "rounds": [{"utility": 0.5, "rating": 4}, {"utility": 0.75, "rating": 2}], "tokens": {"agent": 30, "human": 10}}
{"session": "s2", "group": {"agent": "a"}, "rounds": [{"utility": 0.25, "rating": 2}, {"utility": 0.75, "rating": 4}], "tokens": {"agent": 10, "human": 10}}
{"session": "s3", "group": {"agent": "auto"}, "rounds": [], "final": 0.5, "baseline": true}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "two.jsonl"
    path.write_text(LINES, encoding="utf-8")
    return str(path)


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["report", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_file_of_trajectories(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, file, "--tau", "1,5")
    assert found["convention"] == "formal"
    collaborating, baseline = found["groups"]
    assert collaborating["group"] == {"agent": "a"}
    assert collaborating["utility"] == {"first": 0.375, "final": 0.75, "overall": 0.75}
    assert collaborating["gain"] == {"abs": 0.375, "rel": 1.0}
    assert collaborating["drop"]["1"]["abs"] == -0.25  # s2 stops at 0.25 instead of 0.75
    assert collaborating["drop"]["5"]["abs"] == 0.0
    assert baseline["baseline"] is True
    assert baseline["utility"] == {"first": None, "final": 0.5, "overall": None}


def test_a_log_is_scored_in_one_pass(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, str(dinner), "--group-by", "agent")
    groups = {group["group"]["agent"]: group for group in found["groups"]}
    assert {name: group["sessions"] for name, group in groups.items()} == {
        "two-stage": 1,
        "bot": 1,
        "auto": 2,  # one of them failed
    }
    assert groups["two-stage"]["utility"]["overall"] == 0.5


def test_process_measures_come_from_logs(
    dinner: Path, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(capsys, str(dinner), "--group-by", "agent")
    groups = {group["group"]["agent"]: group["process"] for group in found["groups"]}
    two = groups["two-stage"]
    assert (two["human_initiatives"], two["agent_initiatives"]) == (1, 3)
    assert (two["confirmations_asked"], two["confirmations_answered"]) == (1, 1)
    assert (two["approved"], two["denied"], two["halts"], two["interruptions"]) == (0, 1, 0, 0)
    assert set(two["sessions"].values()) == {1}
    assert groups["auto"]["halts"] is None
    assert as_json(capsys, file)["groups"][0]["process"]["halts"] is None
    assert main(["report", str(dinner), "--only-task", "menu"]) == 0
    assert "Interruptions" in capsys.readouterr().out
    assert main(["report", file]) == 0
    assert "Interruptions" not in capsys.readouterr().out


def test_the_table_is_what_a_run_prints_at_its_end(
    dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(dinner)]) == 0
    table = capsys.readouterr().out
    print_report(str(dinner))
    assert capsys.readouterr().out == table
    assert "two-stage" in table
    assert max(len(line) for line in table.splitlines()) <= 100


def test_csv_and_markdown(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", file, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["agent"], row["utility_overall"]) for row in rows] == [("a", "0.75"), ("auto", "")]
    assert main(["report", file, "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("| Agent | N |")


def test_the_bootstrap_can_be_left_out(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(capsys, file, "--bootstrap", "0")
    assert found["bootstrap"]["resamples"] == 0
    assert "utility" not in found["groups"][0]["intervals"]
    seeded = [as_json(capsys, file, "--seed", seed) for seed in ("1", "1", "2")]
    assert seeded[0] == seeded[1] != seeded[2]


def test_several_sources_can_be_told_apart(
    file: str, dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(capsys, file, str(dinner), "--group-by", "log")
    counted = [(g["group"]["log"], g["baseline"], g["sessions"]) for g in found["groups"]]
    assert counted == [
        ("dinner", False, 2),
        ("two", False, 2),
        ("dinner", True, 2),
        ("two", True, 1),
    ]


def without_rows(log: Path, directory: Path) -> Path:
    """A copy of a log that keeps no rows yet."""
    copy = Path(shutil.copy(log, directory / "again.db"))

    async def drop() -> None:
        async with open_log(str(copy)) as opened:
            await opened.drop_derived()

    anyio.run(drop)
    return copy


@pytest.mark.slow
def test_several_processes_report_the_same(
    dinner: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns_log, "LARGE", 1)
    again = without_rows(dinner, tmp_path)
    alone = as_json(capsys, str(dinner), "--workers", "1")
    monkeypatch.delattr(StoredLog, "scan")  # only parts are read now
    assert as_json(capsys, str(again), "--workers", "2") == alone
    monkeypatch.delattr(StoredLog, "scan_part")  # and now none: the rows are kept
    assert as_json(capsys, str(again), "--workers", "2") == alone


@pytest.mark.slow
def test_a_process_that_is_killed_is_named_and_no_number_changes(
    dinner: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns_log, "LARGE", 1)
    again = without_rows(dinner, tmp_path)
    alone = as_json(capsys, str(dinner), "--workers", "1")
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    monkeypatch.setattr(columns_log, "WORKER", ("-c", killed))
    assert main(["report", str(again), "--json", "--workers", "2"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out) == alone
    assert told.err == (
        "a process that read the log with this one has ended (signal 9): its part is read again\n"
    )


def test_a_log_named_twice_counts_once(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    once, twice = as_json(capsys, str(dinner)), as_json(capsys, str(dinner), str(dinner))
    assert [group["sessions"] for group in once["groups"]] == [
        group["sessions"] for group in twice["groups"]
    ]


def test_different_sessions_of_one_id_are_refused(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(LINES.replace("0.75", "0.8"), encoding="utf-8")
    assert main(["report", file, str(other)]) == 2
    error = capsys.readouterr().err
    assert f"{file} and {other} hold different sessions 's1'" in error


@pytest.mark.parametrize(
    ("options", "rounds"),
    [([], 4), (["--rounds", "human-turn"], 3), (["--convention", "paper"], 3)],
)
def test_paper_implies_counting_by_human_turn(
    options: list[str], rounds: int, dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = explained(capsys, str(dinner), "menu-1-two-stage-ab12", *options)
    assert len(found["rounds"]) == rounds


def explained(
    capsys: pytest.CaptureFixture[str], source: str, name: str, *options: str
) -> dict[str, Any]:
    assert main(["report", source, "--explain", name, "--json", *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_explain_says_how_each_number_came_about(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", file, "--explain", "s2"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Session s2, convention formal\n")
    assert "τ = 1 is reached at round 1" in text
    found = explained(capsys, file, "s1")
    assert (found["first"], found["final"], found["gain"]) == (0.5, 0.75, 0.25)


def test_explain_under_paper_knows_the_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text(
        "".join(
            json.dumps({"session": f"s{n}", "rounds": [{"utility": 0.5, "rating": 4}] * (n + 1)})
            + "\n"
            for n in range(5)
        ),
        encoding="utf-8",
    )
    found = explained(capsys, str(path), "s4", "--convention", "paper")
    assert (len(found["rounds"]), found["max_step"]) == (5, 4)
    assert [note["cut"] for note in found["rounds"]] == [False] * 4 + [True]


def test_figures_are_written(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plots")
    directory = tmp_path / "new" / "figures"
    assert main(["report", file, "--figures", str(directory), "--figure-formats", "svg"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Collaborative effort scaling")
    names = [f"{name}.{kind}" for name in ("curve", "tokens", "ratio") for kind in ("svg", "txt")]
    assert err == f"wrote {', '.join(names)} in {directory}\n"
    assert {path.name for path in directory.iterdir()} == {*names}


def test_a_page(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "report.html"
    assert main(["report", file, "--html", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["convention"] == "formal"
    assert err == f"wrote {path}\n"
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["report.html", "two.jsonl"]


@pytest.mark.parametrize("name", ["exp1_base", "exp3_empty", "exp5_firstbad", "raise3_dup_bins"])
def test_the_published_numbers_come_out_of_the_command(
    name: str, test_data: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = test_data(f"metrics/{name}.jsonl")
    expected = json.loads(test_data(f"metrics/{name}.expected.json").read_text(encoding="utf-8"))
    found = as_json(capsys, str(path), "--convention", "paper", "--bootstrap", "0")
    groups = {tuple(sorted(g["group"].items())): g for g in found["groups"]}
    for group in expected["groups"]:
        mine = groups[tuple(sorted(group["group"].items()))]
        assert mine["utility"] == pytest.approx(group["utility"], abs=1e-9)
        assert mine["gain"] == pytest.approx(group["gain"], abs=1e-9)


FORKED = (
    '{"session": "a", "group": {"agent": "one-stage"}, "rounds": [{"utility": 0.25}, {"utility": 0'
    ".5}]}\n"
    '{"session": "f", "group": {"agent": "two-stage"}, "rounds": [{"utility": 0.25}, {"utility": 1'
    '.0}], "forked_from": {"session": "a", "version": 7}, "forked_at": 2}\n'
)


@pytest.fixture
def forked(tmp_path: Path) -> str:
    path = tmp_path / "forked.jsonl"
    path.write_text(FORKED, encoding="utf-8")
    return str(path)


def test_forks_beside_what_happened(forked: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", forked, "--forks"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["one-stage", "→", "two-stage", "1", "0.500", "1.000", "+0.500", "0.0"] in lines
    assert ["f", "2", "0.250", "0.500", "1.000", "+0.500"] in lines
    found = as_json(capsys, forked, "--forks")
    assert [fork["difference"] for fork in found["forks"]] == [0.5]
    assert [group["forks"] for group in found["groups"]] == [1]


def test_forks_are_left_out_of_the_means(forked: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", forked, "--json"]) == 0
    out, err = capsys.readouterr()
    assert [group["group"]["agent"] for group in json.loads(out)["groups"]] == ["one-stage"]
    assert err == "1 fork left out, since its origin is here: --forks compares them\n"
    assert main(["report", forked, "--explain", "f", "--convention", "paper"]) == 0


def test_there_may_be_no_forks(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", file, "--forks"]) == 0
    assert capsys.readouterr().out == "Forks\n\nThere are no forks.\n"


DAMAGED = '{"session": "s1", "rounds": []}\n{"session": "s2"\n'


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{tmp}/none.db"], "no such file: {tmp}/none.db"),
        (["{tmp}"], "{tmp} is a directory; name a file for the log"),
        (["{tmp}/empty"], "{tmp}/empty is empty: neither a log nor a file of trajectories"),
        (["{tmp}/text"], "{tmp}/text is neither a log nor a file of trajectories"),
        (["{tmp}/damaged"], "{tmp}/damaged, line 2: invalid trajectory"),
        (["memory://"], "memory:// exists only in the program that made it"),
        (["nats://here"], "no store for 'nats://here'"),
        (["{file}", "--tau", "0"], "--tau expects whole numbers from 1"),
        (["{file}", "--tau", ","], "--tau is empty"),
        (["{file}", "--group-by", "mood"], "no session has a label 'mood'"),
        (["{file}", "--json", "--csv"], "--json and --csv cannot be combined"),
        (["{file}", "--explain", "s9"], "no session 's9' in the report; did you mean s"),
        (["{file}", "--convention", "exact"], "--convention expects"),
        (["{file}", "--convention", "paper", "--rounds", "handoff"], "--convention paper counts"),
        (["{file}", "--bootstrap", "-1"], "--bootstrap expects at least 0, got '-1'"),
        (["{file}", "--bootstrap", "100001"], "--bootstrap expects at most 100000"),
        ([""], "the name of the log is empty"),
        (["."], ". is a directory; name a file for the log"),
        (
            ["{file}", "--figure-formats", "gif", "--figures", "x"],
            "--figure-formats: unknown value 'gif'",
        ),
        (["{file}", "--figures", "{tmp}/text/deep"], "cannot write figures to {tmp}/text/deep"),
        (["{file}", "--html", "{tmp}/no/page"], "cannot write {tmp}/no/page: No such file"),
        (
            ["{log}", "--judge", "nobody"],
            "{log} has no ratings by 'nobody'; scorers there: none",
        ),
        (
            ["{log}", "--utility", "nothing"],
            "{log} has no utility by 'nothing'; scorers there: taste@2",
        ),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str],
    message: str,
    file: str,
    dinner: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("hello\n", encoding="utf-8")
    (tmp_path / "damaged").write_text(DAMAGED, encoding="utf-8")
    names = {"tmp": tmp_path, "file": file, "log": dinner}
    assert main(["report", *(argument.format(**names) for argument in arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"duolog: {message.format(**names)}")
    assert err.count("\n") == 1


PAIRED = "".join(
    f'{{"session": "{agent}{i}", "instance": "{i}", "group": {{"agent": "{agent}"}}, '
    f'"rounds": [{{"utility": {value + bonus:.2f}, "rating": 4}}], "tokens": {{"agent": 10}}}}\n'
    for agent, bonus in (("a", 0.0), ("b", 0.2))
    for i, value in enumerate((0.1, 0.5, 0.3, 0.7))
)


@pytest.fixture
def paired(tmp_path: Path) -> str:
    path = tmp_path / "paired.jsonl"
    path.write_text(PAIRED, encoding="utf-8")
    return str(path)


def test_agents_are_compared_in_pairs(paired: str, capsys: pytest.CaptureFixture[str]) -> None:
    listed: Any = as_json(capsys, paired, "--compare", "a,b")
    [found] = listed
    overall = found["differences"][0]
    assert overall["quantity"] == "overall"
    assert overall["difference"]["value"] == pytest.approx(0.2)
    assert overall["p"] == pytest.approx(
        2 / 16
    )  # of 16 ways to flip four signs, two are as far out
    assert main(["report", paired, "--compare", "a,b"]) == 0
    shown = capsys.readouterr().out
    assert "b against a" in shown
    assert "4 problems played by both" in shown
    assert "Differences, too few for an interval: overall: +0.2" in shown
    assert "+0.200" in shown


def test_a_comparison_is_drawn(
    paired: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", paired, "--compare", "a,b", "--figures", str(tmp_path / "f")]) == 0
    assert capsys.readouterr().err.startswith("wrote compare.png, compare.svg, compare.txt in ")
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == [
        "compare.png",
        "compare.svg",
        "compare.txt",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--compare", "a"], "at least two different names"),
        (["--compare", "a,z"], "no session has agent 'z' to compare; choose from a, b"),
        (["--compare", "a,b", "--sensitivity"], "--compare and --sensitivity cannot be combined"),
        (
            ["--compare", "a,b", "--convention", "paper"],
            "--compare and --convention paper cannot be combined",
        ),
        (["--compare", "a,b", "--outcome", "overal"], "unknown outcome 'overal'"),
        (["--outcome", "overall"], "--outcome needs --compare AGENTS"),
        (["--pair-by", "instance"], "--pair-by needs --compare AGENTS"),
        (["--agreement"], "do not say who rated: name logs"),
    ],
)
def test_analyses_that_cannot_be_made(
    options: list[str], message: str, paired: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", paired, *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "analysis", [["--compare", "a,b"], ["--forks"], ["--explain", "a1"]], ids=lambda one: one[0]
)
def test_every_analysis_has_every_form(
    analysis: list[str], paired: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    printed = {}
    for form in ("--markdown", "--csv", "--json"):
        assert main(["report", paired, *analysis, form, "--html", str(page), "--force"]) == 0
        printed[form] = capsys.readouterr().out
    assert json.loads(printed["--json"]) is not None
    if analysis != ["--forks"]:  # there are none
        assert printed["--markdown"].count("|") > 10
        rows = list(csv.DictReader(io.StringIO(printed["--csv"])))
        assert rows[0].keys() >= ({"quantity", "p"} if len(rows) > 1 else {"round", "utility"})
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_judges_and_their_weight(dinner: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(dinner), "--sensitivity"]) == 0
    shown = capsys.readouterr().out
    assert "Unproductive below" in shown
    assert "unproductive" in shown
    rows = as_json(capsys, str(dinner), "--sensitivity")["rows"]
    assert {row["least"] for row in rows} == {2, 3, 4}
    assert main(["report", str(dinner), "--agreement"]) == 0
    assert "Agreement of judges" in capsys.readouterr().out


def test_a_report_says_who_rated_and_by_which_definitions(
    dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert as_json(capsys, str(dinner))["judges"]
    assert main(["report", str(dinner)]) == 0
    shown = capsys.readouterr().out
    assert "Ratings by " in shown
    assert "Definitions of version " in shown


def test_the_page_holds_transcripts_up_to_a_size_and_else_commands(
    dinner: Path, tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"

    def made(*sources: str) -> str:
        assert main(["report", *sources, "--html", str(page), "--force", "--bootstrap", "0"]) == 0
        return page.read_text(encoding="utf-8")

    found = made(str(dinner))
    assert found.count("<pre>") == 4
    assert "Plan [bold]five[/bold] dinners, please." in found
    assert "duolog show" not in found
    monkeypatch.setattr(reporting, "EMBEDDED", 100)
    found = made(str(dinner))
    assert "<pre>" not in found
    assert f"<code>duolog show {dinner} chat-7</code>" in found
    found = made(file)
    assert f"<code>duolog report {file} --explain s1</code>" in found
