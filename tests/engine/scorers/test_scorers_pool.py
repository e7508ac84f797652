"""Scorers on a live log: in order, once, after restarts, and none of them in anybody's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from duolog.engine.errors import InvalidInput, LogUnavailable
from duolog.engine.events import MessageSent, ScorerFailed, ScorerRef, UtilityScored
from duolog.engine.log.contract import EventLog, Store
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.records import TRACE, Draft, Record
from duolog.engine.scorers import driver
from duolog.engine.scorers.driver import Pace, ScorerPool, checkpoint_key
from duolog.engine.scorers.protocol import Measurement, Scorer, SessionScorer
from duolog.testing.tools import message
from gated_log import Gate

Look = Callable[[Record], Awaitable[None]]


class Reader:
    """Scores each message, by how long the session's messages are up to it.

    Attributes:
        seen: session and trace version of every record that it was shown.
    """

    def __init__(self, look: Look | None = None, name: str = "reader") -> None:
        self.ref = ScorerRef(name=name, version="1", config="-")
        self.seen: list[tuple[str, int]] = []
        self.look = look

    def begin(self, session: str) -> SessionScorer:
        return _Reading(self)


class _Reading:
    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.length = 0

    async def observe(self, record: Record) -> Sequence[Measurement]:
        self.reader.seen.append((record.session, record.version))
        if self.reader.look is not None:
            await self.reader.look(record)
        event = record.event
        if not isinstance(event, MessageSent):
            return ()
        self.length += len(event.text)
        scored = UtilityScored(
            scorer=self.reader.ref, round=record.version, value=min(1.0, self.length / 1000)
        )
        return (Measurement(scored, f"message/{record.version}"),)


@asynccontextmanager
async def measuring(
    log: EventLog, *scorers: Scorer, session: str | None = None, pace: Pace | None = None
) -> AsyncIterator[ScorerPool]:
    """Scorers at work, cancelled at the end, as by the end of a process."""
    measurer = ScorerPool(log, scorers, session=session, pace=pace or Pace(retry=0.0))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(measurer.run)
        yield measurer
        tasks.cancel_scope.cancel()


@pytest.fixture
async def log() -> AsyncIterator[Store]:
    async with open_log("memory://") as opened:
        yield opened


async def say(log: EventLog, session: str, *texts: str) -> None:
    await log.append(session, [message(text) for text in texts])


async def scored(log: EventLog, session: str, stream: str = "reader@1") -> list[tuple[int, float]]:
    """Which message was scored how, in the order of the scorer's stream."""
    events = [record.event async for record in log.read(session, stream=stream)]
    return [
        (event.round or 0, round(1000 * (event.value or 0)))
        for event in events
        if isinstance(event, UtilityScored)
    ]


async def recorded(log: EventLog, session: str, count: int, stream: str = "reader@1") -> None:
    """Waits until a scorer has recorded so much of a session."""
    async with log.subscribe(session=session) as records:
        async for record in records:
            count -= record.stream == stream
            if not count:
                return


async def test_what_was_there_and_what_comes_is_measured_in_order(log: Store) -> None:
    await say(log, "a", "1", "22")
    reader = Reader()
    async with measuring(log, reader) as measurer:
        await measurer.settle()
        await say(log, "b", "4444")
        await say(log, "a", "333")
        await measurer.settle()
        [statistics] = measurer.statistics()
    assert await scored(log, "a") == [(1, 1), (2, 3), (3, 6)]
    assert await scored(log, "b") == [(1, 4)]
    assert sorted(reader.seen) == [("a", 1), ("a", 2), ("a", 3), ("b", 1)]
    assert statistics.scorer == "reader@1"
    assert (statistics.lag, statistics.measured, statistics.working) == (0, 4, 0)


async def test_a_measurement_says_what_it_rests_on(log: Store) -> None:
    async with measuring(log, Reader()) as measurer:
        await say(log, "a", "x")
        await measurer.settle()
    [record] = [record async for record in log.read("a", stream="reader@1")]
    assert (record.cause, record.actor, record.role) == (f"{TRACE}/1", "reader", "scorer")
    assert record.id == "reader@1/message/1"


async def test_scorers_work_side_by_side(log: Store) -> None:
    gone = anyio.Event()
    slow = Reader(lambda record: gone.wait(), name="slow")
    quick = Reader(name="quick")
    async with measuring(log, slow, quick) as measurer:
        await say(log, "a", "x", "y")
        await recorded(log, "a", 2, "quick@1")
        assert await scored(log, "a", "slow@1") == []
        gone.set()
        await measurer.settle()
    assert await scored(log, "a", "slow@1") == await scored(log, "a", "quick@1")


