"""Subscriptions and taps: many at once, slow ones, and their statistics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import anyio
import pytest
from anyio.lowlevel import checkpoint
from duolog.engine.errors import InvalidInput, LogClosed, LogUnavailable
from duolog.engine.events import MessageSent
from duolog.engine.log.contract import Store
from duolog.engine.log.open import open_log
from duolog.engine.log.publisher import Publisher
from duolog.engine.log.subscriptions import BUFFER
from duolog.engine.records import Draft, Record
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/a.db"
    return lambda: open_log(url)


def said(text: str) -> Draft:
    return Draft(MessageSent(text=text), "ann", "human", 1.0)


@pytest.mark.slow
async def test_a_thousand_subscribers_one_of_them_slow(make: Callable[[], Store]) -> None:
    """No subscriber loses a record, and the slow one does not delay the others."""
    total = 3 * BUFFER
    done: list[int] = []
    async with make() as log:
        slow = log.subscribe()
        async with slow, anyio.create_task_group() as tasks:
            first = said("x" * 10)

            async def follow(number: int) -> None:
                wanted = 0
                async with log.subscribe() as subscription:
                    async for record in subscription:
                        wanted += 1
                        assert record.position == wanted
                        if wanted == total:
                            break
                done.append(number)

            for number in range(1000):
                tasks.start_soon(follow, number)
            await anyio.wait_all_tasks_blocked()
            for _ in range(total // 128):
                await log.append("s", [first] * 128)
            while len(done) < 1000:
                await checkpoint()
            statistics = log.statistics()
            [mine] = statistics.subscriptions
            assert mine.lag == total
            assert mine.buffered <= BUFFER
            positions = [(await anext(slow)).position for _ in range(total)]
            assert positions == list(range(1, total + 1))
            assert slow.statistics().fallbacks >= 1
            assert slow.statistics().lag == 0
    assert len(done) == 1000


async def test_subscribers_that_pause_at_random_lose_nothing(make: Callable[[], Store]) -> None:
    random = Random(3)
    total = 4000
    async with make() as log:

        async def write(number: int) -> None:
            for size in range(total // 40):
                await log.append(f"s{number}", [said("x")] * (size % 3 + 1))

        results: list[list[int]] = []

        async def follow() -> None:
            got: list[int] = []
            async with log.subscribe() as subscription:
                while len(got) < wanted:
                    got.append((await anext(subscription)).position)
                    if random.random() < 0.05:
                        for _ in range(random.randrange(50)):
                            await checkpoint()
            results.append(got)

        wanted = 20 * sum(size % 3 + 1 for size in range(total // 40))
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(write, number)
            for _ in range(10):
                tasks.start_soon(follow)
                await checkpoint()
        assert results == [list(range(1, wanted + 1))] * 10


async def test_a_cancelled_reader_loses_nothing(make: Callable[[], Store]) -> None:
    async with make() as log, log.subscribe() as subscription:
        got: list[int] = []
        for number in range(50):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:

                    async def read() -> None:
                        got.append((await anext(subscription)).position)

                    tasks.start_soon(read)
                    for _ in range(number % 7):
                        await checkpoint()
                    await log.append("s", [said("x")])
                    scope.cancel()
        while subscription.statistics().lag:
            got.append((await anext(subscription)).position)
        assert got == list(range(1, 51))


async def test_leaving_ends_it(make: Callable[[], Store]) -> None:
    async with make() as log:
        subscription, tap = log.subscribe(), log.tap()
        with pytest.raises(LogClosed, match="enter the subscription"):
            await anext(subscription)
        with pytest.raises(LogClosed, match="enter the tap"):
            await anext(tap)
        async with subscription, tap:
            await log.append("s", [said("x")])
            assert len(log.statistics().subscriptions) == 1
            assert len(log.statistics().taps) == 1
        for ended in (subscription, tap):
            with pytest.raises(LogClosed):
                await anext(ended)
            with pytest.raises(LogClosed):
                await ended.__aenter__()
        assert log.statistics().subscriptions == ()
        assert log.statistics().taps == ()


async def test_what_makes_no_sense_is_refused(make: Callable[[], Store]) -> None:
    async with make() as log:
        with pytest.raises(InvalidInput, match="after_position"):
            log.subscribe(after_position=-1)
        with pytest.raises(InvalidInput, match="buffer"):
            log.tap(buffer=0)
        with pytest.raises(InvalidInput, match="after_position"):
            log.read_all(after_position=-1)
        with pytest.raises(InvalidInput, match="after_version"):
            log.read("s", after_version=-1)


def record(position: int, session: str = "s") -> Record:
    return Record(
        position, session, "trace", position, "Odd", 1, 0.0, "a", "human", None, None, None, b"{}"
    )


@settings(max_examples=examples(200))
@given(
    steps=st.lists(st.sampled_from(["publish", "skip", "big", "read", "reads"]), max_size=40),
    sessions=st.lists(st.sampled_from(["s", "t"]), min_size=1, max_size=7),
    own=st.sampled_from([None, "s"]),
    after=st.integers(0, 5),
)
async def test_whatever_is_published_or_missed_is_delivered_once(
    steps: list[str], sessions: list[str], own: str | None, after: int
) -> None:
    """A publisher over a store that grows by records that are published, or are not."""
    store: list[Record] = []

    async def fetch(session: str | None, start: int, upto: int) -> tuple[list[Record], bool]:
        await checkpoint()
        rows = [r for r in store[start:upto] if session in (None, r.session)]
        return rows[:100], len(rows) <= 100

    def grow(count: int) -> list[Record]:
        first = len(store) + 1
        new = [record(at, sessions[at % len(sessions)]) for at in range(first, first + count)]
        store.extend(new)
        return new

    publisher = Publisher(fetch)
    got: list[Record] = []
    tapped: list[Record] = []
    async with publisher.subscribe(own, after) as subscription, publisher.tap(own, 10) as tap:

        def due() -> list[Record]:
            return [r for r in store[after:] if own in (None, r.session)][len(got) :]

        for step in steps:
            if step == "publish":
                publisher.publish(grow(3))
            elif step == "big":
                publisher.publish(grow(BUFFER + 1))
            elif step == "skip":
                grow(2)
                publisher.skip(len(store))
            else:
                some = due()[: 1 if step == "read" else 700]
                got += [await anext(subscription) for _ in some]
        got += [await anext(subscription) for _ in due()]
        assert got == [r for r in store[after:] if own in (None, r.session)]
        assert subscription.statistics().buffered == 0
        while tap.statistics().buffered:
            tapped.append(await anext(tap))
        assert [r.position for r in tapped] == sorted(r.position for r in tapped)
        assert len(tapped) <= 10


async def test_the_lag_counts_what_is_committed_and_not_yet_published() -> None:
    async def fetch(session: str | None, start: int, upto: int) -> tuple[list[Record], bool]:
        return [], True

    publisher = Publisher(fetch)
    async with publisher.subscribe(None, 0) as subscription:
        publisher.grow(700)
        statistics = publisher.statistics(waiting=0, groups=0, events=0)
        assert (statistics.position, subscription.statistics().lag) == (700, 700)
        publisher.publish([record(1, "s")])
        assert subscription.statistics().lag == 700
        await anext(subscription)
        assert subscription.statistics().lag == 699


async def test_what_came_before_it_fell_back_does_not_make_it_fall_back_again() -> None:
    """More is published during the first read than is kept, and a little during the second."""
    meanwhile = [range(2, BUFFER + 2), range(BUFFER + 2, BUFFER + 3), range(BUFFER + 3, BUFFER + 4)]

    async def fetch(session: str | None, start: int, upto: int) -> tuple[list[Record], bool]:
        for _ in range(2 if start == 0 else 1):
            publisher.publish([record(position, "s") for position in meanwhile.pop(0)])
        return [record(position, "s") for position in range(start + 1, upto + 1)], True

    publisher = Publisher(fetch, head=1)
    async with publisher.subscribe(None, 0) as subscription:
        got = [(await anext(subscription)).position for _ in range(BUFFER + 3)]
        assert got == list(range(1, BUFFER + 4))
        assert subscription.statistics().fallbacks == 1


async def test_a_publisher_that_is_closed_ends_who_comes_later_too() -> None:
    async def fetch(session: str | None, start: int, upto: int) -> tuple[list[Record], bool]:
        return [], True

    publisher = Publisher(fetch)
    publisher.close(LogUnavailable("the server is stopped"))
    for late in (publisher.subscribe(None, 0), publisher.tap(None, 1)):
        with pytest.raises(LogUnavailable, match="the server is stopped"):
            async with late:
                pass


async def test_a_tap_counts_the_records_that_were_never_published_here() -> None:
    """Another process wrote them; subscriptions read them."""

    async def fetch(session: str | None, start: int, upto: int) -> tuple[list[Record], bool]:
        return [record(position, "s") for position in range(start + 1, upto + 1)], True

    publisher = Publisher(fetch)
    async with publisher.tap(None, 10) as tap, publisher.subscribe(None, 0) as subscription:
        for positions, dropped in (((1, 2), 0), ((5, 6), 2), ((6, 7), 2), ((7, 9), 3)):
            publisher.publish([record(position, "s") for position in positions])
            assert (tap.dropped, publisher.head, publisher.end) == (dropped, *positions[1:] * 2)
        assert [(await anext(tap)).position for _ in range(6)] == [1, 2, 5, 6, 7, 9]
        found = [(await anext(subscription)).position for _ in range(9)]
        assert found == list(range(1, 10))


async def test_what_is_forgotten_while_a_batch_is_read_is_not_delivered() -> None:
    """The batch that the store has read by then still holds bodies."""
    async with open_log("memory://") as log:
        await log.append("s", [said("secret")])
        read = await anext(log.read("s"))

        async def fetch(session: str | None, after: int, upto: int) -> tuple[list[Record], bool]:
            publisher.erase({"s"})
            return [read], True

        publisher = Publisher(fetch, head=1)
        async with publisher.subscribe(None, 0) as subscription:
            assert (await anext(subscription)).body is None
