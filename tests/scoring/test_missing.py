"""Missing is missing: reports never hold a number that was not measured."""

from __future__ import annotations

import duolog
import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.log.open import open_log
from duolog.scoring.index.lines import SessionLines
from duolog.scoring.live import score_sessions
from duolog.scoring.metrics import Group, aggregate
from duolog.scoring.metrics.curves import effort_curve
from duolog.scoring.metrics.results import Convention
from duolog.scoring.metrics.survival import LEFT
from duolog.scoring.report import (
    document_markdown,
    explain,
    explanation_document,
    report_document,
)
from duolog.scoring.report.summary import completeness
from duolog.scoring.trajectory.files import decode_trajectory
from duolog.scoring.trajectory.fold import TrajectoryFold
from duolog.scoring.trajectory.points import Point, Trajectory
from duolog.scoring.trajectory.updates import UtilityUpdated
from duolog.testing.records import RecordWriter


def only(*trajectories: Trajectory, paper: bool = False) -> Group:
    convention: Convention = "paper" if paper else "formal"
    [group] = aggregate(trajectories, convention=convention, bootstrap=50).groups
    return group


def scored(*values: float | None, **rest: object) -> Trajectory:
    ratings = rest.pop("ratings", [3] * len(values))
    assert isinstance(ratings, list)
    points, standing = [], 0.0
    for k, (value, rating) in enumerate(zip(values, ratings, strict=True), start=1):
        standing = standing if value is None else value
        points.append(
            Point(round=k, value=value, utility=standing, updated=value is not None, rating=rating)
        )
    made = {"session": f"s{len(points)}", "points": tuple(points)} | rest
    return Trajectory(**made)  # type: ignore[arg-type]


UNEVALUATED = Trajectory(
    session="chat",
    points=(Point(round=1, utility=None, rating=2), Point(round=2, utility=None)),
    evaluated=False,
)


def test_what_nobody_evaluated_has_no_utility() -> None:
    for paper in (False, True):
        group = only(UNEVALUATED, UNEVALUATED, paper=paper)
        for estimate in (group.first, group.final, group.overall, group.gain_abs, group.gain_rel):
            assert (estimate.value, estimate.low, estimate.sessions) == (None, None, 0)
            assert estimate.reason == "not evaluated: no utility scorer ran"
        assert [drop.abs.value for drop in group.drops] == [None] * 3
        assert group.curve == ()
        assert (group.counts.unevaluated_sessions, group.counts.unvalued_sessions) == (2, 2)


def test_sessions_that_were_evaluated_are_not_drawn_down_by_others() -> None:
    group = only(scored(0.5, 0.8), UNEVALUATED)
    assert (group.overall.value, group.overall.sessions) == (0.8, 1)
    assert [(p.mean, p.sessions) for p in group.curve] == [(0.5, 1), (0.8, 1)]


def test_a_first_update_without_score_has_no_gain() -> None:
    # Read as 0, the first would be 0.25 and the gain 0.65; of the one that is known it is 0.3.
    unscored = Trajectory(
        session="s",
        points=(
            Point(round=1, updated=True, stale=True, rating=3),
            Point(round=2, value=1.0, utility=1.0, updated=True, rating=4),
        ),
    )
    group = only(unscored, scored(0.5, 0.8))
    assert (group.first.value, group.first.sessions) == (0.5, 1)
    assert group.gain_abs.value is not None
    assert abs(group.gain_abs.value - 0.3) < 1e-12
    assert group.overall.sessions == 2
    assert group.counts.unscored_first == 1


