"""Each number of a small report, worked out by hand, under both conventions."""

from __future__ import annotations

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.scoring.metrics import Group, Numbers, aggregate
from duolog.scoring.trajectory.files import decode_trajectory
from duolog.scoring.trajectory.points import Trajectory

Round = tuple[float | None, bool, int | None]


def session(name: str, *rounds: Round, **rest: object) -> Trajectory:
    """A session from (utility, updated, rating) per round."""
    fields = [{"utility": u, "updated": updated, "rating": r} for u, updated, r in rounds]
    group = {"agent": "one-stage", "model": "m"}
    line = {"session": name, "group": group, "rounds": fields} | rest
    return decode_trajectory(msgspec.json.encode(line))


# U:      0, .4, .8, .6, .6     bad: rounds 2 and 3
A = session(
    "a", (None, False, 4), (0.4, True, 2), (0.8, True, 2), (0.6, True, 5), (None, False, None)
)
# U:      .5, .5 (stale), 1     bad: rounds 1 and 3
B = session("b", (0.5, True, 1), (None, True, 3), (1.0, True, 1))
# the user never spoke
C = session("c", final=0.2)
# U:      0, 0, never updated   bad: rounds 1 and 2
D = session("d", (None, False, 2), (None, False, 2))
AUTO = (
    session("x", group={"agent": "auto", "model": "m"}, final=0.3, baseline=True),
    session("y", (0.5, True, None), group={"agent": "auto", "model": "m"}, baseline=True),
)


def report(*sessions: Trajectory, paper: bool = False) -> Numbers:
    return aggregate(sessions, convention="paper" if paper else "formal", bootstrap=0)


def only(made: Numbers) -> Group:
    [group] = [group for group in made.groups if not group.baseline]
    return group


def test_formal_means() -> None:
    group = only(report(A, B, C, D))
    assert group.sessions == 4
    assert group.overall.value == pytest.approx((0.8 + 1.0 + 0.2 + 0) / 4)
    assert group.first.value == pytest.approx((0.4 + 0.5 + 0.2 + 0) / 4)
    assert group.final.value == pytest.approx((0.6 + 1.0 + 0.2 + 0) / 4)
    assert group.gain_abs.value == pytest.approx((0.4 + 0.5 + 0 + 0) / 4)
    assert group.gain_rel.value == pytest.approx(0.225 / 0.275)


def test_formal_drop_counts_the_utility_after_the_stop() -> None:
    one, two, three = only(report(A, B, C, D)).drops
    # τ = 1: a stops after round 2 at .4, b after round 1 at .5, d after round 1 at 0
    assert one.abs.value == pytest.approx((0.4 - 0.6 + 0.5 - 1.0) / 4)
    assert one.rel.value == pytest.approx(-0.175 / 0.45)
    assert (one.sessions, one.stopped) == (4, 3)
    # τ = 2: a stops after round 3 at .8, d after round 2 at 0
    assert two.abs.value == pytest.approx((0.8 - 0.6) / 4)
    assert two.rel.value == pytest.approx(0.05 / 0.45)
    assert (two.sessions, two.stopped) == (4, 2)
    # τ = 3: nobody stops
    assert three.abs.value == 0
    assert three.rel.value == 0
    assert (three.sessions, three.stopped) == (4, 0)


def test_formal_curve_carries_shorter_sessions_forward() -> None:
    curve = only(report(A, B, C, D)).curve
    assert [point.mean for point in curve] == pytest.approx(
        [
            (0 + 0.5 + 0.2 + 0) / 4,
            (0.4 + 0.5 + 0.2 + 0) / 4,
            (0.8 + 1.0 + 0.2 + 0) / 4,
            (0.6 + 1.0 + 0.2 + 0) / 4,
            (0.6 + 1.0 + 0.2 + 0) / 4,
        ]
    )
    assert [point.x for point in curve] == [1, 2, 3, 4, 5]
    assert [point.sessions for point in curve] == [4] * 5
    assert [point.reached for point in curve] == [4, 3, 2, 1, 1]
    # round 1: squares of -.175, .325, .025, -.175 sum to .1675; s² = .1675/3; sem = s/2
    assert curve[0].sem == pytest.approx((0.1675 / 3) ** 0.5 / 2)


