"""Ratio buckets and curves, worked out by hand."""

from __future__ import annotations

import math

import pytest
from duolog.scoring.metrics import aggregate, effort_curve
from duolog.scoring.metrics.buckets import token_ratio
from duolog.scoring.trajectory.points import Point, Trajectory


def spent(agent: int | None, human: int | None, final: float | None = 0.5) -> Trajectory:
    point = Point(round=1, value=0.1, utility=0.1, updated=True)
    group = {"agent": "a", "model": "m"}
    return Trajectory(
        session=f"{agent}/{human}",
        group=group,
        points=(point,),
        agent_tokens=agent,
        human_tokens=human,
        final=final,
    )


def test_edges_are_rounded_quantiles_and_intervals_closed_above() -> None:
    # ratios .5 1.24 2 3 4 5: quantiles at 1, 2, 3, 4 of 0..5
    sessions = [spent(50, 100, 0.1), spent(124, 100, 0.2), spent(200, 100, 0.3)]
    sessions += [spent(300, 100, 0.4), spent(400, 100, 0.5), spent(500, 100, 0.6)]
    [buckets] = aggregate(sessions, bootstrap=0).buckets
    assert buckets.group == {"model": "m"}
    assert list(buckets.edges or ()) == [0, 1.2, 2.0, 3.0, 4.0, None]
    assert buckets.stats is not None
    assert [bucket.mean.sessions for bucket in buckets.stats] == [1, 2, 1, 1, 1]
    assert [bucket.mean.value for bucket in buckets.stats] == pytest.approx(
        [0.1, 0.25, 0.4, 0.5, 0.6]
    )
    assert buckets.stats[1].sem == pytest.approx(0.05)
    assert buckets.stats[0].sem is None
    assert [bucket.high for bucket in buckets.stats] == [1.2, 2.0, 3.0, 4.0, None]


def test_agents_are_pooled_and_models_are_not() -> None:
    sessions = []
    for number in range(12):
        agent, model = f"a{number % 3}", f"m{number % 2}"
        sessions.append(
            Trajectory(
                session=str(number),
                group={"agent": agent, "model": model},
                agent_tokens=10 * number + 5,
                human_tokens=10,
                final=0.5,
            )
        )
    for group_by in (None, ["agent", "model"], ["agent"]):
        found = aggregate(sessions, group_by=group_by, bootstrap=0).buckets
        assert [dict(buckets.group) for buckets in found] == [{"model": "m0"}, {"model": "m1"}]
        assert [buckets.sessions for buckets in found] == [6, 6]


def test_an_interval_may_be_empty_with_a_reason() -> None:
    ratios = [100, 100, 100, 190, 210, 210, 300, 400, 500, 600]
    [buckets] = aggregate([spent(ratio, 100) for ratio in ratios], bootstrap=0).buckets
    assert list(buckets.edges or ()) == [0, 1.0, 2.0, 2.5, 4.2, None]
    assert buckets.stats is not None
    assert [bucket.mean.sessions for bucket in buckets.stats] == [3, 1, 2, 2, 2]
    # The quantile 1.158 lies between 1.08 and 1.21: nothing is in (1.1, 1.2].
    hollow = [50, 108, 108, 108, 121, 130, 300, 400, 500, 600]
    [buckets] = aggregate([spent(ratio, 100) for ratio in hollow], bootstrap=0).buckets
    assert list(buckets.edges or ()) == [0, 1.1, 1.2, 2.0, 4.2, None]
    assert buckets.stats is not None
    assert [bucket.mean.sessions for bucket in buckets.stats] == [4, 0, 2, 2, 2]
    assert buckets.stats[1].mean.value is None
    assert buckets.stats[1].mean.reason == "no session lies in this interval"


