"""The circuit breaker: when it opens, which call probes, and when a model counts as down."""

from __future__ import annotations

import anyio
import pytest
import virtual_loop
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
from duolog.engine.models import Breaker
from duolog.engine.models.traffic.circuit_breaker import Circuit

QUICK = Breaker(failures=3, pause=0.01, longest=0.02, probes=3)


def circuit(breaker: Breaker = QUICK) -> Circuit:
    return Circuit("m", breaker, patience=60.0)


async def call(circuit: Circuit, error: ModelError | None = None) -> None:
    """Makes a call that fails in this way, or succeeds; both at once."""
    if error is None:
        async with circuit.passing():
            pass
        return
    with pytest.raises(type(error)):
        async with circuit.passing():
            raise error


@pytest.mark.parametrize("kind", [ModelBadReply, ModelTimeout, ModelUnavailable])
async def test_failures_in_a_row_open_it(kind: type[ModelError]) -> None:
    it = circuit()
    for _ in range(2):
        await call(it, kind("x"))
    await call(it)  # a success in between
    for _ in range(2):
        await call(it, kind("x"))
        assert not it.is_open
    await call(it, kind("x"))
    assert it.is_open
    await call(it)  # waits for its time, as the probe
    assert not it.is_open


@pytest.mark.parametrize("kind", [ModelRateLimited, ModelRefused])
async def test_an_answer_that_one_does_not_like_is_an_answer(kind: type[ModelError]) -> None:
    it = circuit()
    for _ in range(2):
        await call(it, ModelTimeout("x"))
    await call(it, kind("x"))
    await call(it, ModelTimeout("x"))
    assert not it.is_open


async def test_a_call_that_was_not_made_says_nothing() -> None:
    it = circuit()
    for _ in range(2):
        await call(it, ModelTimeout("x"))
    await call(it, BudgetExhausted("x"))
    await call(it, ModelTimeout("x"))
    assert it.is_open


async def test_one_probes_while_the_others_wait() -> None:
    it = circuit()
    for _ in range(3):
        await call(it, ModelUnavailable("x"))
    order: list[str] = []
    answer = anyio.Event()

    async def one(name: str) -> None:
        async with it.passing():
            order.append(name)
            if len(order) == 1:
                await answer.wait()

    async with anyio.create_task_group() as tasks:
        for name in "abcd":
            tasks.start_soon(one, name)
        with anyio.fail_after(120):
            while not order:
                await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        assert len(order) == 1
        answer.set()
    assert sorted(order) == list("abcd")


async def test_a_probe_that_is_cancelled_leaves_the_way_free() -> None:
    it = circuit()
    for _ in range(3):
        await call(it, ModelUnavailable("x"))
    probing = anyio.Event()
    async with anyio.create_task_group() as tasks:

        async def probe() -> None:
            async with it.passing():
                probing.set()
                await anyio.sleep_forever()

        tasks.start_soon(probe)
        await probing.wait()
        tasks.cancel_scope.cancel()
    assert it.is_open
    await call(it)
    assert not it.is_open


async def test_too_many_failed_probes_and_it_is_down() -> None:
    it = circuit()
    await call(it)  # it did answer once, so that it is worth some patience
    began = anyio.current_time()
    for _ in range(3):
        await call(it, ModelUnavailable("x"))
    for _ in range(3):
        assert it.down is None
        await call(it, ModelUnavailable("the roof is on fire"))
    assert anyio.current_time() - began >= 0.01 + 0.02 + 0.02  # doubled, up to the longest
    assert it.down is not None
    with pytest.raises(ModelDown, match="3 probes in a row have failed, the last: the roof"):
        await it.passing().__aenter__()


def test_a_model_that_never_answered_is_given_up_soon() -> None:
    async def main() -> tuple[float, str | None]:
        it = circuit(Breaker())
        for _ in range(5 + 2):  # the last ones wait, as probes
            await call(it, ModelUnavailable("always 500"))
        with pytest.raises(ModelDown, match="'m' is asked no more: it has never answered"):
            await it.passing().__aenter__()
        return anyio.current_time(), it.down

    seconds, why = virtual_loop.run(main)
    assert 15.0 <= seconds < 15.1
    assert why == (
        "it has never answered; 5 calls and 2 probes in a row have failed, the last: always 500"
    )


def test_a_model_that_did_answer_has_minutes_to_come_back() -> None:
    async def main() -> float:
        it = circuit(Breaker())
        await call(it)
        for _ in range(10 + 5):
            await call(it, ModelUnavailable("restarting"))
        await call(it)  # the last probe
        assert not it.is_open
        return anyio.current_time()

    assert 275.0 <= virtual_loop.run(main) < 275.1  # 5 + 10 + 20 + 40 + 80 + 120


def test_who_knows_better_has_a_model_probed_that_is_down() -> None:
    async def main() -> float:
        it = circuit(Breaker())
        for _ in range(3):
            await call(it, ModelDenied("no such key"))
        it.retry()
        await call(it, ModelDenied("no such key"))  # the probe
        with pytest.raises(ModelDown, match="no such key"):  # at once: one probe says enough
            await it.passing().__aenter__()
        it.retry()
        await call(it)
        assert (it.down, it.is_open) == (None, False)
        return anyio.current_time()

    assert virtual_loop.run(main) < 0.1


async def test_whoever_waits_learns_that_it_is_down() -> None:
    it = circuit(Breaker(failures=1, pause=0.01, probes=1))
    await call(it, ModelTimeout("x"))
    raised = 0

    async def one() -> None:
        nonlocal raised
        try:
            async with it.passing():
                await anyio.lowlevel.checkpoint()
                raise ModelTimeout("x")
        except ModelDown:
            raised += 1
        except ModelTimeout:
            pass

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(one)
    assert raised == 9


async def test_an_old_call_that_succeeds_closes_it() -> None:
    it = circuit(Breaker(failures=1, pause=3600))
    async with it.passing():  # begun before it opened
        await call(it, ModelTimeout("x"))
        assert it.is_open
    assert not it.is_open


async def test_an_old_call_that_fails_changes_nothing() -> None:
    it = circuit(Breaker(failures=1, pause=0.01))

    async def old() -> None:
        async with it.passing():
            await call(it, ModelTimeout("x"))
            raise ModelTimeout("x")

    with pytest.raises(ModelTimeout):
        await old()
    await call(it)
    assert not it.is_open


async def test_who_lets_nobody_in_is_down() -> None:
    it = circuit()
    for _ in range(2):
        await call(it, ModelDenied("no such key"))
    await call(it)
    for _ in range(3):
        assert it.down is None
        await call(it, ModelDenied("no such key"))
    assert it.down == "no such key"


async def test_who_asks_for_too_much_patience_is_down() -> None:
    it = circuit()
    await call(it, ModelRateLimited("tomorrow", retry_after=60.0))
    assert it.down is None
    await call(it, ModelRateLimited("tomorrow", retry_after=36000.0))
    assert it.down == "it asks to wait for 36000 s: tomorrow"
