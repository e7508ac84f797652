from __future__ import annotations

import msgspec
from duolog.engine.events import ApprovalAsked, ApprovalGiven, Origin
from duolog.scoring.columns.parquet import round_table
from duolog.scoring.columns.rows import Folded, SessionFold, rows_of, trajectory_of
from duolog.scoring.live import score_records
from duolog.scoring.process import Process, ProcessFold
from duolog.scoring.report.tidy import tidy_rows
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.points import Point, Trajectory
from duolog.testing.records import RecordWriter
from hypothesis import given
from scripted_logs import scripts


@given(scripts())
def test_rows_are_the_trajectory_and_the_process_measures(script: RecordWriter) -> None:
    fold, process = SessionFold("s", Options()), ProcessFold()
    for record in script.records:
        fold.feed(record)
        process.feed(record)
    folded = fold.folded()
    expected = msgspec.structs.replace(score_records(script.records), process=process.measures)
    assert trajectory_of(folded) == expected
    assert folded.session.rounds == len(folded.rounds)
    assert folded.session.key == script.records[0].position
    assert fold.position == script.records[-1].position
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(folded), type=Folded)
    assert again == folded


def test_every_part_of_a_trajectory_survives_as_rows() -> None:
    trajectory = Trajectory(
        session="s",
        group={"agent": "a"},
        instance="i",
        points=(Point(round=1, value=0.5, utility=0.5, rating=2, effort={"acts": 1, "x": None}),),
        silent=True,
        agent_tokens=5,
        human_tokens=0,
        estimated=True,
        evaluated=False,
        final=0.25,
        final_missing=True,
        output=False,
        scorer="u@1",
        judges=("human",),
        baseline=True,
        state="abandoned",
        forked_from=Origin(session="o", version=3),
        forked_at=2,
        faults={"leak": 1},
        process=Process(initiatives={"ann": 1}, loops=2),
        candidates=("u@1",),
        problem="p",
        lost=4,
        late=(1,),
        coarse=1,
    )
    assert trajectory_of(rows_of(trajectory)) == trajectory
    assert rows_of(trajectory, key=7, seed=1 << 70).session.seed == 1 << 70


def test_a_damaged_body_is_named_in_the_row() -> None:
    script = RecordWriter()
    script.opened()
    script.human("hello")
    script.agent("a plan")
    fold = SessionFold("s", Options())
    for record in script.records[:-1]:
        fold.feed(record)
    fold.feed(msgspec.structs.replace(script.records[-1], body=b'{"text": 1}'))
    folded = fold.folded()
    assert folded.session.unreadable
    assert folded.session.rounds == 1


def test_a_row_counts_the_approvals_that_wait() -> None:
    script = RecordWriter()
    script.opened()
    asked = script.agent(ApprovalAsked(question="may I?"))
    script.agent(ApprovalAsked(question="and this?"))
    fold = SessionFold("s", Options())
    for record in script.records:
        fold.feed(record)
    assert fold.folded().session.waiting == 2
    script.human(ApprovalGiven(asked=asked.version, approved=False))
    fold.feed(script.records[-1])
    assert fold.folded().session.waiting == 1


def test_the_rounds_with_late_events_are_marked_in_the_tables() -> None:
    points = tuple(Point(round=k, value=None, utility=0.5, rating=None, effort={}) for k in (1, 2))
    trajectory = Trajectory(session="s", group={}, points=points, late=(2,))
    assert round_table([rows_of(trajectory)]).column("late").to_pylist() == [False, True]
    assert [row["late"] for row in tidy_rows([trajectory], "rounds")] == [False, True]
