"""Sessions on one problem are drawn together."""

from __future__ import annotations

import numpy as np
import pytest
from duolog.scoring.metrics import aggregate, sample
from duolog.scoring.metrics.sample import Sample
from duolog.scoring.trajectory.points import Point, Trajectory


def width(values: list[float], clusters: list[int] | None) -> float:
    made = Sample(
        {"x": np.array(values)}, 2000, "seed", None if clusters is None else np.array(clusters)
    )
    found = made.estimate("x")
    assert found.value == pytest.approx(np.mean(values))
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


def test_repeats_of_a_problem_do_not_narrow_an_interval() -> None:
    once = [0.1, 0.4, 0.5, 0.7, 0.2, 0.9, 0.3, 0.6]
    four = [value for value in once for _ in range(4)]
    problems = [at for at in range(8) for _ in range(4)]
    assert width(four, problems) == pytest.approx(width(once, None), rel=0.1)
    assert width(four, None) < 0.6 * width(once, None)
    assert width(once, [-1] * 8) == pytest.approx(width(once, None), rel=0.1)


def test_so_do_linearised_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    once = [0.1, 0.4, 0.5, 0.7, 0.2, 0.9, 0.3, 0.6] * 10
    four = [value for value in once for _ in range(4)]
    usual = width(once, None)
    monkeypatch.setattr(sample, "LARGE", 10)
    assert width(four, [at for at in range(80) for _ in range(4)]) == pytest.approx(usual, rel=0.1)


def test_a_group_has_both_components_if_problems_repeat() -> None:
    def played(problem: int, repeat: int, value: float) -> Trajectory:
        return Trajectory(
            session=f"{problem}-{repeat}",
            group={"agent": "a"},
            problem=str(problem),
            points=(Point(round=1, value=value, utility=value, updated=True),),
        )

    rows = [(0, 0.1), (0, 0.3), (1, 0.5), (1, 0.7), (2, 0.6), (2, 0.8)]
    sessions = [played(problem, at, value) for at, (problem, value) in enumerate(rows)]
    [group] = aggregate(sessions).groups
    assert group.variance is not None
    assert group.variance.within == pytest.approx(0.02)
    assert group.variance.between == pytest.approx(0.06)
    [single] = aggregate(sessions[::2]).groups
    assert single.variance is None
