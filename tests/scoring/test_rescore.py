"""Scoring a recorded session again: next to the old scores, and nothing twice."""

from __future__ import annotations

import json

import pytest
from duolog.cli import main
from duolog.engine.events import SessionOpened, SnapshotTaken, UtilityScored
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.engine.session.runner import run_session
from duolog.engine.task import Cell, Setting
from duolog.examples.travel.travel_task import travel_task
from duolog.scoring.live import score_log
from duolog.scoring.rescore import rescore
from duolog.scoring.scorers.utility import Score, SnapshotUtility
from duolog.scoring.trajectory.options import Options

SESSION = travel_task().session(
    Cell(agent="one-stage", user="feedback", instance="1", seed=7), Setting()
)


def constant(version: str, value: float) -> SnapshotUtility:
    def score(snapshot: SnapshotTaken, opened: SessionOpened) -> Score:
        return Score(value)

    return SnapshotUtility("constant", version, score)


async def streams(log: EventLog) -> dict[str, list[bytes | None]]:
    found: dict[str, list[bytes | None]] = {}
    async for record in log.read_all(session=SESSION.id):
        found.setdefault(record.stream, []).append(record.body)
    return found


async def test_another_scorer_stands_beside_the_first() -> None:
    async with open_log("memory://") as log:
        await run_session(log, SESSION)
        before = await streams(log)
        added = await rescore(log, SESSION.id, [constant("1", 0.25)])
        after = await streams(log)
    assert added == len(after["constant@1"]) > 0
    assert {stream: after[stream] for stream in before} == before


async def test_to_do_it_twice_adds_nothing() -> None:
    async with open_log("memory://") as log:
        await run_session(log, SESSION)
        await rescore(log, SESSION.id, [constant("1", 0.25)])
        assert await rescore(log, SESSION.id, [constant("1", 0.25)]) == 0


async def test_another_version_measures_anew_and_reports_choose() -> None:
    async with open_log("memory://") as log:
        await run_session(log, SESSION)
        for version, value in (("1", 0.25), ("2", 0.75)):
            assert await rescore(log, SESSION.id, [constant(version, value)]) > 0
        finals = {}
        for chosen in ("travel", "constant", "constant@1"):
            scored = await score_log(log, SESSION.id, Options(utility=chosen))
            finals[chosen] = scored.points[-1].utility
    assert finals["constant"] == 0.75
    assert finals["constant@1"] == 0.25
    assert finals["travel"] not in (0.25, 0.75)


async def test_what_it_adds_is_of_the_snapshots() -> None:
    async with open_log("memory://") as log:
        await run_session(log, SESSION)
        await rescore(log, SESSION.id, [constant("1", 0.25)])
        scored = [
            record.event
            async for record in log.read(SESSION.id, stream="constant@1")
            if isinstance(record.event, UtilityScored)
        ]
        drafts = [r.version async for r in log.read(SESSION.id) if r.kind == "SnapshotTaken"]
    assert [event.snapshot for event in scored if event.round is None] == drafts
    assert len([event for event in scored if event.snapshot is None]) == 1, "goals changed once"


@pytest.mark.slow
def test_an_unknown_scorer_is_one_clear_line(
    tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"{tmp_path}/demo.db"
    main(["run", "travel", "--agents", "auto", "--sessions", "1", "--log", path])
    capsys.readouterr()
    assert main(["score", path, "--scorers", "applause"]) == 2
    err = capsys.readouterr().err
    assert "'applause'" in err
    assert "travel" in err
    assert err.count("\n") == 1
    assert main(["score", path, "--scorers", "travel", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == 0
