"""A session's timeline: its state at any record equals the fold of the records up to it."""

from __future__ import annotations

import msgspec
import pytest
from duolog.cli.watch.timeline import Moment, Timeline
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.updates import StopAdvice, StopWithdrawn
from duolog.testing.records import RecordWriter
from hypothesis import given
from hypothesis import strategies as st
from scripted_logs import script_of, scripts

OPTIONS = Options()


def timeline_of(script: RecordWriter, count: int | None = None) -> Timeline:
    timeline = Timeline(script.session, OPTIONS)
    for record in script.records[:count]:
        timeline.add(record)
    return timeline


@given(scripts(), st.lists(st.integers(0, 30), max_size=12))
def test_a_moment_is_the_fold_of_the_records_up_to_it(
    script: RecordWriter, visits: list[int]
) -> None:
    timeline = timeline_of(script)
    for visit in visits:
        count = visit % (len(script.records) + 1)
        fold = TrajectoryFold(script.session, OPTIONS)
        for record in script.records[:count]:
            fold.feed(record)
        trajectory = fold.trajectory()
        now = timeline.at(count)
        assert (now.count, now.points, now.state) == (count, trajectory.points, trajectory.state)
        assert now.stops == fold.stops


@given(scripts(), st.lists(st.integers(0, 30), max_size=6))
def test_looking_back_shows_what_was_to_be_seen_then(
    script: RecordWriter, visits: list[int]
) -> None:
    whole = timeline_of(script)
    for visit in visits:
        count = visit % (len(script.records) + 1)
        then = timeline_of(script, count)
        entries = whole.at(count).entries
        assert whole.entries[:entries] == then.entries
        assert whole.texts[:count] == then.texts


@pytest.mark.slow
@given(scripts(), st.data())
def test_looking_back_while_it_grows_changes_nothing(
    script: RecordWriter, data: st.DataObject
) -> None:
    timeline = Timeline(script.session, OPTIONS)
    for number, record in enumerate(script.records, start=1):
        timeline.add(record)
        timeline.at(data.draw(st.integers(0, number)))
    last = len(script.records)
    assert timeline.at(last) == timeline_of(script).at(last)


def test_a_record_that_it_has_already_is_left_out() -> None:
    script = script_of(["human", "agent"])
    timeline = timeline_of(script)
    timeline.add(script.records[1])
    assert timeline.records == script.records


def test_rounds_begin_where_the_human_acts_again() -> None:
    timeline = timeline_of(script_of(["human", "agent", "agent", "human", "agent", "human"]))
    assert [timeline.begins(number) for number in (0, 1, 2, 3, 4)] == [None, 1, 5, 7, None]
    assert [timeline.round_at(count) for count in (1, 4, 5, 6, 7)] == [1, 1, 2, 2, 3]
    headings = [entry.round for entry in timeline.entries if entry.round]
    assert headings == [1, 2, 3]


def test_advice_to_stop_comes_with_the_rating_that_brings_it_about() -> None:
    script = script_of(["human", "agent", "human"])
    bad = script.rated(1, 1)
    better = script.rated(1, 4, judge="judge@2")
    timeline = timeline_of(script)
    [advised], [withdrawn] = (timeline.advice[r.position - 1] for r in (bad, better))
    assert isinstance(advised, StopAdvice)
    assert (advised.tau, advised.round) == (1, 1)
    assert isinstance(withdrawn, StopWithdrawn)
    assert timeline.at(len(script.records) - 1).stops == {1: 1}
    assert timeline.at(len(script.records)).stops == {}


def test_a_damaged_record_is_a_problem_and_no_end() -> None:
    script = script_of(["human", "agent", "human", "agent"])
    script.records[3] = msgspec.structs.replace(script.records[3], body=b'{"text": 5}')
    script.records[3] = msgspec.structs.replace(script.records[3], _event=None)
    timeline = timeline_of(script)
    assert timeline.problem
    assert len(timeline.records) == 5
    assert timeline.at(5).count == 5


def test_before_the_first_record_there_is_nothing() -> None:
    assert Timeline("s", OPTIONS).at(0) == Moment()