def test_of_a_session_measured_at_its_end_only_the_result_is_known() -> None:
    def results(*values: float | None, name: str = "s") -> Trajectory:
        rounds = [{"utility": value, "updated": False, "rating": 2} for value in values]
        line = {"session": name, "rounds": rounds, "output": False}
        return decode_trajectory(msgspec.json.encode(line))

    sessions = [results(None, None, 1.0), results(None, 0.0, name="t")]
    group = only(*sessions)
    assert (group.final.value, group.overall.value) == (0.5, 0.5)
    for absent in (group.first, group.gain_abs, group.gain_rel, group.drops[0].abs):
        assert absent.value is None
        assert absent.reason is not None
        assert ("only the results" in absent.reason) or ("without a shared output" in absent.reason)
    assert (group.curve, effort_curve(sessions, "rounds")) == ((), ())
    assert (group.counts.result_only, group.drops[0].cut_short) == (2, 0)
    report = aggregate(sessions, bootstrap=0)
    without, note = (text for text in completeness(report) if "result" in text or "shared" in text)
    assert without == "2 sessions have no shared output, and are in no mean of first and gain."
    assert note.startswith("Of 2 sessions only the result was measured")
    told = document_markdown(explanation_document(explain(sessions[0]))).splitlines()
    assert sum("missing: only the result was measured" in line for line in told) == 3  # the drops
    assert sum("missing: the session does not have a shared output" in line for line in told) == 1

    group = only(*sessions, results(0.8, name="at once"))
    assert [(point.x, point.sessions) for point in group.curve] == [(1, 1)]


def test_an_evaluated_session_without_any_output_is_worth_nothing_throughout() -> None:
    silent = decode_trajectory(
        b'{"session": "s", "rounds": [{"utility": null, "rating": 3}, {"utility": null}]}'
    )
    group = only(silent)
    assert (group.first.value, group.gain_abs.value, group.counts.result_only) == (0.0, 0.0, 0)


def test_every_score_failed_is_not_zero() -> None:
    line = '{"session": "s", "rounds": [{"utility": null, "updated": true, "rating": 4}]}'
    failed = decode_trajectory(line)
    group = only(failed)
    assert group.overall.value is None
    assert group.counts.failed_sessions == 1


def test_where_every_score_failed_the_published_analysis_has_0_and_the_report_says_so() -> None:
    line = '{"session": "s", "rounds": [{"utility": null, "updated": true, "rating": 4}]}'
    failed = decode_trajectory(line)
    unscored = msgspec.structs.replace(
        scored(None, 0.8), points=(Point(round=1, updated=True, stale=True), *scored(0.8).points)
    )
    report = aggregate([failed, unscored, scored(0.5, 0.8)], convention="paper", bootstrap=0)
    [group] = report.groups
    assert (group.overall.sessions, group.first.sessions) == (3, 3)
    counts = group.counts
    assert (counts.unvalued_sessions, counts.failed_sessions, counts.unscored_first) == (0, 1, 0)
    [note] = [text for text in completeness(report) if "no score of" in text]
    assert (
        note
        == "1 session has no score of the output, and counts as 0, as in the published analysis."
    )


def test_a_session_whose_scores_failed_is_in_no_curve_of_effort() -> None:
    points = [{"utility": None, "updated": True, "effort": {"acts": 1}}]
    failed = decode_trajectory(msgspec.json.encode({"session": "s", "rounds": points}))
    scored_one = Trajectory(session="t", points=(Point(round=1, utility=0.8, effort={"acts": 1}),))
    curve = effort_curve([failed, scored_one], "acts")
    assert [(point.x, point.mean, point.sessions) for point in curve] == [(0, 0.0, 1), (1, 0.8, 1)]


def test_effort_that_is_corrected_to_less_was_spent_all_the_same() -> None:
    """Tokens are estimated from texts until a model says how many it wrote."""
    spent = ((10, 0.2), (4, 0.5), (6, 0.6), (20, 1.0))
    points = tuple(
        Point(round=k, value=value, utility=value, effort={"tokens": tokens})
        for k, (tokens, value) in enumerate(spent, start=1)
    )
    curve = effort_curve([Trajectory(session="s", points=points)], "tokens", steps=4)
    assert [(point.x, point.mean) for point in curve] == [
        (0, 0.0),
        (5, 0.0),
        (10, 0.6),
        (15, 0.6),
        (20, 1.0),
    ]


def test_an_output_that_never_came_is_worth_nothing() -> None:
    group = only(scored(None, None, ratings=[2, 3]))
    assert (group.overall.value, group.final.value, group.first.value) == (0, 0, 0)


def test_without_any_rating_there_is_no_drop() -> None:
    unrated = scored(0.2, 0.9, ratings=[None, None])
    for paper in (False, True):
        for drop in only(unrated, unrated, paper=paper).drops:
            assert (drop.abs.value, drop.abs.low, drop.abs.high) == (None, None, None)
            assert drop.abs.reason == "no round of these sessions was rated"
            assert drop.unrated == 2


