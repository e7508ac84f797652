"""The spill files: what waits while the store is away is on the disk, and is written once, later."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import duolog
import pytest
import virtual_loop
from anyio.to_thread import run_sync
from duolog.engine.errors import (
    LogAway,
    LogUnavailable,
    NewerLog,
    NotRecorded,
    OutcomeUnknown,
    SessionNotFound,
)
from duolog.engine.events import MessageSent, RecordsLate, RecordsLost, SessionOpened
from duolog.engine.log.contract import EventLog, Store
from duolog.engine.log.open import MemoryLog
from duolog.engine.records import RECORDING, Draft, Record
from duolog.engine.redacting import redact_secrets
from duolog.engine.session.commands import RecordEvent
from duolog.telemetry.log import Log
from duolog.telemetry.queue import QueuedCommand, SessionQueue
from duolog.telemetry.receipt import Receipt
from duolog.telemetry.recorder import Recorder
from duolog.telemetry.spill import Spill, SpillFiles, is_on_a_server
from duolog.telemetry.tally import Killed, Tally, TallyFiles, read_tally
from gated_log import Gate
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import examples

KEY = "sk-ant-api03-" + "a1B2c3D4" * 8


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    async with Gate(MemoryLog()) as opened:
        yield opened


def files(directory: Path, *, size: int = 1 << 20, age: float = 3600.0) -> SpillFiles:
    spill = Spill(directory=directory / "spill", size=size, age=age, after=0.0)
    return SpillFiles(spill, "memory://", redact_secrets)


def lines(directory: Path) -> list[dict[str, object]]:
    found = sorted((directory / "spill").glob("*.spill"))
    return [
        json.loads(line) for path in found for line in path.read_text().splitlines() if line.strip()
    ]


def away(session: str, drafts: Sequence[Draft], stream: str) -> Exception:
    return LogUnavailable("the server is stopped")


async def texts(log: EventLog, session: str = "s", stream: str = "trace") -> list[str]:
    events = [record.event async for record in log.read(session, stream=stream)]
    return [event.text for event in events if isinstance(event, MessageSent)]


async def marks(log: EventLog, session: str = "s") -> list[RecordsLate | RecordsLost]:
    events = [record.event async for record in log.read(session, stream=RECORDING)]
    return [event for event in events if isinstance(event, RecordsLate | RecordsLost)]


def size_on_disk(directory: Path) -> int:
    return sum(path.stat().st_size for path in (directory / "spill").glob("*.spill"))


async def until_kept(recorder: Recorder, events: int) -> None:
    with anyio.fail_after(120):
        while recorder.statistics().spilled < events:  # noqa: ASYNC110  (another process's files)
            await anyio.sleep(0.01)


@asynccontextmanager
async def dying(recorder: Recorder, directory: Path) -> AsyncIterator[Recorder]:
    """A process that is killed in the end: its files are as they were then."""
    async with recorder:
        yield recorder
        shutil.copytree(directory / "spill", directory / "then")
        await recorder.aclose(0)
    shutil.rmtree(directory / "spill")
    (directory / "then").rename(directory / "spill")


async def test_what_waits_is_on_the_disk_redacted_and_goes_to_the_log_later(
    gate: Gate, tmp_path: Path
) -> None:
    async with Recorder(gate.log, retry=0.01, spill=files(tmp_path)) as recorder:
        gate.fail(away)
        s = await recorder.session("s", private={"human": {"token": KEY}})
        receipt = await s.human.says(f"my key is {KEY}", id="m1")
        await s.agent.acts("look", result={"key": KEY})
        await until_kept(recorder, 3)
        held = "".join(path.read_text() for path in (tmp_path / "spill").iterdir())
        assert "my key is" in held
        assert KEY not in held
        assert not receipt.settled
        gate.heal()
        await receipt.written()
        await s.close(durable=True)
        assert recorder.statistics().late == 2
        [mark] = [one for one in await marks(gate.log) if isinstance(one, RecordsLate)]
        assert (mark.first, mark.last) == (2, 3)
        ids = [record.caller_id or "" async for record in gate.log.read("s")]
        assert ids[:2] == ["", "m1"]
        assert ids[2].startswith("spill/")
    assert lines(tmp_path) == []
    assert not list((tmp_path / "spill").iterdir())


async def test_the_next_process_sends_what_a_killed_one_has_left(
    gate: Gate, tmp_path: Path
) -> None:
    async with dying(Recorder(gate.log, retry=0.01, spill=files(tmp_path)), tmp_path) as recorder:
        s = await recorder.session("s", agent="v7")
        first = await s.human.says("first", id="m1", durable=True)
        gate.fail(away)
        asked = await s.agent.asks("May I?")
        await s.human.approves(asked)
        await s.human.feedback(thumbs="down", of=first)
        await s.agent.submits({"plan": [1]})
        await s.agent.acts("look", {"at": 1}, result="seen")
        await s.human.rates(2)
        await (await recorder.session("t", labels={"country": "NZ"})).human.says("another", id="t1")
        await until_kept(recorder, 8)
    gate.heal()
    async with Recorder(gate.log, spill=files(tmp_path)) as recorder:
        s = await recorder.session("s")
        await s.close(durable=True)
    records = [record async for record in gate.log.read("s")]
    kinds = [record.kind for record in records]
    assert kinds == [
        "SessionOpened", "MessageSent", "ApprovalAsked", "ApprovalGiven", "FeedbackGiven",
        "SnapshotTaken", "ActionTaken", "ActionResolved", "ProgressRated", "SessionClosed",
    ]  # fmt: skip
    assert records[3].event.asked == 3  # type: ignore[union-attr]
    assert records[4].event.of == 2  # type: ignore[union-attr]
    assert records[8].event.round == 2  # type: ignore[union-attr]
    assert await texts(gate.log, "t") == ["another"]
    opened = (await anext(gate.log.read("t"))).event
    assert isinstance(opened, duolog.SessionOpened)
    assert opened.config["group"] == {"country": "NZ"}
    assert not list((tmp_path / "spill").iterdir())


async def test_what_is_left_behind_says_what_its_senders_had_received(
    gate: Gate, tmp_path: Path
) -> None:
    """As if it had been written at once."""

    async def converse(recorder: Recorder, meanwhile: Callable[[], None]) -> None:
        s = await recorder.session("s", task="support")
        await s.human.says("Hello?", durable=True)
        meanwhile()
        await s.human.says("Hello??")
        await s.agent.acts("look", result="nothing")
        await s.agent.says("Not yet.")
        await s.human.rates(2)

    async with dying(Recorder(gate.log, retry=0.01, spill=files(tmp_path)), tmp_path) as recorder:
        await converse(recorder, lambda: gate.fail(away))
        await until_kept(recorder, 4)
    gate.heal()
    async with Recorder(gate.log, spill=files(tmp_path)) as recorder:
        await recorder.flush("s")
    async with MemoryLog() as log:
        async with Recorder(log) as recorder:
            await converse(recorder, lambda: None)
        at_once = [(one.kind, one.actor, one.seen) async for one in log.read("s")]
    later = [(one.kind, one.actor, one.seen) async for one in gate.log.read("s")]
    assert later == at_once


async def test_what_the_sender_had_received_is_known_though_it_was_sent_before(
    gate: Gate, tmp_path: Path
) -> None:
    """The first of two events was written before the process was killed."""
    opened = SessionOpened(task="t", instance="1", participants=(), clock="utc")

    def leave() -> None:
        left = files(tmp_path)
        entries: list[tuple[SessionQueue, QueuedCommand]] = []
        for ident in ("m1", "m2"):
            command = RecordEvent(MessageSent(text=ident))
            entry = QueuedCommand("says", command, "ann", "human", 1.0, Receipt("s", ident), ident)
            entry.taken = time.time()
            entry.received = entries[-1][1].receipt if entries else None
            left.name_entry(entry)
            entries.append((SessionQueue("s", opened), entry))
        left.keep(entries, [])
        left.leave([("s", "m1")])

    await run_sync(leave)
    drafts = [Draft(opened, "engine", "environment", 1.0)]
    drafts += [Draft(MessageSent(text="another"), "ben", "agent", 1.0)]
    drafts += [Draft(MessageSent(text="m1"), "ann", "human", 1.0, "m1")]
    await gate.log.append("s", drafts)
    async with Recorder(gate.log, spill=files(tmp_path)) as recorder:
        await recorder.flush("s")
    found = [(one.caller_id, one.seen) async for one in gate.log.read("s", after_version=3)]
    assert found == [("m2", 3)]


async def test_ids_are_of_one_session_for_what_is_left_behind_too(
    gate: Gate, tmp_path: Path
) -> None:
    """Another session's message has the same id, and was written."""

    def only_one(session: str, drafts: Sequence[Draft], stream: str) -> Exception | None:
        return away(session, drafts, stream) if session == "waits" else None

    async with dying(Recorder(gate.log, retry=0.01, spill=files(tmp_path)), tmp_path) as recorder:
        gate.fail(away)
        for session in ("goes", "waits"):
            await (await recorder.session(session)).human.says(f"it {session}", id="m1")
        await until_kept(recorder, 4)
        gate.fail(only_one)
        await recorder.flush("goes")
        await (await recorder.session("waits")).agent.says("more", id="m2")
        await until_kept(recorder, 3)
    gate.heal()
    async with Recorder(gate.log, spill=files(tmp_path)):
        pass
    assert await texts(gate.log, "goes") == ["it goes"]
    assert await texts(gate.log, "waits") == ["it waits", "more"]


