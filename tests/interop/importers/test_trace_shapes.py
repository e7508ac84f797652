"""Traces as frameworks write them: each shape of messages, calls and usage gives the same conversation."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from duolog.interop.importers.protocol import Importer
from duolog.interop.importers.registry import installed_importers, recognise
from duolog.interop.importers.traces.langfuse import LangfuseImporter
from duolog.interop.importers.traces.openinference import OpenInferenceImporter
from duolog.interop.importers.traces.otlp import OtlpImporter, spans_of_request
from duolog.interop.importers.traces.otlp_protobuf import spans_of_message
from duolog.interop.importers.traces.spans import Span
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from sample_counts import ANSWER, ONE_CALL, QUESTION, counted, differences, problems_of

Json = dict[str, Any]

CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"to":"x"}'}}


def found_in(importer: Importer, path: Path, value: object) -> list[Json]:
    """The sessions that the importer that recognises a file finds in it."""
    path.write_text(json.dumps(value), encoding="utf-8")
    recognised = recognise(path, everyone())
    assert recognised is not None
    assert recognised.name == importer.name
    assert problems_of(importer, path) == []
    return list(counted(importer, path).values())


@cache
def everyone() -> Sequence[Importer]:
    return tuple(installed_importers())


# --- Langfuse -------------------------------------------------------------------------------------


def observation(second: int, type: str, **more: object) -> Json:
    name = str(more.pop("name", type.lower()))
    return {
        "id": f"o{second}",
        "traceId": "t",
        "type": type,
        "name": name,
        "startTime": f"2026-01-01T10:00:{second:02}.000Z",
        "endTime": f"2026-01-01T10:00:{second:02}.500Z",
        "parentObservationId": None,
        "level": "DEFAULT",
        **more,
    }


def model_call(
    second: int, heard: object, said: object, usage: tuple[int, int], **more: object
) -> Json:
    counts = {"input": usage[0], "output": usage[1]}
    return observation(
        second, "GENERATION", input=heard, output=said, usageDetails=counts, model="m", **more
    )


GEMINI_ASKED: Json = {"role": "user", "parts": [{"text": QUESTION}]}
GEMINI_CALLED: Json = {
    "role": "model",
    "parts": [{"function_call": {"name": "search", "args": {"to": "x"}}}],
}
GEMINI_GAVE: Json = {
    "role": "user",
    "parts": [{"function_response": {"name": "search", "response": {"at": "8"}}}],
}
LANGCHAIN_CALL = {
    "type": "AIMessageChunk",
    "content": "",
    "tool_calls": [{"name": "search", "args": {"to": "x"}, "id": "c1"}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "8"}
PARTS_CALL = {
    "role": "assistant",
    "parts": [
        {"type": "tool_call", "id": ["run", "c1"], "name": "search", "arguments": {"to": "x"}}
    ],
}
PARTS_RESULT = {
    "role": "tool",
    "parts": [{"type": "tool_call_response", "id": ["run", "c1"], "response": "8"}],
}
AI_SDK_CALL = {
    "role": "assistant",
    "content": [
        {"type": "tool-call", "toolCallId": "c1", "toolName": "search", "input": {"to": "x"}}
    ],
}
AI_SDK_RESULT = {
    "role": "tool",
    "content": [
        {
            "type": "tool-result",
            "toolCallId": "c1",
            "toolName": "search",
            "output": {"type": "text", "value": "8"},
        }
    ],
}
USER: Json = {"role": "user", "content": QUESTION}

FRAMEWORKS: Mapping[str, Sequence[Json]] = {
    "gemini": (
        model_call(1, {"contents": [GEMINI_ASKED]}, {"content": GEMINI_CALLED}, (10, 2)),
        model_call(
            2,
            {"contents": [GEMINI_ASKED, GEMINI_CALLED, GEMINI_GAVE]},
            {"candidates": [{"content": {"role": "model", "parts": [{"text": ANSWER}]}}]},
            (20, 2),
        ),
    ),
    "langchain": (
        model_call(1, [{"type": "human", "content": QUESTION}], LANGCHAIN_CALL, (10, 2)),
        observation(2, "TOOL", name="search", input={"to": "x"}, output="8"),
        model_call(
            3,
            [{"type": "human", "content": QUESTION}, LANGCHAIN_CALL, RESULT],
            {"id": ["langchain", "schema", "AIMessage"], "type": "constructor", "lc": 1}
            | {"kwargs": {"content": ANSWER}},
            (20, 2),
        ),
    ),
    "a text with its roles": (
        model_call(1, f"system: Be brief.\nuser: {QUESTION}", {"tool_calls": [CALL]}, (10, 2)),
        observation(2, "SPAN", name="execute_tool search", input='{"to":"x"}', output="8"),
        model_call(3, [USER, {"role": "assistant", "tool_calls": [CALL]}, RESULT], ANSWER, (20, 2)),
    ),
    "arguments of a function": (
        model_call(1, {"args": [QUESTION], "kwargs": {}}, {"tool_calls": [CALL]}, (10, 2)),
        observation(2, "SPAN", name="running tool: search", input={"to": "x"}, output="8"),
        model_call(3, [USER, {"role": "assistant", "tool_calls": [CALL]}, RESULT], ANSWER, (20, 2)),
    ),
    "parts with ids of several parts": (
        model_call(1, [USER], [PARTS_CALL], (10, 2)),
        model_call(2, [PARTS_CALL, PARTS_RESULT], ANSWER, (20, 2)),
    ),
    "the AI SDK": (
        model_call(1, [USER], AI_SDK_CALL, (10, 2)),
        model_call(2, [USER, AI_SDK_CALL, AI_SDK_RESULT], ANSWER, (20, 2)),
    ),
    "calls in calls": (
        observation(1, "GENERATION", id="outer", input=[USER], output=ANSWER, model="m")
        | {"endTime": "2026-01-01T10:00:09.000Z", "usageDetails": {"input": 30, "output": 4}},
        model_call(2, [USER], {"tool_calls": [CALL]}, (10, 2), parentObservationId="outer"),
        model_call(
            3,
            [USER, {"role": "assistant", "tool_calls": [CALL]}, RESULT],
            ANSWER,
            (20, 2),
            parentObservationId="outer",
        ),
    ),
    "older usage": (
        observation(1, "GENERATION", input=[USER], output={"tool_calls": [CALL]})
        | {"usage": {"input": 10, "output": 2, "unit": "TOKENS"}},
        observation(2, "GENERATION", input=[USER, {"role": "assistant"}, RESULT], output=ANSWER)
        | {"inputUsage": 20, "outputUsage": 2},
    ),
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_shapes_of_frameworks_give_the_same_conversation(
    framework: str, tmp_path: Path
) -> None:
    trace = {"id": "t", "name": "run", "input": QUESTION, "sessionId": None}
    export = {"trace": trace, "observations": FRAMEWORKS[framework]}
    (found,) = found_in(LangfuseImporter(), tmp_path / "trace.json", export)
    assert not differences(ONE_CALL, found)


TURNS = FRAMEWORKS["the AI SDK"]
TRACE: Json = {"id": "t", "timestamp": "2026-01-01T10:00:00Z", "name": "run", "scores": None}
EXPORTS: Mapping[str, object] = {
    "beside": {"trace": TRACE, "observations": TURNS},
    "several traces": {"traces": [TRACE], "observations": TURNS},
    "inside": {**TRACE, "htmlPath": "/x", "observations": TURNS},
    "a list of observations": TURNS,
}


@pytest.mark.parametrize("export", EXPORTS)
def test_observations_stand_in_a_trace_or_beside_it_or_alone(export: str, tmp_path: Path) -> None:
    (found,) = found_in(LangfuseImporter(), tmp_path / "trace.json", EXPORTS[export])
    assert not differences(ONE_CALL, found)


def test_the_traces_of_a_session_are_one_conversation(tmp_path: Path) -> None:
    def turn(number: int) -> Json:
        of = {"traceId": f"t{number}", "id": f"o{number}"}
        heard = [{"role": "user", "content": f"Question {number}"}]
        trace = {"id": f"t{number}", "sessionId": "s", "input": f"Question {number}"}
        call = model_call(number, heard, f"Answer {number}", (1, 1)) | of
        return {"trace": trace, "observations": [call]}

    path = tmp_path / "session.json"
    other = {"trace": {"id": "u"}, "observations": [model_call(9, [USER], ANSWER, (1, 1))]}
    path.write_text(json.dumps([turn(1), other, turn(2)]), encoding="utf-8")
    found = counted(LangfuseImporter(), path)
    assert [session["rounds"] for session in found.values()] == [2, 1]
    assert next(iter(found)) == "s"


def test_parts_of_no_kind_are_no_harm(tmp_path: Path) -> None:
    heard = [{"role": "user", "content": [{"type": ["x"]}, {"type": None, "text": 5}]}]
    export = {"trace": TRACE, "observations": [model_call(1, heard, ANSWER, (1, 1))]}
    (found,) = found_in(LangfuseImporter(), tmp_path / "trace.json", export)
    assert found["last_agent"] == ANSWER


@pytest.mark.parametrize("alone", [False, True])
def test_what_the_interface_answers_lies_under_data(alone: bool, tmp_path: Path) -> None:
    calls = FRAMEWORKS["langchain"]
    listed: list[Json] = [{**TRACE, "observations": calls}]
    answer = {"data": list(calls) if alone else listed, "meta": {"page": 1}}
    (found,) = found_in(LangfuseImporter(), tmp_path / "answer.json", answer)
    assert not differences(ONE_CALL, found)


def test_a_list_of_traces_that_has_ids_of_observations_only_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    path.write_text(json.dumps([{**TRACE, "observations": ["o1"]}]), encoding="utf-8")
    (problem,) = problems_of(LangfuseImporter(), path)
    assert "ids only" in problem.what


# --- OTLP -----------------------------------------------------------------------------------------


def attribute(key: str, value: object) -> Json:
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    text = value if isinstance(value, str) else json.dumps(value)
    return {"key": key, "value": {"stringValue": text}}


def span(number: int, name: str, attributes: Json, events: Sequence[Json] = ()) -> Json:
    return {
        "traceId": "t",
        "spanId": f"s{number}",
        "name": name,
        "startTimeUnixNano": str(number * 10**9),
        "endTimeUnixNano": str(number * 10**9 + 10**8),
        "attributes": [attribute(key, value) for key, value in attributes.items()],
        "events": events,
    }


def event(name: str, **attributes: object) -> Json:
    held = [attribute(key.replace("__", "."), value) for key, value in attributes.items()]
    return {"timeUnixNano": "1", "name": name, "attributes": held}


def request(*spans: Json) -> Json:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def usage(prompt: int, *, old: bool = False) -> Json:
    names = ("prompt_tokens", "completion_tokens") if old else ("input_tokens", "output_tokens")
    return {f"gen_ai.usage.{names[0]}": prompt, f"gen_ai.usage.{names[1]}": 2}


ASKED = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
FLAT_CALL = {
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.tool_calls.0.id": "c1",
    "gen_ai.completion.0.tool_calls.0.name": "search",
    "gen_ai.completion.0.tool_calls.0.arguments": '{"to":"x"}',
}
FLAT_ASKED = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": QUESTION}

CONVENTIONS: Mapping[str, Json] = {
    "attributes": request(
        span(
            1,
            "chat m",
            {**CHAT, **usage(10), "gen_ai.input.messages": ASKED}
            | {"gen_ai.output.messages": [PARTS_CALL]},
        ),
        span(
            2, "execute_tool search", {"gen_ai.tool.name": "search", "gen_ai.tool.call.result": "8"}
        ),
        span(
            3,
            "chat m",
            {**CHAT, **usage(20), "gen_ai.input.messages": [*ASKED, PARTS_CALL]}
            | {
                "gen_ai.output.messages": [
                    {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}
                ]
            },
        ),
    ),
    "flattened attributes": request(
        span(
            1,
            "openai.chat",
            {"llm.request.type": "chat", **FLAT_ASKED, **FLAT_CALL, **usage(10, old=True)},
        ),
        span(
            2,
            "search.tool",
            {"traceloop.span.kind": "tool", "traceloop.entity.name": "search"}
            | {
                "traceloop.entity.input": {"inputs": {"to": "x"}},
                "traceloop.entity.output": {"outputs": "8"},
            },
        ),
        span(
            3,
            "openai.chat",
            {**FLAT_ASKED, **usage(20, old=True)}
            | {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": ANSWER},
        ),
    ),
    "an event for each message": request(
        span(
            1,
            "chat m",
            {**CHAT, **usage(10)},
            [
                event("gen_ai.system.message", content="Be brief."),
                event("gen_ai.user.message", content=QUESTION),
                event("gen_ai.choice", index=0, message={"tool_calls": [CALL]}),
            ],
        ),
        span(
            2,
            "chat m",
            {**CHAT, **usage(20)},
            [
                event("gen_ai.user.message", content=QUESTION),
                event("gen_ai.assistant.message", tool_calls=[CALL]),
                event("gen_ai.tool.message", id="c1", content="8"),
                event("gen_ai.choice", gen_ai__event__content={"message": {"content": ANSWER}}),
            ],
        ),
    ),
    "an event for all messages": request(
        span(
            1,
            "chat m",
            {**CHAT, **usage(10)},
            [
                event("gen_ai.content.prompt", gen_ai__prompt=[USER]),
                event(
                    "gen_ai.content.completion",
                    gen_ai__completion=[{"role": "assistant", "tool_calls": [CALL]}],
                ),
            ],
        ),
        span(
            2,
            "chat m",
            {**CHAT, **usage(20)},
            [
                event(
                    "gen_ai.client.inference.operation.details",
                    gen_ai__input__messages=[
                        *ASKED,
                        {"role": "assistant", "tool_calls": [CALL]},
                        RESULT,
                    ],
                    gen_ai__output__messages=[{"role": "assistant", "content": ANSWER}],
                ),
            ],
        ),
    ),
    "OpenInference": request(
        span(
            1,
            "ChatCompletion",
            {
                "openinference.span.kind": "LLM",
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.contents.0.message_content.type": "text",
                "llm.input_messages.0.message.contents.0.message_content.text": QUESTION,
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "search",
                "llm.token_count.prompt": 10,
                "llm.token_count.completion": 2,
            },
        ),
        span(
            2,
            "search",
            {"openinference.span.kind": "TOOL", "tool.name": "search", "output.value": "8"},
        ),
        span(
            3,
            "ChatCompletion",
            {
                "openinference.span.kind": "LLM",
                "input.value": {"messages": [USER]},
                "output.value": {
                    "choices": [{"message": {"role": "assistant", "content": ANSWER}}]
                },
                "llm.token_count.prompt": 20,
                "llm.token_count.completion": 2,
            },
        ),
    ),
}


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_older_and_newer_conventions_give_the_same_conversation(
    convention: str, tmp_path: Path
) -> None:
    (found,) = found_in(OtlpImporter(), tmp_path / "trace.json", CONVENTIONS[convention])
    assert not differences(ONE_CALL, found)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_protobuf_gives_the_same_spans_with_what_stands_in_their_events(convention: str) -> None:
    held = json.dumps(CONVENTIONS[convention])
    as_json = held.replace('"traceId": "t"', '"traceId": "00ff"').replace(
        '"spanId": "s', '"spanId": "0'
    )
    from_json = [one for one in spans_of_request(as_json.encode(), "here") if isinstance(one, Span)]
    request = json.loads(as_json)
    for one in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for key in ("traceId", "spanId"):  # bytes, which JSON of protobuf has in base64
            one[key] = base64.b64encode(bytes.fromhex(one[key])).decode()
    message = json_format.ParseDict(request, ExportTraceServiceRequest())
    assert len(from_json) >= 2
    assert list(spans_of_message(message.SerializeToString(), "here")) == from_json


def test_attributes_of_open_inference_may_be_nested(tmp_path: Path) -> None:
    message = {"message": {"role": "user", "content": QUESTION}}
    answer = {"message": {"role": "assistant", "content": ANSWER}}
    one = {
        "name": "ChatCompletion",
        "context": {"trace_id": "t", "span_id": "s"},
        "span_kind": "LLM",
        "parent_id": None,
        "start_time": "2026-01-01T10:00:00+02:00",
        "end_time": None,
        "status_code": "UNSET",
        "attributes": {"llm": {"input_messages": [message], "output_messages": [answer]}},
    }
    for whole in ([one], {"next_cursor": None, "data": [one]}):
        (found,) = found_in(OpenInferenceImporter(), tmp_path / "spans.json", whole)
        assert (found["first_human"], found["last_agent"]) == (QUESTION, ANSWER)