def test_unrated_sessions_are_left_out_of_the_drop_and_counted() -> None:
    long = scored(0.2, 0.5, 0.9, ratings=[None, None, None])
    bad = scored(0.2, 0.8, 0.9, ratings=[1, 1, 4])
    one, two, three = only(bad, long).drops
    assert one.abs.value is not None
    assert abs(one.abs.value - (0.2 - 0.9)) < 1e-12
    assert (one.sessions, one.unrated) == (1, 1)
    assert (two.sessions, two.unrated) == (1, 1)
    # Of three rounds, a tolerance of three can take nothing, whatever the ratings.
    assert (three.abs.value, three.sessions, three.unrated) == (0, 2, 0)


def test_who_left_before_the_tolerance_could_be_reached_is_counted_and_not_zero() -> None:
    for state in sorted(LEFT):
        gone = scored(0.2, 0.3, ratings=[1, 1], state=state)
        one, two, three = only(gone, scored(0.5, 0.5, 0.5, 0.5)).drops
        assert (one.sessions, two.sessions) == (2, 2)  # these were reached
        assert (three.sessions, three.cut_short) == (1, 1)


def test_baselines_that_broke_off_or_were_never_scored_are_left_out() -> None:
    group = {"agent": "auto"}
    runs = [
        scored(0.7, group=group, baseline=True),
        scored(0.8, group=group, baseline=True),
        scored(None, group=group, baseline=True, state="failed"),
        Trajectory(
            session="never",
            group=group,
            baseline=True,
            evaluated=False,
            points=(Point(round=1, utility=None),),
        ),
    ]
    alone = only(*runs)
    assert alone.final.value == 0.75
    assert (alone.final.sessions, alone.sessions) == (2, 4)
    assert (alone.counts.broken_baselines, alone.counts.unevaluated_sessions) == (1, 1)


def test_a_final_that_is_stated_as_missing_fills_no_bucket() -> None:
    line = (
        '{"session": "s%d", "rounds": [{"utility": 0.5, "rating": 3}], "final": %s, '
        '"tokens": {"agent": %d, "human": 10}}'
    )
    many = [decode_trajectory(line % (i, "0.9", 10 * (i + 1))) for i in range(10)]
    missing = [decode_trajectory(line % (i + 10, "null", 10 * (i + 1))) for i in range(10)]
    stats = aggregate([*many, *missing], convention="paper", bootstrap=0).buckets[0].stats
    assert stats is not None
    assert {bucket.mean.value for bucket in stats} == {0.9}
    assert sum(bucket.mean.sessions for bucket in stats) == 10


def test_forgotten_sessions_make_no_row() -> None:
    forgotten = Trajectory(session="f", state="forgotten", points=(Point(round=1),))
    report = aggregate([forgotten, scored(0.5)], bootstrap=0)
    assert [group.sessions for group in report.groups] == [1]
    assert report.forgotten == 1
    assert aggregate([forgotten], bootstrap=0).groups == ()


async def test_a_session_that_was_erased_from_a_log_makes_no_row() -> None:
    async with duolog.open("memory://") as log:
        for name in ("kept", "erased"):
            session = await log.session(name, task="support", agent="v7")
            await session.human.says("My order has not arrived.")
            await session.agent.says("It comes tomorrow.")
            await session.close(durable=True)
        await log.forget("erased")
        found = [trajectory async for trajectory in score_sessions(log)]
    assert [item.state == "forgotten" for item in found] == [False, True]
    report = aggregate(found, bootstrap=0)
    assert [(group.group["task"], group.sessions) for group in report.groups] == [("support", 1)]
    assert report.forgotten == 1


def test_a_closing_round_counts_for_nothing_but_effort() -> None:
    thanks = Trajectory(
        session="t",
        points=(
            Point(round=1, value=0.5, utility=0.5, updated=True, rating=4),
            Point(round=2, value=0.9, utility=0.9, updated=True, rating=1),
            Point(round=3, utility=0.9, closing=True, rating=1),
        ),
    )
    group = only(thanks)
    assert [point.x for point in group.curve] == [1, 2]
    assert [drop.stopped for drop in group.drops] == [1, 0, 0]
    assert group.counts.closing_rounds == 1


