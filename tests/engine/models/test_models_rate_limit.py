"""Rates: never more in any minute than allowed, no needless waits, first come first served."""

from __future__ import annotations

import math

import anyio
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import Tokens
from duolog.engine.models import Rates
from duolog.engine.models.traffic.rate_limit import RateLimiter, TokenWindow
from hypothesis import given
from hypothesis import strategies as st

arrivals = st.lists(
    st.tuples(st.floats(0, 40, allow_nan=False), st.integers(0, 120)), min_size=1, max_size=60
)


@given(
    arrivals,
    st.none() | st.integers(1, 8),
    st.none() | st.integers(50, 300),
)
def test_no_minute_holds_more_than_it_may(
    arrivals: list[tuple[float, int]], requests: int | None, tokens: int | None
) -> None:
    """Calls come one after another, each as soon as the window lets it pass."""
    window = TokenWindow(Rates(requests_per_minute=requests, tokens_per_minute=tokens))
    now = 0.0
    passed: list[tuple[float, int]] = []
    for gap, size in arrivals:
        now += gap
        while (wait := window.wait(size, now)) > 0:
            now = max(now + wait, math.nextafter(now, math.inf))
        window.enter(size, now)
        passed.append((now, size if tokens is None else min(size, tokens)))
    for index, (time, _) in enumerate(passed):
        minute = [size for then, size in passed[: index + 1] if then + 60 > time]
        assert requests is None or len(minute) <= requests
        assert tokens is None or sum(minute) <= tokens


def test_whoever_finds_room_does_not_wait() -> None:
    window = TokenWindow(Rates(requests_per_minute=2, tokens_per_minute=100))
    assert window.wait(60, 0.0) == 0
    window.enter(60, 0.0)
    assert window.wait(40, 1.0) == 0
    assert window.wait(41, 1.0) == 59.0  # tokens: until the first is a minute old
    window.enter(40, 1.0)
    assert window.wait(0, 2.0) == 58.0  # requests, likewise
    assert window.wait(100, 2.0) == 59.0  # both calls have to be gone
    assert window.wait(60, 60.0) == 0


def test_an_estimate_gives_way_to_the_count() -> None:
    window = TokenWindow(Rates(tokens_per_minute=100))
    passage = window.enter(90, 0.0)
    assert window.wait(50, 1.0) > 0
    window.correct(passage, 20)
    assert window.wait(80, 1.0) == 0
    window.correct(passage, 100)
    assert window.wait(1, 1.0) == 59.0
    window.wait(0, 61.0)
    window.correct(passage, 5)  # too late to matter
    assert window.wait(100, 61.0) == 0


def test_a_call_larger_than_a_minute_passes_alone() -> None:
    window = TokenWindow(Rates(tokens_per_minute=100))
    assert window.wait(5000, 0.0) == 0
    window.enter(5000, 0.0)
    assert window.wait(1, 30.0) == 30.0
    assert window.wait(1, 60.0) == 0


@pytest.mark.parametrize("name", Rates.__struct_fields__)
def test_limits_below_one_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name} must be at least 1, got 0"):
        Rates(**{name: 0})


async def test_no_more_at_once_than_allowed() -> None:
    gate = RateLimiter(Rates(concurrency=3))
    inside = most = 0
    order: list[int] = []

    async def call(number: int) -> None:
        nonlocal inside, most
        async with gate.slot():
            inside += 1
            most = max(most, inside)
            order.append(number)
            await anyio.lowlevel.checkpoint()
            await gate.enter(1)
            inside -= 1

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(call, number)
    assert most == 3
    assert order == list(range(20))


async def test_one_task_may_hold_two_slots() -> None:
    gate = RateLimiter(Rates(concurrency=2))
    async with gate.slot(), gate.slot():
        with anyio.move_on_after(0) as waiting:
            async with gate.slot():
                raise AssertionError("a third slot of two")
    assert waiting.cancelled_caught
    async with gate.slot():
        pass


async def test_a_pause_holds_everybody() -> None:
    gate = RateLimiter(Rates())
    began = anyio.current_time()
    gate.pause(0.05)
    gate.pause(0.01)  # does not shorten it
    passages = []

    async def call() -> None:
        passages.append(await gate.enter(1))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(call)
    assert all(passage.time - began >= 0.05 for passage in passages)


async def test_whoever_gives_up_waiting_lets_the_next_one_on() -> None:
    gate = RateLimiter(Rates(tokens_per_minute=10))
    first = await gate.enter(10)
    with anyio.move_on_after(0.01) as waiting:
        await gate.enter(1)
    assert waiting.cancelled_caught
    gate.used(first, Tokens())  # says nothing, changes nothing
    with anyio.move_on_after(0.01) as waiting:
        await gate.enter(1)
    assert waiting.cancelled_caught
    gate.used(first, Tokens(prompt=3, completion=2))
    await gate.enter(5)