@pytest.mark.parametrize("there", [True, False])
async def test_what_may_have_been_written_is_written_once(
    gate: Gate, tmp_path: Path, there: bool
) -> None:
    async def append(*args: object, **more: object) -> list[Record]:
        if there:
            await gate._inner.append(*args, **more)  # type: ignore[arg-type]
        raise OutcomeUnknown("the network is down")

    async with dying(Recorder(gate.log, retry=60, spill=files(tmp_path)), tmp_path) as recorder:
        s = await recorder.session("s")
        await s.flush()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gate, "append", append)
            await s.human.says("once")
            await s.agent.says("also once")
            await until_kept(recorder, 2)
    async with Recorder(gate.log, spill=files(tmp_path)) as recorder:
        await (await recorder.session("s")).human.says("after", durable=True)
    assert await texts(gate.log) == ["once", "also once", "after"]


async def test_what_is_closed_meanwhile_takes_it_beside_the_trace(
    gate: Gate, tmp_path: Path
) -> None:
    async with Recorder(gate.log, retry=0.01, spill=files(tmp_path)) as recorder:
        s = await recorder.session("s")
        await s.flush()
        gate.fail(away)
        receipt = await s.human.says("late", id="m2")
        await until_kept(recorder, 1)
        async with Recorder(gate._inner) as other:
            await (await other.session("s")).close(durable=True)
        gate.heal()
        record = await receipt.written()
    assert record is not None
    assert record.stream == RECORDING
    assert await texts(gate.log, stream=RECORDING) == ["late"]
    assert (await duolog.score_log(gate.log, "s")).lost == 1


