"""``duolog.run``: experiments from Python, which the command line continues and reports on."""

from __future__ import annotations

from pathlib import Path

import anyio
import duolog
import pytest
from duolog.cli import main
from duolog.engine.errors import InvalidInput
from duolog.engine.session.simulation import Outcome
from toy_task import bouquet_task


class Counted:
    """The progress of a run, counted."""

    visible = False

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    def advance(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def share(self, processes: int) -> None:
        raise AssertionError("the progress is not visible")


async def names(log: Path) -> set[str]:
    async with duolog.open(str(log), create=False) as opened:
        return {summary.session async for summary in opened.sessions()}


async def test_a_run_records_every_session_of_the_grid(tmp_path: Path) -> None:
    log, progress = tmp_path / "trips.db", Counted()
    done = await duolog.run(
        "travel",
        agents=["one-stage", "two-stage"],
        users=["proactive"],
        sessions=2,
        seed=7,
        log=str(log),
        progress=progress,
    )
    assert (done.sessions, done.left, done.why) == (4, 0, None)
    assert (done.errors, done.failures, done.spent) == ((), (), None)
    assert len(progress.outcomes) == 4
    found = {name.rpartition("-proactive-")[0] for name in await names(log)}
    assert found == {
        f"travel-{number}-{agent}" for number in (0, 1) for agent in ("one-stage", "two-stage")
    }


async def test_the_same_call_runs_nothing_again(tmp_path: Path) -> None:
    log = str(tmp_path / "trips.db")
    arguments = {"agents": ["one-stage"], "users": ["proactive"], "sessions": 1, "log": log}
    await duolog.run("travel", **arguments)  # type: ignore[arg-type]  # options by name
    progress = Counted()
    done = await duolog.run("travel", **arguments, progress=progress)  # type: ignore[arg-type]
    assert done.left == 0
    assert [type(outcome) for outcome in progress.outcomes] == [str]


def test_the_command_goes_on_from_a_run_in_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(tmp_path / "trips.db")
    anyio.run(
        lambda: duolog.run(
            "travel", agents=["one-stage"], users=["proactive"], sessions=1, seed=3, log=log
        )
    )
    command = ["run", "travel", "--agents", "one-stage", "--users", "proactive", "--sessions", "2"]
    assert main([*command, "--seed", "3", "--log", log]) == 0
    assert "2 sessions: 1 run, 1 in the log already" in capsys.readouterr().err


async def test_a_task_that_a_program_made_is_run(tmp_path: Path) -> None:
    done = await duolog.run(bouquet_task(), sessions=2, log=str(tmp_path / "toy.db"))
    assert done.sessions > 0
    assert done.left == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"agents": ["two-stge"]}, "unknown agent 'two-stge'; did you mean 'two-stage'"),
        ({"users": []}, "users is empty"),
        ({"sessions": 0}, "sessions must be more than 0"),
        ({"log": "memory://"}, "would be gone"),
    ],
)
def test_what_is_wrong_is_said_before_a_log_is_made(
    arguments: dict[str, object], complaint: str, tmp_path: Path
) -> None:
    given = {"log": str(tmp_path / "trips.db"), **arguments}
    with pytest.raises(InvalidInput, match=complaint):
        anyio.run(lambda: duolog.run("travel", **given))  # type: ignore[arg-type]  # options by name
    assert not list(tmp_path.iterdir())
