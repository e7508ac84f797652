"""Checks a log under concurrency: writers, subscribers, slow subscribers, cancellation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from ...engine.errors import CheckpointConflict, VersionConflict
from ...engine.log.contract import Advance, EventLog
from ...engine.records import Record
from ..tools import appended, collect, message, require

__all__ = ("LIVE_CHECKS",)


async def check_concurrent_writers(log: EventLog) -> None:
    """Concurrent appends are each atomic; versions are consecutive."""

    async def write(number: int) -> None:
        for size in (1, 3, 2, 5):
            records = await appended(log, f"s{number % 4}", size)
            versions = [record.version for record in records]
            require(versions == list(range(versions[0], versions[0] + size)), "appends are whole")

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(write, number)
    records = await collect(log.read_all())
    require(len(records) == 20 * 11, f"all events must be there: {len(records)}")
    for name in ("s0", "s1", "s2", "s3"):
        versions = [record.version for record in records if record.session == name]
        require(versions == list(range(1, 56)), "versions have no gaps")


async def check_competing_writers(log: EventLog) -> None:
    """Exactly one of several appends at one expected version succeeds; the rest of the group is
    unaffected.
    """
    won: list[int] = []
    lost: list[int] = []

    async def compete(number: int) -> None:
        await appended(log, f"own{number}", 1)
        try:
            await appended(log, "shared", 2, expected_version=0)
        except VersionConflict:
            lost.append(number)
        else:
            won.append(number)
        await appended(log, f"own{number}", 1, expected_version=1)

    async with anyio.create_task_group() as tasks:
        for number in range(25):
            tasks.start_soon(compete, number)
    require((len(won), len(lost)) == (1, 24), f"exactly one must win: {won}")
    require((await log.summary("shared")).version == 2, "and only its events are there")


async def check_retrying_writers(log: EventLog) -> None:
    """Read, decide, append at the version read, again on conflict: no update is lost."""

    async def increment(number: int) -> None:
        for _ in range(5):
            while True:
                version = len(await collect(log.read("counter")))
                try:
                    await log.append("counter", [message(str(version))], expected_version=version)
                    break
                except VersionConflict:
                    continue

    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(increment, number)
    counted = [record.event for record in await collect(log.read("counter"))]
    wanted = [message(str(number)).event for number in range(20)]
    require(counted == wanted, "each append must see the one before")


async def check_cancellation(log: EventLog) -> None:
    """A cancelled append is in the log whole or not at all, and that is known when it returns."""
    random = Random(7)
    acknowledged: set[str] = set()
    settled: dict[str, int] = {}

    async def write(name: str, size: int) -> None:
        try:
            await appended(log, name, size)
            acknowledged.add(name)
        finally:
            with anyio.CancelScope(shield=True):
                settled[name] = len(await collect(log.read(name)))

    for turn in range(60):
        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(write, f"{turn}/{number}", number + 1)
            for _ in range(random.randrange(12)):
                await checkpoint()
            tasks.cancel_scope.cancel()
    require(len(settled) > 0 or not acknowledged, "the check itself must run")
    for turn in range(60):
        for number in range(6):
            name = f"{turn}/{number}"
            count = len(await collect(log.read(name)))
            require(count in (0, number + 1), f"a cancelled append is whole, not {count} events")
            require(count == settled.get(name, 0), "its fate is settled when it returns")
            require(count > 0 or name not in acknowledged, "what is acknowledged is there")


async def _follow(
    log: EventLog,
    wanted: int,
    *,
    session: str | None = None,
    after: int = 0,
    pause: Callable[[], Awaitable[object]] | None = None,
) -> list[Record]:
    got: list[Record] = []
    if not wanted:
        return got
    async with log.subscribe(session=session, after_position=after) as subscription:
        async for record in subscription:
            got.append(record)
            if len(got) == wanted:
                break
            if pause is not None:
                await pause()
    return got


async def check_subscription(log: EventLog) -> None:
    """Subscriptions begun at any time give each record once, in order, while writers write."""
    early = await appended(log, "s0", 700)
    results: dict[str, list[Record]] = {}

    async def follow(name: str, session: str | None, after: int, wanted: int) -> None:
        results[name] = await _follow(log, wanted, session=session, after=after)

    async def write(number: int) -> None:
        for size in range(1, 25):
            await appended(log, f"s{number}", size % 5 + 1)

    per_writer = sum(size % 5 + 1 for size in range(1, 25))
    total = 700 + 4 * per_writer
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, "all", None, 0, total)
        tasks.start_soon(follow, "middle", None, early[400].position, total - 401)
        for number in range(4):
            tasks.start_soon(write, number)
        for number in range(4):
            await checkpoint()
            mine = per_writer + (700 if number == 0 else 0)
            tasks.start_soon(follow, f"s{number}", f"s{number}", 0, mine)
        for _ in range(20):
            await checkpoint()
        tasks.start_soon(follow, "late", None, 0, total)
    stored = await collect(log.read_all())
    require(results["all"] == stored, "a subscription gives each record once, in order")
    require(results["late"] == stored, "one begun late catches up, and goes on live")
    require(results["middle"] == stored[401:], "one begun in the middle gives what follows")
    for number in range(4):
        own = [record for record in stored if record.session == f"s{number}"]
        require(results[f"s{number}"] == own, "one of a session gives that session's records")


async def check_slow_subscription(log: EventLog) -> None:
    """A slow subscriber loses nothing, blocks no other, and reports how far behind it is."""
    total = 6000
    async with log.subscribe() as slow, log.subscribe() as fast:
        await appended(log, "s", 1)
        first = await anext(slow)
        require(first.position == slow.statistics().position, "it says what it has delivered")
        for _ in range(total // 500):
            await appended(log, "s", 500)
        head = log.statistics().position
        require(slow.statistics().lag == head - first.position, "it says how far it is behind")
        require(slow.statistics().buffered < total, "it does not buffer all of it")
        got = [await anext(slow) for _ in range(total)]
        require(slow.statistics().fallbacks > 0, "it fell back to reading")
        require([r.version for r in got] == list(range(2, total + 2)), "it lost nothing")
        live = await appended(log, "s", 1)
        require([await anext(slow)] == live, "and is live again")
        require(slow.statistics().lag == 0, "with no lag")
        rest = [await anext(fast) for _ in range(total + 2)]
        require([r.version for r in rest] == list(range(1, total + 3)), "so did the other")


async def check_future_subscription(log: EventLog) -> None:
    """A subscription after a future position gives the records after that position."""
    records = await appended(log, "s", 2)
    after = records[-1].position + 3
    async with log.subscribe(after_position=after) as subscription:
        await appended(log, "s", 5)
        later = await appended(log, "s", 1)
        wanted = [r for r in await collect(log.read_all()) if r.position > after]
        got = [await anext(subscription) for _ in wanted]
        require(got == wanted and got[-1:] == later, "it begins where it was told to")


async def check_tap(log: EventLog) -> None:
    """A tap gives live records only, the newest if its buffer is full, and counts the others."""
    await appended(log, "s", 3)
    async with log.tap(buffer=10) as tap, log.tap(session="t") as other:
        await appended(log, "s", 4)
        got = [await anext(tap) for _ in range(4)]
        require([r.version for r in got] == [4, 5, 6, 7], "live records only, in order")
        require(tap.statistics().dropped == 0, "nothing was dropped yet")
        await appended(log, "s", 25)
        statistics = tap.statistics()
        require((statistics.buffered, statistics.dropped) == (10, 15), "it counts what it dropped")
        require(log.statistics().dropped == 15, "and so does the log")
        got = [await anext(tap) for _ in range(10)]
        require([r.version for r in got] == list(range(23, 33)), "the newest are kept")
        require(tap.statistics().delivered == 14, "it counts what it delivered")
        theirs = await appended(log, "t", 1)
        require([await anext(other)] == theirs, "a tap of one session gives that session")


async def check_competing_consumers(log: EventLog) -> None:
    """If several instances of a consumer run, exactly one moves each checkpoint."""
    moved: list[int] = []

    async def consume(number: int) -> None:
        for _ in range(10):
            at = await log.checkpoint("c", "1")
            move = Advance(consumer="c", version="1", expected=at, position=at + 1)
            try:
                await log.append("s", [message(f"{at}")], stream="c@1", checkpoint=move)
            except CheckpointConflict:
                continue
            moved.append(at)

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(consume, number)
    require(sorted(moved) == list(range(len(moved))), "each step is taken once")
    require(await log.checkpoint("c", "1") == len(moved), "the checkpoint is where they took it")
    texts = [record.event for record in await collect(log.read("s", stream="c@1"))]
    require(texts == [message(str(at)).event for at in range(len(moved))], "as is the output")


async def check_reading_while_writing(log: EventLog) -> None:
    """A read gives the log as of its beginning, whatever is appended meanwhile."""
    before = await appended(log, "s", 1500)
    reading = log.read_all()
    got = [await anext(reading)]
    await appended(log, "s", 5)
    got += await collect(reading)
    require(got == before, "what comes later is not part of it")
    abandoned = log.read("s")
    await anext(abandoned)
    await appended(log, "s", 1)  # a reader that stops halfway blocks nothing


LIVE_CHECKS: Final = (
    check_concurrent_writers,
    check_competing_writers,
    check_retrying_writers,
    check_cancellation,
    check_subscription,
    check_slow_subscription,
    check_future_subscription,
    check_tap,
    check_competing_consumers,
    check_reading_while_writing,
)
"""The checks in this module."""