async def test_forget_reaches_the_disk_of_other_processes(tmp_path: Path) -> None:
    gate = Gate(MemoryLog())
    log = Log(gate.log, retry=0.01, spill=files(tmp_path))
    async with log, Recorder(gate.log, retry=60, deadline=0, spill=files(tmp_path)) as recorder:
        s = await log.session("s")
        await s.flush()
        gate.fail(away)
        await (await recorder.session("s")).human.says("secret of s")
        await (await recorder.session("t")).human.says("kept")
        await until_kept(recorder, 2)
        gate.heal()
        result = await log.forget("s")
        assert any("spill" in cache for cache in result.caches)
        held = "".join(path.read_text() for path in (tmp_path / "spill").iterdir())
        assert "secret of s" not in held
        assert "kept" in held


async def test_a_full_file_counts_what_is_dropped(gate: Gate, tmp_path: Path) -> None:
    async with Recorder(gate.log, retry=0.01, room=5, spill=files(tmp_path, size=4000)) as recorder:
        gate.fail(away)
        s = await recorder.session("s")
        said = 0
        while size_on_disk(tmp_path) < 3000:  # one at a time, so that all of them reach the file
            await s.human.says(str(said))
            said += 1
            await until_kept(recorder, said)
        assert said > 5
        for number in range(said, 40):  # the file has room for a few, and the memory for five
            await s.human.says(str(number))
        assert recorder.statistics().dropped > 0
        assert size_on_disk(tmp_path) <= 4000
        gate.heal()
        await s.flush()
    written = len(await texts(gate.log))
    dropped = sum(one.count for one in await marks(gate.log) if isinstance(one, RecordsLost))
    assert written + dropped == 40


