"""An export follows a log: restarts, sessions as they grow, and what fails."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import anyio
import anyio.to_thread
import duolog
import msgspec
import pytest
from duolog.engine.errors import LogUnavailable, MissingExtra
from duolog.engine.events import MessageSent
from duolog.engine.installation import install_command
from duolog.engine.log.append import Append
from duolog.engine.log.contract import Subscription
from duolog.engine.log.open import MemoryLog
from duolog.engine.records import Draft, Record
from duolog.interop.otel import names
from duolog.interop.otel import scores as otel
from duolog.interop.otel import sdk as emitting
from duolog.interop.otel.exporter import OtelExport
from duolog.interop.otel.signals import SignalFold
from gated_log import Gate
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased
from otel_memory import Memory, ids, parent, seconds
from otel_story import (
    NOON,
    SCORES,
    STORY,
    export,
    exported_from,
    write,
)

# --- restarts -------------------------------------------------------------------------------------


async def test_a_restart_doubles_nothing_and_goes_on_in_the_same_trace(tmp_path: Path) -> None:
    whole = await exported_from()
    expected = sorted((ids(span), seconds(span), span.name) for span in whole.spans())
    for cut in range(1, len(STORY)):
        memory = Memory()
        url = f"sqlite:///{tmp_path}/{cut}.db"
        async with duolog.open(url) as log:
            await write(log, STORY[:cut])
            async with export(log, memory):
                pass
        async with duolog.open(url) as log:
            await write(log, STORY[cut:])
            async with export(log, memory) as exported:
                pass
            assert exported.statistics().exported == len(STORY) - cut
        found = sorted((ids(span), seconds(span), span.name) for span in memory.spans())
        assert found == expected, cut
        counted = memory.metrics()
        assert [count for _, _, count in counted["duolog.round.duration"]] == [1, 1], cut
        assert [value for _, value, _ in counted["duolog.effort.acts"]] == [2], cut


async def test_without_a_name_nothing_is_kept() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, STORY)
        for _ in range(2):
            async with export(log, memory, name=None):
                pass
    assert len(memory.spans()) == 20
    assert len({ids(span) for span in memory.spans()}) == 10


async def test_it_can_begin_late() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        records = await write(log, STORY)
        async with export(log, memory, after_position=records[-2].position) as exported:
            pass
        assert exported.statistics().exported == 1
    assert sorted(span.name for span in memory.spans()) == [
        "human_turn",
        "invoke_agent v7",
        "invoke_workflow support",
        "round",
    ]


async def test_one_session_of_several() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, STORY, "a")
        await write(log, STORY, "b")
        async with export(log, memory, session="a"):
            await write(log, STORY, "c")
        assert {
            span.attributes["gen_ai.conversation.id"] for span in memory.spans() if span.attributes
        } == {"a"}
        async with export(log, memory, session="nowhere"):
            pass


async def test_a_score_that_comes_when_all_is_over_is_about_its_span(tmp_path: Path) -> None:
    memory = Memory()
    async with duolog.open(f"sqlite:///{tmp_path}/log.db") as log:
        await write(log, STORY)
        async with export(log, memory):
            pass
    async with duolog.open(f"sqlite:///{tmp_path}/log.db") as log, export(log, memory):
        await log.append("s", SCORES[:1], stream="rubric@1")
    [(_, span, _)] = memory.events()
    assert span == ids(memory.span("invoke_agent v7"))[1]
    assert len(memory.spans()) == 10


async def test_what_has_no_checkpoint_is_exported_again_as_the_same() -> None:
    memory = Memory()
    gate = Gate(MemoryLog())
    async with duolog.Log(gate.log) as log:
        await write(log, STORY)
        gate.fail(lambda session, drafts, stream: LogUnavailable("the disk is full"))
        async with export(log, memory) as exported:
            pass
        assert exported.statistics().failed == 1
        gate.heal()
        async with export(log, memory):
            pass
    assert len(memory.spans()) == 20
    assert len({(ids(span), seconds(span), span.name) for span in memory.spans()}) == 10


async def test_a_log_that_another_writes_is_exported_as_it_grows(tmp_path: Path) -> None:
    memory = Memory()
    url = f"sqlite:///{tmp_path}/log.db"

    def work() -> None:
        with duolog.open_sync(url) as log:
            s = log.session("s", task="support")
            s.human.says("Hello")
            s.agent.says("Hello!")
            s.close()

    async with duolog.open(url) as log, export(log, memory) as exported:
        await anyio.to_thread.run_sync(work)
        with anyio.fail_after(120):
            while exported.statistics().exported < 4:  # noqa: ASYNC110  (nobody tells)
                await anyio.sleep(0.01)
    assert memory.spans("s")[-1].name == "invoke_workflow support"


# --- live -----------------------------------------------------------------------------------------


async def test_live_with_the_recorder_all_is_exported_by_the_time_that_it_is_left() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log, export(log, memory):
        for number in range(3):
            s = await log.session(f"s{number}", task="support", agent="v7")
            await s.human.says("Hello")
            await s.agent.says("Hello!")
            await s.close()
    assert [span.name for span in memory.spans()].count("invoke_workflow support") == 3


async def test_spans_of_the_product_are_no_parents() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        with memory.tracers.get_tracer("product").start_as_current_span("request"):
            async with export(log, memory):
                await write(log, STORY)
                await log.append("s", SCORES[:1], stream="rubric@1")
    assert parent(memory.span("invoke_workflow support")) is None


@pytest.mark.parametrize("rate", [0.0, 0.5])
async def test_sampling_takes_whole_sessions(rate: float) -> None:
    memory = Memory(ParentBased(TraceIdRatioBased(rate)) if rate else ALWAYS_OFF)
    async with duolog.open("memory://") as log:
        for number in range(40):
            await write(log, STORY, f"s{number}")
        async with export(log, memory):
            pass
    spans = [len(memory.spans(f"s{number}")) for number in range(40)]
    assert set(spans) == ({0, 10} if rate else {0})


# --- what fails -----------------------------------------------------------------------------------


class Broken(SpanProcessor):
    """Raises whenever a span ends."""

    def __init__(self, kind: type[BaseException]) -> None:
        self._kind = kind

    def on_end(self, span: ReadableSpan) -> None:
        raise self._kind(f"cannot take {span.name}")


@pytest.mark.parametrize("kind", [RuntimeError, asyncio.CancelledError, SystemExit])
async def test_an_exporter_that_fails_is_logged_and_the_rest_goes_on(
    caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    memory = Memory()
    memory.tracers.add_span_processor(Broken(kind))
    async with duolog.open("memory://") as log:
        async with export(log, memory) as exported:
            await write(log, STORY)
        assert exported.statistics().failed == 10
        assert exported.statistics().lag == 0
        assert await log.checkpoint("otel", "1") == len(STORY)
    assert "cannot take chat gpt-4o" in caplog.text
    assert len(memory.metrics()) > 5


class Stuck(SpanProcessor):
    """Holds up whoever ends a span, until it is let go."""

    def __init__(self) -> None:
        self.holding = threading.Event()
        self.let_go = threading.Event()

    def on_end(self, span: ReadableSpan) -> None:
        self.holding.set()
        self.let_go.wait(60)


async def test_an_exporter_that_hangs_holds_nobody_up() -> None:
    memory, stuck = Memory(), Stuck()
    memory.tracers.add_span_processor(stuck)
    try:
        async with duolog.open("memory://") as log:
            async with export(log, memory, deadline=0.1) as exported:
                await write(log, STORY)
                while not stuck.holding.is_set():  # noqa: ASYNC110  (set in a thread)
                    await anyio.sleep(0.001)
                await write(log, STORY, "t")  # recording goes on
            assert exported.statistics().lag > 0
            assert await log.checkpoint("otel", "1") == 0  # so that it is exported next time
    finally:
        stuck.let_go.set()


async def test_the_error_of_the_block_is_what_is_raised() -> None:
    memory = Memory()

    async def use(log: duolog.Log) -> None:
        async with export(log, memory):
            await write(log, STORY)
            raise KeyError("the product's own")

    async with duolog.open("memory://") as log:
        with pytest.raises(KeyError):
            await use(log)
    assert len(memory.spans()) == 10


async def test_a_log_that_is_closed_first_ends_it() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log, export(log, memory) as exported:
        await write(log, STORY)
        await exported.settle()
        await log.aclose()
    assert len(memory.spans()) == 10


async def test_two_exports_of_one_name_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    memory = Memory()
    async with (
        duolog.open("memory://") as log,
        export(log, memory) as one,
        export(log, memory) as other,
    ):
        await write(log, STORY)
        await one.settle()
        await other.settle()
    assert "another export has the same name" in caplog.text


class Away:
    """A log that cannot be read now and then."""

    def __init__(self, log: duolog.Log, times: int) -> None:
        self._log = log
        self._left = {"read_all": times, "subscribe": times}

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    def _fail(self, what: str) -> None:
        if self._left[what]:
            self._left[what] -= 1
            raise LogUnavailable("the disk is away")

    async def read_all(self, *, session: str, after_position: int = 0) -> AsyncIterator[Record]:
        self._fail("read_all")
        async for record in self._log.read_all(session=session, after_position=after_position):
            yield record

    def subscribe(self, *, session: str | None, after_position: int) -> Subscription:
        self._fail("subscribe")
        return self._log.subscribe(session=session, after_position=after_position)


async def test_a_log_that_cannot_be_read_now_is_read_later() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, STORY)
        away = cast(duolog.Log, Away(log, 2))
        async with export(away, memory, after_position=3, retry=0.0) as exported:
            pass
        assert exported.statistics().failed == 4
    assert "invoke_workflow support" in [span.name for span in memory.spans()]


async def test_what_cannot_be_expected_ends_the_export_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    memory = Memory()

    def never(name: str, origin: object) -> list[SignalFold]:
        raise ZeroDivisionError("a mistake of ours")

    async with duolog.open("memory://") as log:
        emitter = emitting.Emitter(memory.tracers, memory.meters, memory.loggers)
        more = {"session": None, "name": None, "after_position": 0, "deadline": 60.0}
        async with OtelExport(log, emitter, never, **more):  # type: ignore[arg-type]
            await write(log, STORY)
    assert "a mistake of ours" in caplog.text


def damage(monkeypatch: pytest.MonkeyPatch, body: bytes, *, at: int) -> None:
    """Has logs in memory hold another body at a version, which no log would take."""
    take = MemoryLog._take

    def damaged(log: MemoryLog, append: Append) -> list[Record]:
        records = take(log, append)
        for index, record in enumerate(records):
            if record.version == at:
                records[index] = msgspec.structs.replace(record, body=body, _event=None)
                log._records[record.position - 1] = records[index]
        return records

    monkeypatch.setattr(MemoryLog, "_take", damaged)


async def test_an_opening_that_is_damaged_costs_what_it_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        damage(monkeypatch, b'{"kind":"SessionOpened"}', at=1)
        await write(log, STORY)
        async with export(log, memory) as exported:
            pass
        assert exported.statistics().failed == 1
    assert [span.name for span in memory.spans()].count("round") == 2


async def test_a_body_that_is_damaged_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory()
    said = MessageSent(text="and then?")
    async with duolog.open("memory://") as log:
        damage(monkeypatch, b'{"kind":"MessageSent"}', at=7)
        await write(log, [*STORY[:6], Draft(said, "ann", "human", NOON + 20), *STORY[7:]])
        async with export(log, memory, content=True) as exported:
            pass
        assert exported.statistics().failed == 1
    assert len([span for span in memory.spans() if span.name.startswith("invoke_workflow")]) == 1


async def test_a_forgotten_session_is_exported_without_its_contents() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        await write(log, STORY)
        await log.forget("s")
        async with export(log, memory, content=True) as exported:
            pass
        assert exported.statistics().failed == 0
    assert "secret" not in "".join(span.to_json() for span in memory.spans())
    assert [span.name for span in memory.spans()][-1] == "invoke_workflow"


async def test_without_opentelemetry_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find(name: str) -> object:
        return None if name.startswith("opentelemetry") else find_spec(name)

    monkeypatch.setattr(otel, "find_spec", find)
    async with duolog.open("memory://") as log:
        with pytest.raises(MissingExtra, match=re.escape(install_command("otel"))):
            duolog.otel_export(log)


def test_every_name_is_in_its_namespace() -> None:
    for name, (kind, unit, about, _) in names.INSTRUMENTS.items():
        assert name.startswith(("gen_ai.", "duolog."))
        assert unit
        assert about.endswith(".")
        assert kind in ("counter", "histogram")