async def test_a_session_that_takes_long_holds_up_no_other(log: Store) -> None:
    gone = anyio.Event()

    async def look(record: Record) -> None:
        if record.session == "stuck":
            await gone.wait()

    async with measuring(log, Reader(look)) as measurer:
        await say(log, "stuck", "x")
        await say(log, "a", "y")
        await recorded(log, "a", 1)
        gone.set()
        await measurer.settle()
    assert await scored(log, "stuck") == [(1, 1)]


async def test_only_so_many_sessions_at_once(log: Store) -> None:
    now, most = 0, 0

    async def look(record: Record) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await anyio.wait_all_tasks_blocked()
        now -= 1

    async with measuring(log, Reader(look), pace=Pace(at_once=3)) as measurer:
        for number in range(10):
            await say(log, f"s{number}", "x")
        await measurer.settle()
        assert measurer.statistics()[0].measured == 10
    assert most == 3


# --- restarts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["memory", "file"])
async def test_a_restart_begins_at_the_checkpoint_and_records_nothing_twice(
    where: str, tmp_path: Path
) -> None:
    url = "memory://" if where == "memory" else f"sqlite:///{tmp_path}/t.db"
    async with open_log(url) as log:
        async with measuring(log, Reader()) as measurer:
            await say(log, "a", "1", "22")
            await say(log, "done", "x")
            await measurer.settle()
        assert await log.checkpoint(*checkpoint_key(Reader().ref)) >= 3
        again = Reader()
        async with measuring(log, again) as measurer:
            await measurer.settle()
            assert again.seen == []
            await say(log, "a", "333")
            await measurer.settle()
        assert again.seen == [("a", 1), ("a", 2), ("a", 3)]  # it has to know how it came to this
        assert await scored(log, "a") == [(1, 1), (2, 3), (3, 6)]