def test_a_file_takes_what_fits_and_nothing_more(tmp_path: Path) -> None:
    """The lines about settled events count, too, and are not written again and again."""
    opened = SessionOpened(task="t", instance="1", participants=(), clock="utc")
    entries = []
    for number, session in enumerate("stst"):
        receipt, event = Receipt(session), MessageSent(text=str(number) * 40)
        command = RecordEvent(event)
        entry = QueuedCommand("says", command, "ann", "human", 1.0, receipt, f"m{number}")
        entries.append((SessionQueue(session, opened), entry))
    sent = [("s", f"sent-{number}") for number in range(5)]
    sizes = []
    for count in range(1, 5):
        unlimited = files(tmp_path / str(count))
        unlimited.keep(entries[:count], sent)
        sizes.append(size_on_disk(tmp_path / str(count)))
    for size in {one + more for one in sizes[:3] for more in (-1, 0, 1)}:
        place = tmp_path / f"at most {size}"
        limited = files(place, size=size)
        fitting = sum(one <= size for one in sizes)
        assert limited.keep(entries, sent) == (entries[:fitting], fitting)
        assert size_on_disk(place) == [0, *sizes][fitting]
        for _ in range(2):
            assert limited.keep(entries[fitting:], sent) == ([], 0)
        assert size_on_disk(place) == [0, *sizes][fitting]


def rarely(directory: Path) -> SpillFiles:
    """Files of events that have waited for an hour."""
    return SpillFiles(Spill(directory=directory / "spill", after=3600.0), "memory://", None)


def test_what_has_not_waited_long_is_in_memory_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            Gate(MemoryLog()) as gate,
            Recorder(gate.log, spill=rarely(tmp_path)) as recorder,
        ):
            s = await recorder.session("s")
            await s.flush()
            gate.shut()  # the store is slow, and not away
            receipt = await s.human.says("hello")
            await anyio.sleep(60)
            assert not receipt.settled
            assert receipt.ident is None  # nothing named it for the disk
            assert lines(tmp_path) == []
            gate.open()
            await receipt.written()

    virtual_loop.run(main)


async def test_what_waits_while_the_store_is_away_is_on_the_disk_at_once(
    gate: Gate, tmp_path: Path
) -> None:
    async with Recorder(gate.log, retry=0.01, spill=rarely(tmp_path)) as recorder:
        gate.fail(away)
        await (await recorder.session("s")).human.says("hello")
        await until_kept(recorder, 2)
        gate.heal()


async def test_a_second_outage_is_survived_as_the_first(gate: Gate, tmp_path: Path) -> None:
    async with Recorder(gate.log, retry=0.01, spill=files(tmp_path)) as recorder:
        s = await recorder.session("s")
        for number in range(2):
            gate.fail(away)
            await s.human.says(str(number))
            await until_kept(recorder, 1)
            gate.heal()
            await s.flush()
            with anyio.fail_after(120):
                while list((tmp_path / "spill").glob("*.spill")):  # noqa: ASYNC110
                    await anyio.sleep(0.01)
    assert await texts(gate.log) == ["0", "1"]


async def test_what_is_too_old_is_marked_as_lost(gate: Gate, tmp_path: Path) -> None:
    async with dying(Recorder(gate.log, retry=60, spill=files(tmp_path)), tmp_path) as recorder:
        gate.fail(away)
        await (await recorder.session("s")).human.says("old")
        await until_kept(recorder, 1)
    gate.heal()
    async with Recorder(gate.log, spill=files(tmp_path, age=1e-9)) as recorder:
        await recorder.flush("s")
    assert await texts(gate.log) == []
    assert [type(one) for one in await marks(gate.log)] == [RecordsLost]
    assert not list((tmp_path / "spill").iterdir())


async def test_a_closed_log_leaves_it_to_the_next(gate: Gate, tmp_path: Path) -> None:
    recorder = Recorder(gate.log, retry=60, deadline=0.0, spill=files(tmp_path))
    async with recorder:
        gate.fail(away)
        receipt = await (await recorder.session("s")).human.says("later")
    assert [(one.events, one.spilled) for one in await recorder.aclose()] == [(2, 2)]
    with pytest.raises(NotRecorded, match="waits on the disk until the log is opened next"):
        await receipt.written()
    gate.heal()
    async with Recorder(gate.log, spill=files(tmp_path)):
        pass
    assert await texts(gate.log) == ["later"]


async def test_a_line_that_was_cut_off_harms_no_other(gate: Gate, tmp_path: Path) -> None:
    async with dying(Recorder(gate.log, retry=60, spill=files(tmp_path)), tmp_path) as recorder:
        gate.fail(away)
        s = await recorder.session("s")
        await s.human.says("whole")
        await s.human.says("cut")
        await until_kept(recorder, 3)
    [path] = (tmp_path / "spill").glob("*.spill")
    os.truncate(path, path.stat().st_size - 20)
    gate.heal()
    async with Recorder(gate.log, spill=files(tmp_path)):
        pass
    assert await texts(gate.log) == ["whole"]


