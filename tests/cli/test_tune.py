"""``duolog tune``, and agents with custom settings: a file of rules, or habits on and off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from duolog.agents.rules_file import read_rules
from duolog.cli import main

Capture = pytest.CaptureFixture[str]

TUNE = [
    "tune",
    "travel",
    "--sessions",
    "1",
    "--seeds",
    "1,2",
    "--users",
    "lazy",
]
RUN = ["run", "travel", "--users", "lazy", "--sessions", "2", "--seed", "9"]


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of rules, after a short search."""
    path = tmp_path_factory.mktemp("tune") / "trips.toml"
    assert main([*TUNE, "--trials", "2", "--concurrency", "1", "--output", str(path)]) == 0
    return path


def test_the_same_search_writes_the_same_file(tmp_path: Path, capsys: Capture) -> None:
    once, again = tmp_path / "once.toml", tmp_path / "again.toml"
    search = [*TUNE, "--trials", "14"]
    assert main([*search, "--output", str(once)]) == 0
    capsys.readouterr()
    assert main([*search, "--output", str(again), "--concurrency", "1"]) == 0
    said = capsys.readouterr()
    assert again.read_bytes() == once.read_bytes()
    fitted = read_rules(again, task="travel").fitted
    assert fitted is not None
    assert (fitted.task, fitted.scorer, fitted.users) == ("travel", "travel@2", ("lazy",))
    assert (fitted.seeds, fitted.sessions, fitted.trials) == ((1, 2), 1, 14)
    assert fitted.score >= 0  # the rules to begin with do as the two-stage agent does
    assert f"score {fitted.score:+.4f} on the training sessions" in said.out
    assert "14 trials" in said.err
    assert main([*search, "--output", str(again)]) == 2
    assert "exists" in capsys.readouterr().err


def test_fitted_rules_play_resume_replay_and_fork(
    trips: Path, tmp_path: Path, capsys: Capture
) -> None:
    log = str(tmp_path / "runs.db")
    agents = f"two-stage,adaptive:{trips},two-stage:no-level"
    assert main([*RUN, "--agents", agents, "--log", log]) == 0
    said = capsys.readouterr()
    assert "adaptive:trips" in said.out
    assert "two-stage:no-level" in said.out
    assert "6 sessions: 6 run" in said.err
    assert main([*RUN, "--agents", agents, "--log", log]) == 0
    assert "6 in the log already" in capsys.readouterr().err
    assert main(["replay", log, "--check"]) == 0
    capsys.readouterr()
    fork = ["fork", log, "travel-0-adaptive-trips", "--at-round", "2", "--json"]
    assert main(fork) == 0  # it uses the log instead of the file
    same = json.loads(capsys.readouterr().out)["fork"]
    assert same["reason"] == "finished"
    assert main([*fork, "--agent", f"adaptive:{trips}", "--seed", "5"]) == 0
    assert json.loads(capsys.readouterr().out)["fork"]["reason"] == "finished"


@pytest.mark.parametrize(
    ("agent", "why"),
    [
        ("adaptive:nowhere.toml", "cannot read nowhere.toml: No such file"),
        ("two-stage:no-manners", "two-stage:no-manners: unknown habit 'manners'"),
        ("adaptive:{trips}", "were fitted on travel, not on data"),
    ],
)
def test_what_is_no_setting_is_refused_in_a_line(
    trips: Path, tmp_path: Path, agent: str, why: str, capsys: Capture
) -> None:
    log = tmp_path / "runs.db"
    named = agent.format(trips=trips)
    assert main(["run", "data", "--agents", named, "--sessions", "1", "--log", str(log)]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1
    assert not log.exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["tune", "nothing"], "unknown task 'nothing'"),
        (["tune", "travel", "--users", "grumpy"], "--users: unknown value 'grumpy'"),
        (["tune", "travel", "--price", "inf"], "--price expects at most 1, got 'inf'"),
        (["tune", "travel", "--seeds", "a"], "--seeds expects whole numbers"),
        (["tune", "travel", "--output", "no/such/place.toml"], "no/such"),
    ],
)
def test_what_cannot_be_tuned_is_refused_in_a_line(
    arguments: list[str], why: str, capsys: Capture
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1
