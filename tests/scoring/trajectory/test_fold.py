from __future__ import annotations

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import (
    ActionTaken,
    FeedbackGiven,
    Participant,
    RecordsLate,
    ScorerFailed,
    ScorerRef,
    SimulatorFlagged,
)
from duolog.engine.records import RECORDING, Record
from duolog.engine.scorers.choice import preferred
from duolog.scoring.live import score_records
from duolog.scoring.trajectory.files import decode_trajectory, encode_trajectory
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.options import Options
from duolog.scoring.trajectory.updates import (
    AnyUpdate,
    EffortUpdated,
    RatingUpdated,
    RoundClosed,
    RoundOpened,
    ScorerDown,
    SessionEnded,
    StageChanged,
    StopAdvice,
    StopWithdrawn,
    Update,
    UtilityUpdated,
)
from duolog.testing.records import HUMAN, RecordWriter

SEARCH = ActionTaken(name="search")


def updates_of(script: RecordWriter, options: Options | None = None) -> list[Update]:
    fold = TrajectoryFold(script.session, options)
    return [update for record in script.records for update in fold.feed(record)]


def brought_by(
    script: RecordWriter, record: Record, options: Options | None = None
) -> list[Update]:
    return [u for u in updates_of(script, options) if u.position == record.position]


def utilities(script: RecordWriter, options: Options | None = None) -> list[float | None]:
    return [point.utility for point in score_records(script.records, options).points]


def ratings(script: RecordWriter, options: Options | None = None) -> list[int | str | None]:
    points = score_records(script.records, options).points
    return ["pending" if point.pending else point.rating for point in points]


def five_rounds(judge: str | None = None) -> tuple[RecordWriter, list[Record]]:
    """Five rounds, in each of which the human asks and the agent drafts; gives the drafts."""
    script = RecordWriter()
    script.opened(config={"judge": judge} if judge else {})
    drafts = []
    for number in range(1, 6):
        script.human(f"ask {number}")
        drafts.append(script.output(f"draft {number}"))
    return script, drafts


# --- faults of simulated users -------------------------------------------------------------------


def test_faults_are_counted_by_kind_as_the_newest_of_each_audit_has_them() -> None:
    script, _ = five_rounds()

    def flagged(stream: str, fault: str) -> Record:
        flag = SimulatorFlagged(fault=fault, of=2)
        return script.add(flag, stream.partition("@")[0], "scorer", stream=stream)

    assert score_records(script.records).faults == {}
    flagged("audit@1.9", "leak")
    assert score_records(script.records).faults == {"leak": 1}
    for fault in ("leak", "leak", "invention"):
        flagged("audit@1.10", fault)
    late = flagged("other@1", "leak")
    assert score_records(script.records).faults == {"invention": 1, "leak": 3}
    assert brought_by(script, late) == []


# --- rounds, stages ------------------------------------------------------------------------------


def test_a_session_in_the_making_has_its_open_round_as_last_point() -> None:
    script = RecordWriter()
    assert TrajectoryFold("s").trajectory().points == ()
    script.opened(request="plan a trip")
    [point] = score_records(script.records).points
    assert (point.round, point.utility, point.stage) == (1, None, "initial")
    script.agent("where to?")
    script.human("to Rome")
    assert [point.round for point in score_records(script.records).points] == [1, 2]


def test_stages_end_with_the_first_round_that_has_an_update() -> None:
    script = RecordWriter()
    script.opened()
    script.human("hi")
    script.agent("where to?")
    script.human("Rome")
    draft = script.output("fly to Rome")  # k' = 2
    turn = script.human("earlier, please")
    script.output("fly to Rome at 8")
    script.closed()
    points = score_records(script.records).points
    assert [point.stage for point in points] == ["initial", "initial", "refinement"]
    assert [point.updated for point in points] == [False, True, True]
    assert not any(isinstance(u, StageChanged) for u in brought_by(script, draft))
    closed, opened, staged, effort = brought_by(script, turn)
    assert isinstance(closed, RoundClosed)
    assert closed.round == 2
    assert closed.point == points[1]
    assert opened == RoundOpened(
        session="s",
        round=3,
        position=turn.position,
        version=turn.version,
        stage="refinement",
        utility=None,
        missing="not evaluated: no utility scorer ran",
    )
    assert isinstance(staged, StageChanged)
    assert (staged.round, staged.stage) == (3, "refinement")
    assert isinstance(effort, EffortUpdated)
    assert effort.round == 3