def test_paper_means_are_of_whole_trajectories() -> None:
    group = only(report(A, B, C, D, paper=True))
    assert group.max_step == 3  # lengths 2, 3, 5; the slice [0:2] holds 2 and 3
    assert group.overall.value == pytest.approx(0.5)
    assert group.first.value == pytest.approx(0.275)
    assert group.final.value == pytest.approx(0.45)
    assert group.gain_abs.value == pytest.approx(0.225)
    assert group.gain_rel.value == pytest.approx(0.225 / 0.275)


def test_paper_drop_takes_the_row_before_the_stop() -> None:
    one, two, three = only(report(A, B, C, D, paper=True)).drops
    never = (0.8 + 1.0 + 0.2 + 0) / 4  # cut to three rounds
    # τ = 1: a is left with round 1; b and d, bad in round 1, with nothing
    assert one.abs.value == pytest.approx((0 + 0.2) / 2 - never)
    assert one.rel.value == pytest.approx(-0.4 / never)
    assert (one.sessions, one.stopped) == (2, 3)
    # τ = 2: a is left with two rounds, d with one
    assert two.abs.value == pytest.approx((0.4 + 1.0 + 0.2 + 0) / 4 - never)
    assert two.rel.value == pytest.approx(-0.1 / never)
    assert (two.sessions, two.stopped) == (4, 2)
    assert three.abs.value == 0
    assert (three.sessions, three.stopped) == (4, 0)


def test_paper_curve_ends_at_the_cut() -> None:
    curve = only(report(A, B, C, D, paper=True)).curve
    assert [point.mean for point in curve] == pytest.approx([0.175, 0.275, 0.5])
    assert [point.reached for point in curve] == [4, 3, 2]
    assert [point.sessions for point in curve] == [4, 4, 4]


def test_first_update_and_first_evaluation_differ_at_a_stale_point() -> None:
    stale = session("s", (None, True, None), (0.3, True, None), (None, False, None))
    other = session("o", (0.3, True, None))
    group = only(report(stale))
    assert group.first.value is None  # its score is missing, so its utility is unknown
    assert group.gain_abs.value is None
    assert group.first.reason == "the first update of every session has no score"
    assert group.overall.value == 0.3
    assert group.counts.unscored_first == 1
    both = only(report(stale, other))
    assert (both.first.value, both.first.sessions) == (0.3, 1)
    assert (both.overall.sessions, both.gain_abs.value) == (2, 0)
    assert only(report(stale, other, paper=True)).first.value == pytest.approx(0.3)


def test_without_update_the_first_is_nothing_and_paper_takes_the_first_round() -> None:
    humans_edit = session("s", (None, False, None), (0.6, False, None), (0.7, False, None))
    never = session("n", (None, False, None), (None, False, None))
    group = only(report(humans_edit))
    assert (group.first.value, group.gain_abs.value, group.overall.value) == (0, 0.7, 0.7)
    assert only(report(humans_edit, never, paper=True)).first.value == pytest.approx(0.3)
    assert only(report(never, never, paper=True)).first.value == 0


def test_missing_rating_ends_a_run_of_bad_ones() -> None:
    bad = session("s", (0.5, True, 2), (0.4, True, None), (0.3, True, 2), (0.9, True, 2))
    one, two, three = only(report(bad)).drops
    assert one.abs.value == pytest.approx(0.5 - 0.9)
    assert two.abs.value == 0  # reached in the last round: nothing is lost
    assert two.stopped == 1
    assert three.stopped == 0


def test_pending_rating_holds_formal_tolerance_up() -> None:
    points = (
        '{"session":"s","rounds":[{"utility":0.5,"rating":null,"pending":true},'
        '{"utility":0.2,"rating":1},{"utility":0.9,"rating":5}]}'
    )
    waiting = decode_trajectory(points)
    group = only(report(waiting))
    assert group.drops[0].stopped == 0
    assert group.drops[0].abs.value == 0
    assert group.counts.pending_ratings == 1
    rated = decode_trajectory(points.replace('null,"pending":true', "4"))
    assert only(report(rated)).drops[0].abs.value == pytest.approx(0.2 - 0.9)


def test_automated_runs_stand_beside_the_row_and_as_a_group() -> None:
    made = report(A, B, *AUTO)
    row, baseline = made.groups
    assert row.reference.value == pytest.approx(0.4)
    assert row.reference.sessions == 2
    assert baseline.baseline
    assert baseline.group == {"agent": "auto", "model": "m"}
    assert baseline.final.value == pytest.approx(0.4)
    assert baseline.first.value is None
    assert baseline.first.reason
    assert baseline.curve == ()


