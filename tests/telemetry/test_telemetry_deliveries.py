"""Stop advice in a fleet, second by second: which process delivers it, and how far delivery has come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace

import anyio
import pytest
import virtual_loop
from duolog.engine.errors import LogUnavailable
from duolog.engine.events import StopAdvised
from duolog.engine.log.contract import Advance
from duolog.engine.log.open import MemoryLog
from duolog.engine.records import ENGINE, Draft, Record
from duolog.engine.scorers.protocol import stream_of
from duolog.scoring.stopping import STOPPER
from duolog.scoring.trajectory.updates import StopAdvice, StopWithdrawn
from duolog.telemetry import deliveries
from duolog.telemetry.deliveries import CONSUMER, StopDeliveries
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records

Told = list[tuple[float, str, int, bool]]
"""When a handler was called, of which session and round, and whether for the second time."""


class Table:
    """Leases in memory."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    async def claim(self, names: Sequence[str], holder: str, seconds: float) -> frozenset[str]:
        return frozenset(n for n in names if self.held.setdefault(n, holder) == holder)

    async def release(self, names: Sequence[str], holder: str) -> None:
        for name in names:
            if self.held.get(name) == holder:
                del self.held[name]

    async def holders(self, prefix: str = "") -> Mapping[str, str]:
        return {n: holder for n, holder in self.held.items() if n.startswith(prefix)}


class Process:
    """One of a fleet, with what it handed over and acknowledged."""

    def __init__(self, log: MemoryLog, leases: Table, *, near: bool = True) -> None:
        self.told: Told = []
        self.acknowledged: list[int] = []
        self.away = 0
        self.nears: list[tuple[str, int]] = []
        self._log = log

        async def handle(advice: StopAdvice) -> None:
            now = round(anyio.current_time(), 1)
            self.told.append((now, advice.session, advice.round, advice.redelivered))

        async def acknowledge(advice: StopAdvice) -> None:
            if self.away:
                self.away -= 1
                raise LogUnavailable("the server restarts")
            self.acknowledged.append(advice.round)

        def is_near(session: str, version: int) -> bool:
            self.nears.append((session, version))
            return near

        self.made = StopDeliveries(log, leases, handle, acknowledge, is_near)

    async def take(self, *advices: StopAdvice, version: int = 1) -> Record:
        records = [one async for one in self._log.read("s", after_version=version - 1)]
        self.made.take(records[0], advices)
        return records[0]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.made.run)
            yield
            tasks.cancel_scope.cancel()


def advised(round: int, position: int, session: str = "s") -> StopAdvice:
    rounds = tuple(range(round - 1, round + 1))
    return StopAdvice(session, round, position, position, tau=2, rounds=rounds, ratings=(1, 1))


Scene = Callable[[MemoryLog, Table], Awaitable[None]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[Scene], None]:
    """Plays a scene in virtual time, with a log that holds a session of ten records."""
    monkeypatch.setattr(deliveries, "time", SimpleNamespace(monotonic=anyio.current_time))

    def run(scene: Scene) -> None:
        async def main() -> None:
            script = RecordWriter("s")
            script.opened()
            for number in range(9):
                script.human(f"message {number}")
            async with MemoryLog() as log:
                await put_records(log, script.records)
                await scene(log, Table())

        virtual_loop.run(main)

    return run


Play = Callable[[Scene], None]


def test_who_wrote_a_session_delivers_at_once_and_the_others_after_two_seconds(play: Play) -> None:
    async def scene(log: MemoryLog, leases: Table) -> None:
        near, far = Process(log, leases), Process(log, leases, near=False)
        for one in (near, far):
            await one.take(advised(2, 5))
        async with near.running():
            await near.made.settle()
        async with far.running():
            await anyio.sleep(1.9)
            assert far.told == []
            await far.take(advised(3, 7), version=2)
            await anyio.sleep(2.2)
        assert near.told == [(0.0, "s", 2, False)]
        assert near.nears == [("s", 5)]
        # It cannot know whether the first handler did anything: it waits until that one is silent.
        assert far.told == [(3.9, "s", 3, False)]
        assert leases.held == {}

    play(scene)