def test_closing_a_session_closes_its_last_round() -> None:
    script = RecordWriter()
    script.opened()
    script.human("hi")
    end = script.closed("limit")
    closed, ended = brought_by(script, end)
    assert isinstance(closed, RoundClosed)
    assert closed.round == 1
    assert isinstance(ended, SessionEnded)
    assert (ended.state, ended.by) == ("limit", "engine")
    assert score_records(script.records).state == "limit"


def test_an_agent_that_starts_unprompted_begins_round_1_even_without_an_opening() -> None:
    script = RecordWriter()
    first = script.agent("hello")
    [opened] = brought_by(script, first)
    assert isinstance(opened, RoundOpened)
    assert opened.round == 1


def test_rounds_are_counted_as_asked() -> None:
    script = RecordWriter()
    script.opened()
    script.human("a trip, please")
    script.human("to Rome")
    script.agent("sure")
    script.closed()
    assert len(score_records(script.records).points) == 1
    assert len(score_records(script.records, Options(rounds="human-turn")).points) == 2


# --- utility -------------------------------------------------------------------------------------


def test_utility_is_carried_forward_from_zero() -> None:
    script, drafts = five_rounds()
    script.scored(0.4, snapshot=drafts[1])
    script.scored(0.3, snapshot=drafts[3])
    assert utilities(script) == [0.0, 0.4, 0.4, 0.3, 0.3]


def test_without_a_new_snapshot_the_previous_utility_stands_and_is_not_stale() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    draft = script.output("draft")
    script.scored(0.5, snapshot=draft)
    script.human("what does it cost?")
    script.agent("100")
    first, second = score_records(script.records).points
    assert (first.value, first.utility, first.stale) == (0.5, 0.5, False)
    assert (second.value, second.utility, second.stale) == (None, 0.5, False)


def test_the_last_of_several_snapshots_in_a_round_counts() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    one = script.output("one")
    two = script.output("two")
    script.scored(0.2, snapshot=two)
    late = script.scored(0.9, snapshot=one)
    assert utilities(script) == [0.2]
    [update] = brought_by(script, late)
    assert isinstance(update, UtilityUpdated)
    assert update.utility == 0.2


def test_a_missing_score_keeps_the_previous_utility_and_is_stale() -> None:
    script, drafts = five_rounds()
    script.scored(0.4, snapshot=drafts[0])
    script.scored(None, snapshot=drafts[1])
    script.scored(0.6, snapshot=drafts[2])
    first, second, third, fourth, _ = score_records(script.records).points
    assert (first.stale, first.utility) == (False, 0.4)
    assert (second.value, second.stale, second.utility) == (None, True, 0.4)
    assert (third.stale, third.utility) == (False, 0.6)
    assert (fourth.stale, fourth.utility) == (True, 0.6)  # it was never scored


def test_a_later_snapshot_of_the_round_without_a_score_makes_it_stale() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    one = script.output("one")
    script.scored(0.7, snapshot=one)
    two = script.output("two")
    missing = script.scored(None, snapshot=two)
    [point] = score_records(script.records).points
    assert (point.value, point.utility, point.stale) == (0.7, 0.7, True)
    [update] = brought_by(script, missing)
    assert isinstance(update, UtilityUpdated)
    assert (update.stale, update.utility, update.missing) == (True, 0.7, "no score")


def test_a_late_score_updates_its_own_round_and_is_carried_forward_from_there() -> None:
    script, drafts = five_rounds()
    script.scored(0.5, snapshot=drafts[3])
    end = script.closed()
    late = script.scored(0.8, snapshot=drafts[1])
    assert utilities(script) == [0.0, 0.8, 0.8, 0.5, 0.5]
    [update] = brought_by(script, late)
    assert isinstance(update, UtilityUpdated)
    assert (update.round, update.utility, update.through) == (2, 0.8, 3)
    assert (update.position, update.version) == (late.position, end.version)