async def test_a_restart_without_a_checkpoint_records_nothing_twice(
    log: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the process had ended between a measurement and the checkpoint behind it."""
    monkeypatch.setattr(driver, "_SAVE", 3600.0)
    for number in range(3):
        async with measuring(log, Reader()):
            await say(log, "a", "x")
            await recorded(log, "a", number + 1)
    assert await log.checkpoint(*checkpoint_key(Reader().ref)) == 0
    assert await scored(log, "a") == [(1, 1), (2, 2), (3, 3)]


async def test_the_checkpoint_moves_on_while_it_runs(
    log: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_SAVE", 0.001)
    async with measuring(log, Reader()):
        for number in range(5):
            await say(log, f"s{number}", *"abcde")
        with anyio.fail_after(120):
            while await log.checkpoint(*checkpoint_key(Reader().ref)) < 5:  # noqa: ASYNC110
                await anyio.sleep(0.001)


async def test_a_checkpoint_never_passes_what_is_still_to_be_measured(log: Store) -> None:
    gone = anyio.Event()

    async def look(record: Record) -> None:
        if record.session == "slow":
            await gone.wait()

    async with measuring(log, Reader(look)) as measurer:
        await say(log, "a", "x")
        await say(log, "slow", "y")
        await say(log, "b", "z")
        await recorded(log, "b", 1)
        for one in measurer._drivers:
            await one.save()
        assert await log.checkpoint(*checkpoint_key(Reader().ref)) == 1
        gone.set()
        await measurer.settle()
    assert await log.checkpoint(*checkpoint_key(Reader().ref)) > 3


async def test_two_processes_may_measure_the_same(log: Store) -> None:
    """If a scorer never gives the same result twice, the first recorded one counts."""
    turn = 0

    class Moody(Reader):
        def begin(self, session: str) -> SessionScorer:
            return _Moody(self)

    class _Moody(_Reading):
        async def observe(self, record: Record) -> Sequence[Measurement]:
            nonlocal turn
            turn += 1
            await anyio.wait_all_tasks_blocked()
            scored = UtilityScored(scorer=self.reader.ref, round=1, value=turn / 100)
            return (Measurement(scored, f"message/{record.version}"),)

    async with measuring(log, Moody()) as one, measuring(log, Moody()) as two:
        await say(log, "a", "x", "y", "z")
        await one.settle()
        await two.settle()
    assert turn == 6
    records = [record async for record in log.read("a", stream="reader@1")]
    assert len(records) == 3
    assert {record.kind for record in records} == {"UtilityScored"}


async def test_one_session_only(log: Store) -> None:
    reader = Reader()
    await say(log, "a", "x")
    async with measuring(log, reader, session="b") as measurer:
        await measurer.settle()  # the session does not exist yet
        await say(log, "b", "y")
        await say(log, "a", "z")
        await measurer.settle()
    assert reader.seen == [("b", 1)]
    assert await log.checkpoint(*checkpoint_key(reader.ref)) == 0
    assert await log.checkpoint(*checkpoint_key(reader.ref, "b")) > 0


# --- memory --------------------------------------------------------------------------------------


async def test_what_does_not_fit_is_read_from_the_log(
    log: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_SESSION", 3)
    gone = anyio.Event()

    async def look(record: Record) -> None:
        if record.version == 1:
            await gone.wait()

    reader = Reader(look)
    async with measuring(log, reader) as measurer:
        for number in range(20):
            await say(log, "a", str(number))
            await anyio.wait_all_tasks_blocked()
        gone.set()
        await say(log, "a", "last")
        await measurer.settle()
        await say(log, "a", "one more")
        await measurer.settle()
    assert reader.seen == [("a", number) for number in range(1, 23)]
    assert [number for number, _ in await scored(log, "a")] == list(range(1, 23))


async def test_a_backlog_has_the_reader_wait(log: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "_BACKLOG", 5)
    gone = anyio.Event()
    reader = Reader(lambda record: gone.wait())
    async with measuring(log, reader) as measurer:
        for number in range(20):
            await say(log, f"s{number}", "x")
        await anyio.wait_all_tasks_blocked()
        assert measurer.statistics()[0].lag == 20
        assert len(reader.seen) <= 5
        gone.set()
        await measurer.settle()
    assert len(reader.seen) == 20


async def test_sessions_that_were_let_go_are_taken_up_again(log: Store) -> None:
    reader = Reader()
    async with measuring(log, reader, pace=Pace(keep=2)) as measurer:
        for _ in range(2):
            for number in range(5):
                await say(log, f"s{number}", "x")
                await measurer.settle()
        assert len(measurer._drivers[0]._works) == 2
    for number in range(5):
        assert await scored(log, f"s{number}") == [(1, 1), (2, 2)]


# --- failures ------------------------------------------------------------------------------------


async def failures(log: EventLog, session: str) -> list[ScorerFailed]:
    events = [record.event async for record in log.read(session, stream="reader@1")]
    return [event for event in events if isinstance(event, ScorerFailed)]


async def test_a_broken_scorer_is_quarantined_for_the_session(
    log: Store, caplog: pytest.LogCaptureFixture
) -> None:
    async def look(record: Record) -> None:
        if record.session == "a" and record.version == 2:
            raise ZeroDivisionError("no ground truth")

    reader = Reader(look)
    async with measuring(log, reader) as measurer:
        await say(log, "a", "x", "y", "z")
        await say(log, "b", "x", "y", "z")
        await measurer.settle()
        await say(log, "a", "more")
        await measurer.settle()
        [statistics] = measurer.statistics()
    assert statistics.quarantined == 1
    assert await scored(log, "a") == [(1, 1)]
    assert len(await scored(log, "b")) == 3
    where = f"test_scorers_pool.py, line {look.__code__.co_firstlineno + 2}, in look"
    assert [(f.type, f.error) for f in await failures(log, "a")] == [
        ("ZeroDivisionError", f"no ground truth ({where})")
    ]
    assert ("a", 3) not in reader.seen
    [line] = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
    assert "a scorer failed, and measures this session no more" in line
    assert where in line
    async with measuring(log, Reader()) as measurer:  # well again, and quarantined all the same
        await say(log, "a", "still more")
        await measurer.settle()
    assert await scored(log, "a") == [(1, 1)]
    assert len(await failures(log, "a")) == 1


async def test_a_scorer_that_never_comes_back_is_quarantined(log: Store) -> None:
    async def look(record: Record) -> None:
        if record.session == "a":
            await anyio.sleep_forever()

    async with measuring(log, Reader(look), pace=Pace(within=0.02)) as measurer:
        await say(log, "a", "x")
        await say(log, "b", "x")
        await measurer.settle()
    assert [failure.type for failure in await failures(log, "a")] == ["TimeoutError"]
    assert await scored(log, "b") == [(1, 1)]


class Odd(BaseException):
    """No exception that anybody expects."""


@pytest.mark.parametrize("kind", [asyncio.CancelledError, Odd])
@pytest.mark.parametrize("where", ["begin", "observe"])
async def test_whatever_a_scorer_raises_quarantines_it_and_nothing_else(
    log: Store, kind: type[BaseException], where: str
) -> None:
    class Raising(Reader):
        def begin(self, session: str) -> SessionScorer:
            if where == "begin" and session == "a":
                raise kind("by a library")
            return super().begin(session)

    async def look(record: Record) -> None:
        if where == "observe" and record.session == "a":
            raise kind("by a library")

    async with measuring(log, Raising(look)) as pool:
        await say(log, "a", "x")
        await say(log, "b", "y")
        await pool.settle()
        await say(log, "b", "z")
        await pool.settle()
    code = (Raising.begin if where == "begin" else look).__code__
    place = f"test_scorers_pool.py, line {code.co_firstlineno + 2}, in {code.co_name}"
    assert [(f.type, f.error) for f in await failures(log, "a")] == [
        (kind.__name__, f"by a library ({place})")
    ]
    assert await scored(log, "b") == [(1, 1), (2, 2)]


async def test_a_measurement_that_the_redaction_hook_refuses_is_said_to_be_missing() -> None:
    def redact(draft: Draft) -> Draft:
        if isinstance(draft.event, UtilityScored) and draft.event.round == 2:
            raise ValueError("no digits")
        return draft

    async with MemoryLog(redact=redact) as log, measuring(log, Reader()) as pool:
        await say(log, "a", "x", "y", "z")
        await pool.settle()
        [failure] = await failures(log, "a")
        assert failure.type == "PluginFailed"
        assert "the redaction hook raised ValueError: no digits" in failure.error
        assert await scored(log, "a") == [(1, 1)]


async def test_what_a_scorer_raises_as_it_is_ended_is_no_failure_of_its(log: Store) -> None:
    async def look(record: Record) -> None:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            raise ValueError("on its way out") from None

    async with measuring(log, Reader(look)):
        await say(log, "a", "x")
        await anyio.wait_all_tasks_blocked()
    assert await failures(log, "a") == []


async def test_a_scorer_that_takes_too_long_and_says_something_else_is_quarantined(
    log: Store,
) -> None:
    async def look(record: Record) -> None:
        if record.session == "a":
            try:
                await anyio.sleep_forever()
            except asyncio.CancelledError:
                raise ValueError("interrupted") from None

    async with measuring(log, Reader(look), pace=Pace(within=0.02)) as pool:
        await say(log, "a", "x")
        await say(log, "b", "y")
        await pool.settle()
    assert [failure.type for failure in await failures(log, "a")] == ["ValueError"]
    assert await scored(log, "b") == [(1, 1)]


async def test_a_log_that_fails_for_a_while_loses_no_measurement() -> None:
    gate = Gate(MemoryLog())
    async with gate:
        failed: list[str] = []

        def sometimes(session: str, drafts: Sequence[Draft], stream: str) -> Exception | None:
            failed.append(stream)
            return LogUnavailable("locked") if len(failed) % 3 else None

        await say(gate.log, "a", "1", "22")
        reader = Reader()
        async with measuring(gate.log, reader) as measurer:
            gate.fail(sometimes)
            await measurer.settle()
            gate.heal()
            await say(gate.log, "a", "333")
            await measurer.settle()
        assert len(failed) > 3
        assert await scored(gate.log, "a") == [(1, 1), (2, 3), (3, 6)]


async def test_a_session_that_is_forgotten_is_measured_no_more(log: Store) -> None:
    async with measuring(log, Reader()) as measurer:
        await say(log, "a", "x")
        await measurer.settle()
        await log.forget("a")
        await say(log, "b", "y")
        await measurer.settle()
    async with measuring(log, Reader(name="other")) as measurer:
        await measurer.settle()
    async with measuring(log, Reader()) as measurer:
        await say(log, "b", "z")
        await measurer.settle()
    assert await scored(log, "b") == [(1, 1), (2, 2)]


async def test_it_ends_with_the_log() -> None:
    async with anyio.create_task_group() as tasks, open_log("memory://") as log:
        measurer = ScorerPool(log, [Reader()])
        tasks.start_soon(measurer.run)
        await say(log, "a", "x")
        await measurer.settle()
    await measurer.settle()


async def test_it_ends_with_the_log_while_it_waits_for_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driver, "_BACKLOG", 3)
    gone = anyio.Event()
    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks, open_log("memory://") as log:
            measurer = ScorerPool(log, [Reader(lambda record: gone.wait())])
            tasks.start_soon(measurer.run)
            await say(log, "a", *"vwxyz")
            await anyio.wait_all_tasks_blocked()
            assert measurer.statistics()[0].lag == 5
            tasks.start_soon(log.aclose)
            await anyio.wait_all_tasks_blocked()
            gone.set()


@pytest.mark.parametrize(
    ("scorers", "pace"),
    [
        ([Reader(), Reader()], Pace()),
        ([Reader()], Pace(within=0)),
        ([Reader()], Pace(at_once=0)),
        ([Reader()], Pace(keep=0)),
    ],
)
async def test_scorers_that_cannot_work(log: Store, scorers: list[Scorer], pace: Pace) -> None:
    with pytest.raises(InvalidInput):
        ScorerPool(log, scorers, pace=pace)
