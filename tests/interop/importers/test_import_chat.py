"""Chat messages, in and out: Chat Completions and Responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    Event,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Participant,
    SessionOpened,
    SnapshotTaken,
    Tokens,
)
from duolog.engine.records import Draft
from duolog.interop.chat_export import items_of, messages_of
from duolog.interop.importers.chat import ChatImporter
from duolog.interop.importers.json_sniff import shape_of
from duolog.interop.importers.protocol import Diagnostic, Foreign, Reading
from duolog.testing import by, check_importer, records_of
from foreign_logs import events_of, read, trace_of, write_lines
from hypothesis import given
from hypothesis import strategies as st

Json = dict[str, Any]

CALLS = [
    {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at":"x"}'}},
    {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{ "at": "é" }'}},
    {"id": "b", "type": "function", "function": {"name": "think", "arguments": "not JSON"}},
]
MESSAGES: list[Json] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Where is it?"},
    {"role": "assistant", "content": "I look.", "tool_calls": CALLS},
    {"role": "tool", "tool_call_id": "a", "content": '{"found": 1}'},
    {"role": "tool", "tool_call_id": "a", "content": ""},
    {"role": "tool", "tool_call_id": "b", "content": "hm"},
    {"role": "developer", "content": "Now in French."},
    {"role": "assistant", "content": "Ici."},
    {"role": "user", "content": "And there?", "name": "ann"},
    {"role": "assistant", "content": None, "tool_calls": [CALLS[0]]},
    {"role": "tool", "tool_call_id": "a", "content": "nothing"},
    {"role": "assistant", "content": "Nowhere.", "name": "second"},
]
ITEMS: list[Json] = [
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Go."}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Where?"}]},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at":"x"}'},
    {"type": "function_call", "call_id": "c2", "name": "look", "arguments": "{ }"},
    {"type": "function_call_output", "call_id": "c2", "output": "two"},
    {"type": "function_call_output", "call_id": "c1", "output": "one"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "There."}],
    },
]


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "talks.jsonl", [{"messages": MESSAGES}, {"input": ITEMS}])


def imported(value: object, directory: Path) -> tuple[list[Foreign], list[Diagnostic]]:
    return read(ChatImporter(), write(directory / "talk.json", value))


def opening_of(found: list[Foreign]) -> SessionOpened:
    opened = trace_of(found)[0].event
    assert isinstance(opened, SessionOpened)
    return opened


# --- messages in ----------------------------------------------------------------------------------


def test_messages_become_events(tmp_path: Path) -> None:
    found, diagnostics = imported(MESSAGES, tmp_path)
    agents = ("assistant", "second")
    assert diagnostics == []
    assert list(events_of(found)) == [
        ("system", MessageSent(text="Be brief.", to=agents)),
        ("user", MessageSent(text="Where is it?")),
        ("assistant", MessageSent(text="I look.")),
        ("assistant", ActionTaken(name="look", arguments={"at": "x"})),
        ("assistant", ActionTaken(name="look", arguments={"at": "é"}, raw='{ "at": "é" }')),
        ("assistant", ActionTaken(name="think", raw="not JSON")),
        ("environment", ActionResolved(action=5, outcome="ok", observation='{"found": 1}')),
        ("environment", ActionResolved(action=6, outcome="ok", observation="")),
        ("environment", ActionResolved(action=7, outcome="ok", observation="hm")),
        ("developer", MessageSent(text="Now in French.", to=agents)),
        ("assistant", MessageSent(text="Ici.")),
        ("ann", MessageSent(text="And there?")),
        ("assistant", ActionTaken(name="look", arguments={"at": "x"})),
        ("environment", ActionResolved(action=14, outcome="ok", observation="nothing")),
        ("second", MessageSent(text="Nowhere.")),
    ]
    opened = opening_of(found)
    assert [(one.name, one.role) for one in opened.participants] == [
        ("user", "human"),
        ("assistant", "agent"),
        ("ann", "human"),
        ("second", "agent"),
    ]
    assert (opened.task, opened.clock, opened.request) == ("chat", "virtual", None)


def test_items_become_events(tmp_path: Path) -> None:
    found, diagnostics = imported(ITEMS, tmp_path)
    assert diagnostics == []
    assert list(events_of(found)) == [
        ("developer", MessageSent(text="Go.", to=("assistant",))),
        ("user", MessageSent(text="Where?")),
        ("assistant", NoteTaken(text="Hm.")),
        ("assistant", ActionTaken(name="look", arguments={"at": "x"})),
        ("assistant", ActionTaken(name="look", raw="{ }")),
        ("environment", ActionResolved(action=6, outcome="ok", observation="two")),
        ("environment", ActionResolved(action=5, outcome="ok", observation="one")),
        ("assistant", MessageSent(text="There.")),
    ]


@pytest.mark.parametrize(
    ("item", "events"),
    [
        ({"role": "user", "content": ""}, [MessageSent(text="")]),
        ({"role": "assistant", "content": None}, []),
        ({"role": "assistant", "content": None, "refusal": "No."}, [MessageSent(text="No.")]),
        ({"role": "assistant", "content": "", "tool_calls": None}, [MessageSent(text="")]),
        (
            {"role": "assistant", "reasoning_content": "Why?", "content": "So."},
            [NoteTaken(text="Why?"), MessageSent(text="So.")],
        ),
        (
            {"role": "assistant", "function_call": {"name": "old", "arguments": "{}"}},
            [ActionTaken(name="old")],
        ),
        (
            {
                "role": "assistant",
                "tool_calls": [{"id": "x", "name": "own", "arguments": {"a": 1}}],
            },
            [ActionTaken(name="own", arguments={"a": 1})],
        ),
        (
            {"role": "user", "content": [{"type": "text", "text": "a"}, "b"]},
            [MessageSent(text="a\nb")],
        ),
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "run", "input": "x = 1"},
            [ActionTaken(name="run", arguments={"input": "x = 1"})],
        ),
        (
            {"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "q"}},
            [
                ActionTaken(name="web_search", arguments={"action": {"query": "q"}}),
                ActionResolved(action=2, outcome="ok"),
            ],
        ),
        (
            {"type": "mcp_call", "id": "m", "name": "n", "arguments": "{}", "error": "down"},
            [
                ActionTaken(name="mcp", arguments={"name": "n", "arguments": "{}"}),
                ActionResolved(action=2, outcome="failed", error="down"),
            ],
        ),
        (
            {"type": "mcp_approval_request", "id": "r", "name": "rm", "arguments": '{"all":true}'},
            [ApprovalAsked(question='rm({"all":true})', action="rm", arguments={"all": True})],
        ),
    ],
)
def test_messages_of_other_kinds(item: Json, events: list[Event], tmp_path: Path) -> None:
    found, diagnostics = imported([item], tmp_path)
    assert [event for _, event in events_of(found)] == events
    assert diagnostics == []


def test_an_approval_is_answered_once(tmp_path: Path) -> None:
    asked = {"type": "mcp_approval_request", "id": "r", "name": "rm", "arguments": "{}"}
    answer = {"type": "mcp_approval_response", "approval_request_id": "r", "approve": False}
    found, diagnostics = imported([asked, {**answer, "reason": "no!"}, answer], tmp_path)
    assert [event for _, event in events_of(found)][1:] == [
        ApprovalGiven(asked=2, approved=False, comment="no!")
    ]
    assert [(one.kind, one.what) for one in diagnostics] == [
        ("problem", "an answer to no question (id 'r')")
    ]


def test_what_is_no_text_is_marked_and_said(tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:..."}}
    items = [
        {"role": "user", "content": [{"type": "text", "text": "Look:"}, image]},
        {"type": "item_reference", "id": "i"},
        {"type": "reasoning", "summary": [], "encrypted_content": "..."},
    ]
    found, diagnostics = imported(items, tmp_path)
    assert [event for _, event in events_of(found)] == [MessageSent(text="Look:\n[image_url]")]
    assert [(one.kind, one.what) for one in diagnostics] == [
        ("difference", "left out: content of type image_url, for which a mark stands in the text"),
        ("difference", "left out: an item of type item_reference"),
        ("difference", "left out: reasoning that is encrypted"),
    ]


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ({"role": "robot", "content": "x"}, "its role is 'robot'"),
        ({"content": "x"}, "its role is null, not a text"),
        ({"type": 3}, "its type is 3"),
        ({"role": "user", "content": 3}, "its content is neither a text nor a list of parts: 3"),
        ({"role": "user", "content": [{"text": "x"}]}, "a part of its content lacks a type"),
        ({"role": "assistant", "tool_calls": {}}, "its tool_calls are not a list"),
        ({"role": "assistant", "tool_calls": [1]}, "a tool call is not an object: 1"),
        ({"role": "assistant", "tool_calls": [{"id": "x"}]}, "its name is null"),
        ({"type": "function_call", "name": "f", "arguments": 1}, "the arguments of f are neither"),
        ({"type": "mcp_approval_response", "approve": "yes"}, "its answer is 'yes'"),
    ],
)
def test_what_is_no_message_is_reported_with_its_place(
    item: Json, what: str, tmp_path: Path
) -> None:
    found, diagnostics = imported([{"role": "user", "content": "x"}, item], tmp_path)
    [diagnostic] = diagnostics
    assert (diagnostic.kind, diagnostic.where) == (
        "problem",
        f"{tmp_path / 'talk.json'}, message 2",
    )
    assert diagnostic.what.startswith(f"invalid message: {what}")
    assert len(found) == 2


def test_a_result_of_no_call_is_a_problem(tmp_path: Path) -> None:
    items = [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "z", "content": ""}]
    _, [diagnostic] = imported(items, tmp_path)
    assert (diagnostic.kind, diagnostic.what) == ("problem", "a result of no call (id 'z')")


def test_people_and_agents_of_one_name_are_told_apart(tmp_path: Path) -> None:
    items = [
        {"role": "user", "name": "sam", "content": "x"},
        {"role": "assistant", "name": "sam", "content": "y"},
    ]
    found, _ = imported(items, tmp_path)
    assert [one.name for one in opening_of(found).participants] == ["sam", "sam (assistant)"]
    assert [actor for actor, _ in events_of(found)] == ["sam", "sam (assistant)"]


# --- fields next to the messages -------------------------------------------------------------------


def test_times_models_and_tokens(tmp_path: Path) -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    talk = {
        "conversation_id": "c-7",
        "model": "m",
        "metadata": {"plan": "free"},
        "messages": [
            {"role": "user", "content": "x", "timestamp": "2026-03-01 12:00:00"},
            {"role": "assistant", "content": "y", "created_at": 1_772_366_460, "usage": usage},
            {"role": "user", "content": "z"},
        ],
        "usage": {"input_tokens": 20, "output_tokens": 5},
    }
    found, _ = imported(talk, tmp_path)
    opened = opening_of(found)
    assert {one.session for one in found} == {"c-7"}
    assert opened.participants == (
        Participant(name="user", role="human"),
        Participant(name="assistant", role="agent", model="m"),
    )
    assert opened.config == {
        "imported": {"format": "chat", "zone": "UTC"},
        "metadata": {"plan": "free"},
    }
    assert opened.clock == "utc"
    noon = 1_772_366_400.0
    assert [one.draft.time - noon for one in found] == [0, 0, 60, 60, 60, 60]
    calls = [event for _, event in events_of(found) if isinstance(event, ModelCalled)]
    assert [(call.purpose, call.tokens) for call in calls] == [
        ("act", Tokens(prompt=9, completion=3, cached=4, reasoning=1)),
        ("act (all calls)", Tokens(prompt=20, completion=5)),
    ]


@pytest.mark.parametrize(
    "talk",
    [
        {"messages": MESSAGES},
        {"model": "m", "instructions": "Be brief.", "input": MESSAGES[1:]},
        {"model": "m", "input": MESSAGES[:8], "output": MESSAGES[8:]},
        {"messages": MESSAGES[:-1], "choices": [{"index": 0, "message": MESSAGES[-1]}]},
    ],
)
def test_a_conversation_may_be_held_in_many_ways(talk: Json, tmp_path: Path) -> None:
    whole, _ = imported(MESSAGES, tmp_path)
    path = write(tmp_path / "other.json", talk)
    found, diagnostics = read(ChatImporter(), path)
    assert ChatImporter().recognises(path, shape_of(path))
    assert diagnostics == []
    assert list(events_of(found)) == list(events_of(whole))


def test_a_request_and_an_answer_in_words(tmp_path: Path) -> None:
    found, _ = imported({"model": "m", "input": "Hello?", "output": ITEMS[-1:]}, tmp_path)
    assert list(events_of(found)) == [
        ("user", MessageSent(text="Hello?")),
        ("assistant", MessageSent(text="There.")),
    ]


def test_files_of_one_conversation_or_of_many(tmp_path: Path) -> None:
    talks = [{"messages": MESSAGES[:n]} for n in (2, 4, 4)]
    array = write(tmp_path / "many.json", talks)
    lines = write_lines(tmp_path / "many.jsonl", talks)
    for path in (array, lines):
        found, _ = read(ChatImporter(), path)
        names = list(dict.fromkeys(one.session.rsplit("-", 1)[0] for one in found))
        assert names == ["many-1", "many-2", "many-3"]
    single = write_lines(tmp_path / "one.jsonl", MESSAGES)
    found, _ = read(ChatImporter(), single)
    assert len({one.session for one in found}) == 1
    both, _ = read(ChatImporter(), tmp_path)
    assert len({one.session for one in both}) == 4


def test_broken_lines_and_conversations_are_reported(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "many.jsonl", [{"messages": MESSAGES}, {"messages": 3}])
    with lines.open("a", encoding="utf-8") as file:
        file.write('{"messages": []}\n{"mess\n{"id": "x"}\n')
    found, diagnostics = read(ChatImporter(), lines)
    assert len({one.session for one in found}) == 1
    assert [(one.kind, one.where.removeprefix(f"{lines}, ")) for one in diagnostics] == [
        ("problem", f"line {number}") for number in (2, 3, 4, 5)
    ]
    talk = write_lines(tmp_path / "one.jsonl", MESSAGES[:2])
    with talk.open("a", encoding="utf-8") as file:
        file.write('[1]\n{"role": "assistant", "content": "z"}\n')
    found, diagnostics = read(ChatImporter(), talk)
    assert [one.where for one in diagnostics] == [f"{talk}, line 3"]
    assert len(found) == 4


@pytest.mark.parametrize("text", ["", "text", "3"])
def test_what_is_no_chat_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match="contains no chat messages: it is not JSON"):
        list(ChatImporter().read(path, Reading()))
    with pytest.raises(InvalidInput, match=r"no files in .* end in"):
        list(ChatImporter().read(tmp_path, Reading()))


@pytest.mark.parametrize(
    ("value", "own"),
    [
        (MESSAGES, True),
        (ITEMS, True),
        ({"messages": []}, True),
        ({"model": "m", "input": "x"}, True),
        ([{"id": 1, "messages": MESSAGES}], True),
        ([{"task_id": 1, "traj": MESSAGES}], False),
        ({"task_id": "1", "messages": MESSAGES, "termination_reason": "x"}, False),
        ({"role": "user", "action": "GO()", "action_type": "environment"}, False),
        ({"messages": [{"text": "x"}]}, False),
        ({"session": "s", "stream": "trace", "kind": "MessageSent"}, False),
        ({"a": 1}, False),
    ],
)
def test_it_recognises_its_own(value: object, own: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "file.json", value)
    assert ChatImporter().recognises(path, shape_of(path)) is own


async def test_the_contract_of_importers_is_kept(talks: Path) -> None:
    await check_importer(ChatImporter(), talks)


# --- and out again ----------------------------------------------------------------------------------


def test_messages_come_out_as_they_went_in(tmp_path: Path) -> None:
    found, _ = imported(MESSAGES, tmp_path)
    written = messages_of(trace_of(found))
    assert written.items == MESSAGES
    assert written.left_out == {}


def test_items_come_out_as_they_went_in(tmp_path: Path) -> None:
    found, _ = imported(ITEMS, tmp_path)
    written = items_of(trace_of(found))
    assert written.items == ITEMS
    assert written.left_out == {}


def test_messages_and_items_say_the_same(tmp_path: Path) -> None:
    found, _ = imported(MESSAGES[:8], tmp_path)
    again, _ = imported(items_of(trace_of(found)).items, tmp_path)
    assert list(events_of(again)) == list(events_of(found))


def test_sessions_of_our_own_can_be_written_down() -> None:
    facts: list[Draft] = [
        by("environment", SessionOpened(task="t", instance="1", participants=(), clock="virtual")),
        by("human", MessageSent(text="Plan."), actor="ann"),
        by("agent", ActionTaken(name="look", arguments={"at": 1}), actor="bot"),
        by("human", ActionTaken(name="look"), actor="ann"),
        by("agent", ActionTaken(name="look", arguments={"at": 2}), actor="bot"),
        by("environment", ActionResolved(action=3, outcome="failed", error="dark")),
        by("agent", NoteTaken(text="dark there"), actor="bot"),
        by("agent", SnapshotTaken(content={"a": 1}, digest="d"), actor="bot"),
        by("agent", ApprovalAsked(question="Shall I?"), actor="bot"),
        by("human", ApprovalGiven(asked=9, approved=True), actor="ann"),
        by("human", SnapshotTaken(content="x", digest="e"), actor="ann"),
    ]

    def call(id: str, name: str, arguments: str) -> Json:
        return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}

    def made(*calls: Json) -> Json:
        return {"role": "assistant", "content": None, "name": "bot", "tool_calls": list(calls)}

    written = messages_of(records_of(*facts))
    assert written.items == [
        {"role": "user", "content": "Plan.", "name": "ann"},
        made(call("call_3", "look", '{"at":1}')),
        {"role": "tool", "tool_call_id": "call_3", "content": "dark"},
        made(call("call_5", "look", '{"at":2}')),
        {"role": "tool", "tool_call_id": "call_5", "content": "no result"},
        made(call("call_8", "submit", '{"content":{"a":1}}')),
        {"role": "tool", "tool_call_id": "call_8", "content": "version 8"},
        {"role": "assistant", "content": "Shall I?", "name": "bot"},
        {"role": "user", "content": "Approved.", "name": "ann"},
    ]
    assert written.left_out == {"ActionTaken": 1, "NoteTaken": 1, "SnapshotTaken": 1}
    items = items_of(records_of(*facts))
    assert items.left_out == {"ActionTaken": 1, "SnapshotTaken": 1}
    assert [item["type"] for item in items.items] == [
        "message", "function_call", "function_call", "function_call_output", "reasoning",
        "function_call", "function_call_output", "message", "message",
    ]  # fmt: skip


TEXT = st.text(min_size=1, max_size=20)
ARGUMENTS = st.one_of(
    st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4)).map(json.dumps), TEXT
)
NAMES = {"user": ("ann", "bob"), "assistant": ("bot", "aide")}


@st.composite
def conversations(draw: st.DrawFn) -> Sequence[Mapping[str, object]]:
    messages: list[Mapping[str, object]] = []
    for _ in range(draw(st.integers(1, 6))):
        role = draw(st.sampled_from(["user", "assistant", "system", "developer"]))
        message: Json = {"role": role, "content": draw(TEXT)}
        if role in NAMES and draw(st.booleans()):
            message["name"] = draw(st.sampled_from(NAMES[role]))
        results: list[Json] = []
        if role == "assistant" and draw(st.booleans()):
            ids = draw(st.lists(st.sampled_from(["a", "b", "c/d", ""]), min_size=1, max_size=3))
            ids = [id or f"call_{len(messages)}_{n}" for n, id in enumerate(ids)]
            message["tool_calls"] = [
                {
                    "id": id,
                    "type": "function",
                    "function": {"name": draw(TEXT), "arguments": draw(ARGUMENTS)},
                }
                for id in ids
            ]
            message["content"] = draw(st.none() | TEXT)
            results = [{"role": "tool", "tool_call_id": id, "content": draw(TEXT)} for id in ids]
        messages += [message, *results]
    return messages


@given(conversations())
def test_any_conversation_comes_out_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, messages: Sequence[Json]
) -> None:
    path = write(tmp_path_factory.getbasetemp() / "any.json", messages)
    found, diagnostics = read(ChatImporter(), path)
    assert diagnostics == []
    assert messages_of(trace_of(found)).items == messages


def test_real_conversations_come_out_as_they_went_in(
    test_data: Callable[[str], Path], tmp_path: Path
) -> None:
    source = test_data("chat/tau-bench-airline-sample.json")
    runs = json.loads(source.read_text(encoding="utf-8"))
    for run in runs:
        found, diagnostics = imported(run["traj"], tmp_path)
        assert diagnostics == []
        expected = [
            {key: message[key] for key in message if key != "name"} for message in run["traj"]
        ]
        assert messages_of(trace_of(found)).items == expected


def test_a_request_that_nobody_sent_comes_first() -> None:
    opened = SessionOpened(
        task="t", instance="1", participants=(), clock="virtual", request="Plan a trip."
    )
    facts = [by("environment", opened), by("agent", MessageSent(text="Where to?"))]
    assert messages_of(records_of(*facts)).items[0] == {"role": "user", "content": "Plan a trip."}


def test_what_was_erased_is_counted() -> None:
    facts: list[Draft] = [
        by("human", MessageSent(text="Plan.")),
        by("agent", NoteTaken(text="hm")),
        by("agent", SnapshotTaken(content="x", digest="d")),
    ]
    erased = [msgspec.structs.replace(record, body=None) for record in records_of(*facts)]
    written = messages_of(erased)
    assert written.items == []
    assert written.left_out == {"MessageSent": 1, "NoteTaken": 1, "SnapshotTaken": 1}


def test_blocks_of_anthropic_are_calls_results_and_words(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "x"}}
    plan = {"type": "tool_use", "id": "c2", "name": "ExitPlanMode", "input": {"plan": "So"}}
    failed = {"type": "tool_result", "tool_use_id": "c1", "content": "no", "is_error": True}
    agreed = {
        "type": "tool_result",
        "tool_use_id": "c2",
        "content": [{"type": "text", "text": "y"}],
    }
    talk = {
        "model": "m",
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": "Where?"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, call, plan]},
            {"role": "user", "content": [failed, agreed, {"type": "text", "text": "And?"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Here."}]},
        ],
    }
    source = write(tmp_path / "talk.json", talk)
    events, diagnostics = read(ChatImporter(), source)
    assert not diagnostics
    found = [(actor, type(event).__name__) for actor, event in events_of(events)]
    assert found == [
        ("system", "MessageSent"),
        ("user", "MessageSent"),
        ("assistant", "NoteTaken"),
        ("assistant", "ActionTaken"),
        ("assistant", "ActionTaken"),
        ("assistant", "ApprovalAsked"),
        ("environment", "ActionResolved"),
        ("environment", "ActionResolved"),
        ("user", "ApprovalGiven"),
        ("user", "MessageSent"),
        ("assistant", "MessageSent"),
    ]
    outcomes = [event for _, event in events_of(events) if isinstance(event, ActionResolved)]
    assert [(one.outcome, one.error) for one in outcomes] == [("failed", "no"), ("ok", None)]


@pytest.mark.parametrize("kind", [[], {}, [1], None, 7])
def test_a_block_whose_type_is_no_text_is_a_problem_of_its_message(
    kind: object, tmp_path: Path
) -> None:
    blocks = [{"type": kind, "text": "x"}]
    said = [{"role": "user", "content": blocks}, {"role": "user", "content": "Hello"}]
    source = tmp_path / "x.json"
    source.write_text(json.dumps({"messages": said}), encoding="utf-8")
    events, diagnostics = read(ChatImporter(), source)
    assert [one.kind for one in diagnostics] == ["problem"]
    assert [one.draft.event.text for one in events if isinstance(one.draft.event, MessageSent)] == [
        "Hello"
    ]
