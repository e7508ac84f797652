"""Turns: the order of actors, under a virtual and a real clock."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

import anyio
import pytest
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint
from duolog.engine.records import ENGINE
from duolog.engine.session.time.clock import RealClock, VirtualClock
from duolog.engine.session.time.scheduler import RealTurns, Turns, VirtualTurns, WakeReason
from duolog.testing import virtual_turns
from hypothesis import given
from hypothesis import strategies as st
from virtual_loop import in_virtual_time

Actor = Callable[[VirtualTurns, str], Awaitable[None]]


async def run(turns: VirtualTurns, **actors: Actor) -> None:
    """Runs actors to their end, each in a separate task."""

    async def live(name: str, actor: Actor) -> None:
        try:
            await turns.begin(name)
            await actor(turns, name)
        finally:
            turns.leave(name)

    async with anyio.create_task_group() as tasks:
        for name, actor in actors.items():
            tasks.start_soon(live, name, actor)


async def test_the_clock_jumps_to_the_earliest_wake_up() -> None:
    heard: list[tuple[str, float]] = []

    def sleeper(*times: float) -> Actor:
        async def actor(turns: VirtualTurns, name: str) -> None:
            for time in times:
                assert await turns.park(name, until=time) is WakeReason.TIME
                heard.append((name, turns.now()))

        return actor

    with virtual_turns("a", "b") as turns:
        await run(turns, a=sleeper(3600.0, 7200.0), b=sleeper(1800.0, 9000.0))
    assert heard == [("b", 1800.0), ("a", 3600.0), ("a", 7200.0), ("b", 9000.0)]


async def test_one_actor_runs_at_a_time() -> None:
    running: list[str] = []

    async def actor(turns: VirtualTurns, name: str) -> None:
        for step in range(20):
            running.append(name)
            for _ in range(3):
                await checkpoint()
            assert running == [name]
            running.remove(name)
            await turns.park(name, until=float(step))

    with virtual_turns("a", "b", "c") as turns:
        await run(turns, a=actor, b=actor, c=actor)


async def test_nobody_runs_before_all_have_begun() -> None:
    ran: list[str] = []

    async def actor(turns: VirtualTurns, name: str) -> None:
        ran.append(name)

    with virtual_turns("a", "late") as turns:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: run(turns, a=actor))
            await anyio.wait_all_tasks_blocked()
            assert ran == []
            tasks.start_soon(lambda: run(turns, late=actor))
    assert sorted(ran) == ["a", "late"]


async def order_at_one_time(seed: int, names: list[str]) -> list[str]:
    order: list[str] = []

    async def actor(turns: VirtualTurns, name: str) -> None:
        for time in (1.0, 2.0, 3.0):
            await turns.park(name, until=time)
            order.append(name)

    with virtual_turns(*names, seed=seed) as turns:
        await run(turns, **dict.fromkeys(names, actor))
    return order


async def test_ties_are_broken_by_the_seed_and_not_by_the_order_of_tasks() -> None:
    names = ["ann", "bob", "cleo", "dan"]
    orders = {}
    for seed in range(5):
        order = await order_at_one_time(seed, names)
        assert order == await order_at_one_time(seed, names[::-1])
        orders[seed] = tuple(order)
    assert len(set(orders.values())) > 1
    assert any(len({order[i : i + 4] for i in (0, 4, 8)}) > 1 for order in orders.values())


async def test_ties_are_broken_alike_in_every_version() -> None:
    """Or sessions that were recorded earlier would be executed again in another order."""
    order = await order_at_one_time(7, ["ann", "bob", "cleo", "dan", "eve"])
    assert " ".join(order) == ("dan cleo ann eve bob cleo ann bob dan eve ann dan cleo bob eve")


async def test_news_at_the_very_time_that_was_waited_for() -> None:
    """Both wake-ups are due at once, for the same wait: news counts if it is there by then."""
    seen: set[str] = set()
    for seed in range(20):
        happened: list[str] = []

        async def waiting(turns: VirtualTurns, name: str, happened: list[str] = happened) -> None:
            happened.append((await turns.park(name, until=5.0, news=True)).name)
            await turns.park(name, until=6.0, news=False)

        async def telling(turns: VirtualTurns, name: str, happened: list[str] = happened) -> None:
            await turns.park(name, until=5.0)
            happened.append("told")
            turns.wake("a")
            turns.wake("b")

        with virtual_turns("a", "b", "teller", seed=seed) as turns:
            await run(turns, a=waiting, b=waiting, teller=telling)
            assert turns.now() == 6.0
        told = happened.index("told")
        assert happened == ["TIME"] * told + ["told"] + ["NEWS"] * (2 - told)
        seen.update(happened)
    assert seen == {"TIME", "told", "NEWS"}


async def test_news_wakes_only_who_waits_for_it() -> None:
    woke: list[tuple[str, WakeReason, float]] = []

    async def listening(turns: VirtualTurns, name: str) -> None:
        woke.append((name, await turns.park(name, until=10.0, news=True), turns.now()))

    async def resting(turns: VirtualTurns, name: str) -> None:
        woke.append((name, await turns.park(name, until=10.0, news=False), turns.now()))

    async def telling(turns: VirtualTurns, name: str) -> None:
        await turns.park(name, until=4.0)
        for other in ("listener", "rester", "teller", "nobody"):
            turns.wake(other)

    with virtual_turns("listener", "rester", "teller") as turns:
        await run(turns, listener=listening, rester=resting, teller=telling)
    assert woke == [("listener", WakeReason.NEWS, 4.0), ("rester", WakeReason.TIME, 10.0)]


async def test_news_from_outside_gives_the_turn_when_nobody_has_it() -> None:
    async def waiting(turns: VirtualTurns, name: str) -> None:
        assert await turns.park(name) is WakeReason.NEWS

    with virtual_turns("a", "b") as turns:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: run(turns, a=waiting, b=waiting))
            await anyio.wait_all_tasks_blocked()
            turns.wake("a")
            turns.wake("b")


class RecordingWatchdog:
    """Notes when and why the watchdog is called, and runs ``deed`` in a separate task."""

    def __init__(self, deed: Callable[[Turns], None]) -> None:
        self.calls: list[tuple[WakeReason, float]] = []
        self.tasks: TaskGroup | None = None
        self.turns: Turns | None = None
        self._deed = deed

    def __call__(self, why: WakeReason) -> None:
        assert self.tasks is not None
        self.tasks.start_soon(self._do, why)

    async def _do(self, why: WakeReason) -> None:
        turns = self.turns
        assert turns is not None
        assert turns.holds(ENGINE)
        await checkpoint()
        self.calls.append((why, turns.now()))
        self._deed(turns)
        turns.leave(ENGINE)


async def test_the_watchdog_is_called_when_all_wait_without_a_time_and_at_the_limit() -> None:
    async def actor(turns: VirtualTurns, name: str) -> None:
        await turns.park(name)  # idle at 0
        await turns.park(name, until=30.0, news=False)
        await turns.park(name)  # idle at 30
        await turns.park(name, until=100.0, news=False)  # the limit comes first
        assert watchdog.calls[-1] == (WakeReason.TIME, 100.0)
        await turns.park(name, until=150.0, news=False)
        turns.end()

    watchdog = RecordingWatchdog(lambda turns: turns.wake("a"))
    turns = VirtualTurns(
        VirtualClock(), seed=0, actors=frozenset("a"), on_overdue=fail, watchdog=watchdog
    )
    turns.limit(100.0)
    async with anyio.create_task_group() as watchdog.tasks:
        watchdog.turns = turns
        await run(turns, a=actor)
    turns.close()
    assert watchdog.calls == [
        (WakeReason.IDLE, 0.0),
        (WakeReason.IDLE, 30.0),
        (WakeReason.TIME, 100.0),
    ]


async def test_nobody_calls_the_watchdog_of_a_session_that_is_over() -> None:
    async def brief(turns: VirtualTurns, name: str) -> None:
        turns.end()

    def watchdog(why: WakeReason) -> None:
        raise AssertionError(f"called because of {why!r}")

    turns = VirtualTurns(
        VirtualClock(), seed=0, actors=frozenset("a"), on_overdue=fail, watchdog=watchdog
    )
    await run(turns, a=brief)
    turns.close()


def fail(name: str) -> None:
    raise AssertionError(f"{name!r} is overdue")


async def test_work_in_flight_holds_the_clock() -> None:
    gate = anyio.Event()
    times: list[float] = []

    async def working(turns: VirtualTurns, name: str) -> None:
        await turns.park(name, until=1.0)
        await gate.wait()  # a model, a file, a thread
        times.append(turns.now())

    async def sleeping(turns: VirtualTurns, name: str) -> None:
        await turns.park(name, until=2.0)
        times.append(turns.now())

    with virtual_turns("worker", "sleeper") as turns:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: run(turns, worker=working, sleeper=sleeping))
            await anyio.wait_all_tasks_blocked()
            assert (times, turns.now(), turns.holds("worker")) == ([], 1.0, True)
            gate.set()
    assert times == [1.0, 2.0]


async def test_who_is_cancelled_while_it_waits_has_no_turn_and_stops_nobody() -> None:
    order: list[str] = []

    async def impatient(turns: VirtualTurns, name: str) -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await turns.park(name)
        assert not turns.holds(name)
        await turns.park(name, until=7.0)
        assert turns.holds(name)
        order.append(name)

    async def patient(turns: VirtualTurns, name: str) -> None:
        await turns.park(name, until=3.0)
        scopes[0].cancel()
        await checkpoint()
        await checkpoint()
        order.append(name)
        await turns.park(name, until=9.0)
        order.append(name)

    scopes: list[anyio.CancelScope] = []
    with virtual_turns("a", "b") as turns:
        await run(turns, a=impatient, b=patient)
    assert order == ["b", "a", "b"]


async def test_who_is_cancelled_with_the_turn_in_hand_keeps_it_until_it_leaves() -> None:
    order: list[str] = []
    scope = anyio.CancelScope()

    async def cancelled(turns: VirtualTurns, name: str) -> None:
        with scope:
            await turns.park(name, until=1.0)
            await checkpoint()
            order.append("never")
        assert turns.holds(name)
        order.append(name)

    async def other(turns: VirtualTurns, name: str) -> None:
        await turns.park(name, until=0.5)
        asyncio.get_running_loop().call_soon(cancel, turns)
        await turns.park(name, until=2.0)
        order.append(name)

    def cancel(turns: VirtualTurns) -> None:
        """Between the passing of the turn to ``a`` and the running of its task."""
        assert turns.holds("a")
        scope.cancel()

    with virtual_turns("a", "b") as turns:
        await run(turns, a=cancelled, b=other)
    assert order == ["a", "b"]


async def test_who_leaves_passes_the_turn_on() -> None:
    order: list[str] = []

    async def brief(turns: VirtualTurns, name: str) -> None:
        order.append(name)

    async def failing(turns: VirtualTurns, name: str) -> None:
        order.append(name)
        raise LookupError(name)

    with virtual_turns("a", "b", "c") as turns, pytest.raises(BaseExceptionGroup):
        await run(turns, a=brief, b=brief, c=failing)
    assert "c" in order


@pytest.mark.parametrize("until", [math.inf, -math.inf, math.nan])
async def test_a_time_that_never_comes_cannot_be_waited_for(until: float) -> None:
    with virtual_turns("a") as turns, pytest.raises(ValueError, match="session times are finite"):
        await turns.park("a", until=until)
    real = real_turns("a")
    with pytest.raises(ValueError, match="session times are finite"):
        await real.park("a", until=until)


async def test_a_time_that_has_passed_is_now() -> None:
    async def actor(turns: VirtualTurns, name: str) -> None:
        await turns.park(name, until=5.0)
        await turns.park(name, until=1.0)
        assert turns.now() == 5.0

    with virtual_turns("a") as turns:
        await run(turns, a=actor)


@in_virtual_time
async def test_an_actor_that_holds_the_turn_too_long_is_named() -> None:
    late: list[str] = []
    found = anyio.Event()

    def overdue(name: str) -> None:
        late.append(name)
        found.set()

    turns = VirtualTurns(
        VirtualClock(hold=0.01), seed=0, actors=frozenset({"a", "b"}), on_overdue=overdue
    )

    async def hanging(turns: VirtualTurns, name: str) -> None:
        await turns.park(name, until=1.0)
        await found.wait()

    async def waiting(turns: VirtualTurns, name: str) -> None:
        await turns.park(name, until=2.0)

    try:
        await run(turns, a=hanging, b=waiting)
    finally:
        turns.close()
    assert set(late) == {"a"}


async def test_taking_turns_is_not_holding_one() -> None:
    """Many short turns outlast the limit for one."""
    late: list[str] = []
    turns = VirtualTurns(
        VirtualClock(hold=0.02), seed=0, actors=frozenset({"a", "b"}), on_overdue=late.append
    )
    loop = asyncio.get_running_loop()
    end = loop.time() + 0.1

    async def busy(turns: VirtualTurns, name: str) -> None:
        step = 0
        while loop.time() < end:
            step += 1
            await turns.park(name, until=float(step))
            await checkpoint()

    try:
        await run(turns, a=busy, b=busy)
    finally:
        turns.close()
    assert late == []


@given(
    st.lists(
        st.lists(st.floats(0, 100, allow_nan=False), min_size=1, max_size=6), min_size=1, max_size=5
    ),
    st.integers(),
)
def test_wake_ups_come_in_order_of_time(waits: list[list[float]], seed: int) -> None:
    heard: list[float] = []
    due: list[float] = []

    async def main() -> None:
        def sleeper(times: list[float]) -> Actor:
            async def actor(turns: VirtualTurns, name: str) -> None:
                for seconds in times:
                    until = turns.now() + seconds
                    due.append(until)
                    await turns.park(name, until=until, news=False)
                    assert turns.now() == until
                    heard.append(until)

            return actor

        actors = {f"a{i}": sleeper(times) for i, times in enumerate(waits)}
        with virtual_turns(*actors, seed=seed) as turns:
            await run(turns, **actors)

    anyio.run(main)
    assert heard == sorted(due)


# --- a real clock ----------------------------------------------------------------------------------


def real_turns(
    *actors: str,
    busy: Callable[[], bool] = lambda: False,
    watchdog: Callable[[WakeReason], None] = lambda why: None,
) -> RealTurns:
    return RealTurns(RealClock(), actors=frozenset(actors), busy=busy, watchdog=watchdog)


async def test_news_and_time_are_told_apart_on_the_wall() -> None:
    turns = real_turns("a")
    assert await turns.park("a", until=turns.now() + 0.001) is WakeReason.TIME
    async with anyio.create_task_group() as tasks:

        async def tell() -> None:
            await anyio.wait_all_tasks_blocked()
            turns.wake("a")

        tasks.start_soon(tell)
        assert await turns.park("a") is WakeReason.NEWS


async def test_idleness_on_the_wall() -> None:
    busy = True
    seen: list[WakeReason] = []
    turns = real_turns("a", "b", busy=lambda: busy, watchdog=seen.append)

    async def wait(name: str, until: float | None = None) -> None:
        await turns.park(name, until=until)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, "a")
        await wait("b", turns.now() + 0.001)
        tasks.start_soon(wait, "b")
        await anyio.wait_all_tasks_blocked()
        assert seen == []  # something is in flight
        busy = False
        turns.leave("environment")  # somebody looks
        assert seen == [WakeReason.IDLE]
        turns.leave("environment")
        assert seen == [WakeReason.IDLE], "it has been called, and has not left"
        turns.leave(ENGINE)
        assert seen == [WakeReason.IDLE] * 2
        turns.end()
        turns.leave(ENGINE)
        assert seen == [WakeReason.IDLE] * 2, "the session is over"
        turns.wake("a")
        turns.wake("b")


async def test_time_on_the_wall_never_runs_back() -> None:
    wall, monotonic = 1000.0, 50.0
    clock = RealClock(wall=lambda: wall, monotonic=lambda: monotonic)
    turns = RealTurns(clock, actors=frozenset(), busy=lambda: False, watchdog=lambda why: None)
    assert turns.now() == 1000.0
    wall, monotonic = 900.0, 51.0  # the clock was set back
    assert turns.now() == 1001.0
    again = RealTurns(
        clock, actors=frozenset(), busy=lambda: False, watchdog=lambda why: None, start=1001.0
    )
    assert again.now() == 1001.0
