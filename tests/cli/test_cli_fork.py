"""``duolog fork``: another agent continues from a round; reports compare it with the original."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from duolog.cli import main
from duolog.engine.session.runner import SessionResult
from duolog.scoring.metrics.forks import Fork

pytestmark = pytest.mark.slow


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
    assert made["fork"]["reason"] in ("finished", "abandoned")
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


class Made(msgspec.Struct):
    """What ``duolog fork --json`` prints."""

    origin: str
    fork: SessionResult
    comparison: Fork


def forked(log: str, *arguments: str, capsys: pytest.CaptureFixture[str]) -> Made:
    """What ``duolog fork --json`` prints."""
    capsys.readouterr()
    assert main(["fork", log, *arguments, "--json"]) == 0
    return msgspec.json.decode(capsys.readouterr().out, type=Made)


@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("other", [[], ["--agent", "two-stage"], ["--seed", "3"]])
def test_it_says_the_round_that_was_asked_for(
    log: str, number: int, other: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["travel-1-one-stage", "--at-round", str(number), *other]
    into = ["--log", str(tmp_path / "forks.db")]
    made = forked(log, *arguments, *into, capsys=capsys)
    assert made.comparison.round == number
    assert main(["fork", log, *arguments, *into]) == 0
    assert f"at round {number}, after version" in capsys.readouterr().out


def test_the_same_again_is_no_finding(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = ["--log", str(tmp_path / "forks.db")]
    origin = ["travel-1-one-stage", "--at-round", "3", *into]
    made = forked(log, *origin, capsys=capsys)
    compared = made.comparison
    assert compared.difference == 0
    assert compared.rounds_now == compared.rounds_then
    assert compared.effort_now == compared.effort_then
    # Named, too, the agent, the user and the seed of the run are the same.
    named = ["--agent", "one-stage", "--user", "proactive", "--seed", "7"]
    assert forked(log, *origin, *named, capsys=capsys).fork.session == made.fork.session


def test_another_seed_is_another_continuation(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = ["--log", str(tmp_path / "forks.db")]
    found = [
        forked(log, "travel-1-one-stage", "--at-round", "2", "--seed", seed, *into, capsys=capsys)
        for seed in ("1", "2")
    ]
    assert found[0].fork.session != found[1].fork.session
    assert found[0].fork.seconds != found[1].fork.seconds


def test_its_id_names_its_origin_and_leaves_prefixes_as_they_were(
    log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = forked(log, "travel-0-one-stage", "--at-round", "2", "--seed", "4", capsys=capsys)
    assert made.fork.session.startswith("fork-")
    assert made.fork.session.endswith(f"-of-{made.origin}")
    assert main(["show", log, "travel-0-one-stage"]) == 0


def test_the_comparison_ends_it_and_what_is_missing_is_missing(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fork = ["fork", log, "travel-0-one-stage", "--at-round", "2", "--user", "lazy"]
    assert main([*fork, "--log", str(tmp_path / "forks.db")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = {line[0]: line[-3:] for line in lines if line and line[0] in ("Rounds", "Final")}
    assert set(rows) == {"Rounds", "Final"}
    assert float(rows["Final"][2]) == pytest.approx(
        float(rows["Final"][1]) - float(rows["Final"][0])
    )


def test_the_export_of_a_fork_holds_its_beginning(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = str(tmp_path / "forks.db")
    made = forked(
        log, "travel-1-one-stage", "--at-round", "3", "--seed", "6", "--log", other, capsys=capsys
    )
    assert main(["export", other, "--session", made.fork.session]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    versions = [r["version"] for r in records if r.get("stream") == "trace"]
    assert versions == list(range(1, made.fork.events + 1))


def test_a_fork_can_be_forked(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    first = forked(
        log, "travel-0-one-stage", "--at-round", "2", "--agent", "two-stage", capsys=capsys
    )
    name = first.fork.session
    again = forked(log, name, "--at-round", "4", capsys=capsys)
    assert again.origin == name
    assert again.fork.utility == first.fork.utility
    assert again.fork.events == first.fork.events
    before = forked(log, name, "--at-round", "4", "--agent", "one-stage", capsys=capsys)
    assert before.comparison.round == 4


def test_everybody_can_begin_from_the_view(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = ["--log", str(tmp_path / "forks.db")]
    made = forked(log, "travel-1-one-stage", "--at-round", "3", "--from-view", *into, capsys=capsys)
    assert made.fork.reason in ("finished", "abandoned")


def test_a_session_of_another_engine_is_forked_from_the_view_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(tmp_path / "old.db")
    with monkeypatch.context() as then:
        then.setattr("duolog.engine.task.__version__", "0.0.1")
        then.setattr("duolog.engine.session.runner.ENGINE_NUMBER", 99)
        run = ["run", "travel", "--agents", "one-stage", "--instances", "1", "--seed", "7"]
        assert main([*run, "--log", log]) == 0
    capsys.readouterr()
    fork = ["fork", log, "travel-1-one-stage", "--at-round", "3"]
    assert main(fork) == 2
    err = capsys.readouterr().err
    assert "engine 99 played it" in err
    assert "use Duolog 0.0.1 to resume it" in err
    assert "--from-view" in err
    assert err.count("\n") == 1
    assert main([*fork, "--from-view"]) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["travel-1-one-stage"], "either --at-round or --at-version"),
        (["travel-1-one-stage", "--at-round", "2", "--at-version", "9"], "either"),
        (["travel-1-one-stage", "--at-round", "99"], "cannot fork at round 99"),
        (["travel-1-one-stage", "--at-version", "9999"], "version 9999"),
        (["travel-1-one-stage", "--at-round", "2", "--agent", "x"], "unknown agent 'x'"),
        (["travel-1-one-stage", "--at-round", "2", "--user", "x"], "unknown user 'x'"),
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
