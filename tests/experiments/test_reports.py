"""``duolog.report`` and ``duolog.compare``: the numbers of the command line, as objects."""

from __future__ import annotations

from pathlib import Path

import anyio
import duolog
import pytest
from duolog.cli import main
from duolog.engine.errors import InvalidInput, LogNotFound


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    log = tmp_path_factory.mktemp("trips") / "trips.db"

    async def play() -> None:
        agents = ["one-stage", "two-stage"]
        await duolog.run("travel", agents=agents, users=["proactive"], sessions=3, log=str(log))

    anyio.run(play)
    return log


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_the_numbers_are_those_of_the_command(
    trips: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert duolog.report(trips).to_json() == printed(capsys, "report", trips, "--json")


def test_the_conventions_are_those_of_the_command(
    trips: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = duolog.report(trips, convention="paper", bootstrap=50, seed=3)
    options = ("--convention", "paper", "--bootstrap", "50", "--seed", "3")
    assert report.to_json() == printed(capsys, "report", trips, *options, "--json")


def test_it_works_inside_a_running_loop(trips: Path) -> None:
    async def notebook() -> str:
        return duolog.report(trips, bootstrap=0).to_json()

    assert anyio.run(notebook) == duolog.report(trips, bootstrap=0).to_json()


def test_it_is_shown_as_text_and_in_a_notebook(trips: Path) -> None:
    report = duolog.report(trips, bootstrap=0)
    assert {one.group["agent"] for one in report.groups} == {"one-stage", "two-stage"}
    assert "one-stage" in str(report)
    assert "<table" in report._repr_html_()
    assert list(report.to_pandas("sessions")["agent"]) == ["one-stage"] * 3 + ["two-stage"] * 3


def test_a_figure_is_drawn(trips: Path, tmp_path: Path) -> None:
    report = duolog.report(trips, bootstrap=0)
    plot = report.plot("curve")
    assert plot._repr_png_().startswith(b"\x89PNG")
    plot.save(tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").read_text(encoding="utf-8").startswith("<?xml")
    with pytest.raises(InvalidInput, match="unknown figure 'curv'; did you mean 'curve'"):
        report.plot("curv")


def test_agents_are_compared_as_the_command_does(
    trips: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = duolog.compare(duolog.report(trips, bootstrap=0), "one-stage", "two-stage")
    [pair] = found.pairs
    assert (pair.first, pair.second, pair.pairs) == ("one-stage", "two-stage", 3)
    command = ("report", trips, "--compare", "one-stage,two-stage", "--json")
    assert found.to_json() == printed(capsys, *command)
    assert "one-stage" in str(found)
    assert "<table" in found._repr_html_()


def test_what_is_wrong_is_said(trips: Path, tmp_path: Path) -> None:
    with pytest.raises(LogNotFound, match="no such file"):
        duolog.report(tmp_path / "none.db")
    with pytest.raises(InvalidInput, match="no session has agent 'three-stage'"):
        duolog.compare(duolog.report(trips, bootstrap=0), "one-stage", "three-stage")
