"""Consumers: output and checkpoint together, restartable anywhere, rebuilt next to the old."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest
from duolog.engine.errors import CheckpointConflict, InvalidInput
from duolog.engine.events import MessageSent
from duolog.engine.log.consumer import run_consumer
from duolog.engine.log.contract import Store
from duolog.engine.log.follower import Output
from duolog.engine.log.open import open_log
from duolog.engine.records import Draft, Record


@pytest.fixture(params=["memory://", "sqlite:///{}/a.db"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    return lambda: open_log(request.param.format(tmp_path))


def said(text: str, caller_id: str | None = None) -> Draft:
    return Draft(MessageSent(text=text), "ann", "human", 1.0, caller_id)


class Counter:
    """Counts messages of traces: one note for each batch in which there were some."""

    name = "counter"

    def __init__(self, version: str = "1", *, fail_at: int = 0) -> None:
        self.version = version
        self.batches: list[int] = []
        self._fail_at = fail_at

    async def consume(self, records: Sequence[Record]) -> Sequence[Output]:
        self.batches.append(len(records))
        trace = [record for record in records if record.stream == "trace"]
        if any(record.position == self._fail_at for record in trace):
            raise RuntimeError("boom")
        notes = [Draft(MessageSent(text=str(len(trace))), "counter", "scorer", 0.0)]
        return [Output("counts", f"counter@{self.version}", notes if trace else [])]


async def counted(log: Store, version: str = "1") -> int:
    total = 0
    async for record in log.read("counts", stream=f"counter@{version}"):
        assert isinstance(record.event, MessageSent)
        total += int(record.event.text)
    return total


async def test_it_consumes_in_batches_up_to_a_position(make: Callable[[], Store]) -> None:
    async with make() as log:
        for _ in range(10):
            await log.append("s", [said("x")] * 100)
        consumer = Counter()
        assert await run_consumer(log, consumer, upto=1000, batch=64) == 1000
        assert max(consumer.batches) == 64
        assert await counted(log) == 1000
        assert await log.checkpoint("counter", "1") == 1000
        assert await run_consumer(log, Counter(), upto=1000) == 1000
        assert await counted(log) == 1000


async def test_a_consumer_that_failed_goes_on_where_it_was(make: Callable[[], Store]) -> None:
    async with make() as log:
        await log.append("s", [said("x")] * 500)
        with pytest.raises(RuntimeError, match="boom"):
            await run_consumer(log, Counter(fail_at=333), upto=500, batch=50)
        assert await log.checkpoint("counter", "1") == 300
        await run_consumer(log, Counter(), upto=500, batch=70)
        assert await counted(log) == 500


async def test_a_cancelled_consumer_goes_on_where_it_was(make: Callable[[], Store]) -> None:
    async with make() as log:
        await log.append("s", [said("x")] * 500)
        for number in range(40):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: run_consumer(log, Counter(), batch=7))
                for _ in range(number):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        await run_consumer(log, Counter(), upto=500, batch=7)
        assert await counted(log) == 500


async def test_it_follows_a_log_that_is_written(make: Callable[[], Store]) -> None:
    async with make() as log, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: run_consumer(log, Counter()))
        for number in range(50):
            await log.append(f"s{number % 3}", [said("x")] * 3)
        while await counted(log) < 150:
            await anyio.lowlevel.checkpoint()
        assert await counted(log) == 150
        tasks.cancel_scope.cancel()


async def test_a_new_version_is_rebuilt_beside_the_old(make: Callable[[], Store]) -> None:
    async with make() as log:
        await log.append("s", [said("x")] * 30)
        await run_consumer(log, Counter("1"), upto=30)
        await run_consumer(log, Counter("2"), upto=30)
        assert (await counted(log, "1"), await counted(log, "2")) == (30, 30)
        assert await log.checkpoint("counter", "1") == 30
        assert await log.checkpoint("counter", "2") == 30


class Beaten:
    """A consumer of which another instance runs at the same time, and is faster."""

    name = "counter"
    version = "1"

    def __init__(self, log: Store) -> None:
        self._log = log

    async def consume(self, records: Sequence[Record]) -> Sequence[Output]:
        await run_consumer(self._log, Counter(), upto=records[-1].position)
        return [Output("counts", "counter@1", [said("0")])]


async def test_of_two_instances_one_is_told(make: Callable[[], Store]) -> None:
    async with make() as log:
        await log.append("s", [said("x")] * 10)
        with pytest.raises(CheckpointConflict):
            await run_consumer(log, Beaten(log), upto=10)
        assert await counted(log) == 10


class Spreader:
    """Output in several places; with ids, unless told otherwise."""

    name = "spreader"
    version = "1"

    def __init__(self, *, ids: bool = True) -> None:
        self._ids = ids

    async def consume(self, records: Sequence[Record]) -> Sequence[Output]:
        return [
            Output(
                f"copy of {record.session}",
                "spreader@1",
                [said("seen", f"{record.position}" if self._ids else None)],
            )
            for record in records
            if record.stream == "trace"
        ]


async def test_output_in_several_places_is_recorded_once(make: Callable[[], Store]) -> None:
    async with make() as log:
        records = []
        for number in range(10):
            records += await log.append(f"s{number % 3}", [said("x")])
        outputs = await Spreader().consume(records[:4])
        for output in outputs:  # killed before the checkpoint moved
            await log.append(output.session, output.drafts, stream=output.stream)
        await run_consumer(log, Spreader(), upto=10, batch=4)
        copies = [r async for r in log.read_all() if r.stream == "spreader@1"]
        assert sorted(int(record.id) for record in copies) == list(range(1, 11))


async def test_output_in_several_places_needs_ids(make: Callable[[], Store]) -> None:
    async with make() as log:
        await log.append("a", [said("x")])
        await log.append("b", [said("x")])
        with pytest.raises(InvalidInput, match="id"):
            await run_consumer(log, Spreader(ids=False), upto=2)
        with pytest.raises(InvalidInput, match="batch"):
            await run_consumer(log, Spreader(), upto=2, batch=0)
