"""Survival of sessions by round, held to a worked example to scipy and to statsmodels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from duolog.scoring.metrics import SessionOutcomes, aggregate
from duolog.scoring.metrics.survival import survival_curve, wilson
from duolog.scoring.trajectory.points import Point, Trajectory
from hypothesis import given
from hypothesis import strategies as st
from later import imported_later

stats = imported_later("scipy.stats")
survfunc = imported_later("statsmodels.duration.survfunc")


def test_a_worked_example() -> None:
    # Leukaemia patients on 6-MP (Freireich et al. 1963), the example of most textbooks: weeks of
    # remission; + is censored. S(6) = 0.857, S(7) = 0.807, S(10) = 0.753, S(13) = 0.690,
    # S(16) = 0.627, S(22) = 0.538, S(23) = 0.448.
    relapsed = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    censored = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    curve = survival_curve([(k, True) for k in relapsed] + [(k, False) for k in censored])
    by_round = {point.round: round(point.survival, 3) for point in curve}
    assert [by_round[k] for k in (5, 6, 7, 10, 13, 16, 22, 23, 35)] == [
        1.0,
        0.857,
        0.807,
        0.753,
        0.69,
        0.627,
        0.538,
        0.448,
        0.448,
    ]
    six = curve[5]
    assert (six.at_risk, six.left, six.censored) == (21, 3, 1)


@given(st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=40))
def test_it_agrees_with_scipy(sessions: list[tuple[int, bool]]) -> None:
    left = [k for k, gone in sessions if gone]
    stayed = [k for k, gone in sessions if not gone]
    if not left:
        return
    found = stats.ecdf(stats.CensoredData(uncensored=left, right=stayed)).sf
    for point in survival_curve(sessions):
        assert point.survival == pytest.approx(float(found.evaluate(point.round)), abs=1e-12)


@pytest.mark.filterwarnings("ignore:The confidence interval is undefined:RuntimeWarning")
def test_intervals_agree_with_scipy() -> None:
    left, stayed = [2, 3, 3, 5, 8], [1, 4, 5, 9, 9]
    curve = survival_curve([(k, True) for k in left] + [(k, False) for k in stayed])
    found = stats.ecdf(stats.CensoredData(uncensored=left, right=stayed)).sf
    bounds = found.confidence_interval(0.95, method="log-log")
    for point in curve:
        if point.low is not None and point.high is not None:
            assert point.low == pytest.approx(float(bounds.low.evaluate(point.round)), abs=1e-9)
            assert point.high == pytest.approx(float(bounds.high.evaluate(point.round)), abs=1e-9)
    assert any(point.low is not None for point in curve)


def test_before_anybody_left_there_is_no_interval() -> None:
    first, second = survival_curve([(2, True), (2, False)])
    assert (first.survival, first.low, first.high) == (1.0, None, None)
    assert second.survival == 0.5
    assert second.low is not None


def test_nothing_survives_of_nothing() -> None:
    assert survival_curve([]) == ()
    assert survival_curve([(0, False)]) == ()


def session(state: str, *ratings: int | None) -> Trajectory:
    points = tuple([Point(round=k, rating=rating) for k, rating in enumerate(ratings, start=1)])
    return Trajectory(session=f"{state}-{len(ratings)}", points=points, state=state)


def completion_of(sessions: Sequence[Trajectory]) -> SessionOutcomes:
    [group] = aggregate(sessions, bootstrap=0).groups
    return group.completion


def test_only_who_leaves_is_an_event() -> None:
    states = ("abandoned", "tolerance", "finished", "ended", "open", "limit")
    found = completion_of([session(state, 3) for state in states])
    [point] = found.survival
    assert (point.at_risk, point.left, point.censored) == (6, 2, 4)
    assert list(found.outcomes) == ["finished", "abandoned", "tolerance", "ended", "limit", "open"]
    assert found.outcomes["open"].count == 1
    assert found.outcomes["open"].low < 1 / 6 < found.outcomes["open"].high


def test_the_hazard_grows_with_the_run() -> None:
    rows = completion_of(
        [
            session("abandoned", 3, 2, 1),
            session("finished", 2, 2, 5),
            session("abandoned", 1),
            session("finished", 2, 3, 4),
        ]
    ).hazard
    # Runs of 0: four rounds, none leaves; of 1: four, one leaves; of 2: two, one leaves.
    assert [(row.stalled, row.rounds, row.left) for row in rows] == [
        (0, 4, 0),
        (1, 4, 1),
        (2, 2, 1),
    ]
    assert rows[1].hazard == 0.25
    assert rows[1].low < 0.25 < rows[1].high


def test_who_leaves_without_a_rating_leaves_after_what_was_rated_before() -> None:
    rows = completion_of(
        [
            session("abandoned", 4, 2, 1, None),
            session("abandoned", None, None),
            session("finished", 2, None, 1, 5, None),
        ]
    ).hazard
    # By the rounds of each session: 0 1 2 2, 0 0, 1 1 2 0 0.
    assert [(row.stalled, row.rounds, row.left) for row in rows] == [
        (0, 5, 1),
        (1, 3, 0),
        (2, 3, 1),
    ]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["abandoned", "finished", "open"]),
            st.lists(st.sampled_from([None, 1, 2, 3, 5]), max_size=6),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_the_hazard_is_what_counting_round_by_round_gives(
    sessions: list[tuple[str, list[int | None]]],
) -> None:
    rounds: Counter[int] = Counter()
    left: Counter[int] = Counter()
    for state, ratings in sessions:
        run = 0
        for rating in ratings:
            if rating is not None:
                run = run + 1 if rating < 3 else 0
            rounds[run] += 1
        if ratings and state == "abandoned":
            left[run] += 1
    trajectories = [
        msgspec.structs.replace(session(state, *ratings), session=str(number))
        for number, (state, ratings) in enumerate(sessions)
    ]
    rated = any(rating is not None for _, ratings in sessions for rating in ratings)
    assert [(row.stalled, row.rounds, row.left) for row in completion_of(trajectories).hazard] == (
        [(run, count, left[run]) for run, count in sorted(rounds.items())] if rated else []
    )


def test_without_ratings_there_is_no_hazard() -> None:
    assert completion_of([session("abandoned", None, None)]).hazard == ()


@given(st.integers(0, 50), st.integers(1, 50))
def test_wilson_agrees_with_scipy(count: int, total: int) -> None:
    count = min(count, total)
    found = stats.binomtest(count, total).proportion_ci(0.95, method="wilson")
    assert wilson(count, total) == pytest.approx((found.low, found.high), abs=1e-9)


def test_a_proportion_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no trials"):
        wilson(0, 0)


def test_a_worked_example_of_abandonment() -> None:
    # Of four sessions one is left in round 1, one finished in round 2, one left in round 3, one censored there.
    points = survival_curve([(1, True), (2, False), (3, True), (3, False)], finished={2: 1})
    assert [point.incidence for point in points] == pytest.approx([1 / 4, 1 / 4, 1 / 2])
    # Of one proportion of 4 it is the binomial variance, p (1 - p) / 4.
    z = 1.959963984540054 * math.sqrt(0.25 * 0.75 / 4) / (0.25 * math.log(4))
    assert 1 - points[-1].survival == pytest.approx(
        5 / 8
    )  # as if the finished one might still be left
    assert [point.finished for point in points] == [0, 1, 0]
    assert (points[0].incidence_low, points[0].incidence_high) == pytest.approx(
        (0.25 ** math.exp(z), 0.25 ** math.exp(-z))
    )
    assert survival_curve([(1, True), (2, True)])[-1].incidence == 1
    assert survival_curve([(1, True), (2, True)])[-1].incidence_low is None
    assert survival_curve([(1, False), (2, True)])[0].incidence_low is None


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # in its standard error
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@given(
    st.lists(
        st.tuples(st.integers(1, 12), st.sampled_from(["left", "finished", "censored"])),
        min_size=1,
        max_size=40,
    )
)
def test_cumulative_incidence_agrees_with_statsmodels(sessions: list[tuple[int, str]]) -> None:
    causes = {"censored": 0, "left": 1, "finished": 2}
    how = np.array([causes[cause] for _, cause in sessions])
    if not {1, 2} <= set(how.tolist()):
        return
    found = survfunc.CumIncidenceRight(np.array([k for k, _ in sessions]), how)
    expected = dict(zip(found.times.tolist(), found.cinc[0].tolist(), strict=True))
    errors = dict(zip(found.times.tolist(), found.cinc_se[0].tolist(), strict=True))
    curve = survival_curve(
        [(k, cause == "left") for k, cause in sessions],
        finished=Counter(k for k, cause in sessions if cause == "finished"),
    )
    for point in curve:
        if point.round in expected:
            assert point.incidence == pytest.approx(expected[point.round], abs=1e-12)
        error = errors.get(point.round)
        if point.incidence_low is not None and error is not None and np.isfinite(error):
            log = math.log(point.incidence)
            width = math.exp(1.959963984540054 * error / (point.incidence * abs(log)))
            assert point.incidence_low == pytest.approx(point.incidence**width, abs=1e-9)
            assert point.incidence_high == pytest.approx(point.incidence ** (1 / width), abs=1e-9)


def test_an_incidence_next_to_1_has_an_interval() -> None:
    points = survival_curve([(k, True) for k in (1, 3, 3, 6, 7, 7, 9, 11, 13, 49, 49)])
    assert all(
        one.incidence_low is None or 0 <= one.incidence_low <= (one.incidence_high or 0) <= 1
        for one in points
    )


def test_a_group_tells_finished_sessions_from_censored_ones() -> None:
    def ended(name: str, state: str, rounds: int) -> Trajectory:
        points = tuple([Point(round=k, value=0.5, utility=0.5) for k in range(1, rounds + 1)])
        return Trajectory(session=name, group={"agent": "a"}, points=points, state=state)

    [group] = aggregate(
        [
            ended("a", "abandoned", 1),
            ended("b", "finished", 2),
            ended("c", "tolerance", 3),
            ended("d", "limit", 3),
        ]
    ).groups
    assert [point.incidence for point in group.completion.survival] == pytest.approx(
        [1 / 4, 1 / 4, 1 / 2]
    )
