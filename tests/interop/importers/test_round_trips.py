"""Import, export, import: everything that a format can hold comes back.

The losses are listed here, as docs/formats.md does. The samples do not belong to the project; if
they are absent, that test is skipped.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Participant,
    SessionOpened,
    SnapshotTaken,
    Tokens,
)
from duolog.engine.records import Draft, Record
from duolog.interop.chat_export import conversation_line, write_conversation
from duolog.interop.importers.protocol import Importer, Reading
from duolog.interop.importers.registry import find_importer, installed_importers, recognise
from duolog.interop.otlp_export import spans_of, trace_line
from duolog.testing import records_of
from foreign_logs import events_of, read, trace_of
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from sample_counts import counts_of, expected_of

SAID = {"human_messages", "agent_messages", "tool_calls", "rounds", "first_human", "last_agent"}
USED = {"models", "input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"}

Form: TypeAlias = Literal["otlp", "chat", "responses"]

HELD: Mapping[Form, set[str]] = {
    "otlp": SAID | USED | {"tool_results", "failed_results"},
    "chat": SAID | USED,
    "responses": SAID | USED | {"tool_results"},
}
"""The facts that come back, by format. Chat Completions requires a result for every call, and neither
it nor Responses marks a failed one."""

MISSING = {
    ("responses", "agent_session.jsonl"): {"agent_messages", "tool_calls", "tool_results"},
    ("otlp", "v1_events.jsonl"): {"tool_results", "failed_results"},
    ("responses", "v1_events.jsonl"): {"tool_results"},
}
"""Responses lacks names, so a subagent's words become the agent's; and the result of a missing call
refers to nothing."""


def written(form: Form, session: str, trace: Sequence[Record]) -> bytes:
    if form == "otlp":
        spans = spans_of(session, trace)
        return trace_line(spans) if spans.spans else b""
    conversation = write_conversation(trace, form)
    return conversation_line(session, conversation, form) if conversation.items else b""


@pytest.mark.slow
def test_samples_are_the_same_again(test_data: Callable[[str], Path], tmp_path: Path) -> None:
    wrong: dict[str, object] = {}
    importers = installed_importers()
    importer_of = {one.name: one for one in importers}
    for sample in sorted(test_data("formats").glob("*/*")):
        if not sample.with_name(f"{sample.name}.expected.json").exists():
            continue
        importer = recognise(sample, importers)
        assert importer is not None
        before = traces(importer, sample)
        assert len(before) >= len(expected_of(sample))
        for form, keys in HELD.items():
            source = tmp_path / "again.jsonl"
            source.write_bytes(b"".join(written(form, *one) for one in before.items()))
            after = traces(importer_of["otlp" if form == "otlp" else "chat"], source)
            held = keys - MISSING.get((form, sample.name), set())
            for session, trace in before.items():
                one, two = counts_of(trace), counts_of(after[session])
                if unlike := {key: (one[key], two[key]) for key in held if one[key] != two[key]}:
                    wrong[f"{form} {sample.name} {session}"] = unlike
    assert not wrong


def traces(importer: Importer, source: Path) -> dict[str, list[Record]]:
    events, diagnostics = read(importer, source, Reading())
    assert not [one for one in diagnostics if one.kind == "problem"]
    sessions = dict.fromkeys(one.session for one in events)
    return {name: trace_of([one for one in events if one.session == name]) for name in sessions}


def story() -> list[Record]:
    """A session in which all kinds of things occur that a conversation has."""
    people = (
        Participant(name="ann", role="human"),
        Participant(name="assistant", role="agent", model="openai/gpt-x", policy="planner"),
        Participant(name="helper", role="agent"),
    )
    opened = SessionOpened(task="trip", instance="7", participants=people, clock="utc")
    used = ModelCalled(
        model="openai/gpt-x",
        purpose="act",
        request="",
        tokens=Tokens(prompt=9, completion=2, cached=1, reasoning=1),
        latency=0.5,
        cost=0.25,
    )
    call = ActionTaken(name="search", arguments={"to": "Lyon"})
    return records_of(
        Draft(opened, "environment", "environment", 100.0),
        Draft(MessageSent(text="go"), "ann", "human", 101.0),
        Draft(used, "assistant", "agent", 103.0),
        Draft(NoteTaken(text="hm"), "assistant", "agent", 103.0),
        Draft(call, "assistant", "agent", 103.0, id="item/1/1/c"),
        Draft(MessageSent(text="I look as well"), "helper", "agent", 103.5),
        Draft(
            ActionResolved(action=5, outcome="failed", error="no"),
            "environment",
            "environment",
            104.0,
        ),
        Draft(MessageSent(text="Sorry"), "assistant", "agent", 105.0),
        Draft(SnapshotTaken(content="x", digest=""), "assistant", "agent", 105.5),
        Draft(ApprovalAsked(question="?"), "assistant", "agent", 105.6),
        Draft(MessageSent(text="go"), "ann", "human", 106.0),
        Draft(MessageSent(text="Gone"), "assistant", "agent", 107.0),
        Draft(MessageSent(text="thanks"), "ann", "human", 108.0),
        session="s",
    )


def test_spans_hold_times_agents_failures_and_calls(tmp_path: Path) -> None:
    trace = spans_of("s", story())
    assert trace.left_out == {"SnapshotTaken": 1, "ApprovalAsked": 1}
    source = tmp_path / "spans.jsonl"
    source.write_bytes(trace_line(trace))
    events, diagnostics = read(find_importer("otlp"), source)
    assert not diagnostics
    opened = events[0].draft.event
    assert isinstance(opened, SessionOpened)
    assert (events[0].session, opened.task, opened.instance) == ("s", "trip", "7")
    assert opened.participants[1].policy == "planner"
    said = [
        (one.draft.actor, one.draft.time, one.draft.event.text)
        for one in events
        if isinstance(one.draft.event, MessageSent)
    ]
    assert said == [
        ("user", 101.0, "go"),
        ("helper", 103.5, "I look as well"),
        ("assistant", 105.0, "Sorry"),
        ("user", 106.0, "go"),
        ("assistant", 107.0, "Gone"),
        ("user", 108.0, "thanks"),
    ]
    found = [event for _, event in events_of(events)]
    [used] = [one for one in found if isinstance(one, ModelCalled)]
    assert used.tokens == Tokens(prompt=9, completion=2, cached=1, reasoning=1)
    assert (used.model, used.cost, round(used.latency, 6)) == ("openai/gpt-x", 0.25, 0.5)
    [failed] = [one for one in found if isinstance(one, ActionResolved)]
    assert (failed.outcome, failed.error) == ("failed", "no")
    assert [one.text for one in found if isinstance(one, NoteTaken)] == ["hm"]


def test_spans_are_what_the_definitions_of_opentelemetry_take() -> None:
    line: dict[str, Any] = json.loads(trace_line(spans_of("s", story())))
    for span in line["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in {"traceId", "spanId", "parentSpanId"} & span.keys():
            # Ids are hexadecimal in OTLP/JSON, while JSON of protobuf has bytes in base64.
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    request = json_format.ParseDict(line, ExportTraceServiceRequest())
    spans = request.resource_spans[0].scope_spans[0].spans
    ids = {span.span_id for span in spans}
    assert {(len(span.trace_id), len(span.span_id)) for span in spans} == {(16, 8)}
    assert [span.name for span in spans if not span.parent_span_id] == ["invoke_workflow trip"]
    assert all(span.parent_span_id in ids for span in spans if span.parent_span_id)
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)
    assert len(ids) == len(spans)
