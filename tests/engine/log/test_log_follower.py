"""A follower: every record once and in order, through failures; a checkpoint that passes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Self, cast

import anyio
import pytest
import virtual_loop
from duolog.engine.errors import CheckpointConflict, InvalidInput, LogClosed, LogUnavailable
from duolog.engine.events import MessageSent, SessionOpened
from duolog.engine.log.backoff import Backoff
from duolog.engine.log.contract import EventLog, Store, Subscription
from duolog.engine.log.follower import CheckpointKey, Follower, Output
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.log.session_states import SessionStates, read_before
from duolog.engine.records import TRACE, Draft, Record
from hypothesis import given
from hypothesis import strategies as st

KEY = CheckpointKey("reader", "1")


@pytest.fixture(params=["memory://", "sqlite:///{}/a.db"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    return lambda: open_log(request.param.format(tmp_path))


def said(text: str, caller_id: str | None = None) -> Draft:
    return Draft(MessageSent(text=text), "ann", "human", 1.0, caller_id)


async def say(log: EventLog, session: str, count: int = 1) -> None:
    for _ in range(count):
        await log.append(session, [said("x")])


async def positions(follower: Follower, count: int, *, done: bool = True) -> list[int]:
    found = []
    for _ in range(count):
        record = await anext(follower)
        found.append(record.position)
        if done:
            follower.done(record.position)
    return found


# --- delivery -------------------------------------------------------------------------------------


async def test_it_catches_up_and_goes_on_live(make: Callable[[], Store]) -> None:
    async with make() as log, Follower(log) as follower:
        await say(log, "a", 3)
        assert await positions(follower, 3) == [1, 2, 3]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(say, log, "b", 5)
            assert await positions(follower, 5) == [4, 5, 6, 7, 8]


async def test_it_follows_one_session_from_a_position(make: Callable[[], Store]) -> None:
    async with make() as log:
        for _ in range(3):
            await say(log, "a")
            await say(log, "b")
        async with Follower(log, session="b", after_position=2) as follower:
            assert await positions(follower, 2) == [4, 6]


async def test_a_batch_holds_what_is_there_up_to_its_size(make: Callable[[], Store]) -> None:
    async with make() as log, Follower(log) as follower:
        await say(log, "a", 10)
        sizes = [len(await follower.take(4)) for _ in range(3)]
        assert sizes == [4, 4, 2]


async def test_a_batch_that_is_cancelled_is_delivered_again() -> None:
    """The second record of the batch cannot be had, and waiting for it is cancelled."""

    async with MemoryLog() as log:
        away = Away(log, {"next": 0})
        async with Follower(away.log, backoff=Backoff(60.0)) as follower:
            await say(log, "a", 3)
            away.fail_after(1, "next")
            with anyio.move_on_after(0.0) as scope:
                await follower.take(3)
            assert scope.cancelled_caught
            away.heal()
            assert [record.position for record in await follower.take(1)] == [1]
            assert [record.position for record in await follower.take(3)] == [2, 3]


async def test_it_ends_with_the_log(make: Callable[[], Store]) -> None:
    async with make() as log:
        follower = Follower(log)
        await say(log, "a")
        await positions(follower, 1, done=False)
    with pytest.raises(LogClosed):
        await anext(follower)
    assert follower.ended
    await follower.settle()
    await follower.aclose()


async def test_a_follower_that_was_closed_delivers_nothing() -> None:
    async with MemoryLog() as log:
        await say(log, "a")
        follower = Follower(log)
        await follower.aclose()
        with pytest.raises(LogClosed, match="the follower is closed"):
            await anext(follower)


# --- failures of the log --------------------------------------------------------------------------


class Away:
    """A log that cannot be read a few times, at each of the ways to read it.

    Args:
        inner: the log.
        times: how often each of ``checkpoint``, ``subscribe`` and ``next`` fails.
    """

    def __init__(self, inner: EventLog, times: dict[str, int]) -> None:
        self._inner = inner
        self._times = {"checkpoint": 0, "subscribe": 0, "next": 0} | times
        self._passes = 0

    @property
    def log(self) -> EventLog:
        return cast(EventLog, self)

    def fail_after(self, passes: int, what: str) -> None:
        """Fails for ever, after so many records."""
        self._passes = passes
        self._times[what] = 1_000_000

    def heal(self) -> None:
        self._times = dict.fromkeys(self._times, 0)

    def check(self, what: str) -> None:
        if what == "next" and self._passes:
            self._passes -= 1
        elif self._times[what]:
            self._times[what] -= 1
            raise LogUnavailable("the disk is away")

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def checkpoint(self, consumer: str, consumer_version: str) -> int:
        self.check("checkpoint")
        return await self._inner.checkpoint(consumer, consumer_version)

    def subscribe(self, *, session: str | None = None, after_position: int = 0) -> Subscription:
        self.check("subscribe")
        inner = self._inner.subscribe(session=session, after_position=after_position)
        return cast(Subscription, _Interrupted(self, inner))


class _Interrupted:
    def __init__(self, away: Away, inner: Subscription) -> None:
        self._away = away
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._inner.__aexit__(None, None, None)

    async def __anext__(self) -> Record:
        self._away.check("next")
        return await anext(self._inner)


@given(st.integers(0, 3), st.integers(0, 3), st.lists(st.integers(0, 2), max_size=8))
def test_failures_of_the_log_lose_and_double_nothing(
    checkpoint: int, subscribe: int, between: list[int]
) -> None:
    async def main() -> None:
        reported: list[float] = []
        async with MemoryLog() as log:
            away = Away(log, {"checkpoint": checkpoint, "subscribe": subscribe})
            follower = Follower(
                away.log,
                key=KEY,
                backoff=Backoff(0.0),
                on_unavailable=lambda error, seconds: reported.append(seconds),
            )
            await say(log, "a", len(between))
            found = []
            async with follower:
                for failures in between:
                    away._times["next"] = failures
                    found += await positions(follower, 1)
            assert found == list(range(1, len(between) + 1))
            if between:
                assert len(reported) == checkpoint + subscribe + sum(between)
                assert follower.statistics().failures == len(reported)

    anyio.run(main)


def test_a_wait_is_told_before_it_begins() -> None:
    async def main() -> None:
        told: list[tuple[float, float]] = []
        async with MemoryLog() as log:
            away = Away(log, {"checkpoint": 3})
            follower = Follower(
                away.log,
                key=KEY,
                on_unavailable=lambda error, seconds: told.append((anyio.current_time(), seconds)),
            )
            await say(log, "a")
            async with follower:
                assert await positions(follower, 1) == [1]
        over = [round(at + seconds, 6) for at, seconds in told]
        assert [round(at, 6) for at, _ in told] == [0.0, *over[:-1]]
        assert round(anyio.current_time(), 6) == over[-1]
        assert len(told) == 3

    virtual_loop.run(main)


async def test_what_reads_the_log_is_done_again_while_that_is_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    left = [LogUnavailable("locked"), LogUnavailable("locked")]

    async def work() -> str:
        if left:
            raise left.pop()
        return "done"

    async with MemoryLog() as log:
        follower = Follower(log, key=KEY, backoff=Backoff(0.0))
        assert await follower.retry(work) == "done"
        assert follower.statistics().failures == 2
        assert await follower.retry(work) == "done"
    away, still_away, again = [record.getMessage() for record in caplog.records]
    for line in (away, still_away):
        assert line.startswith("event='the log cannot be read now; trying again'")
        assert "reader@1" in line
    assert again.startswith("event='the log can be read again'")


async def test_a_log_that_can_be_read_again_is_reported_once_by_whoever_follows_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with MemoryLog() as log:
        away = Away(log, {"subscribe": 1, "next": 1})
        await say(log, "a", 2)
        async with Follower(
            away.log, backoff=Backoff(0.0), on_unavailable=lambda error, seconds: None
        ) as follower:
            assert await positions(follower, 2) == [1, 2]
            away._times["next"] = 2
            await say(log, "a", 1)
            assert await positions(follower, 1) == [3]
    assert [record.getMessage() for record in caplog.records] == [
        "event='the log can be read again' session=None"
    ] * 2


def test_waits_double_up_to_the_longest_and_start_over() -> None:
    class Never(Random):
        def random(self) -> float:
            return 0.0

    backoff = Backoff(1.0, longest=5.0, random=Never())
    assert [backoff.next() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    backoff.reset()
    assert backoff.next() == 1.0


@given(st.floats(0.001, 10.0), st.integers(0, 12), st.integers())
def test_jitter_takes_at_most_half_of_a_wait(first: float, failures: int, seed: int) -> None:
    backoff = Backoff(first, longest=30.0, random=Random(seed))
    for number in range(failures):
        span = min(first * 2**number, max(30.0, first)) if number else first
        assert span / 2 <= backoff.next() <= span


# --- progress -------------------------------------------------------------------------------------


@given(st.permutations(range(1, 8)))
def test_the_position_lies_before_the_first_record_that_is_not_processed(order: list[int]) -> None:
    async def main() -> None:
        async with MemoryLog() as log, Follower(log) as follower:
            await say(log, "a", 7)
            await positions(follower, 7, done=False)
            left = set(order)
            for position in order:
                assert follower.position == min(left) - 1
                follower.done(position)
                left.discard(position)
            assert follower.position == 7

    anyio.run(main)


async def test_a_checkpoint_passes_nothing_that_is_not_processed(
    make: Callable[[], Store],
) -> None:
    async with make() as log:
        await say(log, "a", 6)
        async with Follower(log, key=KEY) as follower:
            await positions(follower, 6, done=False)
            for position in (1, 2, 4, 6):
                follower.done(position)
            uncommitted = [follower.has_uncommitted]
            await follower.commit()
            assert await log.checkpoint(*KEY) == 2
            assert [*uncommitted, follower.has_uncommitted] == [True, False]
            for position in (3, 5):
                follower.done(position)
            await follower.commit(upto=4)
            assert await log.checkpoint(*KEY) == 4
        async with Follower(log, key=KEY) as again:
            assert await positions(again, 2) == [5, 6]


async def test_a_commit_without_anything_new_leaves_the_checkpoint_of_another_alone() -> None:
    async with MemoryLog() as log:
        await say(log, "a", 3)
        one, two = Follower(log, key=KEY), Follower(log, key=KEY)
        await positions(one, 2)
        await one.commit()
        await two.begin()
        await positions(two, 1)
        await two.commit()
        await one.commit()
        assert await log.checkpoint(*KEY) == 3
        await one.aclose()
        await two.aclose()


async def test_output_and_checkpoint_are_one_append(make: Callable[[], Store]) -> None:
    async with make() as log:
        await say(log, "a", 2)
        async with Follower(log, key=KEY) as follower:
            await positions(follower, 2)
            outputs = [Output("n", "x@1", [said("1")]), Output("n", "y@1", [])]
            await follower.commit(outputs)
            assert await log.checkpoint(*KEY) == 2
            other = Follower(log, key=KEY)
            await other.begin()
            await positions(other, 1)
            await positions(follower, 1)
            await follower.commit([Output("n", "x@1", [said("2")])])
            with pytest.raises(CheckpointConflict):
                await other.commit([Output("n", "x@1", [said("of the other")])])
            await other.aclose()
        texts = [record.event async for record in log.read("n", stream="x@1")]
        assert [event.text for event in texts if isinstance(event, MessageSent)] == ["1", "2"]


async def test_after_a_conflict_it_knows_where_the_checkpoint_is() -> None:
    async with MemoryLog() as log:
        await say(log, "a", 4)
        one, two = Follower(log, key=KEY), Follower(log, key=KEY)
        await positions(one, 2)
        await positions(two, 3)
        await two.commit()
        with pytest.raises(CheckpointConflict):
            await one.commit()
        assert one.statistics().checkpoint == 3
        await positions(one, 2)
        await one.commit()
        assert await log.checkpoint(*KEY) == 4
        await one.aclose()
        await two.aclose()


async def test_output_in_several_places_needs_ids() -> None:
    async with MemoryLog() as log, Follower(log, key=KEY) as follower:
        await say(log, "a")
        await positions(follower, 1)
        outputs = [Output("n", f"{name}@1", [said("x")]) for name in "ab"]
        with pytest.raises(InvalidInput, match="2 places"):
            await follower.commit(outputs)
        assert await log.checkpoint(*KEY) == 0


async def test_without_a_key_no_checkpoint_is_kept() -> None:
    async with MemoryLog() as log:
        await say(log, "a", 2)
        for _ in range(2):
            async with Follower(log) as follower:
                assert await positions(follower, 2) == [1, 2]
                await follower.commit()
                assert not follower.has_uncommitted


async def test_settling_waits_for_what_the_log_holds_now(make: Callable[[], Store]) -> None:
    async with make() as log, Follower(log) as follower:
        settled: list[int] = []

        async def settle() -> None:
            await follower.settle()
            settled.append(follower.position)

        await say(log, "a", 3)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(settle)
            await positions(follower, 3, done=False)
            for position in (3, 1):
                follower.done(position)
                await anyio.wait_all_tasks_blocked()
                assert settled == []
            follower.done(2)
        assert settled == [3]
        await follower.settle()


async def test_settling_on_one_session_waits_for_that_one() -> None:
    async with MemoryLog() as log, Follower(log, session="a") as follower:
        await follower.settle()  # the session does not exist yet
        await say(log, "a", 2)
        await say(log, "b", 2)
        await positions(follower, 2)
        await follower.settle()
        assert follower.position == 2


async def test_closing_lets_those_go_on_who_wait_for_it_to_settle() -> None:
    async with MemoryLog() as log:
        await say(log, "a")
        follower = Follower(log)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follower.settle)
            await anyio.wait_all_tasks_blocked()
            await follower.aclose()


async def test_it_says_how_it_stands() -> None:
    async with MemoryLog() as log, Follower(log, key=KEY) as follower:
        await say(log, "a", 5)
        await positions(follower, 2)
        await positions(follower, 1, done=False)
        await follower.commit()
        found = follower.statistics()
        assert (found.position, found.taken, found.lag, found.checkpoint) == (2, 3, 2, 2)


# --- states of sessions ---------------------------------------------------------------------------


def test_the_state_that_was_not_used_for_the_longest_time_goes_first() -> None:
    states: SessionStates[str] = SessionStates(2)
    for name in ("a", "b", "a", "c"):
        states.keep(name, name.upper())
    assert list(states) == ["A", "C"]
    assert (states.get("b"), states.drop("a"), len(states)) == (None, "A", 1)


def test_a_state_in_use_stays() -> None:
    busy = {"a", "c"}
    states: SessionStates[str] = SessionStates(1, busy=lambda name: name in busy)
    for name in ("a", "b", "c"):
        states.keep(name, name)
    assert list(states) == ["a", "c"]
    busy.clear()
    states.evict()
    assert list(states) == ["c"]


async def test_what_lies_before_a_record_is_read_from_its_session(
    make: Callable[[], Store],
) -> None:
    async with make() as log:
        opened = SessionOpened(task="t", instance="1", participants=(), clock="utc")
        [first] = await log.append("a", [Draft(opened, "engine", "environment", 0.0)])
        await say(log, "b")
        await say(log, "a", 2)
        records = [record async for record in log.read_all(session="a")]
        assert [record async for record in read_before(log, records[-1])] == records[:-1]
        assert [record async for record in read_before(log, first)] == []


async def test_output_that_was_interrupted_is_completed_by_a_larger_batch(
    make: Callable[[], Store],
) -> None:
    key = CheckpointKey("sums", "1")

    def output(session: str, *positions: int) -> Output:
        return Output(session, TRACE, [said(f"of {at}", f"of {at}") for at in positions])

    async with make() as log:
        await say(log, "s", 3)
        await log.append("a", output("a", 1).drafts)  # and then the process was killed
        async with Follower(log, key=key) as follower:
            await follower.begin()
            await positions(follower, 3)
            await follower.commit([output("a", 1, 2, 3), output("b", 1, 2, 3)])
        for session in ("a", "b"):
            ids = [record.caller_id async for record in log.read(session)]
            assert ids == ["of 1", "of 2", "of 3"]
        assert await log.checkpoint(*key) == 3
