"""The drop against continuations: worked by hand, paired with the observed one, its variance split."""

from __future__ import annotations

import pytest
from duolog.engine.errors import InvalidInput
from duolog.scoring.metrics.counterfactual import (
    counterfactual_drops,
    stops_of,
    variance_components,
)
from duolog.scoring.trajectory.points import Point, Trajectory


def session(
    name: str,
    *rounds: tuple[float | None, int | None],
    state: str = "finished",
    agent: str = "one-stage",
    evaluated: bool = True,
) -> Trajectory:
    """A session of rounds, each with its utility and its rating."""
    return Trajectory(
        session=name,
        group={"agent": agent, "task": "t"},
        points=tuple(
            Point(round=k, utility=u, rating=r) for k, (u, r) in enumerate(rounds, start=1)
        ),
        state=state,
        evaluated=evaluated,
    )


def ends(*finals: float | None) -> list[Trajectory]:
    """Continuations that end with these utilities; None: not evaluated."""
    return [session(f"fork-{n}", (u, None), evaluated=u is not None) for n, u in enumerate(finals)]


EARLY = session("a", (0.4, 2), (0.6, 4), (0.8, 4))
NEVER = session("b", (0.5, 4), (0.7, 3))
LATE = session("c", (0.5, 4), (0.5, 2), (0.9, 5))


def test_worked_by_hand() -> None:
    """d = .4 - .7 = -.3, 0, .5 - .6 = -.1; observed -.4, 0, -.4."""
    report = counterfactual_drops(
        [EARLY, NEVER, LATE], {("a", 1): ends(0.6, 0.8), ("c", 2): ends(0.5, 0.7)}, taus=(1,)
    )
    [drop] = report.drops
    assert (drop.sessions, drop.reached, drop.continuations) == (3, 2, 4)
    assert drop.real.value == pytest.approx(-0.4 / 3)
    assert drop.observed.value == pytest.approx(-0.8 / 3)
    assert drop.difference.value == pytest.approx(0.4 / 3)
    # d_ij: a -.2, -.4; c 0, -.2. Within (4 · .01) / (4 - 2) = .02; MSB = 4 · .01 = .04 and n_0 = 2.
    assert drop.within == pytest.approx(0.02)
    assert drop.between == pytest.approx(0.01)
    assert [(one.session, one.round, one.real) for one in report.sessions] == [
        ("a", 1, pytest.approx(-0.3)),
        ("b", None, 0.0),
        ("c", 2, pytest.approx(-0.1)),
    ]


def test_the_stop_is_where_the_observed_drop_has_it() -> None:
    rated = session("a", (0.1, 2), (0.2, 1), (0.3, None), (0.4, 2))
    assert stops_of([rated], (1, 2, 3)) == [{1: 1, 2: 2}]
    assert stops_of([session("a", (None, 2), evaluated=False)], (1,)) == [{}]


def test_a_stop_in_the_last_round_costs_what_continuations_gain() -> None:
    late = session("a", (0.4, 4), (0.6, 2))
    [drop] = counterfactual_drops([late], {("a", 2): ends(0.9, 0.7)}, taus=(1,)).drops
    assert drop.observed.value == 0.0
    assert drop.real.value == pytest.approx(-0.2)


def test_the_variance_of_groups_of_different_sizes() -> None:
    """{1, 3} and {5}: within 2 / 1; MSB = 2 · 1 + 1 · 4 = 6, n_0 = 3 - 5/3 = 4/3."""
    assert variance_components([[1.0, 3.0], [5.0]]) == pytest.approx((2.0, 3.0))
    # Equal means: less between than chance makes, which is none.
    assert variance_components([[1.0, 3.0], [3.0, 1.0]]) == (2.0, 0.0)


@pytest.mark.parametrize(
    ("values", "within", "between"),
    [([], None, None), ([[1.0], [2.0]], None, None), ([[1.0, 2.0], []], 0.5, None)],
)
def test_too_few_values_have_no_variance(
    values: list[list[float]], within: float | None, between: float | None
) -> None:
    assert variance_components(values) == (within, between)


def test_what_is_missing_is_left_out_and_counted() -> None:
    unrated = session("u", (0.4, None), (0.6, None), (0.7, None), (0.8, None))
    unscored = session("n", (None, 2), evaluated=False)
    abandoned = session("g", (0.4, 4), state="abandoned")
    nobody = session("z", (0.4, 2), (0.6, 4))
    found = counterfactual_drops(
        [EARLY, unrated, unscored, abandoned, nobody],
        {("a", 1): ends(0.6, None), ("z", 1): ends(None)},
        taus=(1,),
    ).drops[0]
    assert (found.sessions, found.reached) == (1, 1)
    assert (found.continuations, found.without_utility) == (1, 2)
    assert sum(found.left_out.values()) == 4
    assert len(found.left_out) == 3
    assert found.real.value == pytest.approx(-0.2)


def test_nothing_left_is_no_zero() -> None:
    unscored = session("n", (None, 2), evaluated=False)
    [drop] = counterfactual_drops([unscored], {}, taus=(1,)).drops
    for estimate in (drop.real, drop.observed, drop.difference):
        assert estimate.value is None
        assert estimate.reason


def test_intervals_are_paired() -> None:
    """If the two numbers differ by the same in every session, the interval has zero width."""
    sessions = [session(f"s{n}", (n / 10, 2), (n / 5, 4)) for n in range(1, 9)]
    again = {(item.session, 1): ends(item.points[-1].utility) for item in sessions}
    shifted = {(item.session, 1): ends(0.1 + (item.points[-1].utility or 0)) for item in sessions}
    [same] = counterfactual_drops(sessions, again, taus=(1,)).drops
    [lower] = counterfactual_drops(sessions, shifted, taus=(1,)).drops
    assert (same.difference.value, same.difference.low, same.difference.high) == (0, 0, 0)
    assert lower.difference.low == pytest.approx(-0.1)
    assert lower.difference.high == pytest.approx(-0.1)
    assert lower.real.low is not None
    assert lower.real.high is not None
    assert lower.real.low < lower.real.high


def test_groups_and_tolerances_each_have_a_row() -> None:
    other = session("d", (0.1, 4), agent="two-stage")
    drops = counterfactual_drops([EARLY, other], {("a", 1): ends(0.6)}, taus=(2, 1)).drops
    assert [(drop.group["agent"], drop.tau) for drop in drops] == [
        ("one-stage", 1),
        ("one-stage", 2),
        ("two-stage", 1),
        ("two-stage", 2),
    ]
    with pytest.raises(InvalidInput, match="at least 1"):
        counterfactual_drops([EARLY], {}, taus=(0,))