def test_a_first_score_that_comes_late_reaches_the_open_round_too() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    draft = script.output("draft")
    script.human("more")
    script.output("another")
    late = script.scored(0.25, snapshot=draft)
    told = [u for u in brought_by(script, late) if isinstance(u, UtilityUpdated)]
    assert [(u.round, u.utility, u.through, u.stale) for u in told] == [
        (1, 0.25, 2, False),
        (2, 0.25, 2, True),  # the new output is without a score from this scorer
    ]


def test_a_score_before_the_round_closes_stands_in_the_point_that_closes_it() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    draft = script.output("draft")
    script.scored(0.5, snapshot=draft)
    turn = script.human("more")
    closed = brought_by(script, turn)[0]
    assert isinstance(closed, RoundClosed)
    assert (closed.point.value, closed.point.utility) == (0.5, 0.5)


def test_the_point_that_closes_a_round_after_a_late_score_carries_it() -> None:
    script, drafts = five_rounds()
    script.scored(0.8, snapshot=drafts[1])  # late: round 5 is open
    end = script.closed()
    closed = brought_by(script, end)[0]
    assert isinstance(closed, RoundClosed)
    assert closed.point.utility == 0.8


def test_a_round_may_be_scored_as_such() -> None:
    script = RecordWriter()
    script.opened()
    script.human("what does it cost?")
    script.agent("100")
    script.human("and a day later?")
    draft = script.output("draft")
    script.scored(0.3, round=1)
    script.scored(0.6, round=2)
    first, second = score_records(script.records).points
    assert (first.value, second.value) == (0.3, 0.6)
    assert not second.stale  # this scorer scores rounds, not the draft in it
    script.scored(0.1, snapshot=draft)
    assert utilities(script) == [0.3, 0.6]  # the score of the round counts before
    script.scored(None, round=1)
    assert utilities(script) == [0.3, 0.6]  # a missing score replaces no value


def test_a_round_whose_own_score_is_missing_is_stale() -> None:
    script = RecordWriter()
    script.opened()
    script.human("what does it cost?")
    script.agent("100")
    script.scored(None, round=1)
    [point] = score_records(script.records).points
    assert (point.value, point.utility, point.stale) == (None, None, True)


def test_an_output_in_a_round_that_is_not_scored_is_stale() -> None:
    script = RecordWriter()
    script.opened()
    script.human("a trip, please")
    script.output("draft")
    script.human("cheaper")
    script.output("another")
    script.scored(0.6, round=2)
    first, second = score_records(script.records).points
    assert (first.value, first.utility, first.updated, first.stale) == (None, 0.0, True, True)
    assert (second.value, second.stale) == (0.6, False)


def test_the_newest_version_of_a_scorer_counts_whenever_it_comes() -> None:
    script, drafts = five_rounds()
    script.scored(0.1, snapshot=drafts[0], scorer="u@1.9")
    script.scored(0.2, snapshot=drafts[1], scorer="u@1.9")
    new = script.scored(0.7, snapshot=drafts[0], scorer="u@1.10")
    assert utilities(script) == [0.7, 0.7, 0.7, 0.7, 0.7]
    changed = [(u.round, u.value) for u in brought_by(script, new) if isinstance(u, UtilityUpdated)]
    assert changed == [(1, 0.7), (2, None)]
    script.scored(0.3, snapshot=drafts[2], scorer="u@1.9")
    assert utilities(script)[2] == 0.7
    assert utilities(script, Options(utility="u@1.9")) == [0.1, 0.2, 0.3, 0.3, 0.3]


def test_the_utility_that_is_named_counts() -> None:
    script = RecordWriter()
    script.opened(config={"utility": "zeta"})
    script.human("go")
    draft = script.output("draft")
    script.scored(0.9, snapshot=draft, scorer="alpha@1")
    script.scored(0.1, snapshot=draft, scorer="zeta@1")
    assert utilities(script) == [0.1]
    assert utilities(script, Options(utility="alpha")) == [0.9]
    assert utilities(script, Options(utility="nobody")) == [None]


