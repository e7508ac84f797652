"""The bootstrap: what its intervals are, and what they do not depend on."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from duolog.scoring.metrics.bootstrap import Resamples
from duolog.scoring.metrics.bootstrap_arrays import resampled_sums, sorted_order
from duolog.scoring.metrics.numbers import quantile
from duolog.scoring.metrics.sample import Sample
from hypothesis import given
from hypothesis import strategies as st

ROWS = st.integers(1, 3).flatmap(
    lambda width: st.lists(
        st.tuples(*[st.floats(-10, 1e6, width=32)] * width), min_size=2, max_size=30
    )
)


def drawn(rows: list[tuple[float, ...]], chance: random.Random) -> list[tuple[float, ...]]:
    """As many rows with replacement, each by a random word; words that favour some are left out."""
    n = len(rows)
    chosen: list[tuple[float, ...]] = []
    while len(chosen) < n:
        data = chance.randbytes(2 * (n - len(chosen)))
        words = [data[at] + 256 * data[at + 1] for at in range(0, len(data), 2)]
        chosen += [rows[word % n] for word in words if word < 65536 // n * n]
    return chosen


@given(ROWS)
def test_packed_sums_are_those_of_a_plain_bootstrap(rows: list[tuple[float, ...]]) -> None:
    ordered = sorted(rows)
    chance = random.Random("seed")
    plain = sorted(sum(row[-1] for row in drawn(ordered, chance)) for _ in range(60))
    found = Resamples(rows, 60, "seed").interval(lambda sums: sums[-1])
    span = max(row[-1] for row in rows) - min(row[-1] for row in rows)
    assert found == pytest.approx(
        (quantile(plain, 0.025), quantile(plain, 0.975)), abs=1e-8 * (span + 1), rel=1e-12
    )


@pytest.mark.parametrize("sessions", [2, 3, 41, 5_000, 70_000])
def test_arrays_give_the_same_sums_to_the_bit(sessions: int) -> None:
    numpy = pytest.importorskip("numpy")
    chance = random.Random(sessions)
    columns = [
        [chance.choice([0.0, 0.25, 1 / 3]) for _ in range(sessions)],
        [0.7] * sessions,
        [float(chance.randint(0, 3)) for _ in range(sessions)],
        [chance.gauss(0, 1e4) for _ in range(sessions)],
        [float(chance.choice([0, 3, 1 << 33])) for _ in range(sessions)],
    ]
    sums: list[Sequence[float]] = []
    plain = Resamples(list(zip(*columns, strict=True)), 3, "seed")

    def keep(one: Sequence[float]) -> float:
        sums.append(one)
        return 0.0

    plain.interval(keep)
    arrays = [numpy.array(column) for column in columns]
    assert resampled_sums(arrays, 3, "seed").tolist() == sums


def test_rows_are_sorted_as_tuples_are_however_many_are_alike() -> None:
    numpy = pytest.importorskip("numpy")
    chance = random.Random(2)
    kinds: list[Callable[[], float]] = [
        lambda: 0.5,
        lambda: chance.randrange(2) / 3,
        lambda: chance.randrange(9_000) / 7,
        lambda: float(chance.randrange(-3, 3)),
        lambda: chance.choice([-1e300, 0.0, 1e300]),
        lambda: chance.choice([0.0, 1e-9, 1.0]),
    ]
    for _ in range(20):
        columns = [
            [kind() for _ in range(3_000)] for kind in chance.choices(kinds, k=chance.randint(1, 6))
        ]
        rows = list(zip(*columns, strict=True))
        order = sorted_order([numpy.array(column) for column in columns])
        assert [rows[at] for at in order.tolist()] == sorted(rows)


def test_each_session_is_drawn_equally_often() -> None:
    n, count = 30_000, 200  # words for two tables, and some over
    rows = [(1.0, 0.0)] * (n // 2) + [(0.0, 1.0)] * (n // 2)
    shares: list[float] = []

    def share(sums: Sequence[float]) -> float:
        shares.append(sums[0] / n)
        assert sum(sums) == pytest.approx(n)
        return shares[-1]

    Resamples(rows, count, "seed").interval(share)
    error = 0.5 / (n * count) ** 0.5
    assert sum(shares) / count == pytest.approx(0.5, abs=4 * error)


def test_more_sessions_than_words_are_drawn_as_well() -> None:
    rows = [(float(number % 2),) for number in range(70_000)]
    interval = Resamples(rows, 20, "seed").interval(lambda sums: sums[0] / len(rows))
    assert interval is not None
    assert interval == pytest.approx((0.5, 0.5), abs=0.01)


def test_interval_of_a_mean_is_about_two_standard_errors_wide() -> None:
    chance = random.Random(1)
    values: list[float | None] = [chance.gauss(0.5, 0.1) for _ in range(400)]
    estimate = Sample({"x": values}, 2000, "s").estimate("x")
    assert estimate.value is not None
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low < estimate.value < estimate.high
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * 0.1 / 20, rel=0.1)


def test_order_does_not_matter_and_the_seed_does() -> None:
    values: list[float | None] = [0.1, 0.9, 0.4, None, 0.8, 0.2]
    forward = Sample({"x": values}, 100, "s").estimate("x")
    backward = Sample({"x": values[::-1]}, 100, "s").estimate("x")
    other = Sample({"x": values}, 100, "t").estimate("x")
    assert forward == backward
    assert (forward.low, forward.high) != (other.low, other.high)
    assert forward.sessions == 5


def test_a_constant_has_an_interval_of_no_width() -> None:
    estimate = Sample({"x": [0.7] * 9}, 50, "s").estimate("x")
    assert (estimate.low, estimate.value, estimate.high) == (0.7, 0.7, 0.7)


def test_one_session_and_no_resamples_give_no_interval() -> None:
    for sample in (Sample({"x": [0.7]}, 50, "s"), Sample({"x": [0.7, 0.8]}, 0, "s")):
        estimate = sample.estimate("x")
        assert estimate.value is not None
        assert estimate.low is None
        assert estimate.high is None


def test_a_ratio_that_is_mostly_undefined_has_no_interval() -> None:
    def ratio(part: float, whole: float) -> float | None:
        return part / whole if whole else None

    columns = {"part": [1.0] * 4, "whole": [0.0, 0.0, 0.0, 1.0]}
    estimate = Sample(columns, 200, "s").estimate("part", "whole", formula=ratio)
    assert estimate.value == 4
    assert estimate.low is None


def test_who_has_no_value_is_resampled_with_the_others() -> None:
    columns = {"x": [None, None, None, None, 0.2, 0.4]}
    estimate = Sample(columns, 500, "s").estimate("x")
    assert estimate.value == pytest.approx(0.3)
    assert estimate.sessions == 2
    assert estimate.low is None  # about one resample in eleven holds neither
    wider = {"x": [None, 0.2, 0.4, 0.2, 0.4, 0.2, 0.4]}
    estimate = Sample(wider, 500, "s").estimate("x")
    assert estimate.low is not None
    assert 0.2 <= estimate.low < 0.3