async def test_without_a_directory_it_waits_in_memory_and_says_so_once(
    gate: Gate, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "spill").write_text("no directory")
    async with Recorder(gate.log, retry=0.01, spill=files(tmp_path)) as recorder:
        gate.fail(away)
        s = await recorder.session("s")
        await s.human.says("in memory")
        with anyio.fail_after(120):
            while "in memory alone" not in caplog.text:  # noqa: ASYNC110 (nobody tells)
                await anyio.sleep(0.01)
        gate.heal()
        await s.flush()
    assert await texts(gate.log) == ["in memory"]
    warned = [r.getMessage() for r in caplog.records if "in memory alone" in r.getMessage()]
    assert len(warned) == 1


# --- a log that is away when it is opened -------------------------------------------------------


class AwayStore:
    """A store whose opening fails, with an error or for ever, until it is there."""

    def __init__(self, error: Exception | None) -> None:
        self._inner = MemoryLog()
        self.error = error
        self.there = False

    async def __aenter__(self) -> object:
        if not self.there:
            if self.error is None:
                await anyio.sleep_forever()
            assert self.error is not None
            raise self.error
        return await self._inner.__aenter__()

    async def __aexit__(self, *error: object) -> None:
        await self._inner.__aexit__(None, None, None)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


async def test_an_application_starts_while_the_log_is_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = AwayStore(LogAway("connection refused"))
    seen: list[str] = []
    async with Log(cast(Store, store), retry=0.01, spill=files(tmp_path)) as log:
        log.watch(
            scorers=[duolog.rule_judge()],
            on_update=lambda update: seen.append(type(update).__name__),
        ).start()
        with anyio.fail_after(120):
            s = await log.session("s")
            receipt = await s.human.says("hello")
        with pytest.raises(LogAway, match="connection refused"):
            await log.summary("s")
        store.there = True
        await receipt.written()
        await log.settle()
        assert "RoundOpened" in seen
        assert await texts(log) == ["hello"]
    assert [r.getMessage() for r in caplog.records if "is away" in r.getMessage()]


async def test_what_waiting_cannot_cure_fails_at_the_start(tmp_path: Path) -> None:
    for error in (LogUnavailable("wrong password"), NewerLog("written by a newer Duolog")):
        with pytest.raises(type(error), match=str(error)):
            async with Log(cast(Store, AwayStore(error)), spill=files(tmp_path)):
                pass


async def test_strict_refuses_a_log_that_is_away(tmp_path: Path) -> None:
    store = cast(Store, AwayStore(LogAway("connection refused")))
    with pytest.raises(LogAway):
        async with Log(store, spill=files(tmp_path), strict=True):
            pass


async def test_a_log_that_never_comes_is_left_on_the_disk(tmp_path: Path) -> None:
    store = cast(Store, AwayStore(LogAway("connection refused")))
    async with Log(store, deadline=0.0, spill=files(tmp_path)) as log:
        await (await log.session("s")).human.says("hello")
    assert [(one.session, one.spilled) for one in log.unwritten] == [("s", 2)]
    assert [line["verb"] for line in lines(tmp_path)] == ["session", "says"]


@pytest.mark.parametrize(
    ("written", "named", "same"),
    [
        ("postgresql://app@db:5433/work", "postgresql://admin@db:5433/work", True),
        ("postgresql://db/work?schema=one", "postgresql://db/work?schema=two", False),
        ("postgresql://db/work", "postgresql://db/other", False),
        ("sqlite:///chats.db", f"sqlite:///{Path.cwd() / 'chats.db'}", True),
        ("sqlite:///chats.db", "sqlite:///other.db", False),
    ],
)
async def test_a_log_has_one_set_of_files_whoever_opens_it(
    tmp_path: Path, gate: Gate, written: str, named: str, same: bool
) -> None:
    settings = Spill(directory=tmp_path / "spill", after=0.0)
    spill = SpillFiles(settings, written, None)
    async with dying(Recorder(gate.log, retry=0.01, spill=spill), tmp_path) as recorder:
        gate.fail(away)
        s = await recorder.session("s")
        await s.human.says("my address is 1 Mill Lane")
        await until_kept(recorder, 2)
    other = SpillFiles(settings, named, None)
    assert await run_sync(other.exist) is same
    await other.forget(["s"])
    [file] = (tmp_path / "spill").glob("*.spill")
    assert ("Mill Lane" not in file.read_text()) is same


def test_servers_have_spill_files_by_default() -> None:
    assert is_on_a_server("postgresql://u@h/db")
    assert not is_on_a_server("sqlite:///a.db")
    assert not is_on_a_server("a.db")


