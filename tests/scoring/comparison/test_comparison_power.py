"""Problems needed, held to simulated comparisons and to statsmodels."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from duolog.engine.errors import InvalidInput
from duolog.scoring.comparison.power import detectable, needed, power
from duolog.scoring.metrics.variance import variance_components
from duolog.scoring.trajectory.points import Point, Trajectory
from later import imported_later

solver = imported_later("statsmodels.stats.power")


def played(agent: str, problem: int, repeat: int, value: float) -> Trajectory:
    return Trajectory(
        session=f"{agent}-{problem}-{repeat}",
        group={"agent": agent},
        problem=str(problem),
        points=(Point(round=1, value=value, utility=value, updated=True, rating=3),),
    )


def pilot(problems: int, repeats: int, *, between: float, within: float) -> list[Trajectory]:
    """Sessions of two agents whose true difference varies, and whose sessions vary on top."""
    chance = random.Random(5)
    found = []
    for problem in range(problems):
        hard, better = chance.gauss(0.5, 0.05), chance.gauss(0.02, between)
        for repeat in range(repeats):
            for agent, gain in (("a", 0.0), ("b", better)):
                value = hard + gain + chance.gauss(0, within)
                found.append(played(agent, problem, repeat, min(1.0, max(0.0, value))))
    return found


@pytest.mark.parametrize("size", [0.2, 0.5, 1.0, 1.5])
def test_the_number_needed_is_that_of_a_paired_t_test(size: float) -> None:
    exact = solver.TTestPower().solve_power(size, alpha=0.05, power=0.8)
    assert needed(1.0, size) == pytest.approx(max(6, math.ceil(exact)), abs=1)
    at_hand = needed(1.0, size)
    found = detectable(1.0, at_hand)
    assert found is not None
    assert found <= size + 1e-9 or at_hand == 6


def test_below_six_problems_nothing_can_be_detected() -> None:
    assert needed(1e-9, 0.5) == 6
    assert detectable(1.0, 5) is None


def test_both_components_are_found_and_repeats_reduce_one_of_them() -> None:
    [found] = power(pilot(400, 3, between=0.05, within=0.04), 0.01)
    assert (found.problems, found.sessions) == (400, 2400)
    assert found.between is not None
    assert found.within is not None
    assert found.between == pytest.approx(0.05**2, rel=0.2)
    assert found.within == pytest.approx(2 * 0.04**2, rel=0.2)
    many = {each.repeats: each.problems for each in found.needed}
    assert many[1] > many[3] > many[10] > (1.96 + 0.84) ** 2 * found.between / 0.01**2 - 1
    assert found.spread == pytest.approx(found.between + found.within / 3)


def test_the_observed_difference_plays_no_part() -> None:
    sessions = pilot(12, 1, between=0.05, within=0.0)
    shifted = [
        played("b", int(one.problem or 0), 0, (one.points[0].utility or 0) + 0.125)
        if one.group["agent"] == "b"
        else one
        for one in sessions
    ]
    assert power(sessions, 0.05)[0].needed == power(shifted, 0.05)[0].needed
    assert power(sessions, 0.05)[0].needed != power(sessions, 0.025)[0].needed


def test_without_repeats_the_parts_are_unknown() -> None:
    [found] = power(pilot(12, 1, between=0.05, within=0.03), 0.05)
    assert (found.between, found.within) == (None, None)
    assert [each.repeats for each in found.needed] == [1]


def test_what_cannot_be_computed_says_why() -> None:
    [found] = power(pilot(1, 2, between=0.1, within=0.1), 0.05)
    assert found.needed == ()
    assert found.reason == "fewer than two problems were played by both"
    sessions = pilot(8, 1, between=0.1, within=0.1)
    with pytest.raises(InvalidInput, match="effect must be more than 0, got -1"):
        power(sessions, -1)
    with pytest.raises(InvalidInput, match="unknown agent 'c'"):
        power(sessions, 0.1, names=("a", "c"))
    with pytest.raises(InvalidInput, match="unknown outcome 'utility'"):
        power(sessions, 0.1, outcome="utility")
    with pytest.raises(InvalidInput, match="compares two agents"):
        power(sessions[:1], 0.1)


def test_components_of_a_worked_example() -> None:
    # Problems (1, 3), (5, 7), (6, 8): means 2, 6, 7; MS_w = 6 / 3 = 2; MS_b = 2 (9 + 1 + 4) / 2 = 14.
    values = np.array([1.0, 3, 5, 7, 6, 8, np.nan])
    found = variance_components(values, np.array([0, 0, 1, 1, 2, 2, 2]))
    assert found is not None
    assert (found.within, found.between, found.problems, found.sessions) == (2, 6, 3, 6)
    assert variance_components(values, np.arange(7)) is None
    alone = variance_components(np.array([1.0, 3]), np.array([4, 4]))
    assert alone is not None
    assert (alone.within, alone.between) == (2, None)