def test_a_session_in_which_no_agent_acted_is_in_every_mean() -> None:
    silent = Trajectory(session="a", points=(Point(round=1, closing=True),))  # older files say so
    recorded = Trajectory(session="b", points=(Point(round=1, value=0.25, utility=0.25),))
    group = only(silent, recorded, scored(0.5, 0.8))
    for estimate, value in (
        (group.overall, (0 + 0.25 + 0.8) / 3),
        (group.final, (0 + 0.25 + 0.8) / 3),
        (group.first, (0 + 0 + 0.5) / 3),
        (group.gain_abs, (0 + 0.25 + 0.3) / 3),
        (group.drops[1].abs, 0),
    ):
        assert estimate.value == pytest.approx(value)
        assert estimate.sessions == 3
    assert [point.sessions for point in group.curve] == [3, 3]
    assert group.counts.closing_rounds == 0


def test_sessions_that_pose_no_output_have_no_first_update_and_no_gain() -> None:
    """A chat that goes 0, 0, 0, 1, 1."""
    chat = Trajectory(
        session="chat",
        output=False,
        points=tuple(
            Point(round=k, value=value, utility=value, rating=4)
            for k, value in enumerate((0.0, 0.0, 0.0, 1.0, 1.0), start=1)
        ),
    )
    group = only(chat)
    for absent in (group.first, group.gain_abs, group.gain_rel):
        assert absent.value is None
        assert absent.reason is not None
        assert "without a shared output" in absent.reason
    assert (group.overall.value, group.final.value, group.drops[0].abs.value) == (1, 1, 0)
    posed = only(msgspec.structs.replace(chat, output=True))
    assert (posed.first.value, posed.gain_abs.value) == (0, 1)


def test_bounds_are_given_if_more_than_2_in_100_sessions_could_not_be_measured() -> None:
    failed = decode_trajectory(
        '{"session": "f", "rounds": [{"utility": null, "updated": true, "rating": 4}]}'
    )
    fine = [scored(0.5, 0.8) for _ in range(49)]
    assert only(failed, *fine).bounds == {}  # just 2 %
    bounds = only(failed, *fine[:47]).bounds
    assert bounds.keys() == {"first", "final", "overall"}
    overall = bounds["overall"]
    assert (overall.missing, overall.sessions) == (1, 48)
    assert overall.low == pytest.approx(47 * 0.8 / 48)
    assert overall.high == pytest.approx((47 * 0.8 + 1) / 48)
    report = aggregate([failed, *fine[:47]], bootstrap=0)
    text = document_markdown(report_document(report))
    assert (
        "1 of 48 sessions could not be measured. With all of them at 0 or all at 1: first" in text
    )
    assert only(UNEVALUATED, *fine).bounds == {}  # no measurement was due
    assert only(failed, *fine[:9], paper=True).bounds == {}


@pytest.mark.parametrize("value", [1e308, -0.5, float("nan")])
def test_a_utility_that_is_none_is_refused_by_name(value: float) -> None:
    with pytest.raises(InvalidInput, match=r"session 's1': a utility lies in \[0, 1\], and "):
        aggregate([scored(value)], bootstrap=0)


async def test_a_score_out_of_range_in_a_log_is_missing_with_its_reason() -> None:
    """As a third-party program may have written it: such a score is not a utility."""
    script = RecordWriter("s")
    script.opened()
    script.human("plan a trip")
    script.scored(1e308, snapshot=script.output("a"))
    fold = TrajectoryFold("s")
    updates = [update for record in script.records for update in fold.feed(record)]
    [update] = [one for one in updates if isinstance(one, UtilityUpdated)]
    assert update.missing == "a utility lies in [0, 1], and 1e+308 does not"
    group = only(fold.trajectory())
    assert (group.overall.value, group.counts.failed_sessions) == (None, 1)
    async with open_log("memory://") as log:
        await log.restore(script.records)
        assert (await SessionLines(log).line(await log.summary("s"))).utility is None
