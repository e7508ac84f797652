"""The intake: bounded, drops counted, failures survived, and no event lost or doubled."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import anyio
import pytest
from duolog.engine.errors import (
    DuplicateConflict,
    InvalidInput,
    LogClosed,
    LogUnavailable,
    NotRecorded,
    OutcomeUnknown,
    SessionClosedError,
    StaleBase,
)
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    MessageSent,
    RecordsLost,
    SessionClosed,
    SnapshotTaken,
)
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.records import RECORDING, Draft, Record
from duolog.telemetry.queue import QueuedCommand, SessionQueue, Unwritten
from duolog.telemetry.receipt import Awaited, Receipt
from duolog.telemetry.recorder import Recorder
from duolog.telemetry.session import About, Recording
from gated_log import Gate
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    async with Gate(MemoryLog()) as opened:
        yield opened


async def texts(log: EventLog, session: str = "s") -> list[str]:
    events = [record.event async for record in log.read(session)]
    return [event.text for event in events if isinstance(event, MessageSent)]


def unavailable(session: str, drafts: Sequence[Draft], stream: str) -> Exception:
    return LogUnavailable("the disk is full")


# --- room ----------------------------------------------------------------------------------------


async def test_recording_does_not_wait_for_the_log(gate: Gate) -> None:
    async with Recorder(gate.log) as recorder:
        s = await recorder.session("s")
        gate.shut()
        receipts = [await s.human.says(str(n)) for n in range(500)]
        assert recorder.statistics().waiting == 501
        assert not any(receipt.settled for receipt in receipts)
        gate.open()
        await receipts[-1].written()
        assert [receipt.version for receipt in receipts] == list(range(2, 502))
        assert gate.calls < 10  # many in one append
    assert await texts(gate.log) == [str(n) for n in range(500)]


async def test_what_finds_no_room_is_dropped_and_counted(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    async with Recorder(gate.log, room=3) as recorder:
        s = await recorder.session("s", agent="v1")
        gate.shut()
        kept = [await s.human.says(str(n)) for n in range(2)]
        lost = await s.human.says("2")
        action = await s.agent.acts("look")
        statistics = recorder.statistics()
        assert (statistics.accepted, statistics.dropped) == (3, 2)
        assert statistics.dropped_verbs == {"says": 1, "acts": 1}
        with pytest.raises(NotRecorded, match="3 events wait to be written already"):
            await lost.written()
        with pytest.raises(NotRecorded):
            await s.human.says("3", durable=True)
        gate.open()
        await kept[-1].written()
        with pytest.raises(NotRecorded, match="the event that it refers to was not recorded"):
            await s.agent.resolves(action, durable=True)
        await s.close()  # always finds room
    assert await texts(gate.log) == ["0", "1"]
    assert (await gate.log.summary("s")).state == "ended"
    warned = [r.getMessage() for r in caplog.records if "are dropped" in r.getMessage()]
    assert len(warned) == 2  # the first, the second, and not the third: no flood
    assert "dropped=2" in warned[1]


async def test_or_its_caller_waits(gate: Gate) -> None:
    async with Recorder(gate.log, room=2, on_full="block") as recorder:
        s = await recorder.session("s")
        gate.shut()
        await s.human.says("0")
        done: list[int] = []

        async def go_on() -> None:
            for n in range(1, 6):
                await s.human.says(str(n))
                done.append(n)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go_on)
            await anyio.wait_all_tasks_blocked()
            assert done == []
            gate.open()
        assert done == [1, 2, 3, 4, 5]
    assert await texts(gate.log) == list("012345")
    assert recorder.statistics().dropped == 0


async def test_who_waits_for_room_is_told_of_the_end(gate: Gate) -> None:
    async with anyio.create_task_group() as tasks, Recorder(gate.log, room=1, on_full="block") as r:
        s = await r.session("s")
        gate.shut()
        told: list[Exception] = []

        async def wait() -> None:
            try:
                await s.human.says("1")
            except LogClosed as error:
                told.append(error)

        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await r.aclose(0)
        await anyio.wait_all_tasks_blocked()
        assert len(told) == 1


@pytest.mark.parametrize("options", [{"room": 0}, {"on_full": "panic"}])
async def test_an_intake_that_cannot_be(gate: Gate, options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        async with Recorder(gate.log, **options):  # type: ignore[arg-type]
            pass


async def test_durable_waits_until_it_is_in_the_log(gate: Gate) -> None:
    async with Recorder(gate.log, durable=True) as recorder:
        s = await recorder.session("s")
        gate.shut()
        written: list[Receipt] = []

        async def record() -> None:
            written.append(await s.human.says("now"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(record)
            await anyio.wait_all_tasks_blocked()
            assert written == []
            await s.human.says("whenever", durable=False)
            gate.open()
        assert written[0].version == 2
    assert await texts(gate.log) == ["now", "whenever"]


# --- lost events ---------------------------------------------------------------------------------


async def lost(log: EventLog, session: str = "s") -> list[RecordsLost]:
    found = [record async for record in log.read_all(session=session)]
    assert all((r.stream == RECORDING) == (r.kind == "RecordsLost") for r in found)
    return [record.event for record in found if isinstance(record.event, RecordsLost)]


async def test_what_found_no_room_leaves_a_mark(gate: Gate) -> None:
    async with Recorder(gate.log, room=2) as recorder:
        s, other = await recorder.session("s"), await recorder.session("other")
        await s.flush()
        await other.flush()
        gate.shut()
        await s.human.says("kept", at=1.0)
        await s.human.says("kept too", at=2.0)
        for at in (5.0, 3.0, 4.0):
            await s.human.says("lost", at=at)
        await other.agent.says("lost", at=6.0)  # nothing else waits of this session
        await s.close()
        gate.open()
    assert [(one.count, one.begin, one.end) for one in await lost(gate.log)] == [(3, 3.0, 5.0)]
    assert [(one.count, one.begin) for one in await lost(gate.log, "other")] == [(1, 6.0)]
    assert "2 events wait" in (await lost(gate.log))[0].why
    assert await texts(gate.log) == ["kept", "kept too"]
    assert (await gate.log.summary("s")).state == "ended"


async def test_a_full_disk_leaves_a_mark_once_it_can_be_written(gate: Gate) -> None:
    async with Recorder(gate.log, room=2, retry=0.0) as recorder:
        s = await recorder.session("s")
        await s.flush()
        gate.fail(unavailable)
        for text in "abcde":
            await s.human.says(text)
        assert await lost(gate.log) == []
        gate.heal()
        await s.flush()
        await s.human.says("f", durable=True)
        await recorder.aclose()
    assert await texts(gate.log) == ["a", "b", "f"]
    assert [one.count for one in await lost(gate.log)] == [3]


async def test_what_the_store_refuses_leaves_a_mark_even_after_the_close(gate: Gate) -> None:
    async with Recorder(gate.log) as recorder:
        s = await recorder.session("s")
        await s.close(durable=True)

        def broken(session: str, drafts: Sequence[Draft], stream: str) -> Exception | None:
            return RuntimeError("a bug") if stream == "trace" else None

        gate.fail(broken)
        with pytest.raises(NotRecorded):
            await s.human.feedback(thumbs="up", durable=True)
    (mark,) = await lost(gate.log)
    assert (mark.count, "RuntimeError: a bug" in mark.why) == (1, True)


async def test_a_mark_opens_its_session_and_is_written_once(gate: Gate) -> None:
    """The disk fails at the last step of each append, and it may have been written."""
    async with Recorder(gate.log, room=1, retry=0.0) as recorder:
        failed: list[str] = []

        def once_each(session: str, drafts: Sequence[Draft], stream: str) -> Exception | None:
            if stream in failed:
                return None
            failed.append(stream)
            return OutcomeUnknown("the disk failed")

        gate.fail(once_each)
        s = await recorder.session("s")
        await s.human.says("lost")
        await recorder.aclose()
    assert failed == ["trace", RECORDING]
    assert [one.count for one in await lost(gate.log)] == [1]


async def test_what_is_refused_by_a_rule_is_not_lost(gate: Gate) -> None:
    async with Recorder(gate.log) as recorder:
        s = await recorder.session("s")
        with pytest.raises(InvalidInput):
            await s.agent.resolves("nothing", durable=True)
    assert await lost(gate.log) == []


# --- failures ------------------------------------------------------------------------------------


async def test_a_log_that_fails_for_a_while_loses_nothing(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    async with Recorder(gate.log, retry=0.0) as recorder:
        s = await recorder.session("s")
        await s.human.says("before", durable=True)
        failed: list[int] = []

        def twice(session: str, drafts: Sequence[Draft], stream: str) -> Exception | None:
            failed.append(len(drafts))
            if len(failed) > 2:
                gate.heal()
            return LogUnavailable("locked")

        gate.fail(twice)
        await s.human.says("meanwhile")
        await s.human.says("after", durable=True)
        assert failed == [2, 2, 2]
        assert recorder.statistics().retries == 3
    assert await texts(gate.log) == ["before", "meanwhile", "after"]
    assert caplog.text.count("cannot be written now; trying again") == 3
    assert caplog.text.count("the log can be written again") == 1


async def test_a_deadline_ends_it_and_says_what_was_not_written(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    async with Recorder(gate.log, retry=60.0, linger=0.0) as recorder:
        s = await recorder.session("s")
        await s.human.says("written", durable=True)
        gate.fail(unavailable)
        lost = await s.human.says("lost")
        await s.human.says("lost too")
        await anyio.wait_all_tasks_blocked()
        assert await recorder.aclose(0) == (
            Unwritten(session="s", events=2, error="the disk is full"),
        )
        with pytest.raises(NotRecorded, match="the log was closed before it could be written"):
            await lost.written()
        statistics = recorder.statistics()
        assert (statistics.failed, statistics.waiting) == (2, 0)
    assert "closed before all was written" in caplog.text
    assert "events=2" in caplog.text
    gate.heal()
    assert await texts(gate.log) == ["written"]


async def test_closing_writes_what_waits_even_if_the_product_is_cancelled(gate: Gate) -> None:
    with anyio.CancelScope() as scope:
        async with Recorder(gate.log) as recorder:
            s = await recorder.session("s")
            for n in range(100):
                await s.human.says(str(n))
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert await texts(gate.log) == [str(n) for n in range(100)]


async def test_an_error_of_the_product_comes_out_as_it_is(gate: Gate) -> None:
    async def product() -> None:
        async with Recorder(gate.log) as recorder:
            s = await recorder.session("s")
            await s.human.says("kept")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await product()
    assert await texts(gate.log) == ["kept"]


async def test_one_that_cannot_be_written_fails_alone(gate: Gate) -> None:
    def picky(session: str, drafts: Sequence[Draft], stream: str) -> Exception | None:
        bad = any(getattr(draft.event, "text", "") == "bad" for draft in drafts)
        return InvalidInput("cannot be stored") if bad else None

    gate.fail(picky)
    async with Recorder(gate.log) as recorder:
        s = await recorder.session("s")
        receipts = [await s.human.says(text) for text in ("a", "bad", "b", "c")]
        assert (await receipts[3].written()) is not None
        with pytest.raises(InvalidInput, match="cannot be stored"):
            await receipts[1].written()
        statistics = recorder.statistics()
        assert (statistics.refused, statistics.written) == (1, 4)
    assert await texts(gate.log) == ["a", "b", "c"]


async def test_an_error_that_nobody_foresaw_ends_nothing(gate: Gate) -> None:
    async with Recorder(gate.log) as recorder:
        s = await recorder.session("s")
        await s.human.says("before", durable=True)
        gate.fail(lambda session, drafts, stream: RuntimeError("a bug of the store's"))
        with pytest.raises(NotRecorded, match="RuntimeError: a bug of the store's"):
            await s.human.says("lost", durable=True)
        gate.heal()
        await s.human.says("after", durable=True)
        assert recorder.statistics().failed == 1
    assert await texts(gate.log) == ["before", "after"]


async def test_a_log_that_cannot_be_read_is_read_later(gate: Gate) -> None:
    async with Recorder(gate.log, retry=0.0) as recorder:
        s = await recorder.session("s")
        await s.human.says("one", durable=True)

    class Unreadable(Gate):
        """Cannot be read twice."""

        left = 2

        def read(self, session: str, *, after_version: int = 0) -> AsyncIterator[Record]:
            if self.left:
                self.left -= 1
                raise LogUnavailable("locked")
            return gate.log.read(session, after_version=after_version)

    async with Recorder(Unreadable(gate.log).log, retry=0.0) as recorder:
        s = await recorder.session("s")
        await s.human.says("two", durable=True)
        assert recorder.statistics().retries == 1
    assert await texts(gate.log) == ["one", "two"]


async def test_a_session_closed_elsewhere_takes_nothing_more(gate: Gate) -> None:
    async with Recorder(gate.log) as here, Recorder(gate.log) as there:
        mine, theirs = await here.session("s"), await there.session("s")
        await mine.human.says("mine", durable=True)
        await theirs.close(durable=True)
        with pytest.raises(SessionClosedError):
            await mine.human.says("too late", durable=True)
        assert mine.closed
        with pytest.raises(SessionClosedError):
            await mine.human.says("much too late")
        await mine.human.feedback(comment="still welcome", durable=True)


# --- several at once -----------------------------------------------------------------------------


async def test_two_processes_may_record_one_session(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/t.db"
    async with (
        open_log(url) as one,
        open_log(url) as two,
        Recorder(one) as here,
        Recorder(two) as there,
    ):

        async def talk(recorder: Recorder, name: str) -> None:
            s = await recorder.session("s", humans=("ann", "ben"))
            actor = s.actor(name)
            for n in range(50):
                await actor.says(f"{name} {n}", durable=n % 7 == 0)
                await actor.acts("look", {"n": n}, result=n)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk, here, "ann")
            tasks.start_soon(talk, there, "ben")
        await here.aclose()
        await there.aclose()
        found = [record async for record in one.read("s")]
        assert here.statistics().failed == there.statistics().failed == 0
    assert len(found) == 1 + 2 * 50 * 3
    for name in ("ann", "ben"):
        said = [r.event.text for r in found if r.actor == name and isinstance(r.event, MessageSent)]
        assert said == [f"{name} {n}" for n in range(50)]
    causes = [record.cause for record in found if record.kind == "ActionResolved"]
    actions = [f"trace/{record.version}" for record in found if record.kind == "ActionTaken"]
    assert causes == actions


async def test_an_edit_is_refused_where_another_process_was_first(gate: Gate) -> None:
    async with Recorder(gate.log) as here, Recorder(gate.log) as there:
        mine, theirs = await here.session("s"), await there.session("s")
        draft = await mine.agent.submits("one", durable=True)
        await theirs.human.edits("theirs", base=2, durable=True)
        with pytest.raises(StaleBase, match="made from version 2, the latest is version 3"):
            await mine.agent.submits("mine", base=draft, durable=True)
        third = await mine.agent.submits("without a claim", durable=True)
        assert third.version == 6


async def test_what_another_process_recorded_can_be_referred_to(gate: Gate) -> None:
    async with Recorder(gate.log) as here, Recorder(gate.log) as there:
        mine, theirs = await here.session("s"), await there.session("s")
        await theirs.human.says("hello", durable=True)  # so that both know the trace
        await mine.human.says("hello", durable=True)
        draft = await theirs.agent.submits("one", durable=True)
        await theirs.agent.acts("look", id="look")
        await there.flush("s")
        assert draft.version is not None
        edited = await mine.human.edits("two", base=draft.version, durable=True)
        assert edited.version == draft.version + 2
        await theirs.agent.acts("search", id="search", durable=True)
        await mine.agent.resolves("search", "found", durable=True)
        with pytest.raises(InvalidInput, match="lacks an event with the id 'nothing'"):
            await mine.agent.resolves("nothing", "found", durable=True)
        assert here.statistics().refused == 1


async def test_states_of_idle_sessions_are_let_go(gate: Gate) -> None:
    async with Recorder(gate.log) as recorder:
        held = await recorder.session("held")
        for n in range(1100):
            s = await recorder.session(f"s{n}")
            await s.human.says("hello")
        await s.human.says("the last", durable=True)
        del s
        gc.collect()
        assert len(recorder._queues) == 1024 + 1
        again = await recorder.session("held")
        assert again._queue is held._queue
        await (await recorder.session("s0")).human.says("again", durable=True)
    assert await texts(gate.log, "s0") == ["hello", "again"]


async def test_entries_may_come_from_other_threads(gate: Gate) -> None:
    async with Recorder(gate.log) as recorder:
        queue = await recorder.queue("s", About())

        def put(queue: SessionQueue, entry: QueuedCommand, durable: bool | None) -> bool:
            return recorder.hand_over(queue, entry)

        def talk(name: str) -> None:
            s: Recording[bool] = Recording(queue, put)
            for n in range(100):
                assert s.actor(name, role="human").says(f"{n}")

        def all_talk() -> None:
            threads = [threading.Thread(target=talk, args=(f"p{n}",)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        await anyio.to_thread.run_sync(all_talk)
    found = [record async for record in gate.log.read("s")]
    for name in ("p0", "p1", "p2", "p3"):
        said = [r.event.text for r in found if r.actor == name and isinstance(r.event, MessageSent)]
        assert said == [str(n) for n in range(100)]


def test_nothing_is_configured_by_recording() -> None:
    assert logging.getLogger("duolog.telemetry").handlers == []


# --- any sequence of deeds ------------------------------------------------------------------------

DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),  # recorder
        st.sampled_from(["says", "acts", "resolves", "submits", "edits", "asks", "rates", "close"]),
        st.one_of(st.none(), st.integers(0, 3)),  # id
        st.booleans(),  # durable
    ),
    max_size=30,
)


@given(deeds=DEEDS, room=st.sampled_from([2, 1000]))
@settings(max_examples=examples(60))
def test_whatever_is_done_the_trace_is_sound(
    deeds: list[tuple[str, str, int | None, bool]], room: int
) -> None:
    anyio.run(_play, deeds, room)


async def _play(deeds: list[tuple[str, str, int | None, bool]], room: int) -> None:
    async with open_log("memory://") as log:
        async with Recorder(log, room=room) as a, Recorder(log, room=room) as b:
            sessions = {"a": await a.session("s"), "b": await b.session("s")}
            receipts: list[Receipt] = []
            for number, (who, verb, of, durable) in enumerate(deeds):
                receipts += await _do(sessions[who], verb, number, of, durable, receipts)
        found = [record async for record in log.read("s")]
        counts = [recorder.statistics() for recorder in (a, b)]
        for count in counts:
            assert count.waiting == 0
            assert count.accepted == count.written + count.refused + count.failed
    assert [record.version for record in found] == list(range(1, len(found) + 1))
    assert [record.kind for record in found].count("SessionOpened") == 1
    assert found[0].kind == "SessionOpened"
    ids = [record.caller_id for record in found if record.caller_id]
    assert len(set(ids)) == len(ids)
    in_flight: set[int] = set()
    snapshot = None
    for record in found:
        match record.event:
            case ActionTaken():
                in_flight.add(record.version)
            case ActionResolved(action=action):
                in_flight.remove(action)
            case SnapshotTaken(base=base):
                assert base == snapshot
                snapshot = record.version
            case SessionClosed():
                assert not in_flight
                assert record is found[-1]
    written = {r.record.version for r in receipts if r.record is not None and r.error is None}
    assert all(receipt.settled for receipt in receipts)
    assert written <= {record.version for record in found}


async def _do(
    s: Recording[Awaited],
    verb: str,
    number: int,
    of: int | None,
    durable: bool,
    receipts: list[Receipt],
) -> list[Receipt]:
    ref: Receipt | int = receipts[of] if of is not None and of < len(receipts) else 2
    ident = None if of is None else f"id-{of}"
    calls: dict[str, Callable[[], Awaited]] = {
        "says": lambda: s.human.says(f"text {of}", id=ident, durable=durable),
        "acts": lambda: s.agent.acts("look", id=ident, durable=durable),
        "resolves": lambda: s.agent.resolves(ref, durable=durable),
        "submits": lambda: s.agent.submits(f"draft {number % 3}", id=ident, durable=durable),
        "edits": lambda: s.human.edits(f"edit {number}", base=ref, durable=durable),
        "asks": lambda: s.agent.asks("sure?", id=ident, durable=durable),
        "rates": lambda: s.human.rates(1 + number % 5, durable=durable),
        "close": lambda: s.close(durable=durable),
    }
    try:
        return [await calls[verb]()]
    except (DuplicateConflict, InvalidInput, NotRecorded, SessionClosedError, StaleBase):
        return []
