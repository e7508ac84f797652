"""``duolog tour``: all pages at a pipe, one at a time at a terminal, and nothing made up."""

from __future__ import annotations

import shlex
from pathlib import Path

import anyio
import pytest
from duolog.cli import main
from duolog.engine.log.open import open_log
from duolog.scoring.live import score_log
from duolog.scoring.trajectory.points import Trajectory
from terminal import at_terminal

pytestmark = [pytest.mark.usefixtures("plain"), pytest.mark.slow]

TITLES = ["One collaboration", "Rounds", "Utility", "Effort", "A stop", "Advice", "A fork", "Now"]
WIDTH = 80


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "a tour.db"


@pytest.fixture
def shown(log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    assert main(["tour", "--log", str(log)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def kept(log: Path) -> list[Trajectory]:
    """The session and its fork, scored."""

    async def read() -> list[Trajectory]:
        async with open_log(f"sqlite:///{log}", create=False) as opened:
            names = [summary.session async for summary in opened.sessions()]
            return [await score_log(opened, name) for name in names]

    return anyio.run(read)


def test_without_a_terminal_it_prints_all_pages(shown: str) -> None:
    titles = [line for line in shown.splitlines() if line.startswith("━━ ")]
    assert [title[3:].startswith(name) for title, name in zip(titles, TITLES, strict=True)]
    assert all(len(title) <= WIDTH for title in titles)
    assert "\x1b" not in shown
    assert "Enter: next" not in shown


def test_what_it_says_is_what_its_log_holds(shown: str, log: Path) -> None:
    session, fork = kept(log)
    for point in session.points:
        assert f"{point.round:>5}     {point.utility:.3f}   " in shown
    bad = [p.round for p in session.points if p.rating is not None and p.rating < 3]
    line = next(line for line in shown.splitlines() if "about to give up" in line)
    at = next(number for number in bad if number - 1 in bad)  # the second one in a row
    assert int(line.split()[0]) == at
    lost = (session.points[at - 1].utility or 0.0) - (session.points[-1].utility or 0.0)
    assert f"a drop of {lost:.3f} at τ = 2" in " ".join(shown.split())
    assert lost < -0.1  # a loss that one sees
    rescued = max(point.utility or 0.0 for point in fork.points)
    assert f"stays to the end, and has {rescued:.3f}." in " ".join(shown.split())
    assert rescued > (session.points[at - 1].utility or 0.0) - lost / 2
    rounds = next(line for line in shown.splitlines() if line.startswith("Rounds  "))
    assert rounds.split()[1:3] == [str(len(session.points)), str(len(fork.points))]


def test_the_commands_that_it_prints_work(
    shown: str, log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, ours = shown.rsplit("━━ Try it yourself", 1)
    commands = [shlex.split(line) for line in ours.splitlines() if line.startswith("    ")]
    on_log = [words for words in commands if str(log) in words]
    assert [words[words.index(str(log)) - 1] for words in on_log] == ["show", "report"]
    for words in on_log:
        assert main(words[words.index(str(log)) - 1 :]) == 0
        assert capsys.readouterr().out


def test_it_adds_nothing_to_a_log_that_holds_it_already(shown: str, log: Path) -> None:
    before = log.read_bytes()
    assert main(["tour", "--log", str(log)]) == 0
    assert log.read_bytes() == before


def test_at_a_terminal_enter_goes_on_and_q_quits(tmp_path: Path) -> None:
    command = ["-P", "-m", "duolog", "tour"]
    environment = {"NO_COLOR": "1"}
    with at_terminal(command, where=tmp_path, environment=environment, size=(24, WIDTH)) as seen:
        seen.until("1/8")
        seen.until("Enter: next")
        seen.type("\r")
        seen.until("2/8")
        seen.until("Enter: next")
        seen.type("q")
        assert seen.end() == 0
        assert "3/8" not in seen.shown
        assert "\x1b[3" not in seen.sent  # no colour
