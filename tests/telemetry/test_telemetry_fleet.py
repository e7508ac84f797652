"""Several processes that watch one log: each round is judged once, each advice handled by one."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import anyio
import duolog
import pytest
from duolog.engine.errors import InvalidInput, LogUnavailable, NewerLog
from duolog.engine.log.leases import Leasing
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft
from duolog.engine.scorers.protocol import stream_of
from duolog.scoring.stopping import STOPPER
from duolog.scoring.trajectory.updates import StopAdvice, StopWithdrawn
from duolog.telemetry.deliveries import StopDeliveries
from duolog.telemetry.live_updates import LiveUpdates
from duolog.telemetry.log import Log
from duolog.telemetry.receipt import Awaited
from duolog.telemetry.scorer_process import ScorerProcess, _Order
from duolog.telemetry.session import Recording
from gated_log import Gate


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'fleet.db'}"


async def complain(session: Recording[Awaited], rounds: int = 4) -> None:
    for number in range(rounds):
        await session.human.says("That is still wrong.", id=f"m{number}")
        await session.agent.says("Please wait.", id=f"a{number}")
    await session.close(durable=True)


async def acknowledged(log: Log, session: str) -> int:
    return len([record async for record in log.read(session, stream=stream_of(STOPPER))])


async def test_the_process_that_wrote_a_session_scores_it_and_hands_over_its_advice(
    url: str,
) -> None:
    handled: list[tuple[str, str, int, int]] = []

    def watch(log: Log, who: str) -> LiveUpdates:
        def on_stop(advice: StopAdvice) -> None:
            handled.append((who, advice.session, advice.round, advice.tau))

        return log.watch(
            scorers=[duolog.rule_judge()],
            options=duolog.Options(taus=(2,)),
            on_stop=on_stop,
            leases=True,
        ).start()

    async with duolog.open(url) as one, duolog.open(url) as two:
        watches = watch(one, "one"), watch(two, "two")
        with anyio.fail_after(120):
            while any(w.statistics().scorers[0].processes < 2 for w in watches):  # noqa: ASYNC110
                await anyio.sleep(0.02)
        await complain(await one.session("s1"))
        await complain(await two.session("s2"))
        with anyio.fail_after(120):
            for session in ("s1", "s2"):
                while not await acknowledged(one, session):  # noqa: ASYNC110  (of two processes)
                    await anyio.sleep(0.02)
        assert sorted(handled) == [("one", "s1", 2, 2), ("two", "s2", 2, 2)]
        for w, session in zip(watches, ("s1", "s2"), strict=True):
            await w.settle()
            records = len([record async for record in one.read(session)])
            assert [part.measured for part in w.statistics().scorers] == [records]
        for w in watches:
            await w.aclose()


async def test_who_was_killed_is_stood_in_for(url: str) -> None:
    """The writer's handler had no chance to be called: another process delivers."""
    handled: list[StopAdvice] = []
    advice = StopAdvice("s", 2, 5, 4, tau=2, rounds=(1, 2), ratings=(1, 1))
    async with duolog.open(url) as log, open_log(url) as store:
        await complain(await log.session("s"))
        acks = Counter[str]()

        async def handle(update: StopAdvice) -> None:
            handled.append(update)

        async def acknowledge(update: StopAdvice) -> None:
            acks[update.session] += 1

        assert isinstance(store, Leasing)
        deliveries = StopDeliveries(
            store, store.leases(), handle, acknowledge, lambda s, v: False, grace=0.05
        )
        record = await anext(store.read("s"))
        deliveries.take(record, [advice])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deliveries.run)
            await deliveries.settle()
            tasks.cancel_scope.cancel()
    assert handled == [advice]
    assert acks == {"s": 1}


async def lose_leases(store: Leasing) -> None:
    """As a crash of the server does."""
    for name, holder in (await store.leases().holders()).items():
        await store.leases().release([name], holder)


@pytest.mark.parametrize("crashed", ["never", "before", "after"])
async def test_advice_that_another_handler_may_have_had_says_so(url: str, crashed: str) -> None:
    """A process is killed between its handler and the acknowledgement; the server may lose leases."""
    handled: list[tuple[str, bool]] = []
    advice = StopAdvice("s", 2, 5, 4, tau=2, rounds=(1, 2), ratings=(1, 1))
    async with duolog.open(url) as log, open_log(url) as store:
        await complain(await log.session("s"))
        record = await anext(store.read("s"))
        assert isinstance(store, Leasing)

        def process(who: str, *, dies: bool) -> StopDeliveries:
            async def handle(update: StopAdvice) -> None:
                handled.append((who, update.redelivered))

            async def acknowledge(update: StopAdvice) -> None:
                if dies:
                    raise LogUnavailable("it was killed")

            leases = store.leases()
            made = StopDeliveries(store, leases, handle, acknowledge, lambda s, v: True, silent=0.1)
            made.take(record, [advice])
            return made

        first = process("first", dies=True)
        with pytest.raises(LogUnavailable):
            await first._try(*next(iter(first._due.items())))
        if crashed == "before":  # the second process is started
            await lose_leases(store)
        second = process("second", dies=False)
        await second.begin()
        if crashed == "after":
            await lose_leases(store)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(second.run)
            with anyio.fail_after(120):
                await second.settle()
            tasks.cancel_scope.cancel()
    assert handled == [("first", False), ("second", True)]


