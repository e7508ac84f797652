"""``duolog counterfactual``: continuations of sessions at their stops, resumable, left out of reports."""

from __future__ import annotations

import os
import re
import shutil
import signal
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from duolog.cli import main
from duolog.engine.events import SessionOpened
from duolog.engine.log.open import open_log
from duolog.engine.records import Record
from duolog.scoring.metrics.counterfactual import CounterfactualReport
from forked import run_forked

pytestmark = pytest.mark.slow

TRAVEL = "run travel --agents one-stage --users lazy,proactive --sessions 2 --seed 7".split()
COUNTERFACTUAL = ("--tau", "1,2", "--continuations", "3")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of simulated sessions."""
    path = tmp_path_factory.mktemp("counterfactual") / "bare.db"
    assert main([*TRAVEL, "--log", str(path)]) == 0
    return path


@pytest.fixture
def log(bare: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(bare, tmp_path / "log.db"))


@pytest.fixture(scope="module")
def whole(bare: Path) -> tuple[Path, CounterfactualReport]:
    """The log with its continuations, and the output of the command."""
    path = Path(shutil.copy(bare, bare.with_name("whole.db")))
    with redirect_stdout(TextIOWrapper(BytesIO(), "utf-8")) as printed:
        assert main(["counterfactual", str(path), *COUNTERFACTUAL, "--json"]) == 0
    printed.seek(0)
    return path, msgspec.json.decode(printed.read(), type=CounterfactualReport)


@pytest.fixture
def continued(
    whole: tuple[Path, CounterfactualReport], tmp_path: Path
) -> tuple[Path, CounterfactualReport]:
    """A copy of that log, and the same report."""
    path, report = whole
    return Path(shutil.copy(path, tmp_path / "continued.db")), report


def measured(log: Path, *more: str, capsys: pytest.CaptureFixture[str]) -> CounterfactualReport:
    capsys.readouterr()
    assert main(["counterfactual", str(log), *COUNTERFACTUAL, "--json", *more]) == 0
    return msgspec.json.decode(capsys.readouterr().out, type=CounterfactualReport)


def reports(log: Path, capsys: pytest.CaptureFixture[str]) -> list[Any]:
    """The report of a log, and the analyses of its judges, as JSON."""
    found = []
    for analysis in ([], ["--sensitivity"], ["--agreement"]):
        capsys.readouterr()
        assert main(["report", str(log), "--bootstrap", "10", "--json", *analysis]) == 0
        found.append(msgspec.json.decode(capsys.readouterr().out))
    return found


def traces(log: Path) -> dict[str, list[Record]]:
    async def read() -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {}
        async with open_log(str(log), create=False) as opened:
            async for record in opened.read_all():
                if record.stream == "trace":
                    found.setdefault(record.session, []).append(record)
        return found

    return anyio.run(read)


def test_continuations_share_all_up_to_the_stop_and_have_seeds_of_their_own(
    continued: tuple[Path, CounterfactualReport],
) -> None:
    log, report = continued
    stopped = [one for one in report.sessions if one.round is not None]
    assert stopped
    assert all(len(one.continuations) == 3 for one in stopped)
    assert all(one.real == 0 == one.observed for one in report.sessions if one.round is None)
    found = traces(log)
    seeds: dict[tuple[str, int], list[int | None]] = {}
    for trace in found.values():
        opened = trace[0].event
        assert isinstance(opened, SessionOpened)
        if opened.forked_from is None:
            continue
        cut = opened.forked_from.version
        origin = found[opened.forked_from.session]
        assert [r.body for r in trace[1:cut]] == [r.body for r in origin[1:cut]]
        assert trace[cut - 1].role == "agent"  # the human decides anew what follows
        seeds.setdefault((opened.forked_from.session, cut), []).append(opened.seed)
    assert {len(set(values)) for values in seeds.values()} == {3}
    assert len(seeds) == len({(one.session, one.round) for one in stopped})


def test_the_observed_drop_is_the_one_of_the_report_and_the_report_stays_as_it_is(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, *analyses = reports(log, capsys)
    found = measured(log, capsys=capsys)
    assert reports(log, capsys) == [before, *analyses]
    drops = {
        (group["group"]["user"], int(tau)): drop["abs"]
        for group in before["groups"]
        for tau, drop in group["drop"].items()
    }
    for drop in found.drops:
        assert drop.observed.value == pytest.approx(drops[drop.group["user"], drop.tau])


def test_run_again_nothing_is_run_and_more_continuations_are_added(
    continued: tuple[Path, CounterfactualReport], capsys: pytest.CaptureFixture[str]
) -> None:
    log, first = continued
    sessions = len(traces(log))
    assert measured(log, capsys=capsys) == first
    assert len(traces(log)) == sessions
    more = measured(log, "--continuations", "5", capsys=capsys)
    for before, after in zip(first.sessions, more.sessions, strict=True):
        assert after.continuations[: len(before.continuations)] == before.continuations
        assert len(after.continuations) == (5 if after.round else 0)


@pytest.mark.slow
def test_killed_and_run_again_it_ends_as_it_would_have(
    log: Path, whole: tuple[Path, CounterfactualReport], capsys: pytest.CaptureFixture[str]
) -> None:
    _, report = whole
    program = (
        "import os, signal, sys\n"
        "from duolog.cli import main\n"
        "from duolog.cli.text.run_progress import SessionProgress\n"
        "advance, ended = SessionProgress.advance, []\n"
        "def deadly(self, outcome):\n"
        "    advance(self, outcome)\n"
        "    ended.append(outcome)\n"
        "    if len(ended) == 4:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "SessionProgress.advance = deadly\n"
        "main(sys.argv[1:])\n"
    )
    command = ["counterfactual", str(log), *COUNTERFACTUAL, "--concurrency", "3"]
    killed = run_forked(["-P", "-c", program, *command], Path.cwd(), os.environ)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    held = traces(log)
    closed = [name for name, trace in held.items() if trace[-1].kind == "SessionClosed"]
    assert 4 + 4 <= len(closed) < 4 + sum(len(one.continuations) for one in report.sessions)
    assert measured(log, capsys=capsys) == report


def test_a_session_that_was_stopped_is_continued_without_the_stop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "stopped.db"
    people = "proactive+strictness=2"
    run = f"run travel --agents one-stage --users {people} --instances 2 --seed 7 --stop-at 2"
    assert main([*run.split(), "--log", str(log)]) == 0
    report = measured(log, capsys=capsys)
    assert [one.round is not None for one in report.sessions] == [True, True]
    states = [trace[-1].event for name, trace in traces(log).items() if name.startswith("fork-")]
    assert {getattr(event, "reason", None) for event in states} <= {"finished", "abandoned"}


def test_the_table_names_both_drops(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["counterfactual", str(log), "--tau", "1", "--continuations", "2"]) == 0
    out = capsys.readouterr().out
    for word in ("Real", "Observed", "Difference", "Within", "Between"):
        assert word in out
    assert re.search(r"^one-stage +lazy +travel", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(["--tau", "0"], "--tau"), (["--tau", "x"], "--tau"), (["--dataset", "nowhere"], "nowhere")],
)
def test_bad_input_is_one_clear_line(
    log: Path, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["counterfactual", str(log), *arguments]) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1


def test_a_log_without_simulated_sessions_has_no_such_drop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(tmp_path / "auto.db")
    assert main(["run", "travel", "--agents", "auto", "--sessions", "1", "--log", log]) == 0
    capsys.readouterr()
    assert main(["counterfactual", log]) == 2
    assert "no closed simulated session with a human" in capsys.readouterr().err


@pytest.mark.slow
def test_continuations_go_on_where_patience_ended_the_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    impatient = tmp_path / "impatient.db"
    run = (
        "run travel --agents one-stage --users proactive --sessions 4 --seed 7 --patience 1".split()
    )
    assert main([*run, "--log", str(impatient)]) == 0
    report = measured(impatient, capsys=capsys)
    stopped = [one for one in report.sessions if one.round is not None]
    assert stopped
    # Users who gave up at the stop lost nothing observed, but could have gained by staying.
    assert {one.observed for one in stopped} == {0}
    assert any(one.real is not None and one.real < 0 for one in stopped)