def test_of_several_scorers_none_of_which_is_named_none_counts() -> None:
    script = RecordWriter()
    script.opened()
    script.human("go")
    draft = script.output("draft")
    script.scored(0.9, snapshot=draft, scorer="zeta@1")
    script.scored(0.8, snapshot=draft, scorer="zeta@2")
    assert utilities(script) == [0.8]
    other = script.scored(0.1, snapshot=draft, scorer="alpha@1")
    assert utilities(script) == [None]
    found = score_records(script.records)
    assert (found.evaluated, found.scorer, found.candidates) == (False, None, ("alpha", "zeta"))
    why = "several scorers measured utility, and none is chosen (--utility): alpha, zeta"
    [update] = [u for u in brought_by(script, other) if isinstance(u, UtilityUpdated)]
    assert (update.utility, update.missing) == (None, why)
    assert utilities(script, Options(utility="zeta")) == [0.8]


def test_a_score_of_a_version_that_the_trace_does_not_have_is_counted_as_unplaced() -> None:
    script, drafts = five_rounds()
    fold = TrajectoryFold("s")
    for record in script.records[:-1]:  # all but the last draft
        fold.feed(record)
    assert fold.feed(script.scored(0.5, snapshot=drafts[-1])) == ()
    assert fold.unplaced == 1


@pytest.mark.parametrize(
    ("streams", "wanted", "expected"),
    [
        ([], None, None),
        (["u@1"], None, "u@1"),
        (["u@1"], "v", None),
        (["u@1.9", "u@1.10", "u@1.2"], None, "u@1.10"),
        (["u@2.0", "u@2.0rc1", "u@2.0.1"], "u", "u@2.0.1"),
        (["u@2.0", "u@2.0rc1"], "u", "u@2.0"),
        (["u@1", "u@2"], "u@1", "u@1"),
        (["v@9", "u@1"], None, "u@1"),
        (["a@b@1", "a@b@2"], "a@b", "a@b@2"),
        (["plain"], "plain", "plain"),
    ],
)
def test_which_stream_counts(streams: list[str], wanted: str | None, expected: str | None) -> None:
    assert preferred(streams, wanted) == preferred(reversed(streams), wanted) == expected


# --- ratings, tolerance --------------------------------------------------------------------------


def test_without_a_judge_all_ratings_are_missing_and_nobody_stops() -> None:
    script, _ = five_rounds()
    script.closed()
    assert ratings(script) == [None] * 5
    told = updates_of(script)
    assert not any(isinstance(u, RatingUpdated | StopAdvice) for u in told)


def test_without_a_judge_recorded_ratings_count_all_the_same() -> None:
    script, _ = five_rounds()
    script.closed()
    script.rated(2, 1)
    script.rated(3, 2)
    assert ratings(script) == [None, 1, 2, None, None]
    advice = [(u.round, u.tau) for u in updates_of(script) if isinstance(u, StopAdvice)]
    assert advice == [(2, 1), (3, 2)]
    assert ratings(script, Options(judge="none")) == [None] * 5


def test_the_rating_of_a_judge_is_pending_until_it_is_recorded_even_after_the_close() -> None:
    script, _ = five_rounds("judge")
    script.closed()
    assert ratings(script) == ["pending"] * 5
    script.rated(1, 4)
    script.rated(2, None)
    assert ratings(script) == [4, None, "pending", "pending", "pending"]


def test_tolerance_waits_for_a_pending_rating_and_then_catches_up() -> None:
    script, _ = five_rounds("judge")
    script.rated(2, 2)
    script.rated(3, 1)
    assert not any(isinstance(u, StopAdvice) for u in updates_of(script))
    last = script.rated(1, 3)
    rated, *advice = brought_by(script, last)
    assert isinstance(rated, RatingUpdated)
    assert (rated.round, rated.rating) == (1, 3)
    assert [(u.round, u.tau) for u in advice if isinstance(u, StopAdvice)] == [(2, 1), (3, 2)]
    second = advice[1]
    assert isinstance(second, StopAdvice)
    assert (second.rounds, second.ratings) == ((2, 3), (2, 1))


def test_a_missing_rating_ends_a_run_of_unsatisfactory_ones() -> None:
    script, _ = five_rounds("judge")
    for number, rating in enumerate([2, None, 2, 1, 5], start=1):
        script.rated(number, rating)
    fold = TrajectoryFold("s")
    for record in script.records:
        fold.feed(record)
    assert fold.stops == {1: 1, 2: 4}


