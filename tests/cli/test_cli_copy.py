"""``duolog copy``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from duolog.cli import main


def test_a_log_is_copied_and_the_copy_says_the_same(
    dinner: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.db"
    assert main(["copy", str(dinner), str(copy)]) == 0
    assert "copied, up to position" in capsys.readouterr().out
    assert main(["copy", str(dinner), str(copy), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 0
    listed = []
    for log in (dinner, copy):
        assert main(["sessions", str(log)]) == 0
        listed.append(capsys.readouterr().out)
    assert listed[0] == listed[1]
    assert main(["verify", str(copy)]) == 0


@pytest.mark.parametrize(
    ("target", "why"),
    [("{log}", "is the log itself"), ("memory://", "would be gone"), ("mysql://h/d", "no store")],
)
def test_where_no_copy_can_be_is_one_line(
    target: str, why: str, dinner: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["copy", str(dinner), target.format(log=dinner)]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1
