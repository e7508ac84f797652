"""A notebook of a report is a notebook, and its cells give the numbers that ``duolog report`` printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duolog
import pytest
from duolog.cli import main


def test_its_cells_give_the_same_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, notebook = tmp_path / "a.db", tmp_path / "a.ipynb"
    run = ["run", "finance", "--agents", "one-stage", "--users", "lazy", "--sessions", "3"]
    assert main([*run, "--log", str(log), "--json"]) == 0
    capsys.readouterr()
    told = ["report", str(log), "--json", "--bootstrap", "20", "--seed", "3", "--tau", "2"]
    assert main([*told, "--group-by", "user", "--notebook", str(notebook)]) == 0
    printed = json.loads(capsys.readouterr().out)
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = {one["id"]: one["source"] for one in cells if one["cell_type"] == "code"}
    names: dict[str, Any] = {}
    exec(code["report"], names)
    report = names["report"]
    assert isinstance(report, duolog.Report)
    assert json.loads(report.to_json())["groups"] == printed["groups"]
    assert set(code) == {"report", "curve", "table"}


def test_it_is_of_the_report_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = ["report", "a.db", "--compare", "a,b", "--notebook", str(tmp_path / "a.ipynb")]
    assert main(told) == 2
    assert "--notebook writes the report itself" in capsys.readouterr().err