def test_a_persons_rating_counts_if_it_is_there_when_due() -> None:
    script = RecordWriter()
    script.opened(config={"judge": "human"})
    script.human("go")
    script.output("draft")
    assert ratings(script) == ["pending"]
    rated = script.rated(1, 2, judge=None)
    assert [type(u) for u in brought_by(script, rated)] == [RatingUpdated, StopAdvice]
    due = script.human("no, to Rome")
    assert ratings(script) == [2, "pending"]
    assert [type(u) for u in brought_by(script, due)] == [
        RoundClosed,
        RoundOpened,
        StageChanged,
        EffortUpdated,
    ]


def test_a_persons_rating_that_is_not_there_when_due_is_missing_for_good() -> None:
    script = RecordWriter()
    script.opened(config={"judge": "human"})
    script.human("go")
    script.output("draft")
    due = script.human("no, to Rome")
    script.rated(1, 1, judge=None)
    assert ratings(script) == [None, "pending"]
    closed, rated, *_ = brought_by(script, due)
    assert isinstance(closed, RoundClosed)
    assert (closed.point.rating, closed.point.pending) == (None, False)
    assert isinstance(rated, RatingUpdated)
    assert (rated.round, rated.rating, rated.missing) == (1, None, "not there when it was due")
    fold = TrajectoryFold("s")
    for record in script.records:
        fold.feed(record)
    assert fold.unplaced == 1
    end = script.closed()
    assert ratings(script) == [None, None]
    assert any(isinstance(u, RatingUpdated) and u.round == 2 for u in brought_by(script, end))


def test_a_rating_is_due_at_the_next_message_not_at_the_next_act() -> None:
    script = RecordWriter()
    script.opened(config={"judge": "human"})
    script.human("go")
    script.agent(SEARCH)
    script.human(SEARCH)  # opens round 2, says nothing
    assert ratings(script) == ["pending", "pending"]
    script.rated(1, 2, judge=None)
    assert ratings(script) == [2, "pending"]
    script.agent(SEARCH)
    script.human(SEARCH)  # opens round 3
    script.human("well?")  # round 2 is due now, in the middle of round 3
    assert ratings(script) == [2, None, "pending"]


def test_a_person_may_correct_a_rating_until_it_is_due() -> None:
    script = RecordWriter()
    script.opened(config={"judge": "human"})
    script.human("go")
    script.output("draft")
    script.rated(1, 1, judge=None)
    better = script.rated(1, 4, judge=None)
    rated, withdrawn = brought_by(script, better)
    assert isinstance(rated, RatingUpdated)
    assert rated.rating == 4
    assert isinstance(withdrawn, StopWithdrawn)
    assert (withdrawn.tau, withdrawn.round) == (1, 1)


def test_who_has_rated_in_time_may_correct_that_later_and_all_that_follows_is_corrected() -> None:
    script = RecordWriter()
    script.opened(config={"judge": "human"})
    script.human("go")
    first = script.agent(SEARCH)
    last = script.output("draft")
    script.rated(1, 1, judge=None, until=last)
    script.human("no, to Rome")
    better = script.rated(1, 4, judge=None, until=first)  # of the same round by an earlier act
    assert ratings(script) == [4, "pending"]
    rated, withdrawn = brought_by(script, better)
    assert isinstance(rated, RatingUpdated)
    assert (rated.round, rated.rating, rated.by) == (1, 4, "ann")
    assert isinstance(withdrawn, StopWithdrawn)
    worse = script.rated(1, 2, judge=None, until=last)
    assert [type(update) for update in brought_by(script, worse)] == [RatingUpdated, StopAdvice]
    script.closed()
    script.rated(2, 5, judge=None)  # a first rating that comes too late
    assert ratings(script) == [2, None]


def test_a_judge_that_failed_rates_nothing_more_and_holds_nothing_up() -> None:
    script, _ = five_rounds("judge")
    script.rated(1, 2)
    ref = ScorerRef(name="judge", version="1", config="")
    error = ScorerFailed(scorer=ref, error="no answer", type="TimeoutError")
    down = script.add(error, "judge", "scorer", stream="judge@1")
    told, *missing = brought_by(script, down)
    assert isinstance(told, ScorerDown)
    assert (told.scorer, told.error) == ("judge@1", "TimeoutError: no answer")
    assert [(u.round, u.missing) for u in missing if isinstance(u, RatingUpdated)] == [
        (number, "the judge failed") for number in (2, 3, 4)
    ]
    assert ratings(script) == [2, None, None, None, "pending"]  # round 5 is not due yet
    script.closed()
    assert ratings(script) == [2, None, None, None, None]


