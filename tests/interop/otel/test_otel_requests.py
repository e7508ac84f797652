"""Traces of requests: in the events, and in the spans that are exported."""

from __future__ import annotations

import duolog
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import MessageSent, Unknown
from duolog.telemetry.tracing import in_request
from opentelemetry.trace import format_span_id
from otel_memory import Memory

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
OTHER = f"00-{TRACE[::-1]}-{SPAN[::-1]}-01"


async def test_events_belong_to_the_request_in_which_they_were_recorded() -> None:
    memory = Memory()
    async with duolog.open("memory://") as log:
        s = await log.session("s")
        with memory.tracers.get_tracer("app").start_as_current_span("POST /chat") as span:
            context = span.get_span_context()
            await s.human.says("Hello.", id="m1")
        with in_request(PARENT):
            await s.agent.acts("look", result=1)
        await s.agent.says("Hello.", durable=True)
        events = [record.event async for record in log.read("s")]
        found = [getattr(event, "traceparent", None) for event in events]
        first = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
        assert found == [None, first, PARENT, PARENT, None]
        with in_request(OTHER):  # a retry in another request is the same event
            record = await (await s.human.says("Hello.", id="m1")).written()
        assert record is not None
        assert isinstance(record.event, MessageSent)
        assert record.event.traceparent == first


async def test_events_of_another_system_are_recorded_in_a_request_as_they_are() -> None:
    theirs = Unknown("Theirs", 1, b'{"kind":"Theirs"}')
    async with duolog.open("memory://") as log:
        s = await log.session("s")
        with in_request(PARENT):
            receipt = await s.agent.adds(theirs)
        record = await receipt.written()
    assert record is not None
    assert record.event == theirs


async def test_turns_are_children_of_their_requests() -> None:
    memory = Memory()
    async with (
        duolog.open("memory://") as log,
        duolog.otel_export(
            log, tracer_provider=memory.tracers, session_url="https://app/sessions/{session}"
        ),
    ):
        s = await log.session("a/b")
        with in_request(PARENT):
            await s.human.says("Where is it?")
            await s.agent.acts("track", result="depot")
            await s.agent.says("At the depot.")
        with in_request(OTHER):
            await s.human.says("Thanks.")
        await s.close(durable=True)
    session = memory.span("invoke_workflow")
    turn, call = memory.span("invoke_agent agent"), memory.span("execute_tool track")
    assert turn.parent is not None
    assert format_span_id(turn.parent.span_id) == SPAN
    assert turn.context is not None
    assert f"{turn.context.trace_id:032x}" == TRACE
    assert call.context is not None
    assert call.context.trace_id == turn.context.trace_id
    assert session.context is not None
    assert {link.context.trace_id for link in turn.links} == {session.context.trace_id}
    assert {f"{link.context.trace_id:032x}" for link in session.links} == {TRACE, TRACE[::-1]}
    for span in (session, turn):
        assert (span.attributes or {})["duolog.session.url"] == "https://app/sessions/a%2Fb"


def test_what_is_no_traceparent_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has the form 00-"), in_request("00-xyz"):
        pass
    with pytest.raises(InvalidInput, match="holds"):
        duolog.otel_export(None, session_url="https://app")  # type: ignore[arg-type]
