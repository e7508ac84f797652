"""Errors in arguments name the option, its expectation and the value, in one voice."""

from __future__ import annotations

import pytest
from duolog.cli import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "travel", "--sessions", "x"], "--sessions expects a whole number, got 'x'"),
        (["run", "travel", "--sessions", "0"], "--sessions expects at least 1, got '0'"),
        (
            ["serve", "--log", "x.db", "--port", "65536"],
            "--port expects at most 65535, got '65536'",
        ),
        (["show", "x.db", "s", "--rounds", "y"], "--rounds expects handoff or human-turn, got 'y'"),
        (["rport"], "unknown command 'rport'; did you mean report, import or export?"),
        (["report", "x.db", "--jsn"], "unknown option --jsn; did you mean --csv or --json?"),
        (["run", "travel", "--temperature", "1"], "unknown option --temperature"),
        (["report", "x.db", "--figures"], "--figures needs a value (see duolog report --help)"),
        (["run", "travel", "extra"], "unexpected argument 'extra' (see duolog run --help)"),
        (["study", "check", "--force"], "unknown option --force (see duolog study check --help)"),
        (["run", "--sessions", "3"], "missing argument TASK|FILE"),
        (
            ["run", "travel", "--agents", "two-stge"],
            "unknown agent 'two-stge'; did you mean 'two-stage'",
        ),
        (["run", "trvel"], "unknown task 'trvel'; did you mean 'travel'?"),
    ],
)
def test_wrong_arguments_are_named_with_what_is_expected(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"duolog: {said}")
    assert shown.err.count("\n") == 1
