"""Scorers that compute: in a thread in a product, at once in a simulation, one call at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import anyio
import anyio.lowlevel
import duolog
import pytest
from duolog.engine.codec import digest
from duolog.engine.errors import PluginFailed
from duolog.engine.events import ScorerFailed, ScorerRef, SnapshotTaken, UtilityScored
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.records import TRACE, Record
from duolog.engine.rounds import Round
from duolog.engine.scorers.driver import Pace, ScorerPool
from duolog.engine.scorers.hop import Hop
from duolog.engine.scorers.observing import ComputeThread
from duolog.engine.scorers.protocol import Computing, Cost, Measurement, Scorer, SessionScorer
from duolog.engine.session.time.clock import RealClock
from duolog.scoring.scorers.progress import Evidence, ProgressJudge, Verdict
from duolog.scoring.scorers.retention import RetentionUtility, retention
from duolog.testing import Script, a_session, agent, human
from duolog.testing.folds import by, records_of
from duolog.testing.tools import message

PATIENCE = 300


class Computes:
    """A scorer that awaits nothing, and says nothing about it."""

    ref = ScorerRef(name="computes", version="1", config="-")

    def __init__(self, look: Callable[[Record], object]) -> None:
        self._look = look

    def begin(self, session: str) -> SessionScorer:
        return self

    async def observe(self, record: Record) -> Sequence[Measurement]:
        self._look(record)
        scored = UtilityScored(scorer=self.ref, round=record.version, value=0.5)
        return (Measurement(scored, f"record/{record.version}"),)


class Awaits(Computes):
    """A scorer that awaits something, and thus lives on the event loop."""

    async def observe(self, record: Record) -> Sequence[Measurement]:
        await anyio.lowlevel.checkpoint()
        return await super().observe(record)


def snapshots(look: Callable[[], object]) -> Scorer:
    def score(snapshot: SnapshotTaken, opened: duolog.SessionOpened) -> duolog.Score:
        look()
        return duolog.Score(0.5)

    return duolog.SnapshotUtility("snapshots", "1", score)


def judge(look: Callable[[], object]) -> Scorer:
    def rate(evidence: Evidence) -> Verdict:
        look()
        return Verdict(rating=3)

    return ProgressJudge("judge", "1", rate)


SCORERS: dict[str, Callable[[Callable[[], object]], Scorer]] = {
    "a scorer that awaits nothing": lambda look: Computes(lambda _: look()),
    "a function of snapshots": snapshots,
    "a function of rounds": judge,
}


async def talk(log: duolog.Log) -> None:
    s = await log.session("s")
    await s.human.says("A plan, please.")
    await s.agent.submits("a plan")
    await s.human.says("Better.")
    await s.close(durable=True)


@pytest.mark.parametrize("name", SCORERS)
async def test_what_computes_does_not_hold_the_products_event_loop(name: str) -> None:
    """It waits until the loop has turned, which it never would if it ran on the loop."""
    computing, turned = threading.Event(), threading.Event()

    def compute() -> None:
        computing.set()
        assert turned.wait(PATIENCE), "the event loop stands still"

    async with duolog.open("memory://") as log:
        updates = log.watch(scorers=[SCORERS[name](compute)]).start()
        await talk(log)
        with anyio.fail_after(PATIENCE):
            while not computing.is_set():  # noqa: ASYNC110  (it is set in a thread)
                await anyio.sleep(0.001)
        turned.set()
        await updates.settle()
        assert updates.statistics().scorers[0].quarantined == 0
        kinds = [record.kind async for record in log.read_all() if record.stream != TRACE]
        assert "ScorerFailed" not in kinds
        assert kinds


async def threads_of(scorer: Callable[[Callable[[], object]], Scorer]) -> set[int]:
    """The threads in which a scorer runs in a simulation."""
    seen: set[int] = set()
    note = scorer(lambda: seen.add(threading.get_ident()))
    person = Script().say("A plan, please.").hear().say("Better.").finish()
    session = a_session(human(person), agent(Script().hear().submit("a plan")), scorers=(note,))
    async with open_log("memory://") as log:
        await duolog.run_session(log, session)
    return seen


@pytest.mark.parametrize("name", SCORERS)
async def test_in_a_simulation_it_computes_at_once(name: str) -> None:
    assert await threads_of(SCORERS[name]) == {threading.get_ident()}


async def test_in_a_session_on_real_time_it_computes_in_a_thread() -> None:
    seen: set[int] = set()
    scorer = Computes(lambda _: seen.add(threading.get_ident()))
    session = a_session(agent(Script().say("x")), scorers=(scorer,), clock=RealClock())
    async with open_log("memory://") as log:
        await duolog.run_session(log, session)
    assert seen
    assert threading.get_ident() not in seen


async def looked(log: EventLog, scorer: Scorer, *, pace: Pace | None = None) -> ScorerPool:
    pool = ScorerPool(log, [scorer], pace=pace or Pace(retry=0.0))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pool.run)
        await pool.settle()
        tasks.cancel_scope.cancel()
    return pool


async def test_a_scorer_that_awaits_stays_on_the_event_loop() -> None:
    seen: set[int] = set()
    async with MemoryLog() as log:
        await log.append("s", [message("x")])
        await looked(log, Awaits(lambda _: seen.add(threading.get_ident())))
    assert seen == {threading.get_ident()}


async def test_a_scorer_says_itself_what_of_it_computes() -> None:
    seen: list[tuple[int, bool]] = []
    here = threading.get_ident()

    class All(Computes):
        def cost(self, record: Record, over: Round | None) -> Cost:
            costs: tuple[Cost, ...] = ("quick", "computes", "waits")
            return costs[record.version % 3]

        async def observe(self, record: Record) -> Sequence[Measurement]:
            seen.append((record.version, threading.get_ident() == here))
            if record.version % 3 == 2:
                await anyio.lowlevel.checkpoint()
            return ()

    async with MemoryLog() as log:
        for _ in range(2):
            await log.append("s", [message("x") for _ in range(6)])
        await looked(log, All(lambda _: None))
    assert seen == [(version, version % 3 != 1) for version in range(1, 13)]


async def test_one_scorer_computes_for_one_session_at_a_time_and_waiting_is_no_fault() -> None:
    busy = threading.Lock()
    overlaps: list[Record] = []

    def compute(record: Record) -> None:
        if not busy.acquire(blocking=False):
            overlaps.append(record)
            return
        threading.Event().wait(0.1)
        busy.release()

    async with MemoryLog() as log:
        for number in range(12):
            await log.append(f"s{number}", [message("x")])
        # All of them together take longer than one of them may.
        pool = await looked(log, Computes(compute), pace=Pace(within=1.0))
        assert not overlaps
        assert pool.statistics()[0].quarantined == 0


async def test_one_that_computes_for_too_long_is_quarantined_and_the_others_go_on() -> None:
    done = threading.Event()

    def compute(record: Record) -> None:
        if record.session == "stuck":
            done.wait(PATIENCE)

    async with MemoryLog() as log:
        await log.append("stuck", [message("x")])
        await log.append("fine", [message("x")])
        await looked(log, Computes(compute), pace=Pace(within=1.0))
        done.set()
        events = [record.event async for record in log.read_all()]
    failures = [event.type for event in events if isinstance(event, ScorerFailed)]
    assert failures == ["TimeoutError"]
    assert sum(isinstance(event, UtilityScored) for event in events) == 1


async def test_what_waits_is_looked_at_together_in_one_trip_to_the_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first record is held up until all others have come."""
    trips: list[int] = []
    go_on, seen = threading.Event(), []
    run = Hop.run

    def counted(self: Hop) -> None:
        trips.append(0)
        run(self)

    def compute(record: Record) -> None:
        seen.append((record.session, record.version))
        trips[-1] += 1
        if len(seen) == 1:
            assert go_on.wait(PATIENCE)

    monkeypatch.setattr(Hop, "run", counted)
    async with MemoryLog() as log:
        await log.append("s0", [message("x")])
        pool = ScorerPool(log, [Computes(compute)])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.run)
            while not seen:  # noqa: ASYNC110  (it is set in a thread)
                await anyio.sleep(0.001)
            for number in range(40):
                await log.append(f"s{number}", [message("x") for _ in range(10)])
            await anyio.wait_all_tasks_blocked()
            go_on.set()
            await pool.settle()
            tasks.cancel_scope.cancel()
        assert trips[0] == 1
        assert sum(trips) == len(seen) == 401
        assert len(trips) <= 4
        for number in range(40):
            measured = [r.id async for r in log.read(f"s{number}", stream="computes@1")]
            count = 10 + (number == 0)
            assert measured == [f"computes@1/record/{v}" for v in range(1, count + 1)]