async def test_an_unknown_host_and_a_closed_port(tmp_path: Path) -> None:
    pytest.importorskip("asyncpg")
    spill = Spill(directory=tmp_path)
    with pytest.raises(LogUnavailable, match="no such host"):
        async with duolog.open("postgresql://u@no-such-host.invalid/db", spill=spill):
            pass
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"postgresql://u@127.0.0.1:{taken.getsockname()[1]}/db"
        with pytest.raises(LogAway):
            async with duolog.open(url, spill=spill, strict=True):
                pass
        async with duolog.open(url, spill=spill, deadline=0.0) as log:
            with anyio.fail_after(120):
                await (await log.session("s")).human.says("hello")
        assert log.unwritten[0].spilled == 2


async def test_a_session_opens_at_once_while_reads_hang(gate: Gate, tmp_path: Path) -> None:
    async with Recorder(gate.log, retry=0.01, spill=files(tmp_path)) as recorder:
        gate.fail(away)
        await (await recorder.session("before")).human.says("x")
        await until_kept(recorder, 1)
        with anyio.fail_after(120):
            for number in range(100):
                await recorder.session(f"s{number}")
        gate.heal()
    with pytest.raises(SessionNotFound):
        await gate.log.summary("nobody")


# --- killed with events in memory -----------------------------------------------------------------


def move_tallies(source: Path, target: Path) -> None:
    for path in source.glob("*.tally"):
        shutil.copyfile(path, target / path.name)


@asynccontextmanager
async def killed(recorder: Recorder, directory: Path) -> AsyncIterator[Recorder]:
    """A process that is killed in the end: its tally is as it was then."""
    async with recorder:
        yield recorder
        (directory / "then").mkdir()
        move_tallies(directory / "spill", directory / "then")
        await recorder.aclose(0)
    shutil.rmtree(directory / "spill")
    (directory / "then").rename(directory / "spill")


def full(directory: Path) -> SpillFiles:
    """Files without room: all events are in memory alone."""
    return SpillFiles(Spill(directory=directory / "spill", size=1), "memory://", None)


async def test_what_a_killed_process_had_in_memory_alone_is_marked(
    gate: Gate, tmp_path: Path
) -> None:
    async with killed(Recorder(gate.log, retry=0.01, spill=full(tmp_path)), tmp_path) as r:
        s = await r.session("s", task="support")
        await s.human.says("Hello?", durable=True)
        gate.fail(away)
        await s.human.says("Anybody there?")
        await s.agent.acts("look", result="nothing")
        await r.session("new")
    gate.heal()
    async with Recorder(gate.log, retry=0.01, spill=full(tmp_path)) as recorder:
        await recorder.flush("s")
        [mark] = await marks(gate.log)
        assert isinstance(mark, RecordsLost)
        assert (mark.count, mark.why) == (3, "the process ended before they were written")
        assert mark.begin <= mark.end
        assert await texts(gate.log) == ["Hello?"]
    assert not list((tmp_path / "spill").iterdir())
    async with Recorder(gate.log, retry=0.01, spill=full(tmp_path)) as recorder:
        await recorder.flush("s")
    assert len(await marks(gate.log)) == 1


async def test_events_that_were_written_at_a_kill_are_not_marked(
    gate: Gate, tmp_path: Path
) -> None:
    async with killed(Recorder(gate.log, retry=0.01, spill=full(tmp_path)), tmp_path) as r:
        s = await r.session("s")
        await s.human.says("Hello?", durable=True)
        gate.fail(lambda session, drafts, stream: OutcomeUnknown("the server went away"))
        await s.human.says("First")
        await s.human.says("Second")
        version = 2
        [hello] = [one async for one in gate.log.read("s", after_version=1)]
        draft = Draft(MessageSent(text="First"), "human", "human", hello.time + 1e-6)
        gate.heal()
        await gate.log.append("s", [draft], expected_version=version)
        gate.fail(away)
    gate.heal()
    async with Recorder(gate.log, retry=0.01, spill=full(tmp_path)) as recorder:
        await recorder.flush("s")
        [mark] = await marks(gate.log)
        assert isinstance(mark, RecordsLost)
        assert mark.count <= 2


