"""Spans that come in live: late, out of order, twice, and after a restart, as a file would be read."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from duolog.engine.errors import LogUnavailable
from duolog.engine.events import ActionResolved, ActionTaken, MessageSent, SessionClosed
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import MemoryLog, open_log
from duolog.engine.records import Draft, Record
from duolog.interop.importers.conversation.transcript import Entry
from duolog.interop.importers.protocol import Diagnostic
from duolog.interop.importers.run import import_foreign
from duolog.interop.importers.traces.conversations import ConversationReader
from duolog.interop.importers.traces.live import LiveTraces
from duolog.interop.importers.traces.otlp import OtlpImporter, spans_of_request
from duolog.interop.importers.traces.spans import Span
from otlp_story import CONVERSATION, request, story

LATER = 1000.0


def spans_in(spans: list[dict[str, Any]]) -> list[Span]:
    found = list(spans_of_request(json.dumps(request(*spans)).encode(), "here"))
    assert not [one for one in found if isinstance(one, Diagnostic)]
    return [one for one in found if isinstance(one, Span)]


async def records_in(log: EventLog, session: str = CONVERSATION) -> list[Record]:
    return [record async for record in log.read(session)]


def plain(records: list[Record]) -> list[tuple[object, ...]]:
    return [
        (one.version, one.kind, one.actor, one.time, one.caller_id, one.body) for one in records
    ]


async def imported(tmp_path: Path, spans: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    source = tmp_path / "spans.json"
    source.write_text(json.dumps(request(*spans)), encoding="utf-8")
    async with MemoryLog() as log:
        await import_foreign(log, source, OtlpImporter())
        return plain(await records_in(log))


async def live(log: EventLog, spans: list[Span], *, at_once: int = 1) -> LiveTraces:
    traces = LiveTraces(log)
    for n in range(0, len(spans), at_once):
        assert await traces.take(spans[n : n + at_once], 100) == {}
    return traces


async def test_spans_are_read_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    read = ConversationReader.read

    def noted(reader: ConversationReader, spans: Sequence[Span]) -> Iterator[Entry]:
        threads.append(threading.get_ident())
        return read(reader, spans)

    monkeypatch.setattr(ConversationReader, "read", noted)
    async with MemoryLog() as log:
        traces = await live(log, spans_in(story()))
        await traces.record(LATER, everything=True)
    assert threads
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("seed", range(5))
async def test_spans_in_any_order_and_twice_are_what_their_file_is(
    tmp_path: Path, seed: int
) -> None:
    spans = spans_in(story())
    shuffled = [*spans, *spans[:4]]
    random.Random(seed).shuffle(shuffled)
    async with MemoryLog() as log:
        traces = await live(log, shuffled)
        await traces.record(anyio.current_time() + LATER)
        assert plain(await records_in(log)) == await imported(tmp_path, story())


async def test_one_trace_after_another_and_a_restart_between_are_what_their_file_is(
    tmp_path: Path,
) -> None:
    spans = spans_in(story())
    async with MemoryLog() as log:
        for trace in ("t1", "t2"):
            traces = await live(log, [one for one in spans if one.trace == trace])
            await traces.record(anyio.current_time() + LATER)
        again = await live(log, spans)  # all of it again, by a program that knows of nothing
        await again.record(anyio.current_time() + LATER)
        assert plain(await records_in(log)) == await imported(tmp_path, story())


async def test_a_call_is_answered_after_a_restart() -> None:
    spans = [one for one in spans_in(story()) if one.trace == "t1"]
    before = [one for one in spans if one.start < 5 and one.kind != "link"]
    after = [one for one in spans if one.kind == "tool" or one.id == "s1"]
    async with MemoryLog() as log:
        traces = await live(log, before)
        await traces.record(0.0, everything=True)
        traces = await live(log, after)
        await traces.record(0.0, everything=True)
        records = await records_in(log)
        [asked] = [one for one in records if isinstance(one.event, ActionTaken)]
        [found] = [one.event for one in records if isinstance(one.event, ActionResolved)]
        assert found.action == asked.version


async def test_a_trace_waits_for_the_span_around_it_and_no_longer_than_it_may() -> None:
    *inner, around = (one for one in spans_in(story()) if one.trace == "t1")
    async with MemoryLog() as log:
        traces = LiveTraces(log, settle=1.0, patience=30.0)
        await traces.take(inner, 10)
        now = anyio.current_time()
        await traces.record(now + 20)
        assert not await records_in(log)
        await traces.take([around], 10)
        await traces.record(now + 0.5)
        assert not await records_in(log)
        await traces.record(anyio.current_time() + 1)
        assert await records_in(log)
    async with MemoryLog() as log:
        traces = await live(log, inner)
        await traces.record(anyio.current_time() + 31)
        assert await records_in(log)


async def test_the_first_to_come_is_recorded_where_too_much_waits() -> None:
    spans = spans_in(story())
    async with MemoryLog() as log:
        traces = LiveTraces(log, most=150)
        await traces.take([one for one in spans if one.id in ("s1", "s2")], 100)
        await traces.take([one for one in spans if one.id == "s8"], 100)
        await traces.record(0.0)
        assert [one.text for one in await said(log)] == ["Find a train"]


async def said(log: EventLog) -> list[MessageSent]:
    return [
        one.event
        for one in await records_in(log)
        if isinstance(one.event, MessageSent) and one.role == "human"
    ]


async def test_sessions_that_are_closed_or_of_others_take_no_spans() -> None:
    spans = spans_in(story())
    async with MemoryLog() as log:
        await log.append(CONVERSATION, [Draft(MessageSent(text="hi"), "ann", "human", 1.0)])
        [why] = (await LiveTraces(log).take(spans, 10)).values()
        assert "not recorded from spans" in why
    async with MemoryLog() as log:
        traces = await live(log, [one for one in spans if one.trace == "t1"])
        await traces.record(0.0, everything=True)
        closed = SessionClosed(reason="ended", by="ann")
        await log.append(CONVERSATION, [Draft(closed, "ann", "human", 1.0)])
        [why] = (await traces.take(spans, 10)).values()
        assert "closed" in why


async def test_others_may_write_in_between(tmp_path: Path) -> None:
    spans = spans_in(story())
    async with MemoryLog() as log:
        traces = await live(log, [one for one in spans if one.trace == "t1"])
        await traces.record(0.0, everything=True)
        await log.append(CONVERSATION, [Draft(MessageSent(text="hm"), "ann", "human", 1.0)])
        await traces.take([one for one in spans if one.trace == "t2"], 10)
        await traces.record(0.0, everything=True)
        assert [one.text for one in await said(log)] == ["Find a train", "hm", "Find a train"]


async def test_what_no_log_holds_is_replaced_and_secrets_are_removed() -> None:
    deep = json.loads("[" * 150 + "]" * 150)
    call = {"type": "tool_call", "id": "c", "name": "f", "arguments": {"deep": deep}}
    token = "ghp_" + "a1" * 18
    spans = story(arguments=call, answer=f"it is {token}")
    async with MemoryLog() as log:
        traces = await live(log, spans_in(spans))
        await traces.record(0.0, everything=True)
        bodies = b"".join(one.body or b"" for one in await records_in(log))
        assert b"shortened by Duolog" in bodies
        assert b"[removed]" in bodies
        assert token.encode() not in bodies


async def test_spans_wait_while_the_log_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_log(str(tmp_path / "x.db"), create=True) as log:
        traces = await live(log, spans_in(story()))

        async def refuse(*arguments: object, **more: object) -> None:
            raise LogUnavailable("the disk is full")

        with monkeypatch.context() as patched:
            patched.setattr(log, "append", refuse)
            await traces.record(0.0, everything=True)
        assert not await records_in(log)
        await traces.record(0.0)
        assert len(await said(log)) == 2
