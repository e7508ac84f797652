"""What holds of the metrics for any sessions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import hypothesis.strategies as st
import msgspec
import numpy
import pytest
from duolog.scoring.metrics import Group, Numbers, aggregate
from duolog.scoring.metrics.explain import explain
from duolog.scoring.metrics.numbers import mean, quantile, sem
from duolog.scoring.trajectory.files import decode_trajectory
from duolog.scoring.trajectory.points import Trajectory
from hypothesis import given

UTILITIES = st.one_of(st.none(), st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0]))
RATINGS = st.one_of(st.none(), st.integers(1, 5))
TOKENS = st.one_of(st.none(), st.integers(0, 5000))


@st.composite
def trajectories(draw: st.DrawFn, ratings: st.SearchStrategy[int | None] = RATINGS) -> Trajectory:
    rounds = []
    for _ in range(draw(st.integers(0, 6))):
        utility = draw(UTILITIES)
        updated = draw(st.booleans())
        rounds.append({"utility": utility, "updated": updated, "rating": draw(ratings)})
    line = {
        "session": draw(st.text("abc", min_size=1, max_size=3)),
        "group": {"agent": draw(st.sampled_from(["one", "two"]))},
        "rounds": rounds,
        "tokens": {"agent": draw(TOKENS), "human": draw(TOKENS)},
        "final": draw(UTILITIES),
        "baseline": draw(st.integers(0, 5)) == 0,
    }
    return decode_trajectory(msgspec.json.encode(line))


SESSIONS = st.lists(trajectories(), max_size=12)
CONVENTIONS: st.SearchStrategy[Literal["formal", "paper"]] = st.sampled_from(["formal", "paper"])


def means(group: Group) -> list[float | None]:
    return [
        group.first.value,
        group.final.value,
        group.overall.value,
        group.gain_abs.value,
        group.gain_rel.value,
        *[drop.abs.value for drop in group.drops],
        *[drop.rel.value for drop in group.drops],
        *[point.mean for point in group.curve],
        group.effort.agent_tokens.value,
        group.effort.human_tokens.value,
        group.effort.ratio.value,
        group.reference.value,
    ]


@given(SESSIONS, CONVENTIONS)
def test_best_is_at_least_last_and_gain_is_no_loss(
    sessions: Sequence[Trajectory], convention: Literal["formal", "paper"]
) -> None:
    for group in aggregate(sessions, convention=convention, bootstrap=0).groups:
        if group.overall.value is None:
            continue
        assert group.final.value is not None
        assert group.overall.value >= group.final.value
        assert group.gain_abs.value is None or group.gain_abs.value >= 0


@given(st.lists(trajectories(st.sampled_from([None, 3, 4, 5])), max_size=8), CONVENTIONS)
def test_nothing_drops_where_no_rating_is_bad(
    sessions: Sequence[Trajectory], convention: Literal["formal", "paper"]
) -> None:
    for group in aggregate(sessions, convention=convention, bootstrap=0).groups:
        for drop in group.drops:
            assert drop.stopped == 0
            assert drop.abs.value in (None, 0)
            assert drop.rel.value in (None, 0)


@given(st.data(), SESSIONS, CONVENTIONS)
def test_order_of_sessions_changes_nothing(
    data: st.DataObject, sessions: Sequence[Trajectory], convention: Literal["formal", "paper"]
) -> None:
    shuffled = data.draw(st.permutations(sessions))
    one = aggregate(sessions, convention=convention, bootstrap=20)
    two = aggregate(shuffled, convention=convention, bootstrap=20)
    assert one.groups == two.groups
    assert one.buckets == two.buckets
    assert sorted(one.scores, key=repr) == sorted(two.scores, key=repr)


@given(SESSIONS, st.integers(2, 7))
def test_repeating_every_session_changes_no_formal_mean(
    sessions: Sequence[Trajectory], times: int
) -> None:
    once = aggregate(sessions, bootstrap=0)
    again = aggregate([item for item in sessions for _ in range(times)], bootstrap=0)
    assert [means(group) for group in once.groups] == [means(group) for group in again.groups]
    assert [group.sessions * times for group in once.groups] == [g.sessions for g in again.groups]


@given(SESSIONS, CONVENTIONS)
def test_every_absent_number_has_a_reason_and_none_is_nan(
    sessions: Sequence[Trajectory], convention: Literal["formal", "paper"]
) -> None:
    report = aggregate(sessions, convention=convention, bootstrap=0)
    for group in report.groups:
        estimates = [group.first, group.final, group.overall, group.gain_abs, group.gain_rel]
        estimates += [estimate for drop in group.drops for estimate in (drop.abs, drop.rel)]
        estimates += [group.effort.agent_tokens, group.effort.human_tokens, group.effort.ratio]
        for estimate in [*estimates, group.reference]:
            assert (estimate.value is None) == (estimate.reason is not None)
            assert estimate.value is None or math.isfinite(estimate.value)
    for buckets in report.buckets:
        assert (buckets.edges is None) == (buckets.reason is not None)
    assert b"NaN" not in msgspec.json.encode(report)


@given(SESSIONS, CONVENTIONS)
def test_explanations_add_up_to_the_means(
    sessions: Sequence[Trajectory], convention: Literal["formal", "paper"]
) -> None:
    report: Numbers = aggregate(sessions, convention=convention, bootstrap=0)
    for group in report.groups:
        members = [
            explain(item, convention=convention, max_step=group.max_step)
            for item in sessions
            if item.group == group.group and item.baseline == group.baseline
        ]
        if group.baseline:
            continue
        valued = [item for item in members if item.reason is None]
        assert mean([item.first for item in valued if item.first is not None]) == group.first.value
        assert mean([item.gain for item in valued if item.gain is not None]) == group.gain_abs.value
        for index, drop in enumerate(group.drops):
            stops = [item.stops[index] for item in valued]
            never = mean(
                [
                    item.reference
                    for item, stop in zip(valued, stops, strict=True)
                    if item.reference is not None
                    and (convention == "paper" or stop.utility is not None)
                ]
            )
            kept = mean([stop.utility for stop in stops if stop.utility is not None])
            assert sum(stop.reached is not None for stop in stops) == drop.stopped
            if drop.abs.value is not None:
                assert kept is not None
                assert never is not None
                assert kept - never == drop.abs.value
        for item in valued:
            assert (item.first_round is not None) >= item.first_found
            assert item.best_round is not None
            assert item.final is not None
            # An unmeasured round counts as 0, under ``paper`` only: ``formal`` leaves such a session
            # without numbers.
            rounds = [0.0 if note.utility is None else note.utility for note in item.rounds]
            rounds = rounds or [item.final]
            if convention == "formal":
                assert None not in [note.utility for note in item.rounds]
            at = item.first_round
            assert item.first in (None, 0.0 if at is None else rounds[at - 1])
            assert item.overall == rounds[item.best_round - 1]
            for stop in item.stops:
                assert stop.used is None or stop.utility == rounds[stop.used - 1]


NUMBERS = st.lists(st.floats(0, 1e6), min_size=1, max_size=40)


@given(NUMBERS)
def test_mean_is_rounded_once(values: list[float]) -> None:
    found = mean(values)
    assert found is not None
    assert min(values) <= found <= max(values)
    assert mean(values * 3) == found
    assert mean(values[::-1]) == found


def test_mean_and_error_of_too_few_are_absent() -> None:
    assert mean([]) is None
    assert sem([1.0]) is None
    assert sem([1.0, 3.0]) == pytest.approx(1.0)


@given(NUMBERS, st.sampled_from([0.025, 0.2, 0.4, 0.6, 0.8, 0.975]))
def test_quantile_is_numpys_to_the_bit(values: list[float], q: float) -> None:
    assert quantile(sorted(values), q) == numpy.percentile(values, q * 100.0)


def test_quantile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)