def test_a_tally_grows_and_is_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "one.tally"
    tally = Tally(path, os.open(path, os.O_RDWR | os.O_CREAT))
    for number in range(300):
        tally.add(f"s-{number}", 2, 10.0 + number, number)
    tally.add("s-7", 1, 5.0, 9)
    tally.remove("s-8", 2, 0)
    tally.remove("s-9", 1, 4)
    tally.add("x" * 600, 1, 1.0, 0)  # too long to be counted
    found = {one.session: one for one in read_tally(path.read_bytes())}
    assert len(found) == 299
    assert found["s-7"] == Killed("s-7", 3, 9, 5.0, 17.0)
    assert found["s-9"] == Killed("s-9", 1, 4, 19.0, 19.0)
    tally.close()
    assert path.exists()


def test_files_that_somebody_removed_are_not_missed(tmp_path: Path) -> None:
    def tallies() -> TallyFiles:
        return TallyFiles(lambda: (tmp_path, "log"), None)

    left = tallies().open()
    left.add("s", 2, 10.0, 1)
    left.close()
    [file] = tmp_path.iterdir()
    taken = tallies()
    assert [(one.session, one.events) for one in taken.take()] == [("s", 2)]
    own = taken.open()
    spill = files(tmp_path)
    spill.keep((), [("s", "m1")])
    for path in (file, *tmp_path.glob("*.tally"), *(tmp_path / "spill").iterdir()):
        path.unlink(missing_ok=True)
    taken.drop()
    own.close()
    spill.clear()
    assert taken.take() == []
    assert not taken.exist()


async def test_a_session_that_begins_with_a_kill_keeps_its_labels(
    gate: Gate, tmp_path: Path
) -> None:
    labels = {"country": "NZ", "key": KEY}
    spill = SpillFiles(Spill(directory=tmp_path / "spill", size=1), "memory://", redact_secrets)
    async with killed(Recorder(gate.log, retry=0.01, spill=spill), tmp_path) as r:
        gate.fail(away)
        s = await r.session(
            "new",
            task="support",
            agent="v7",
            labels=labels,
            user="u1",
            private={"human": {"goal": "secret"}},
        )
        await s.human.says("Anybody there?")
        long = await r.session("long", task="x" * 5000, user="u2")
        await long.human.says("Hello?")
    held = b"".join(path.read_bytes() for path in (tmp_path / "spill").iterdir())
    assert b"support" in held
    for hidden in (KEY.encode(), b"secret", b"Anybody"):
        assert hidden not in held
    gate.heal()
    async with Recorder(gate.log, retry=0.01, spill=full(tmp_path)) as recorder:
        await recorder.flush("new")
        await recorder.flush("long")
    for session, user, task in (("new", "u1", "support"), ("long", "u2", None)):
        opened = (await anext(gate.log.read(session))).event
        assert isinstance(opened, duolog.SessionOpened)
        group = opened.config["group"]
        assert isinstance(group, dict)
        assert group["user"] == user
        assert task is None or (opened.task, group["country"]) == (task, "NZ")
        [mark] = await marks(gate.log, session)
        assert isinstance(mark, RecordsLost)
        assert mark.count == 1


async def test_a_log_in_a_file_marks_a_kill_without_spill_files(tmp_path: Path) -> None:
    dying, later = tmp_path / "dying", tmp_path / "later"
    dying.mkdir()
    later.mkdir()
    async with duolog.open(f"sqlite:///{dying / 'chats.db'}") as log:
        s = await log.session("s", user="u1")
        await s.human.says("first", durable=True)
        other = sqlite3.connect(dying / "chats.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")  # what comes now is not written yet, however slow this is
        await s.human.says("second")
        t = await log.session("t", user="u2")
        await t.human.says("third")
        move_tallies(dying, later)  # as a kill would leave them; the events do not reach the copy
        other.execute("ROLLBACK")
        other.close()
    assert not list(dying.glob("*.tally"))
    async with duolog.open(f"sqlite:///{later / 'chats.db'}") as log:
        await log.recorder.flush("s")
        await log.recorder.flush("t")
        lost = [one for name in ("s", "t") for one in await marks(log, name)]
        assert [one.count for one in lost if isinstance(one, RecordsLost)] == [1, 1]
        opened = (await anext(log.read("t"))).event
        assert isinstance(opened, duolog.SessionOpened)
        assert opened.config["group"] == {"user": "u2"}
        t = await log.session("t")
        await t.human.says("back")
        assert (await log.forget("t")).caches == ()
    assert not list(later.glob("*.tally"))


