"""Human turns in traces: messages that a program wrote in the user's name are not counted."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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
from duolog.interop.importers.chat import ChatImporter
from duolog.interop.importers.protocol import Importer
from duolog.interop.importers.traces.langfuse import LangfuseImporter
from duolog.interop.importers.traces.openinference import OpenInferenceImporter
from duolog.interop.importers.traces.otlp import OtlpImporter
from foreign_logs import events_of, read

Json = dict[str, Any]

ASKED = "What is the weather in Oslo?"
GAVE = "It rains in Oslo, 9 degrees."
SAID = "It rains."
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
CALLED: Json = {"role": "assistant", "content": "", "tool_calls": [CALL]}

IN_A_PERSONS_PLACE: dict[str, Json] = {
    "a role that is the tool's name": {"role": "weather", "content": GAVE},
    "the id of the call": {"role": "user", "tool_call_id": "c1", "content": GAVE},
    "a part of Anthropic's": {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": GAVE}],
    },
    "a part of the AI SDK's": {
        "role": "user",
        "content": [{"type": "tool-result", "toolCallId": "c1", "output": GAVE}],
    },
    "a part of the conventions'": {
        "role": "user",
        "parts": [{"type": "tool_call_response", "id": "c1", "result": GAVE}],
    },
    "a part of Bedrock's": {
        "role": "user",
        "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": GAVE}]}}],
    },
    "a part of Gemini's": {
        "role": "user",
        "parts": [{"functionResponse": {"name": "weather", "response": {"is": GAVE}}}],
    },
    "a text behind a call": {"role": "user", "content": f"Observation: {GAVE}"},
    "a role of smolagents": {"role": "tool-response", "content": GAVE},
}


def turns(result: Json) -> list[tuple[list[Json], Json]]:
    """Two calls of a model, each with its input and its output."""
    asked = {"role": "user", "content": ASKED}
    return [([asked], CALLED), ([asked, CALLED, result], {"role": "assistant", "content": SAID})]


def langfuse(result: Json) -> Json:
    observations = [
        {
            "id": f"o{number}",
            "traceId": "t",
            "type": "GENERATION",
            "name": "chat",
            "startTime": f"2026-01-01T10:00:0{number}Z",
            "input": given,
            "output": gave,
        }
        for number, (given, gave) in enumerate(turns(result))
    ]
    return {"trace": {"id": "t"}, "observations": observations}


def otlp(result: Json) -> Json:
    spans = [
        {
            "traceId": "t",
            "spanId": f"s{number}",
            "name": "chat m",
            "startTimeUnixNano": str((number + 1) * 10**9),
            "endTimeUnixNano": str((number + 1) * 10**9 + 1),
            "attributes": [
                {"key": key, "value": {"stringValue": json.dumps(value)}}
                for key, value in (
                    ("gen_ai.operation.name", "chat"),
                    ("gen_ai.input.messages", given),
                    ("gen_ai.output.messages", [gave]),
                )
            ],
        }
        for number, (given, gave) in enumerate(turns(result))
    ]
    for span in spans:
        attributes = span["attributes"]
        assert isinstance(attributes, list)
        attributes[0]["value"]["stringValue"] = "chat"
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def openinference(result: Json) -> list[Json]:
    return [
        {
            "name": "m",
            "span_kind": "LLM",
            "context": {"trace_id": "t", "span_id": str(number)},
            "start_time": f"2026-01-01T10:00:0{number}Z",
            "attributes": {
                "llm.input_messages": [{"message": one} for one in given],
                "llm.output_messages": [{"message": gave}],
            },
        }
        for number, (given, gave) in enumerate(turns(result))
    ]


def chat(result: Json) -> Json:
    given, gave = turns(result)[-1]
    return {"messages": [*given, gave]}


def said_in(importer: Importer, path: Path, value: object) -> list[tuple[str, str]]:
    path.write_text(json.dumps(value), encoding="utf-8")
    events, _ = read(importer, path)
    return [(who, event.text) for who, event in events_of(events) if isinstance(event, MessageSent)]


@pytest.mark.parametrize("shape", IN_A_PERSONS_PLACE)
@pytest.mark.parametrize(
    ("importer", "written"),
    [
        (LangfuseImporter(), langfuse),
        (OtlpImporter(), otlp),
        (OpenInferenceImporter(), openinference),
    ],
)
def test_a_tools_result_in_a_persons_place_is_no_turn_of_the_persons(
    importer: Importer, written: Callable[[Json], object], shape: str, tmp_path: Path
) -> None:
    path = tmp_path / "source.json"
    assert said_in(importer, path, written(IN_A_PERSONS_PLACE[shape])) == [
        ("user", ASKED),
        ("assistant", SAID),
    ]
    events, _ = read(importer, path)
    found = [event for _, event in events_of(events)]
    assert len([one for one in found if isinstance(one, ActionTaken)]) == 1
    (result,) = [one for one in found if isinstance(one, ActionResolved)]
    assert GAVE in json.dumps(result.observation)


@pytest.mark.parametrize(
    "shape", ["the id of the call", "a part of Anthropic's", "a part of the AI SDK's"]
)
def test_chats_have_them_too(shape: str, tmp_path: Path) -> None:
    said = said_in(ChatImporter(), tmp_path / "chat.json", chat(IN_A_PERSONS_PLACE[shape]))
    assert said == [("user", ASKED), ("assistant", ""), ("assistant", SAID)] or said == [
        ("user", ASKED),
        ("assistant", SAID),
    ]


def test_what_a_person_adds_to_a_result_is_theirs(tmp_path: Path) -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": GAVE}
    both = {"role": "user", "content": [result, {"type": "text", "text": "In Celsius, please."}]}
    assert said_in(LangfuseImporter(), tmp_path / "t.json", langfuse(both)) == [
        ("user", ASKED),
        ("user", "In Celsius, please."),
        ("assistant", SAID),
    ]


def model(number: int, trace: str, given: object, gave: object, **more: object) -> Json:
    return {
        "id": f"{trace}-o{number}",
        "traceId": trace,
        "type": "GENERATION",
        "name": "chat",
        "startTime": f"2026-01-01T10:0{number}:00Z",
        "endTime": f"2026-01-01T10:0{number}:30Z",
        "input": given,
        "output": gave,
        **more,
    }


def test_a_message_that_names_nobody_is_the_persons_only_where_the_whole_was_given_it(
    tmp_path: Path,
) -> None:
    """A kit for agents writes ``{"content": "role"}`` for each result that it hands on."""
    whole = {
        "id": "w",
        "traceId": "t",
        "type": "SPAN",
        "name": "conversation",
        "startTime": "2026-01-01T10:00:00Z",
        "input": {"prompt": ASKED},
    }
    calls = [
        model(
            1, "t", {"content": ASKED, "role": "user"}, {"role": "assistant", "content": "Let me"}
        ),
        model(2, "t", {"content": "role"}, {"role": "assistant", "content": SAID}),
    ]
    inside = [{**call, "parentObservationId": "w"} for call in calls]
    said = said_in(
        LangfuseImporter(),
        tmp_path / "t.json",
        {"trace": {"id": "t"}, "observations": [whole, *inside]},
    )
    assert [text for who, text in said if who == "user"] == [ASKED]


def test_a_conversation_in_one_text_is_told_apart_and_an_empty_answer_stands_around(
    tmp_path: Path,
) -> None:
    """A call inside a call: the inner has the conversation as one text, and ``None`` for a call."""
    around = model(1, "t", {"messages": ["unreadable"]}, {"choices": [{"message": CALLED}]})
    inner = model(1, "t", f"developer: Be brief\nuser: {ASKED}", "None")
    inner |= {"id": "i1", "parentObservationId": "t-o1"}
    told = f"developer: Be brief\nuser: {ASKED}\nassistant: None\ntool: {GAVE}"
    last = model(2, "t", told, SAID)
    source = {"trace": {"id": "t"}, "observations": [around, inner, last]}
    path = tmp_path / "t.json"
    said = said_in(LangfuseImporter(), path, source)
    assert [one for one in said if one[0] != "system"] == [("user", ASKED), ("assistant", SAID)]
    events, _ = read(LangfuseImporter(), path)
    taken = [e.name for _, e in events_of(events) if isinstance(e, ActionTaken)]
    assert taken == ["weather"]


# --- scores of users, costs and labels ------------------------------------------------------------


def two_turns(first: Sequence[Json] = (), second: Sequence[Json] = (), **of: object) -> list[Json]:
    def turn(number: int, scores: Sequence[Json]) -> Json:
        heard = [{"role": "user", "content": f"Question {number}"}]
        trace = {"id": f"t{number}", "sessionId": "s", "scores": list(scores), **of}
        return {"trace": trace, "observations": [model(number, f"t{number}", heard, f"A{number}")]}

    return [turn(1, first), turn(2, second)]


def found_in(path: Path, value: object) -> list[Any]:
    path.write_text(json.dumps(value), encoding="utf-8")
    events, _ = read(LangfuseImporter(), path)
    return [one.draft.event for one in events]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"observationId": "t1-o1"},
        {"timestamp": "2026-01-01T10:01:40Z"},
        {"timestamp": "2026-01-01T12:00:00Z"},  # after the second turn
    ],
)
def test_a_score_hangs_on_its_turn(more: Json, tmp_path: Path) -> None:
    score = {"name": "user-feedback", "value": 0, **more}
    found = found_in(tmp_path / "t.json", two_turns([score]))
    (given,) = [one for one in found if isinstance(one, FeedbackGiven)]
    assert given.thumbs == "down"
    assert given.of is not None
    about = found[given.of - 1]
    assert isinstance(about, MessageSent)
    assert about.text == "A1"


def test_a_score_of_an_observation_hangs_on_what_lies_in_it(tmp_path: Path) -> None:
    trace: Json = {"id": "t", "scores": [{"name": "thumbs", "value": 1, "observationId": "outer"}]}
    outer = {**model(1, "t", None, None), "id": "outer", "type": "SPAN"}
    heard = [{"role": "user", "content": "Question"}]
    calls = [
        {**model(2, "t", heard, "A1"), "parentObservationId": "outer"},
        model(3, "t", [*heard, {"role": "assistant", "content": "A1"}], "A2"),
    ]
    found = found_in(tmp_path / "t.json", {"trace": trace, "observations": [outer, *calls]})
    (given,) = [one for one in found if isinstance(one, FeedbackGiven)]
    assert given.of is not None
    assert found[given.of - 1].text == "A1"


def test_a_score_in_a_trace_that_holds_its_observations_counts_once(tmp_path: Path) -> None:
    calls = [model(1, "t", [{"role": "user", "content": "Question"}], "A1")]
    trace: Json = {"id": "t", "timestamp": "2026-01-01T10:00:00Z", "observations": calls}
    trace["scores"] = [{"name": "thumbs", "value": 1}]
    found = found_in(tmp_path / "t.json", trace)
    assert len([one for one in found if isinstance(one, FeedbackGiven)]) == 1


@pytest.mark.parametrize(
    ("score", "thumbs", "comment"),
    [
        ({"value": 1}, "up", ""),
        ({"value": 0}, "down", ""),
        ({"value": -1}, "down", ""),
        ({"value": True, "dataType": "BOOLEAN"}, "up", ""),
        ({"value": 1, "config": {"minValue": 1, "maxValue": 5}}, "down", "1 of 5"),
        ({"value": 4}, "up", "4 of 5"),
        ({"value": 3}, None, "3 of 5"),
        ({"value": 8}, None, "8 of 8"),
        ({"value": 0.4}, None, "0.4 of 1"),
        ({"value": 0, "stringValue": "thumbs_up", "dataType": "CATEGORICAL"}, "up", ""),
        ({"value": "meh"}, None, "meh"),
        ({"value": 1, "name": "Stars"}, "down", "1 of 5"),
    ],
)
def test_a_score_is_thumbs_where_it_says_as_much(
    score: Json, thumbs: str | None, comment: str, tmp_path: Path
) -> None:
    found = found_in(tmp_path / "t.json", two_turns([{"name": "user_feedback", **score}]))
    (given,) = [one for one in found if isinstance(one, FeedbackGiven)]
    assert (given.thumbs, given.comment) == (thumbs, comment)


def test_the_scale_of_a_score_is_that_of_all_scores_of_its_name(tmp_path: Path) -> None:
    one, five = ({"name": "feedback", "value": value} for value in (1, 5))
    found = found_in(tmp_path / "t.json", two_turns([one], [five]))
    given = [one.thumbs for one in found if isinstance(one, FeedbackGiven)]
    assert given == ["down", "up"]


def test_what_a_model_or_a_reviewer_scored_is_no_feedback_of_the_user(tmp_path: Path) -> None:
    scores = [{"name": "feedback", "value": 1, "source": one} for one in ("EVAL", "ANNOTATION")]
    found = found_in(tmp_path / "t.json", two_turns(scores))
    assert not [one for one in found if isinstance(one, FeedbackGiven)]


def test_sessions_in_one_export_have_their_own_scores_and_labels(tmp_path: Path) -> None:
    first, second = two_turns([{"name": "thumbs", "value": 0}], userId="u1")
    traces = [
        {**first["trace"], "sessionId": "a"},
        {**second["trace"], "sessionId": "b", "userId": "u2", "tags": ["beta", "app"]},
    ]
    source = {"traces": traces, "observations": first["observations"] + second["observations"]}
    found = found_in(tmp_path / "t.json", source)
    assert len([one for one in found if isinstance(one, FeedbackGiven)]) == 1
    opened = [one for one in found if isinstance(one, SessionOpened)]
    assert [one.config["group"] for one in opened] == [
        {"user": "u1"},
        {"user": "u2", "tags": "app, beta"},
    ]


def test_costs_and_labels_are_kept(tmp_path: Path) -> None:
    source = two_turns(userId="u1", environment="prod", release="r7", version="3", tags=["vip"])
    known, unknown = (one["observations"][0] for one in source)
    known |= {"costDetails": {"input": 0.25, "output": 0.5}, "totalCost": 0.75}
    unknown |= {"costDetails": {}, "totalCost": 0}
    found = found_in(tmp_path / "t.json", source)
    assert [one.cost for one in found if isinstance(one, ModelCalled)] == [0.75, None]
    (opened,) = [one for one in found if isinstance(one, SessionOpened)]
    assert opened.config["group"] == {
        "user": "u1",
        "environment": "prod",
        "release": "r7",
        "version": "3",
        "tags": "vip",
    }
