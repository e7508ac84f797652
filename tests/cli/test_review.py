"""``duolog review``: adds what reviewers say, and what lists, reports and exports make of it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from duolog.cli import main

pytestmark = pytest.mark.usefixtures("plain")

DINNER = "menu-1-two-stage-ab12"


@pytest.fixture
def reviewed(dinner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    log = str(tmp_path / "reviewed.db")
    assert main(["copy", str(dinner), log]) == 0
    added = [
        "--tag",
        "wrong-goal,slow",
        "--rating",
        "2",
        "--comment",
        "It never asked.",
        "--reviewer",
        "anna",
    ]
    assert main(["review", log, DINNER, *added]) == 0
    assert main(["review", log, DINNER, "--tag", "slow", "--rating", "3", "--reviewer", "ben"]) == 0
    assert main(["review", log, DINNER, "--round", "1", "--rating", "1", "--reviewer", "ben"]) == 0
    capsys.readouterr()
    return Path(log)


def test_it_lists_who_said_what(reviewed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", str(reviewed), DINNER]) == 0
    lines = [line.rsplit(", ", 1)[0] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        DINNER,
        "  tag wrong-goal, anna",
        "  tag slow, anna",
        "  tag slow, ben",
        "  rating 2/5, anna",
        "  rating 3/5, ben",
        "  rating 1/5, ben of round 1",
        "  comment, anna",
        "    It never asked.",
    ]
    assert main(["show", str(reviewed), DINNER]) == 0
    shown = capsys.readouterr().out
    assert "reviewed by anna, ben; tags slow, wrong-goal; rated 2.5" in shown
    assert "anna comments on the session: It never asked." in shown
    assert main(["show", str(reviewed), DINNER, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reviews"]["reviewers"] == ["anna", "ben"]


def test_lists_reports_and_tables_go_by_tags(
    reviewed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(reviewed)
    assert main(["sessions", log, "--where", "tag=slow", "--json"]) == 0
    [one] = json.loads(capsys.readouterr().out)
    assert (one["session"], one["tags"], one["reviewers"], one["rated"]) == (
        DINNER,
        ["slow", "wrong-goal"],
        ["anna", "ben"],
        2.5,
    )
    assert main(["report", log, "--group-by", "tag", "--json", "--bootstrap", "0"]) == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    assert {one["group"].get("tag") for one in groups} == {None, "slow", "wrong-goal"}
    assert main(["export", log, "--format", "sessions"]) == 0
    rows = {one["session"]: one for one in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    row = rows[DINNER]
    assert (row["tags"], row["reviewers"]) == ("slow;wrong-goal", "anna;ben")
    assert (row["review_rating"], row["comments"]) == ("2.5", "1")


def test_tags_are_columns_of_exported_tables(reviewed: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    directory = tmp_path / "tables"
    assert main(["export", str(reviewed), "--format", "parquet", "--output", str(directory)]) == 0
    rows = [
        row
        for file in (directory / "sessions").rglob("*.parquet")
        for row in parquet.ParquetFile(file).read().to_pylist()
    ]
    [row] = [row for row in rows if row["session"] == DINNER]
    assert (row["tags"], row["reviewers"], row["review_rating"], row["comments"]) == (
        ["slow", "wrong-goal"],
        ["anna", "ben"],
        2.5,
        1,
    )
    assert main(["report", str(directory), "--group-by", "tag", "--bootstrap", "0"]) == 0


def test_agreement_compares_reviewers_with_each_other_and_with_judges(
    reviewed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(reviewed), "--agreement", "--json", "--bootstrap", "0"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "reviewer ben" in found["judges"]["judges"]
    assert found["reviewers"]["tags"]["slow"]["pairs"][0]["confusion"] == [[0, 0], [0, 1]]
    assert found["reviewers"]["tags"]["wrong-goal"]["pairs"][0]["confusion"] == [[0, 0], [1, 0]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--tag", "slow"], "--reviewer"),
        (["--reviewer", "anna"], "--comment"),
        (["--rating", "7", "--reviewer", "anna"], "at most 5"),
        (["--round", "1"], "--round"),
        (["--untag", "slwo", "--reviewer", "ben"], "'slow'"),
    ],
)
def test_wrong_input_is_one_line(
    reviewed: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert main(["review", str(reviewed), DINNER, *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_log_without_tags_says_how_to_add_one(
    dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(dinner), "--group-by", "tag"]) == 2
    assert "duolog review" in capsys.readouterr().err
