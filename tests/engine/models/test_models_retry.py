"""When a failed call is made again, and how long that waits."""

from __future__ import annotations

import random

import pytest
from duolog.engine.errors import (
    BudgetExhausted,
    ModelBadReply,
    ModelDenied,
    ModelDown,
    ModelError,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from duolog.engine.models import Retry
from hypothesis import given
from hypothesis import strategies as st

TRANSIENT = [ModelBadReply, ModelRateLimited, ModelTimeout, ModelUnavailable]
LASTING = [BudgetExhausted, ModelDenied, ModelDown, ModelError, ModelRefused]


@pytest.mark.parametrize("kind", TRANSIENT)
def test_what_may_pass_is_tried_so_often(kind: type[ModelError]) -> None:
    retry = Retry(attempts=3)
    assert [retry.again(kind("x"), failures) for failures in (1, 2, 3)] == [True, True, False]
    assert Retry(attempts=None).again(kind("x"), 10**6)


@pytest.mark.parametrize("kind", LASTING)
def test_what_will_not_pass_is_not_tried_again(kind: type[ModelError]) -> None:
    assert not Retry(attempts=None).again(kind("x"), 1)


def test_nobody_waits_for_longer_than_patience_lasts() -> None:
    retry = Retry(patience=60.0)
    assert retry.again(ModelRateLimited("x", retry_after=60.0), 1)
    assert not retry.again(ModelRateLimited("x", retry_after=61.0), 1)
    assert not retry.again(ModelUnavailable("x", retry_after=3600.0), 1)


def test_waits_double_up_to_the_longest() -> None:
    retry = Retry(first=1.0, longest=10.0, jitter=0.0)
    error, chance = ModelTimeout("x"), random.Random(1)
    waits = [retry.wait(error, failures, chance) for failures in (1, 2, 3, 4, 5, 2000)]
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


@given(
    failures=st.integers(1, 50),
    asked=st.none() | st.floats(0, 600),
    jitter=st.floats(0, 1),
    seed=st.integers(),
)
def test_waits_stay_within_bounds(
    failures: int, asked: float | None, jitter: float, seed: int
) -> None:
    retry = Retry(first=0.5, longest=30.0, jitter=jitter)
    error = ModelRateLimited("x", retry_after=asked)
    wait = retry.wait(error, failures, random.Random(seed))
    backoff = min(30.0, 0.5 * 2.0 ** (failures - 1))
    assert wait == retry.wait(error, failures, random.Random(seed))
    if asked is None:
        assert backoff * (1 - jitter) - 1e-9 <= wait <= backoff
    else:
        assert asked <= wait <= max(backoff, asked + backoff * jitter) + 1e-9


def test_those_who_failed_together_do_not_come_back_together() -> None:
    error = ModelRateLimited("x", retry_after=5.0)
    waits = {Retry().wait(error, 1, random.Random(seed)) for seed in range(50)}
    assert len(waits) == 50