def test_baseline_of_another_model_is_not_compared_with() -> None:
    other = session("z", group={"agent": "auto", "model": "other"}, final=1.0, baseline=True)
    reference = only(report(A, other)).reference
    assert reference.value is None
    assert reference.reason == "no automated run to compare with"
    unlabelled = session("z", group={"agent": "auto"}, final=1.0, baseline=True)
    assert only(report(A, unlabelled)).reference.value == 1.0


def test_fewer_than_two_sessions_with_interaction_leave_paper_without_numbers() -> None:
    group = only(report(A, C, paper=True))
    for estimate in (group.first, group.final, group.overall, group.gain_abs, group.gain_rel):
        assert estimate.value is None
        assert estimate.reason is not None
        assert "fewer than two sessions" in estimate.reason
    assert [drop.abs.value for drop in group.drops] == [None] * 3
    assert group.curve == ()
    assert group.max_step is None
    assert only(report(A, C)).final.value == pytest.approx(0.4)


def test_no_session_left_at_a_tolerance_is_absent_with_a_reason() -> None:
    drop, two, _ = only(report(B, D, paper=True)).drops
    assert drop.abs.value is None
    assert drop.abs.reason == "no session has a round left at τ = 1"
    assert drop.sessions == 0
    assert two.abs.value is not None


def test_relative_numbers_are_absent_where_they_relate_to_zero() -> None:
    group = only(report(D))
    assert group.gain_abs.value == 0
    assert group.gain_rel.value is None
    assert group.drops[0].rel.value is None
    assert group.drops[0].rel.reason == "the final utility to which it relates is 0"


def test_session_without_anything_is_counted_and_in_no_mean() -> None:
    nothing = session("n")
    group = only(report(C, nothing))
    assert group.sessions == 2
    assert group.final.value == 0.2
    assert group.final.sessions == 1
    assert group.counts.unvalued_sessions == 1
    assert group.curve[0].sessions == 1
    assert group.curve[0].sem is None
    alone = only(report(nothing))
    assert alone.overall.value is None
    assert alone.overall.reason == "no round and no final performance"


def test_counts_say_how_complete_the_data_are() -> None:
    counts = only(report(A, B, C, D)).counts
    assert counts.total_rounds == 10
    assert counts.stale_points == 1
    assert counts.missing_ratings == 1
    assert counts.silent_sessions == 1


def test_effort_is_a_ratio_of_means() -> None:
    def spent(name: str, agent: int | None, human: int | None) -> Trajectory:
        return session(name, (0.5, True, 4), tokens={"agent": agent, "human": human})

    sessions = (spent("a", 300, 100), spent("b", 100, None), spent("c", None, 900))
    effort = only(report(*sessions)).effort
    assert effort.agent_tokens.value == 200
    assert effort.human_tokens.value == 500
    assert effort.ratio.value == 3  # the one session that has both
    effort = only(report(*sessions, paper=True)).effort
    assert effort.agent_tokens.value == 200
    assert effort.human_tokens.value == 50  # missing is 0; c lacks agent tokens
    assert effort.ratio.value == 4
    silent = only(report(spent("d", 100, 0))).effort
    assert silent.ratio.value is None
    assert silent.ratio.reason == "the humans generated no tokens"


def test_groups_are_sorted_and_follow_the_labels_that_occur() -> None:
    two = session("t", (0.5, True, 4), group={"agent": "two-stage", "model": "m"})
    made = report(two, *AUTO, A)
    assert made.group_by == ("agent", "model")
    assert [group.group["agent"] for group in made.groups] == ["one-stage", "two-stage", "auto"]
    by_model = aggregate([A, two], group_by=["model"], bootstrap=0)
    assert [dict(group.group) for group in by_model.groups] == [{"model": "m"}]
    assert by_model.groups[0].sessions == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"taus": (0,)}, "must be at least 1, not 0"),
        ({"group_by": ("persona",)}, "no session has a label 'persona'.*agent, model"),
        ({"convention": "published"}, "unknown convention 'published'"),
        ({"bootstrap": -1}, "resamples is -1"),
    ],
)
def test_invalid_arguments_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        aggregate([A], **wrong)  # type: ignore[arg-type]


def test_no_sessions_make_an_empty_report() -> None:
    made = report()
    assert made.groups == ()
    assert made.buckets == ()