@pytest.mark.parametrize("length", range(1850, 2050, 8))
def test_an_opening_is_kept_whole_beside_others_or_shortened(tmp_path: Path, length: int) -> None:
    files = TallyFiles(lambda: (tmp_path, "chats.db"), None)
    tally = files.open()
    opened = SessionOpened(
        task="t", instance="x" * length, participants=(), clock="utc", config={"group": {"a": "b"}}
    )
    for session in ("a", "b"):
        tally.add(session, 1, 1.0, 0, files.opening(session, opened, 1.0))
    [path] = tmp_path.glob("*.tally")
    found = list(read_tally(path.read_bytes()))
    tally.close()
    assert [one.session for one in found] == ["a", "b"]
    for one in found:
        assert one.opened is not None
        assert one.opened.instance in ("", opened.instance)


def test_a_session_is_erased_from_the_tally_of_another_process(tmp_path: Path) -> None:
    files = TallyFiles(lambda: (tmp_path, "chats.db"), None)
    tally = files.open()
    opening = files.opening("s", duolog.SessionOpened("support", "1", (), "utc"), 1.0)
    tally.add("s", 2, 1.0, 0, opening)
    tally.add("t", 1, 1.0, 0)
    other = TallyFiles(lambda: (tmp_path, "chats.db"), None)
    assert other.exist()
    assert not files.exist()
    other.erase(frozenset(["s"]))
    [path] = tmp_path.iterdir()
    assert b"support" not in path.read_bytes()
    tally.add("s", 1, 2.0, 0)  # by its own process
    assert [one.session for one in read_tally(path.read_bytes())] == ["t"]


# --- any sequence of outages ----------------------------------------------------------------------

STEPS = st.lists(
    st.sampled_from(["s", "t", "s", "t", "goes", "unsure", "returns", "waits", "killed", "closes"]),
    max_size=25,
)
"""A message of a session, a state of the store, a wait, or an end of the process before another begins."""


@given(steps=STEPS)
@settings(max_examples=examples(25))
def test_through_any_outages_all_is_written_once_and_in_order(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        anyio.run(_survive, [*steps, "closes", "returns", "waits"], Path(directory))


async def _survive(steps: list[str], directory: Path) -> None:
    said: dict[str, list[str]] = {"s": [], "t": []}
    safe: set[str] = set()
    rest = deque(steps)
    async with Gate(MemoryLog()) as gate:
        gone = False
        while rest:
            step = ""
            async with Recorder(gate.log, retry=0.001, spill=files(directory)) as recorder:
                while rest and step not in ("killed", "closes"):
                    step = rest.popleft()
                    if step in said:
                        text = f"{step}{len(said[step])}"
                        said[step].append(text)
                        await (await recorder.session(step)).human.says(text)
                    elif step in ("goes", "unsure"):
                        gone = True
                        gate.fail(away if step == "goes" else unsure)
                    elif step == "returns":
                        gone = False
                        gate.heal()
                    elif step == "waits":
                        await until_settled(recorder, away=gone)
                        safe.update(*said.values())
                if step == "killed":
                    await run_sync(copied, directory / "spill", directory / "then")
                    await recorder.aclose(0)
                else:
                    left = await recorder.aclose(0 if gone else 60)
                    safe.update(*said.values())
                    assert sum(one.events for one in left) == sum(one.spilled for one in left)
                counts = recorder.statistics()
                assert (counts.waiting, counts.dropped, counts.refused) == (0, 0, 0)
                assert step == "killed" or counts.failed == 0
            if step == "killed":
                await run_sync(copied, directory / "then", directory / "spill")
        for session, everything in said.items():
            got = await texts(gate.log, session)
            assert got == [text for text in everything if text in got], "once, and in order"
            assert safe.intersection(everything) <= set(got)
            records = [one async for one in gate.log.read(session)]
            assert [one.kind for one in records[:1]] == ["SessionOpened"][: len(records)]
            assert [one.seen for one in records[1:]] == [*range(1, len(records))]
    assert not await run_sync(lambda: [*directory.glob("spill/*")])


def unsure(session: str, drafts: Sequence[Draft], stream: str) -> Exception:
    return OutcomeUnknown("the connection broke")


async def until_settled(recorder: Recorder, *, away: bool) -> None:
    """Until what waits is on the disk, or in the log if that can be reached."""
    with anyio.fail_after(120):
        while True:
            counts = recorder.statistics()
            if counts.waiting == (counts.spilled if away else 0):
                return
            await anyio.sleep(0.005)


def copied(source: Path, target: Path) -> None:
    """A directory with the files of another, and no others."""
    shutil.rmtree(target, ignore_errors=True)
    if source.exists():
        shutil.copytree(source, target)