async def test_advice_that_is_withdrawn_before_it_is_due_is_not_handed_over(url: str) -> None:
    handled: list[StopAdvice] = []
    advice = StopAdvice("s", 2, 5, 4, tau=2, rounds=(1, 2), ratings=(1, 1))
    other = StopAdvice("s", 3, 7, 6, tau=3, rounds=(1, 2, 3), ratings=(1, 1, 1))

    async def handle(update: StopAdvice) -> None:
        handled.append(update)

    async def acknowledge(update: StopAdvice) -> None:
        pass

    async with duolog.open(url) as log, open_log(url) as store:
        await complain(await log.session("s"))
        assert isinstance(store, Leasing)
        made = StopDeliveries(store, store.leases(), handle, acknowledge, lambda s, v: True)
        record = await anext(store.read("s"))
        made.take(record, [advice, other])
        made.take(record, [StopWithdrawn("s", 2, 8, 7, tau=2)])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(made.run)
            await made.settle()
            tasks.cancel_scope.cancel()
    assert handled == [other]


async def test_a_log_that_closes_acknowledges_first_what_was_handed_over(url: str) -> None:
    begun, may_end = anyio.Event(), anyio.Event()
    acknowledged: list[StopAdvice] = []
    advice = StopAdvice("s", 2, 5, 4, tau=2, rounds=(1, 2), ratings=(1, 1))

    async def handle(update: StopAdvice) -> None:
        pass

    async def acknowledge(update: StopAdvice) -> None:
        begun.set()
        await may_end.wait()
        acknowledged.append(update)

    async with duolog.open(url) as log, open_log(url) as store:
        await complain(await log.session("s"))
        assert isinstance(store, Leasing)
        made = StopDeliveries(store, store.leases(), handle, acknowledge, lambda s, v: True)
        made.take(await anext(store.read("s")), [advice])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(made.run)
            await begun.wait()
            tasks.cancel_scope.cancel()
            may_end.set()
    assert acknowledged == [advice]


async def test_what_is_acknowledged_is_not_handled_again(url: str) -> None:
    handled: list[StopAdvice] = []
    for _ in range(2):  # a deploy
        async with duolog.open(url) as log:
            log.watch(
                scorers=[duolog.rule_judge()],
                options=duolog.Options(taus=(2,)),
                on_stop=handled.append,
                leases=True,
                after_position=0,
            ).start()
            session = await log.session("s")
            if not session.closed:
                await complain(session)
            with anyio.fail_after(120):
                while not await acknowledged(log, "s"):  # noqa: ASYNC110
                    await anyio.sleep(0.02)
    assert len(handled) == 1


async def test_a_log_in_memory_has_no_fleet() -> None:
    async with duolog.open("memory://") as log:
        with pytest.raises(InvalidInput, match="one process"):
            log.watch(leases=True)


async def test_scorers_in_a_thread_take_no_time_of_the_loop(url: str) -> None:
    threads: set[int] = set()

    def utility(snapshot: duolog.SnapshotTaken, opened: duolog.SessionOpened) -> duolog.Score:
        threads.add(threading.get_ident())
        return duolog.Score(0.5)

    async with duolog.open(url) as log:
        updates = log.watch(
            scorers=[duolog.SnapshotUtility("half", "1", utility), duolog.rule_judge()],
            where="thread",
        ).start()
        session = await log.session("s")
        await session.agent.submits("A draft.")
        await session.close(durable=True)
        with anyio.fail_after(120):
            await log.settle()
        assert (await duolog.score_log(log, "s")).points[-1].utility == 0.5
        assert threading.get_ident() not in threads
        await updates.aclose()
    async with duolog.open("memory://") as memory:
        with pytest.raises(InvalidInput, match="one connection"):
            memory.watch(where="thread")
        with pytest.raises(InvalidInput, match="not 'moon'"):
            memory.watch(where="moon")  # type: ignore[arg-type]


