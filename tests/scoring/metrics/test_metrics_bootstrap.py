"""The bootstrap: its intervals, and the inputs that do not affect them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from duolog.scoring.columns.table import Floats
from duolog.scoring.metrics.numbers import quantile
from duolog.scoring.metrics.results import Estimate
from duolog.scoring.metrics.sample import (
    LARGE,
    Column,
    Formula,
    Sample,
    change,
    difference,
    draws,
    ratio,
)
from hypothesis import given
from hypothesis import strategies as st

COLUMNS = st.integers(1, 3).flatmap(
    lambda width: st.lists(
        st.lists(st.one_of(st.none(), st.floats(-10, 1e6)), min_size=width, max_size=width),
        min_size=2,
        max_size=30,
    )
)


def column(*values: float | None) -> Floats:
    return np.array(values, np.float64)


def sampled(*values: float | None, resamples: int = 50, seed: str = "s") -> Estimate:
    return Sample({"x": column(*values)}, resamples, seed).estimate("x")


@given(COLUMNS)
def test_intervals_are_those_of_a_plain_bootstrap(rows: list[list[float | None]]) -> None:
    columns = {str(at): column(*values) for at, values in enumerate(zip(*rows, strict=True))}
    sample = Sample(columns, 60, "seed")
    # Rows are put in order by their contents: any order that only these decide will do.
    filled = np.nan_to_num(np.array(rows, np.float64), nan=0.0)
    (counts,) = draws(len(rows), 60, "seed")
    assert (counts.sum(axis=1) == len(rows)).all()
    for name, values in columns.items():
        estimate = sample.estimate(name)
        if estimate.low is None or estimate.high is None or len(set(map(tuple, rows))) > 1:
            continue
        assert (estimate.low, estimate.high) == pytest.approx((filled[0, int(name)],) * 2)
        assert len(values) == len(rows)


def test_an_interval_is_the_quantiles_of_resampled_means() -> None:
    values = column(0.1, 0.4, 0.4, 0.9, 0.2)
    (counts,) = draws(5, 80, "s")
    again = sorted((counts @ np.sort(values) / 5).tolist())
    estimate = sampled(*values.tolist(), resamples=80)
    assert (estimate.low, estimate.high) == pytest.approx(
        (quantile(again, 0.025), quantile(again, 0.975)), rel=1e-12
    )


def test_each_session_is_drawn_equally_often() -> None:
    n, count = 30_000, 200
    share = np.mean([chunk[:, : n // 2].sum(axis=1).mean() / n for chunk in draws(n, count, "s")])
    assert share == pytest.approx(0.5, abs=4 * 0.5 / (n * count) ** 0.5)


def test_draws_are_held_some_at_a_time() -> None:
    chunks = list(draws(1 << 20, 5, "s"))
    assert [chunk.shape for chunk in chunks] == [(2, 1 << 20), (2, 1 << 20), (1, 1 << 20)]


def test_interval_of_a_mean_is_about_two_standard_errors_wide() -> None:
    chance = random.Random(1)
    estimate = sampled(*[chance.gauss(0.5, 0.1) for _ in range(400)], resamples=2000)
    assert estimate.value is not None
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low < estimate.value < estimate.high
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * 0.1 / 20, rel=0.1)


def test_order_does_not_matter_and_the_seed_does() -> None:
    values = [0.1, 0.9, 0.4, None, 0.8, 0.2]
    forward, backward = sampled(*values, resamples=100), sampled(*values[::-1], resamples=100)
    other = sampled(*values, resamples=100, seed="t")
    assert forward == backward
    assert (forward.low, forward.high) != (other.low, other.high)
    assert forward.sessions == 5


def test_a_constant_has_an_interval_of_no_width() -> None:
    estimate = sampled(*[0.75] * 9)
    assert (estimate.low, estimate.value, estimate.high) == (0.75, 0.75, 0.75)


def test_one_session_and_no_resamples_give_no_interval() -> None:
    for estimate in (sampled(0.7), sampled(0.7, 0.8, resamples=0)):
        assert estimate.value is not None
        assert estimate.low is None
        assert estimate.high is None


def test_a_ratio_that_is_mostly_undefined_has_no_interval() -> None:
    columns = {"part": column(1, 1, 1, 1), "whole": column(0, 0, 0, 1)}
    estimate = Sample(columns, 200, "s").estimate("part", "whole", formula=ratio)
    assert estimate.value == 4
    assert estimate.low is None


def test_who_has_no_value_is_resampled_with_the_others() -> None:
    estimate = sampled(None, None, None, None, 0.2, 0.4, resamples=500)
    assert estimate.value == pytest.approx(0.3)
    assert estimate.sessions == 2
    assert estimate.low is None  # about one resample in eleven holds neither
    estimate = sampled(None, 0.2, 0.4, 0.2, 0.4, 0.2, 0.4, resamples=500)
    assert estimate.low is not None
    assert 0.2 <= estimate.low < 0.3


@pytest.mark.parametrize("formula", [ratio, difference, change])
def test_a_linearised_interval_is_that_of_the_bootstrap(formula: Formula) -> None:
    chance = np.random.default_rng(3)
    n = LARGE + 1
    one = chance.gamma(2.0, 3.0, n)
    other = 0.5 * one + chance.gamma(2.0, 1.0, n)
    one[chance.random(n) < 0.1] = np.nan
    columns: dict[str, Column] = {"one": one, "other": lambda: other}
    found = Sample(columns, 1, "s").estimate("one", "other", formula=formula)
    present, filled = (~np.isnan(one)).astype(float), np.nan_to_num(one)
    again = np.concatenate(
        [
            formula(counts @ filled / (counts @ present), counts @ other / n)
            for counts in draws(n, 400, "s")
        ]
    )
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert found.sessions == int(present.sum())
    assert (found.low + found.high) / 2 == pytest.approx(found.value)
    # The standard deviation of 400 resamples is known to 1 / sqrt(800) = 3.5 %.
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * again.std(), rel=0.12)
    assert Sample(columns, 0, "s").estimate("one", "other", formula=formula).low is None
