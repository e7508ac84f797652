"""Spans of the AI SDK: the same conversation from each version, and its distinct parts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from duolog.engine.events import ActionResolved, MessageSent, ModelCalled, SessionOpened, Tokens
from duolog.interop.importers.protocol import Reading
from duolog.interop.importers.registry import recognise
from duolog.interop.importers.traces.langfuse import LangfuseImporter
from duolog.interop.importers.traces.otlp import OtlpImporter
from foreign_logs import read, trace_of
from sample_counts import ANSWER, ONE_CALL, QUESTION, counted, differences

Json = dict[str, Any]

WHOLE: Json = {**ONE_CALL, "models": ["m"]}
USER: Json = {"role": "user", "content": [{"type": "text", "text": QUESTION}]}


def span(
    number: int, name: str, attributes: Mapping[str, object], around: int = 0, **more: object
) -> Json:
    """A span that lasts until just before the next, in the span of another number."""
    listed = [
        {"key": key, "value": {"intValue": value} if isinstance(value, int) else _text(value)}
        for key, value in attributes.items()
    ]
    return {
        "traceId": "t",
        "spanId": f"s{number}",
        "parentSpanId": f"s{around}" if around else "",
        "name": name,
        "startTimeUnixNano": str(number * 10**9),
        "endTimeUnixNano": str((number + 1) * 10**9 - 1),
        "attributes": [*listed, {"key": "operation.name", "value": {"stringValue": f"{name} fn"}}],
        **more,
    }


def _text(value: object) -> Json:
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def operation(name: str, **more: object) -> Json:
    return {"ai.operationId": name, "ai.model.id": "m", "ai.telemetry.functionId": "trains", **more}


def call_part(given: str) -> Json:
    return {"type": "tool-call", "toolCallId": "c1", "toolName": "search", given: {"to": "x"}}


def result_part(**held: object) -> Json:
    return {"type": "tool-result", "toolCallId": "c1", "toolName": "search", **held}


def talk(way: str, given: str, counts: Sequence[str], result: Json) -> Sequence[Json]:
    """A question, a call with its result, and an answer."""
    inner = f"ai.{way}.do{'Stream' if way.startswith('stream') else 'Generate'}"
    used = ({counts[0]: 10, counts[1]: 2}, {counts[0]: 20, counts[1]: 2})
    call = {"toolCallId": "c1", "toolName": "search", given: json.dumps({"to": "x"})}
    before = [{"role": "system", "content": "Be brief."}, USER]
    after = [
        {"role": "assistant", "content": [call_part(given)]},
        {"role": "tool", "content": [result]},
    ]
    return (
        span(
            1,
            f"ai.{way}",
            operation(f"ai.{way}")
            | {"ai.prompt": {"system": "Be brief.", "messages": [USER]}, "ai.response.text": ANSWER}
            | {counts[0]: 30, counts[1]: 4},
        ),
        span(
            2,
            inner,
            operation(inner)
            | {
                "ai.prompt.messages": before,
                "ai.response.text": "",
                "ai.response.toolCalls": [call],
            }
            | {"gen_ai.system": "openai", "gen_ai.request.model": "m", **used[0]},
            1,
        ),
        span(
            3,
            "ai.toolCall",
            {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "search", "ai.toolCall.id": "c1"}
            | {"ai.toolCall.args": {"to": "x"}, "ai.toolCall.result": {"at": "8"}},
            1,
        ),
        span(
            4,
            inner,
            operation(inner)
            | {"ai.prompt.messages": [*before, *after], "ai.response.text": ANSWER, **used[1]},
            1,
        ),
    )


VERSIONS: Mapping[str, Sequence[Json]] = {
    "4": talk(
        "generateText",
        "args",
        ("ai.usage.promptTokens", "ai.usage.completionTokens"),
        result_part(result={"at": "8"}),
    ),
    "6": talk(
        "streamText",
        "input",
        ("ai.usage.inputTokens", "ai.usage.outputTokens"),
        result_part(output={"type": "json", "value": {"at": "8"}}),
    ),
}


def written(path: Path, spans: Sequence[Json]) -> Path:
    held = {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}
    path.write_text(json.dumps(held), encoding="utf-8")
    return path


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_gives_the_same_conversation(version: str, tmp_path: Path) -> None:
    path = written(tmp_path / "trace.json", VERSIONS[version])
    recognised = recognise(path)
    assert recognised is not None
    assert recognised.name == "otlp"
    (found,) = counted(OtlpImporter(), path).values()
    assert not differences(WHOLE, found)


def test_an_agent_is_called_as_the_program_calls_its_function(tmp_path: Path) -> None:
    events, diagnostics = read(
        OtlpImporter(), written(tmp_path / "t.json", VERSIONS["6"]), Reading()
    )
    opened = events[0].draft.event
    assert isinstance(opened, SessionOpened)
    assert [one.policy for one in opened.participants if one.role == "agent"] == ["trains"]
    assert diagnostics == []


def test_without_the_spans_inside_the_call_itself_counts(tmp_path: Path) -> None:
    alone = written(tmp_path / "trace.json", VERSIONS["6"][:1])
    (found,) = counted(OtlpImporter(), alone).values()
    assert not differences({**WHOLE, "tool_calls": 0, "tool_results": 0}, found)


def test_a_prompt_that_is_a_text_and_an_object_that_was_generated(tmp_path: Path) -> None:
    held = {"ai.prompt": {"prompt": QUESTION}, "ai.response.object": {"at": "8"}}
    path = written(
        tmp_path / "trace.json",
        [span(1, "ai.generateObject", operation("ai.generateObject") | held)],
    )
    (found,) = counted(OtlpImporter(), path).values()
    assert (found["first_human"], found["agent_messages"]) == (QUESTION, 1)


def test_reasoning_files_and_every_class_of_tokens(tmp_path: Path) -> None:
    held = {
        "ai.prompt.messages": [
            {"role": "user", "content": [*USER["content"], {"type": "image", "image": "data:"}]}
        ],
        "ai.response.reasoning": "I look.",
        "ai.response.text": ANSWER,
        "ai.response.files": [{"type": "file", "mediaType": "image/png", "data": "AAAA"}],
        "ai.usage.inputTokens": 10,
        "ai.usage.outputTokens": 7,
        "ai.usage.cachedInputTokens": 4,
        "ai.usage.inputTokenDetails.cacheWriteTokens": 3,
        "ai.usage.reasoningTokens": 5,
    }
    name = "ai.streamText.doStream"
    path = written(tmp_path / "trace.json", [span(1, name, operation(name) | held)])
    events, diagnostics = read(OtlpImporter(), path, Reading())
    (called,) = (one.draft.event for one in events if isinstance(one.draft.event, ModelCalled))
    assert called.tokens == Tokens(prompt=10, completion=7, cached=4, cache_creation=3, reasoning=5)
    said = [one.draft.event.text for one in events if isinstance(one.draft.event, MessageSent)]
    assert said == [f"{QUESTION}\n[image]", ANSWER, "[file]"]
    assert [one.kind for one in diagnostics] == ["difference"]


@pytest.mark.parametrize(
    "result",
    [
        result_part(output={"type": "error-text", "value": "timeout"}),
        result_part(result="timeout", isError=True),
        result_part(output={"type": "execution-denied", "reason": "timeout"}),
    ],
)
def test_a_call_that_failed(result: Json, tmp_path: Path) -> None:
    spans = talk("generateText", "input", ("ai.usage.inputTokens", "ai.usage.outputTokens"), result)
    inside = written(tmp_path / "inside.json", [one for one in spans if one["spanId"] != "s3"])
    failed = {**spans[2], "attributes": spans[2]["attributes"][:4]} | {
        "status": {"code": 2, "message": "timeout"}
    }
    beside = written(tmp_path / "beside.json", [*spans[:2], failed, spans[3]])
    for path in (inside, beside):
        events, _ = read(OtlpImporter(), path, Reading())
        found = [one.draft.event for one in events]
        (outcome,) = (one for one in found if isinstance(one, ActionResolved))
        assert (outcome.outcome, outcome.error) == ("failed", "timeout")


def test_a_model_that_a_tool_calls_is_an_agent_of_its_own(tmp_path: Path) -> None:
    inner = "ai.generateText.doGenerate"
    nested: Json = {"ai.operationId": inner, "ai.model.id": "small"}
    asked = [{"role": "user", "content": "Which trains go to x?"}]
    spans = [
        *VERSIONS["6"],
        span(3, "ai.generateText", {"ai.operationId": "ai.generateText"}, 3, spanId="n1"),
        span(3, inner, nested | {"ai.prompt.messages": asked, "ai.response.text": "8"}, spanId="n2")
        | {"parentSpanId": "n1"},
    ]
    for around in ("s1", "s2"):  # the SDK's versions put a tool into different spans
        spans[2] = {**spans[2], "parentSpanId": around}
        events, _ = read(OtlpImporter(), written(tmp_path / "t.json", spans), Reading())
        said = [
            (record.actor, record.role, record.event.text)
            for record in trace_of(events)
            if isinstance(record.event, MessageSent)
        ]
        assert said == [
            ("user", "human", QUESTION),
            ("search", "agent", "8"),
            ("assistant", "agent", ANSWER),
        ]


def test_calls_of_one_session_are_one_conversation(tmp_path: Path) -> None:
    of = {"ai.telemetry.metadata.sessionId": "mine"}
    name = "ai.generateText"
    first = {"ai.prompt": {"prompt": QUESTION}, "ai.response.text": ANSWER}
    again = [USER, {"role": "assistant", "content": ANSWER}, {"role": "user", "content": "Thanks"}]
    second = {"ai.prompt": {"messages": again}, "ai.response.text": "Bye."}
    path = written(
        tmp_path / "trace.json",
        [
            span(1, name, operation(name) | first | of),
            span(2, name, operation(name) | second | of, traceId="u"),
        ],
    )
    found = counted(OtlpImporter(), path)
    assert list(found) == ["mine"]
    assert not differences({"rounds": 2, "human_messages": 2, "agent_messages": 2}, found["mine"])


def test_spans_without_their_texts_say_so(tmp_path: Path) -> None:
    name = "ai.generateText.doGenerate"
    path = written(
        tmp_path / "trace.json", [span(1, name, operation(name, **{"ai.usage.inputTokens": 10}))]
    )
    events, diagnostics = read(OtlpImporter(), path, Reading())
    assert any(isinstance(one.draft.event, ModelCalled) for one in events)
    (diagnostic,) = diagnostics
    assert diagnostic.kind == "difference"
    assert "no text of a message" in diagnostic.what


def test_langfuse_shows_tools_of_the_sdk_as_spans(tmp_path: Path) -> None:
    def observation(second: int, type: str, **more: object) -> Json:
        times = {"startTime": f"2026-01-01T10:00:0{second}Z", "endTime": None}
        of = {"traceId": "t", "parentObservationId": None, "level": "DEFAULT"}
        return {"id": f"o{second}", "type": type, "name": "", **times, **of, **more}

    call = {"toolCallId": "c1", "toolName": "search", "input": '{"to":"x"}'}
    held = {"attributes": {"ai.toolCall.name": "search", "ai.toolCall.id": "c1"}}
    observations = [
        observation(
            1, "GENERATION", input=[USER], output={"role": "assistant", "tool_calls": [call]}
        ),
        observation(
            2, "SPAN", name="ai.toolCall", input={"to": "x"}, output={"at": "8"}, metadata=held
        ),
        observation(3, "GENERATION", input=[USER], output={"role": "assistant", "content": ANSWER}),
    ]
    path = tmp_path / "trace.json"
    trace = {"trace": {"id": "t"}, "observations": observations}
    path.write_text(json.dumps(trace), encoding="utf-8")
    (found,) = counted(LangfuseImporter(), path).values()
    assert not differences({"tool_calls": 1, "tool_results": 1, "agent_messages": 1}, found)
