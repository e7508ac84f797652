"""``duolog export --format parquet``, and ``duolog report`` on what it writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from duolog.cli import main

pytestmark = pytest.mark.usefixtures("plain")

pytest.importorskip("pyarrow")


def printed(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def rounded(value: object) -> object:
    """Numbers to twelve digits, as far as the two have to agree."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return pytest.approx(value, rel=1e-12, abs=1e-12) if isinstance(value, float) else value


@pytest.mark.slow
@pytest.mark.parametrize("task", ["travel", "tutoring"])
def test_the_report_on_a_demo_is_the_same_from_log_and_tables(
    task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, tables = str(tmp_path / "demo.db"), str(tmp_path / "tables")
    run = ["run", task, "--sessions", "3", "--log", log, "--stop-at", "2"]
    printed([*run, "--agents", "auto,one-stage,two-stage"], capsys)
    said = printed(["export", log, "--format", "parquet", "--output", tables], capsys)
    assert said.startswith("9 closed sessions written, up to position")
    for options in ([], ["--tau", "1", "--group-by", "agent"], ["--markdown"]):
        arguments = ["--bootstrap", "50", *options]
        assert printed(["report", tables, *arguments], capsys) == printed(
            ["report", log, *arguments], capsys
        )
    mine = json.loads(printed(["report", tables, "--json"], capsys))
    assert mine == rounded(json.loads(printed(["report", log, "--json"], capsys)))
    again = printed(["export", log, "--format", "parquet", "--output", tables], capsys)
    assert again.startswith("0 closed sessions written")


def test_tables_answer_what_the_log_answers(
    dinner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = str(tmp_path / "tables")
    printed(["export", str(dinner), "--format", "parquet", "--output", tables, "--records"], capsys)
    sources = tables, str(dinner)
    for options in (["--forks"], ["--explain", "menu"], ["--compare", "menu,chef", "--json"]):
        answers = []
        for source in sources:
            code = main(["report", source, *options])
            answers.append((code, capsys.readouterr().out))
        assert answers[0] == answers[1]
    page = tmp_path / "page.html"
    printed(["report", tables, "--html", str(page)], capsys)
    assert "duolog report" in page.read_text(encoding="utf-8")


def test_what_tables_cannot_answer_is_refused(
    dinner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = str(tmp_path / "tables")
    export = ["export", str(dinner), "--format", "parquet"]
    printed([*export, "--output", tables, "--records"], capsys)
    for arguments, why in (
        (["report", tables, "--agreement"], f"{tables} holds scored sessions"),
        (["report", tables, "--sensitivity"], f"{tables} holds scored sessions"),
        (["report", tables, str(dinner)], f"{tables} is a directory of tables: report on it by"),
        (
            ["report", tables, "--rounds", "human-turn"],
            f"{tables} holds no closed sessions with rou",
        ),
        (export, "--format parquet writes a directory: name it with --output"),
        (["export", str(dinner), "--follow"], "--follow and --records are for --format parquet"),
    ):
        assert main(arguments) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"duolog: {why}")
