"""``duolog run``: it simulates, reports, resumes after any end, and refuses invalid options."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import anyio
import pytest
from duolog.cli import main
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from forked import Forked, run_forked
from installed_tasks import TASKS

SMALL = ["travel", "--agents", "auto,one-stage", "--users", "proactive", "--sessions", "3"]


def streams(path: Path) -> dict[tuple[str, str], list[tuple[object, ...]]]:
    """All streams of a log, with everything in them but global positions."""

    async def read() -> dict[tuple[str, str], list[tuple[object, ...]]]:
        found: dict[tuple[str, str], list[tuple[object, ...]]] = {}
        async with open_log(f"sqlite:///{path}", create=False) as log:
            async for record in log.read_all():
                found.setdefault((record.session, record.stream), []).append(content(record))
        return found

    return anyio.run(read)


def content(record: Record) -> tuple[object, ...]:
    return (
        record.version,
        record.id,
        record.kind,
        record.time,
        record.actor,
        record.cause,
        record.seen,
        record.body,
    )


def duolog(*arguments: str) -> list[str]:
    return ["-P", "-m", "duolog", "run", *SMALL, *arguments]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run") / "whole.db"
    goes_on(path)
    return path


def goes_on(path: Path) -> None:
    """Runs twenty sessions of each agent into a log, as far as it does not hold them."""
    done = run_forked(duolog("--sessions", "20", "--log", str(path)), Path.cwd(), os.environ)
    assert done.returncode == 0, done.stderr


def test_it_simulates_and_prints_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "demo.db"
    assert main(["run", *SMALL, "--log", str(path)]) == 0
    out, err = capsys.readouterr()
    assert "one-stage" in out
    assert "6 sessions: 6 run" in err
    assert len({session for session, _ in streams(path)}) == 6


@pytest.mark.slow
def test_run_again_it_does_nothing_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "demo.db"
    main(["run", *SMALL, "--log", str(path)])
    first, before = capsys.readouterr().out, streams(path)
    assert main(["run", *SMALL, "--log", str(path)]) == 0
    again = capsys.readouterr()
    assert "6 sessions: 0 run, 6 in the log already" in again.err
    assert again.out == first
    assert streams(path) == before


@pytest.mark.slow
@pytest.mark.parametrize("most", [3, pytest.param(60, marks=pytest.mark.soak)])
def test_killed_at_any_instant_and_run_again_it_ends_as_if_undisturbed(
    most: int, seed: int, undisturbed: Path, tmp_path: Path
) -> None:
    """Kills the run, again and again, a random while after it began to write."""
    expected = streams(undisturbed)
    path = tmp_path / "killed.db"
    patience = random.Random(seed)
    for _ in range(most):
        with Forked(endless(path), stderr=subprocess.PIPE) as process:
            size = _size(path)
            while process.poll() is None and _size(path) == size:
                time.sleep(0.01)
            time.sleep(patience.uniform(0.05, 0.6))
            process.kill()
            _, error = process.communicate()
        assert process.returncode == -signal.SIGKILL, error
    goes_on(path)
    found = streams(path)
    assert {name: found[name] for name in expected} == expected


def endless(path: Path) -> list[str]:
    """The run of ``undisturbed``, with so many sessions more that no machine is done before it is
    stopped, however late that is."""
    return duolog("--sessions", "5000", "--log", str(path))


def _size(path: Path) -> int:
    wal = path.with_name(f"{path.name}-wal")
    return sum(p.stat().st_size for p in (path, wal) if p.exists())


@pytest.mark.slow
def test_interrupted_it_says_so_and_goes_on_later(undisturbed: Path, tmp_path: Path) -> None:
    path = tmp_path / "interrupted.db"
    process = Forked(endless(path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and _size(path) < 30_000:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in error
    assert "of 10,000 sessions" in error
    goes_on(path)
    found, expected = streams(path), streams(undisturbed)
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["sailing"], f"unknown task 'sailing'; choose from {TASKS}"),
        (["travel", "--agents", "three-stage"], "three-stage"),
        (["travel", "--agents", " , "], "--agents"),
        (["travel", "--users", "grumpy"], "grumpy"),
        (["travel", "--sessions", "0"], "--sessions"),
        (["travel", "--sessions", "2", "--instances", "1"], "--instances"),
        (["travel", "--instances", "5-2"], "5-2"),
        (["travel", "--instances", "x"], "unknown instance 'x'"),
        (["travel", "--instances", "0-2,x"], "unknown instance 'x'"),
        (["travel", "--instances", "0-999999999999"], "these are 3,000,000,000,000 sessions"),
        (["travel", "--instances", f"0-{'9' * 6000}"], "is not a range such as 0-9"),
        (["travel", "--sessions", "9" * 20], "299,999,999,999,999,999,997 sessions, and one run"),
        (["travel", "--sessions", "9" * 20, "--dry-run"], "and one run takes 1,000,000"),
        (["travel", "--sessions", "1000000001", "--agents", "auto"], "1,000,000,001 sessions"),
        (["travel", "--log", "memory://"], "memory:// would be gone when this is done"),
        (["travel", "--log", "memory://", "--dry-run"], "name a log in a file"),
        (["travel", "--log", "mysql://x"], "no store for 'mysql://x'"),
        (["travel", "--dataset", "/nowhere"], "/nowhere"),
        (["travel", "--concurrency", "-1"], "--concurrency"),
        (["travel", "--stop-at", "0"], "--stop-at"),
        (["travel", "--patience", "0"], "--patience expects a number of rounds, 1 or more, or off"),
        (["travel", "--patience", "much"], "or off, got 'much'"),
        (["travel", "--seed", "x"], "--seed"),
    ],
)
def test_bad_input_is_one_clear_line_and_leaves_no_log(
    arguments: list[str],
    complaint: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "none.db"
    monkeypatch.setattr("duolog.experiments.running.simulate", None)  # nothing comes so far
    log = [] if "--log" in arguments else ["--log", str(path)]
    assert main(["run", *arguments, *log]) == 2
    out, err = capsys.readouterr()
    assert complaint in err
    assert err.count("\n") == 1
    assert out == ""
    assert not path.exists()


@pytest.mark.parametrize("where", ["/nowhere/at/all.db", "/proc/none.db", "."])
def test_a_log_that_cannot_be_written_is_one_clear_line(
    where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *SMALL, "--log", where]) == 2
    err = capsys.readouterr().err
    assert where in err
    assert err.count("\n") == 1


def test_a_file_that_is_no_log_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sir or Madam, " * 100, encoding="utf-8")
    before = path.read_bytes()
    assert main(["run", *SMALL, "--log", str(path)]) == 2
    assert str(path) in capsys.readouterr().err
    assert path.read_bytes() == before


@pytest.mark.slow
def test_an_enforced_tolerance_ends_sessions_earlier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "stopped.db"
    run = ["run", "travel", "--agents", "one-stage", "--sessions", "12", "--log", str(path)]
    assert main([*run, "--stop-at", "1"]) == 0
    found = streams(path)
    closed = [records[-1] for (_, stream), records in found.items() if stream == "trace"]
    assert len(closed) == 12
    assert any(b'"reason":"tolerance"' in bytes(str(record[-1]), "utf-8") for record in closed)
    assert "tolerance" in {stream.partition("@")[0] for _, stream in found}
    capsys.readouterr()


@pytest.mark.slow
def test_users_give_up_only_where_the_run_has_a_patience(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "patience.db")
    run = ["run", "travel", "--agents", "one-stage", "--sessions", "6", "--log", path]

    def listed(*options: str) -> list[dict[str, str]]:
        capsys.readouterr()
        assert main(["sessions", path, "--json", *options]) == 0
        found: list[dict[str, str]] = json.loads(capsys.readouterr().out)
        return found

    assert main([*run, "--patience", "off"]) == 0
    assert len(listed()) == 6
    of_their_own = [one["session"] for one in listed("state=abandoned")]
    assert main([*run, "--patience", "1"]) == 0
    assert len(listed()) == 12, "they are other sessions"
    left = [one for one in listed("state=abandoned") if one["session"] not in of_their_own]
    assert len(left) > len(of_their_own)
    assert main(["show", path, left[0]["session"]]) == 0
    shown = " ".join(capsys.readouterr().out.split())  # lines are as wide as the terminal
    assert "gives up and leaves the session: patience: 1 unproductive round" in shown
    assert main(run) == 0
    assert "6 sessions: 0 run" in capsys.readouterr().err


def test_json_is_the_outcome_with_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "json.db")
    run = ["run", "travel", "--agents", "auto", "--sessions", "1", "--log", path, "--json"]
    assert main(run) == 0
    out, err = capsys.readouterr()
    assert err == "1 session: 1 run\n"
    found = json.loads(out)
    assert (found["log"], found["sessions"], found["left"], found["why"]) == (path, 1, 0, None)
    assert main(["report", path, "--json"]) == 0
    assert found["report"] == json.loads(capsys.readouterr().out)
    assert main([*run, "--dry-run"]) == 2