def test_what_may_have_been_handed_over_comes_again_after_six_seconds_and_says_so(
    play: Play,
) -> None:
    async def scene(log: MemoryLog, leases: Table) -> None:
        first, second = Process(log, leases), Process(log, leases)
        first.away = 1000
        await first.take(advised(2, 5))
        async with first.running():
            await anyio.sleep(0.5)
        await second.take(advised(2, 5))
        async with second.running():
            await anyio.sleep(5.8)
            assert second.told == []
            await second.made.settle()
        assert first.told == [(0.0, "s", 2, False)]
        [(at, *told)] = second.told
        assert told == ["s", 2, True]
        assert 6.5 <= at <= 7.5
        assert second.acknowledged == [2]

    play(scene)


def test_an_acknowledgement_that_fails_is_tried_each_second_and_nothing_is_handed_over_again(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(log: MemoryLog, leases: Table) -> None:
        one = Process(log, leases)
        one.away = 4
        await one.take(advised(2, 5), advised(3, 6))
        async with one.running():
            await one.made.settle()
            assert round(anyio.current_time(), 1) == 2.0
        assert [told[2] for told in one.told] == [2, 3]
        assert one.acknowledged == [2, 3]

    play(scene)
    assert caplog.text.count("is not acknowledged yet") == 2


def test_a_session_that_another_process_is_at_is_left_to_it(play: Play) -> None:
    async def scene(log: MemoryLog, leases: Table) -> None:
        one = Process(log, leases)
        leases.held["stop/s"] = "another"
        await one.take(advised(2, 5))
        async with one.running():
            await anyio.sleep(3.5)
            assert one.told == []
            await leases.release(["stop/s"], "another")
            await one.made.settle()
        assert one.told == [(4.0, "s", 2, False)]

    play(scene)


def test_advice_that_is_acknowledged_or_withdrawn_is_not_delivered(play: Play) -> None:
    async def scene(log: MemoryLog, leases: Table) -> None:
        stops = stream_of(STOPPER)
        event = StopAdvised(round=2, tau=2, enforced=False)
        await log.append("s", [Draft(event, ENGINE, "scorer", 0.0)], stream=stops)
        [acknowledgement] = [one async for one in log.read("s", stream=stops)]
        one = Process(log, leases)
        await one.take(advised(2, 5))
        async with one.running():
            await one.made.settle()  # the log holds it, and it has not come here yet
        await one.take(advised(2, 5), advised(3, 6))
        one.made.take(acknowledgement, [StopWithdrawn("s", 3, 11, 8, tau=2)])
        async with one.running():
            await one.made.settle()
            await anyio.sleep(5)
        assert one.told == []

    play(scene)


def test_the_checkpoint_moves_every_two_seconds_up_to_what_is_still_due(play: Play) -> None:
    async def scene(log: MemoryLog, leases: Table) -> None:
        one = Process(log, leases)
        assert await one.made.begin() == 0
        await one.take(version=3)
        async with one.running():
            await anyio.sleep(1.5)
            assert await log.checkpoint(*CONSUMER) == 0
            await anyio.sleep(1)
            assert await log.checkpoint(*CONSUMER) == 3
            one.away = 1000
            await one.take(advised(2, 6), advised(3, 8), version=9)
            await anyio.sleep(2)
            assert await log.checkpoint(*CONSUMER) == 5, "before the first that is due"
            one.away = 0
            await one.made.settle()
            await anyio.sleep(2)
            assert await log.checkpoint(*CONSUMER) == 9
        await one.take(version=10)
        await one.made.save()
        await one.made.save()
        assert await log.checkpoint(*CONSUMER) == 10
        assert await Process(log, leases).made.begin() == 10

    play(scene)


def test_a_process_that_was_overtaken_goes_on_from_the_checkpoint_of_the_other(play: Play) -> None:
    async def scene(log: MemoryLog, leases: Table) -> None:
        one = Process(log, leases)
        await one.made.save()  # nothing was taken
        await one.take(version=4)
        name, version = CONSUMER
        other = Advance(consumer=name, version=version, expected=0, position=7)
        await log.append("s", [], checkpoint=other)
        await one.made.save()
        await one.made.save()
        assert await log.checkpoint(*CONSUMER) == 7
        await one.take(version=8)
        await one.made.save()
        assert await log.checkpoint(*CONSUMER) == 8

    play(scene)