def test_equal_edges_are_absent_with_a_reason() -> None:
    [buckets] = aggregate([spent(100, 100) for _ in range(9)], bootstrap=0).buckets
    assert buckets.edges is None
    assert buckets.stats is None
    assert buckets.reason == "the quintile edges are not distinct (0, 1, 1, 1, 1, inf)"
    tiny = [spent(agent, 10_000) for agent in (1, 2, 3, 4, 5, 6)]
    assert aggregate(tiny, bootstrap=0).buckets[0].edges is None


def test_infinite_ratios_count_for_the_edges_and_for_the_last_interval() -> None:
    sessions = [spent(100 * k, 100, 0.5) for k in range(1, 11)] + [spent(7, 0, 0.9)]
    [buckets] = aggregate(sessions, bootstrap=0).buckets
    assert list(buckets.edges or ()) == [0, 3.0, 5.0, 7.0, 9.0, None]
    assert buckets.stats is not None
    assert buckets.stats[-1].mean.sessions == 2
    assert buckets.stats[-1].mean.value == pytest.approx(0.7)
    mostly = [spent(7, 0), spent(8, 0), spent(100, 100), spent(200, 100)]
    assert aggregate(mostly, bootstrap=0).buckets[0].edges is None


def test_missing_counts_under_either_convention() -> None:
    assert token_ratio(10, None, "paper") == math.inf
    assert token_ratio(10, None, "formal") is None
    assert token_ratio(None, 10, "paper") is None
    assert token_ratio(0, 0, "paper") is None
    assert token_ratio(0, None, "paper") is None
    assert token_ratio(0, 4, "formal") == 0
    [buckets] = aggregate([spent(None, 10)], bootstrap=0).buckets
    assert buckets.reason == "no session has a token ratio"


def test_a_ratio_of_zero_lies_in_no_interval() -> None:
    sessions = [spent(0, 10), *[spent(100 * k, 100) for k in range(1, 11)]]
    [buckets] = aggregate(sessions, bootstrap=0).buckets
    assert buckets.sessions == 11
    assert buckets.stats is not None
    assert sum(bucket.mean.sessions for bucket in buckets.stats) == 10


def test_performance_is_as_stated_else_the_last_utility() -> None:
    sessions = [spent(100 * k, 100, None) for k in range(1, 11)]
    [buckets] = aggregate(sessions, bootstrap=0).buckets
    assert buckets.stats is not None
    assert {bucket.mean.value for bucket in buckets.stats} == {0.1}


def walk(name: str, *steps: tuple[float, float | None]) -> Trajectory:
    """A session from (utility, tokens read so far) per round."""
    points = [
        Point(round=k, value=utility, utility=utility, updated=True, effort={"read": spent})
        for k, (utility, spent) in enumerate(steps, start=1)
    ]
    return Trajectory(session=name, points=tuple(points))


def test_curve_over_effort_stands_at_the_last_round_paid_for() -> None:
    sessions = [walk("a", (0.2, 1), (0.6, 3)), walk("b", (0.4, 2), (0.8, 4))]
    curve = effort_curve(sessions, "read", reach=1.0)
    assert [point.x for point in curve] == [0, 1, 2, 3, 4]
    assert [point.mean for point in curve] == pytest.approx([0, 0.1, 0.3, 0.5, 0.7])
    assert [point.reached for point in curve] == [2, 2, 2, 2, 1]
    assert curve[4].sem == pytest.approx(0.1)


def test_curve_over_a_long_axis_has_even_steps() -> None:
    sessions = [walk("a", (0.5, 100.5), (1.0, 200.0))]
    curve = effort_curve(sessions, "read", steps=4)
    assert [point.x for point in curve] == [0, 50, 100, 150, 200]
    assert [point.mean for point in curve] == [0, 0, 0, 0.5, 1.0]
    assert curve[0].sem is None


def test_curve_leaves_out_who_lacks_the_measure() -> None:
    assert effort_curve([walk("a", (0.5, None)), Trajectory(session="b")], "read") == ()
    curve = effort_curve([walk("a", (0.5, None), (0.6, 0)), walk("b", (0.5, None))], "read")
    assert [(point.x, point.mean, point.sessions) for point in curve] == [(0, 0.6, 1)]