def children() -> list[int]:
    """The processes that run the scorers of this one."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            command = stat.with_name("cmdline").read_bytes()
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z" and b"scorer_process" in command:
            found.append(int(stat.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it looks for processes in /proc")
@pytest.mark.parametrize("leases", [False, True])
async def test_scorers_run_in_a_process_that_is_replaced_and_ends(url: str, leases: bool) -> None:
    handled: list[str] = []
    async with duolog.open(url) as log:
        watched = log.watch(
            scorers=[duolog.rule_judge(), duolog.RetentionUtility()],
            options=duolog.Options(taus=(2,)),
            on_stop=lambda advice: handled.append(advice.session),
            leases=leases,
            where="process",
        ).start()
        await complain(await log.session("s1"))
        with anyio.fail_after(120):
            await log.settle()
            while not handled:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        [child] = await anyio.to_thread.run_sync(children)
        os.kill(child, signal.SIGKILL)
        await complain(await log.session("s2"))
        with anyio.fail_after(120):
            while len(handled) < 2:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        assert handled == ["s1", "s2"]
        assert {one.scorer for one in watched.statistics().scorers}
    assert await anyio.to_thread.run_sync(children) == []


async def test_the_process_of_the_scorers_is_told_who_wrote_a_session_last(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that it need not wait for another one, which may have been handed the session."""
    orders: list[_Order] = []
    made: list[ScorerProcess] = []

    async def run(self: ScorerProcess) -> None:
        made.append(self)
        await self._tell_often()

    async def order(self: ScorerProcess, one: _Order) -> None:
        orders.append(one)

    monkeypatch.setattr(ScorerProcess, "run", run)
    monkeypatch.setattr(ScorerProcess, "_order", order)
    async with duolog.open(url, deadline=0.0) as log:
        log.watch(scorers=[duolog.rule_judge()], where="process", leases=True).start()
        await (await log.session("s")).human.says("hello", durable=True)
        with anyio.fail_after(120):
            while not orders:  # noqa: ASYNC110  (it gathers for a moment)
                await anyio.sleep(0.01)
        assert orders.pop() == _Order(near=("s",))
        made[0].note("s", near=False)
        with anyio.fail_after(120):
            while not orders:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        assert orders == [_Order(left=("s",))]


async def test_what_another_process_cannot_have_is_refused(url: str) -> None:
    def utility(snapshot: duolog.SnapshotTaken, opened: duolog.SessionOpened) -> duolog.Score:
        return duolog.Score(1.0)

    async with duolog.open(url) as log:
        local = duolog.SnapshotUtility("local", "1", utility)
        with pytest.raises(InvalidInput, match=r"local@.* cannot run in another process"):
            log.watch(scorers=[local], where="process")
    async with duolog.open("memory://") as log:
        with pytest.raises(InvalidInput, match="one connection"):
            log.watch(scorers=[duolog.rule_judge()], where="process")


async def test_scorers_that_run_elsewhere_do_not_run_here(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    found: list[StopAdvice] = []
    async with duolog.open(url) as product, duolog.open(url) as worker:
        options = duolog.Options(taus=(2,))
        watch = product.watch(
            scorers=[duolog.rule_judge()], where="elsewhere", options=options, on_stop=found.append
        ).start()
        s = await product.session("s", task="support")
        for _ in range(3):
            await s.human.says("That is still wrong, not what I asked for.")
            await s.agent.says("Please wait.")
        await s.close(durable=True)
        await product.settle()
        assert (watch.statistics().scorers, found) == ((), [])
        other = worker.watch(scorers=[duolog.rule_judge()], after_position=0).start()
        with anyio.fail_after(120):
            while not found:  # noqa: ASYNC110  (its records come through the file)
                await anyio.sleep(0.02)
        await other.aclose()
    assert [one.tau for one in found] == [2]


async def test_advice_that_cannot_be_acknowledged_is_not_handed_over(url: str) -> None:
    """A newer version has taken the log over: its processes deliver."""
    handled: list[StopAdvice] = []
    advice = StopAdvice("s", 2, 5, 4, tau=2, rounds=(1, 2), ratings=(1, 1))
    tried = anyio.Event()

    def fail(session: str, drafts: Sequence[Draft], stream: str) -> Exception:
        tried.set()
        return NewerLog("a newer Duolog has taken over this log")

    async def handle(update: StopAdvice) -> None:
        handled.append(update)

    async def acknowledge(update: StopAdvice) -> None:
        pass

    async with duolog.open(url) as log, open_log(url) as store:
        await complain(await log.session("s"))
        gate = Gate(store)
        gate.fail(fail)
        assert isinstance(store, Leasing)
        deliveries = StopDeliveries(
            gate.log, store.leases(), handle, acknowledge, lambda s, v: True, grace=0.05
        )
        deliveries.take(await anext(store.read("s")), [advice])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(deliveries.run)
            await tried.wait()
            assert handled == []
            gate.heal()
            await deliveries.settle()
            tasks.cancel_scope.cancel()
    assert handled == [advice]