def test_a_failed_scorer_of_another_kind_changes_no_rating() -> None:
    script, _ = five_rounds("judge")
    ref = ScorerRef(name="u", version="1", config="")
    script.add(ScorerFailed(scorer=ref, error="x", type="E"), "u", "scorer", stream="u@1")
    assert ratings(script) == ["pending"] * 5


def test_a_newer_version_of_the_judge_takes_over() -> None:
    script, _ = five_rounds("judge")
    script.rated(1, 1, judge="judge@1")
    script.rated(2, 1, judge="judge@1")
    new = script.rated(1, 5, judge="judge@2")
    assert ratings(script) == [5, "pending", "pending", "pending", "pending"]
    kinds = [type(u) for u in brought_by(script, new)]
    assert kinds == [RatingUpdated, RatingUpdated, StopWithdrawn, StopWithdrawn]
    assert ratings(script, Options(judge="judge@1"))[:2] == [1, 1]


def test_the_judge_in_the_options_goes_before_the_sessions_own() -> None:
    script, _ = five_rounds("judge")
    script.rated(1, 1, judge="judge@1")
    script.rated(1, 4, judge="other@1")
    assert ratings(script)[0] == 1
    assert ratings(script, Options(judge="other"))[0] == 4


def test_a_rating_names_its_round_by_a_version_in_whatever_convention() -> None:
    script = RecordWriter()
    script.opened(config={"judge": "judge"})
    script.human("a trip")  # 2
    script.human("to Rome")  # 3: round 2 by human turns
    one = script.output("draft")  # 4
    script.human("cheaper")  # 5
    two = script.output("cheaper draft")  # 6
    script.closed()
    script.rated(1, 4, until=one)
    script.rated(2, 2, until=two)
    assert ratings(script) == [4, 2]
    # by human turns: (a trip), (to Rome, draft), (cheaper, cheaper draft)
    assert ratings(script, Options(rounds="human-turn")) == [None, 4, 2]
    script.records.pop()
    assert ratings(script, Options(rounds="human-turn")) == [None, 4, "pending"]


def test_a_round_number_of_another_convention_places_nothing() -> None:
    script, _ = five_rounds("judge")
    script.rated(2, 1, rounds="human-turn")
    assert ratings(script) == ["pending"] * 5


# --- the rest ------------------------------------------------------------------------------------


def test_a_trajectory_says_who_played() -> None:
    script = RecordWriter()
    script.opened(
        participants=(
            Participant(name="u", role="human", policy="rule", persona="lazy"),
            Participant(name="a", role="agent", policy="two-stage", model="m"),
        ),
        config={"group": {"seed": 7, "model": "other"}},
    )
    trajectory = score_records(script.records)
    assert trajectory.group == {
        "task": "test",
        "agent": "two-stage",
        "model": "other",
        "user": "lazy",
        "seed": "7",
        "simulator": trajectory.group["simulator"],
    }
    assert not trajectory.baseline


def test_a_session_without_a_human_is_a_baseline() -> None:
    script = RecordWriter()
    script.opened(request="plan", participants=(Participant(name="a", role="agent"),))
    script.scored(0.5, snapshot=script.output("draft"))
    script.closed()
    trajectory = score_records(script.records)
    assert trajectory.baseline
    assert [point.utility for point in trajectory.points] == [0.5]


def test_feedback_after_the_close_changes_no_point() -> None:
    script, _ = five_rounds()
    script.closed()
    before = score_records(script.records)
    script.human(FeedbackGiven(thumbs="up"))
    assert score_records(script.records) == before


def test_a_record_of_another_session_is_refused() -> None:
    other = RecordWriter("other").opened()
    with pytest.raises(InvalidInput, match="'other'"):
        TrajectoryFold("s").feed(other)


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="no records"):
        score_records([])


