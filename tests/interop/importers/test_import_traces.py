"""Traces: OTLP, OpenInference and Langfuse, joined to conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    FeedbackGiven,
    MessageSent,
    ModelCalled,
    SessionOpened,
)
from duolog.interop.importers.traces.langfuse import LangfuseImporter
from duolog.interop.importers.traces.openinference import OpenInferenceImporter
from duolog.interop.importers.traces.otlp import OtlpImporter
from duolog.testing import check_importer
from foreign_logs import events_of, read

Json = dict[str, Any]

ASKED = {"role": "user", "parts": [{"type": "text", "content": "Find a train"}]}
CALLED = {
    "role": "assistant",
    "parts": [{"type": "tool_call", "id": "c1", "name": "search", "arguments": {"to": "x"}}],
}
FOUND = {"role": "assistant", "parts": [{"type": "text", "content": "At 8."}]}
AGAIN = {"role": "user", "parts": [{"type": "text", "content": "Find a train"}]}


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def span(
    number: int, operation: str, *, trace: str = "t", failed: str = "", **more: object
) -> Json:
    held = {"gen_ai.operation.name": operation, "gen_ai.conversation.id": "conv", **more}
    attributes = [
        {
            "key": key.replace("__", "."),
            "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value},
        }
        for key, value in held.items()
    ]
    return {
        "traceId": trace,
        "spanId": f"s{number}",
        "name": operation,
        "startTimeUnixNano": str(number * 10**9),
        "endTimeUnixNano": str(number * 10**9 + 10**8),
        "attributes": attributes,
        "status": {"code": 2, "message": failed} if failed else {},
    }


def model(number: int, given: list[Json], answer: Json, trace: str = "t") -> Json:
    return span(
        number,
        "chat",
        gen_ai__input__messages=json.dumps(given),
        gen_ai__output__messages=json.dumps([answer]),
        gen_ai__usage__input_tokens=10,
        gen_ai__response__model="m",
        trace=trace,
    )


def request(*spans: Json) -> Json:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def test_repeated_histories_and_several_traces_are_one_conversation(tmp_path: Path) -> None:
    tool = span(2, "execute_tool", gen_ai__tool__name="search", gen_ai__tool__call__id="c1")
    source = request(
        span(0, "invoke_agent", gen_ai__agent__name="planner", gen_ai__usage__input_tokens=99),
        model(1, [ASKED], CALLED),
        tool,
        model(3, [ASKED, CALLED], FOUND),
        model(4, [ASKED, CALLED, FOUND, AGAIN], FOUND, trace="t2"),
    )
    events, diagnostics = read(OtlpImporter(), write(tmp_path / "t.json", source))
    assert not diagnostics
    said = [(who, e.text) for who, e in events_of(events) if isinstance(e, MessageSent)]
    assert said == [
        ("user", "Find a train"),
        ("assistant", "At 8."),
        ("user", "Find a train"),
        ("assistant", "At 8."),
    ]
    used = [e.tokens.prompt for _, e in events_of(events) if isinstance(e, ModelCalled)]
    assert used == [10, 10, 10]
    assert {one.session for one in events} == {"conv"}


def test_a_failed_tool_failed_and_a_tool_without_a_call_is_one(tmp_path: Path) -> None:
    source = request(
        model(1, [ASKED], CALLED),
        span(2, "execute_tool", failed="timeout", gen_ai__tool__name="search"),
        span(3, "execute_tool", gen_ai__tool__name="other", gen_ai__tool__call__result="r"),
    )
    events, _ = read(OtlpImporter(), write(tmp_path / "t.json", source))
    found = [event for _, event in events_of(events)]
    assert [e.name for e in found if isinstance(e, ActionTaken)] == ["search", "other"]
    outcomes = [(e.outcome, e.error) for e in found if isinstance(e, ActionResolved)]
    assert outcomes == [("failed", "timeout"), ("ok", None)]


def test_spans_of_openinference_have_flattened_messages(tmp_path: Path) -> None:
    attributes = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Be kind",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": "Hello",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Hi.",
        "llm.token_count.prompt": 7,
        "session.id": "s",
    }
    line = {
        "name": "m",
        "span_kind": "LLM",
        "context": {"trace_id": "t", "span_id": "1"},
        "start_time": "2026-01-01T10:00:00Z",
        "attributes": attributes,
    }
    around = {
        **line,
        "name": "turn",
        "span_kind": "AGENT",
        "context": {"trace_id": "t", "span_id": "0"},
        "attributes": {"input.value": "Hello"},
    }
    source = write(tmp_path / "t.json", [around, {**line, "parent_id": "0"}, {"name": 1}])
    events, [diagnostic] = read(OpenInferenceImporter(), source)
    assert diagnostic.where.endswith("element 3")
    said = [(who, e.text) for who, e in events_of(events) if isinstance(e, MessageSent)]
    assert said == [("system", "Be kind"), ("user", "Hello"), ("assistant", "Hi.")]


def test_feedback_in_langfuse_is_feedback_and_other_scores_are_no_utility(tmp_path: Path) -> None:
    export = {
        "trace": {
            "id": "t",
            "scores": [
                {"name": "user-feedback", "value": 0, "comment": "no"},
                {"name": "toxicity", "value": 0.1},
            ],
        },
        "observations": [
            {
                "id": "1",
                "type": "GENERATION",
                "name": "chat",
                "startTime": "2026-01-01T10:00:00Z",
                "input": [{"role": "user", "content": "Hello"}],
                "output": '"{\\"role\\": \\"assistant\\", \\"content\\": \\"Hi.\\"}"',
            }
        ],
    }
    events, _ = read(LangfuseImporter(), write(tmp_path / "t.json", export))
    found = [one.draft.event for one in events]
    assert [e for e in found if isinstance(e, FeedbackGiven)] == [
        FeedbackGiven(thumbs="down", comment="no", of=4)
    ]
    assert isinstance(found[3], MessageSent)  # version 4 of the trace: the agent's reply
    [opened] = [e for e in found if isinstance(e, SessionOpened)]
    assert "utility" not in opened.config
    held = opened.config["langfuse"]
    assert isinstance(held, dict)
    assert held["scores"] == {"toxicity": 0.1}


@pytest.mark.asyncio
async def test_the_importer_keeps_the_contract(tmp_path: Path) -> None:
    source = request(model(1, [ASKED], CALLED), model(3, [ASKED, CALLED], FOUND))
    await check_importer(OtlpImporter(), write(tmp_path / "t.json", source))