async def test_in_one_trip_who_raises_or_takes_too_long_is_alone_to_be_quarantined() -> None:
    held = threading.Event()

    def compute(record: Record) -> None:
        if record.version == 2 and record.session == "raises":
            raise ZeroDivisionError("no ground truth")
        if record.version == 2 and record.session == "stuck":
            held.wait(PATIENCE)

    names = ("before", "raises", "between", "stuck", "after")
    async with MemoryLog() as log:
        for name in names:
            await log.append(name, [message("x") for _ in range(4)])
        await looked(log, Computes(compute), pace=Pace(within=1.0))
        held.set()
        found = {
            name: [r.event async for r in log.read(name, stream="computes@1")] for name in names
        }
        causes = {
            name: [r.cause async for r in log.read(name, stream="computes@1")] for name in names
        }
    for name, kind in (("raises", "ZeroDivisionError"), ("stuck", "TimeoutError")):
        scored, failed = found.pop(name)
        assert isinstance(scored, UtilityScored)
        assert isinstance(failed, ScorerFailed)
        assert failed.type == kind
        assert causes[name] == ["trace/1", "trace/2"]
    for events in found.values():
        assert [type(event) for event in events] == [UtilityScored] * 4


async def test_a_function_that_turns_out_to_be_async_is_waited_for() -> None:
    async def ask() -> duolog.Score:
        await anyio.lowlevel.checkpoint()
        return duolog.Score(0.75)

    scorer = duolog.SnapshotUtility("asks", "1", lambda snapshot, opened: ask())
    async with duolog.open("memory://") as log:
        updates = log.watch(scorers=[scorer]).start()
        await talk(log)
        await updates.settle()
        [record] = [record async for record in log.read("s", stream="asks@1")]
    assert isinstance(record.event, UtilityScored)
    assert record.event.value == 0.75


@pytest.mark.parametrize("error", [StopIteration("x"), GeneratorExit("x"), SystemExit("x")])
async def test_what_is_raised_in_the_thread_is_an_exception_here(error: BaseException) -> None:
    def fail() -> None:
        raise error

    with pytest.raises((PluginFailed, RuntimeError)):
        await ComputeThread().run(fail)


@pytest.mark.parametrize("size", [10, 100_000])
async def test_large_drafts_are_compared_in_a_thread_and_small_ones_at_once(size: int) -> None:
    draft = "word " * (size // 5)
    session = RetentionUtility().begin("s")
    assert isinstance(session, Computing)
    taken = SnapshotTaken(content=draft, digest=digest(draft))
    first, second = records_of(by("agent", taken), by("human", taken))
    await session.observe(first)
    assert session.cost(second, None) == ("computes" if size > 4096 else "quick")
    [(scored, _)] = await session.observe(second)
    kept = retention(draft, draft)
    assert isinstance(scored, UtilityScored)
    assert isinstance(kept, duolog.Score)
    assert scored.value == kept.value