def test_a_forgotten_session_still_has_its_rounds() -> None:
    script, _ = five_rounds()
    script.closed()
    forgotten = [msgspec.structs.replace(record, body=None) for record in script.records]
    trajectory = score_records(forgotten)
    assert len(trajectory.points) == 5
    assert not any(point.updated for point in trajectory.points)


def test_updates_can_be_written_down() -> None:
    script, drafts = five_rounds("judge")
    script.scored(0.5, snapshot=drafts[0])
    script.rated(1, 1)
    script.closed()
    told = updates_of(script)
    again = msgspec.json.decode(msgspec.json.encode(told), type=list[AnyUpdate])
    assert again == told


# --- closing rounds --------------------------------------------------------------------------------


def thanked(*, edited: bool = False) -> RecordWriter:
    """A person asks, gets a draft, rates it, and thanks; if ``edited``, after editing it."""
    script = RecordWriter()
    script.opened(config={"judge": "human", "utility": "u"})
    script.human("A letter, please.")
    first = script.output("Dear all")
    script.scored(0.5, snapshot=first)
    if edited:
        second = script.output("Dear friends", by="human")
        script.scored(0.9, snapshot=second)
    else:
        script.human("Thank you!")
    return script


def test_thanks_are_a_closing_round() -> None:
    script = thanked()
    closed = script.closed()
    one, two = score_records(script.records).points
    assert (one.closing, two.closing) == (False, True)
    assert (two.round, two.utility, two.value, two.stage) == (2, 0.5, None, "refinement")
    assert two.effort["rounds"] == 2  # it counts as effort
    [over] = [u for u in brought_by(script, closed) if isinstance(u, RoundClosed)]
    assert over.point.closing


@pytest.mark.parametrize("act", ["edit", "action"])
def test_a_last_round_in_which_the_human_edits_or_acts_is_a_round_like_others(act: str) -> None:
    script = thanked(edited=act == "edit")
    if act == "action":
        script.add(ActionTaken(name="Check"), HUMAN.name, "human")
        script.scored(0.9, round=2)
    script.closed()
    one, two = score_records(script.records).points
    assert (one.value, two.value, two.closing) == (0.5, 0.9, False)


def test_a_score_of_a_closing_round_is_that_of_the_round_before() -> None:
    script = thanked()
    script.scored(0.9, round=2)
    closed = script.closed()
    one, two = score_records(script.records).points
    assert (one.value, one.utility, two.value, two.closing) == (0.9, 0.9, None, True)
    [amended] = [u for u in brought_by(script, closed) if isinstance(u, UtilityUpdated)]
    assert (amended.round, amended.value, amended.through) == (1, 0.9, 2)


def test_a_late_score_of_a_closing_round_amends_the_round_before() -> None:
    script = thanked()
    script.closed()
    late = script.scored(0.8, round=2)
    assert [point.utility for point in score_records(script.records).points] == [0.8, 0.8]
    [amended] = [u for u in brought_by(script, late) if isinstance(u, UtilityUpdated)]
    assert (amended.round, amended.utility) == (1, 0.8)


def test_an_answer_makes_no_closing_round() -> None:
    script = thanked()
    script.agent("You are welcome.")
    script.closed()
    assert not any(point.closing for point in score_records(script.records).points)


def test_by_human_turns_no_round_is_closing() -> None:
    script = thanked()
    script.closed()
    points = score_records(script.records, Options(rounds="human-turn")).points
    assert not any(point.closing for point in points)


def test_round_1_is_never_closing() -> None:
    script = RecordWriter()
    script.opened()
    script.human("Anybody there?")
    script.closed()
    [point] = score_records(script.records).points
    assert (point.round, point.closing) == (1, False)


def test_rounds_with_events_that_were_written_late_are_marked() -> None:
    script = RecordWriter()
    fold = TrajectoryFold("s")
    records = [script.opened()]
    for _ in range(3):
        records += [script.human("And now?"), script.agent("Done.")]  # versions 2 to 7
    late = RecordsLate(first=5, last=6, begin=4.0, end=5.0)
    records.append(script.add(late, "engine", "environment", stream=RECORDING))
    for record in records:
        fold.feed(record)
    found = fold.trajectory()
    assert (found.late, found.lost) == ((2, 3), 0)
    assert decode_trajectory(encode_trajectory(found)).late == (2, 3)
