"""The notebook of the documentation plays, reports and plots: all of its cells are executed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from duolog.cli import main

pytestmark = pytest.mark.slow

EXECUTE = """
import sys

import nbclient
import nbformat

notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": "."}}).execute()
print(nbformat.writes(notebook))
"""


def test_the_notebook_plays_reports_and_plots(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(root / "docs" / "notebook.ipynb")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = {
        cell["id"]: cell["outputs"]
        for cell in json.loads(done.stdout)["cells"][1:]
        if "outputs" in cell
    }
    assert shown["play-code"][0]["data"]["text/plain"] == ["(12, 0)"]
    assert "<table" in "".join(shown["report-code"][0]["data"]["text/html"])
    assert shown["plot-code"][0]["data"]["image/png"]
    assert "overall" in "".join(shown["compare-code"][0]["data"]["text/html"])
    # The command finds the sessions that the notebook has played, and the same numbers.
    assert main(["report", str(tmp_path / "trips.db"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    [adaptive] = [one for one in report["groups"] if one["group"]["agent"] == "adaptive"]
    frame = "".join(shown["numbers-code"][0]["data"]["text/plain"])
    overall = f"{adaptive['utility']['overall']:.6f}"
    assert overall.rstrip("0") in frame  # as pandas writes a column of short numbers
