"""``duolog fork``: another agent goes on from a round, and reports compare it with what happened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from duolog.cli import main


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("fork") / "demo.db")
    run = ["run", "travel", "--agents", "one-stage", "--sessions", "2", "--seed", "7"]
    assert main([*run, "--log", path]) == 0
    return path


def test_a_fork_is_a_session_of_its_own_that_reports_compare_with_its_origin(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fork = ["fork", log, "travel-1-one-stage", "--at-round", "3", "--agent", "two-stage"]
    capsys.readouterr()
    assert main([*fork, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["origin"].startswith("travel-1-one-stage")
    assert made["fork"]["reason"] == "finished"
    assert main(["report", log, "--forks"]) == 0
    assert made["fork"]["session"][:20] in capsys.readouterr().out
    # Run again, it is the session that is there, and nothing is done twice.
    assert main([*fork, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fork"]["resumed"] == made["fork"]["events"]


def test_a_fork_can_go_into_another_log_and_leaves_the_origin_as_it_is(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = str(tmp_path / "forks.db")
    fork = ["fork", log, "travel-0-one-stage", "--at-version", "12", "--seed", "5", "--log", other]
    before = Path(log).read_bytes()
    assert main(fork) == 0
    assert Path(log).read_bytes() == before
    capsys.readouterr()
    assert main(["sessions", other, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_what_a_run_recorded_is_what_its_scorers_measure_again(
    log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", log, "--check"]) == 0
    out = capsys.readouterr()
    assert "not measured" not in out.out + out.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["travel-1-one-stage"], "either --at-round or --at-version"),
        (["travel-1-one-stage", "--at-round", "2", "--at-version", "9"], "either"),
        (["travel-1-one-stage", "--at-round", "99"], "no round 99"),
        (["travel-1-one-stage", "--at-version", "9999"], "version 9999"),
        (["travel-1-one-stage", "--at-round", "2", "--agent", "x"], "no agent 'x'"),
        (["travel-1-one-stage", "--at-round", "2", "--user", "x"], "no user 'x'"),
        (["travel-9", "--at-round", "2"], "travel-9"),
    ],
)
def test_bad_input_is_one_clear_line(
    log: str, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fork", log, *arguments]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1
