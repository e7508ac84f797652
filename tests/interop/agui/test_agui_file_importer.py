"""Streams of AG-UI's events in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from duolog.engine.events import (
    ActionResolved,
    ActionTaken,
    MessageSent,
    ModelCalled,
    SnapshotTaken,
)
from duolog.interop.agui.file_importer import AguiImporter
from duolog.testing import check_importer
from foreign_logs import events_of, read, write_lines

Json = dict[str, Any]

HELLO: Json = {"role": "user", "content": "Hello"}
CALL: Json = {
    "role": "assistant",
    "content": "",
    "toolCalls": [{"id": "c1", "function": {"name": "pick", "arguments": "{}"}}],
}
PICKED: Json = {"role": "tool", "toolCallId": "c1", "content": "blue"}


def started(thread: str, *messages: Json) -> Json:
    held = {"threadId": thread, "runId": "r", "messages": messages}
    return {"type": "RUN_STARTED", "threadId": thread, "runId": "r", "input": held}


def said(id: str, *pieces: str) -> list[Json]:
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": piece} for piece in pieces),
        {"type": "TEXT_MESSAGE_END", "messageId": id},
    ]


def finished(thread: str, tokens: int) -> Json:
    usage = [{"inputTokens": tokens, "outputTokens": 1}]
    return {"type": "RUN_FINISHED", "threadId": thread, "runId": "r", "usage": usage}


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    return write_lines(
        tmp_path / "stream.jsonl",
        [
            started("t1", HELLO),
            {"type": "STATE_SNAPSHOT", "snapshot": {"plan": []}},
            {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/plan/-", "value": "go"}]},
            {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pick"},
            {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": "{}"},
            {"type": "TOOL_CALL_END", "toolCallId": "c1"},
            finished("t1", 5),
            started("t2", HELLO, CALL, PICKED),
            *said("m1", "Bl", "ue."),
            finished("t2", 7),
            started("t2", HELLO, CALL, PICKED, {"role": "assistant", "content": "Blue."}, HELLO),
            *said("m2", "Hi."),
        ],
    )


def test_pieces_are_put_together_and_repeated_histories_are_heard_once(stream: Path) -> None:
    events, diagnostics = read(AguiImporter(), stream)
    assert not [diagnostic for diagnostic in diagnostics if diagnostic.kind == "problem"]
    texts = [(who, e.text) for who, e in events_of(events) if isinstance(e, MessageSent)]
    assert texts == [
        ("user", "Hello"),
        ("assistant", "Blue."),
        ("user", "Hello"),
        ("assistant", "Hi."),
    ]
    found = [event for _, event in events_of(events)]
    assert [event.name for event in found if isinstance(event, ActionTaken)] == ["pick"]
    assert [e.observation for e in found if isinstance(e, ActionResolved)] == ["blue"]
    assert [e.tokens.prompt for e in found if isinstance(e, ModelCalled)] == [5, 7]
    states = [event.content for event in found if isinstance(event, SnapshotTaken)]
    assert states == [{"plan": []}, {"plan": ["go"]}]


def test_another_thread_that_repeats_nothing_is_another_session(tmp_path: Path) -> None:
    lines = [started("t1", HELLO), started("t2", {"role": "user", "content": "Other"})]
    events, _ = read(AguiImporter(), write_lines(tmp_path / "s.jsonl", lines))
    assert list(dict.fromkeys(one.session for one in events)) == ["t1", "t2"]


def told(path: Path) -> list[tuple[str, str]]:
    events, diagnostics = read(AguiImporter(), path)
    assert not [diagnostic for diagnostic in diagnostics if diagnostic.kind == "problem"]
    return [
        (who, event.text if isinstance(event, MessageSent) else event.name)
        for who, event in events_of(events)
        if isinstance(event, MessageSent | ActionTaken)
    ]


WHOLE: list[tuple[str, str]] = [("user", "Hello"), ("assistant", "pick"), ("assistant", "Blue.")]


def test_of_a_snapshot_what_came_in_no_other_way_is_read_once(tmp_path: Path) -> None:
    hello, called = {**HELLO, "id": "h"}, {**CALL, "id": "k"}
    answer: Json = {"id": "m1", "role": "assistant", "content": "Blue."}
    every = [hello, called, {**PICKED, "id": "p"}, answer]
    begun: Json = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
    snapshot = {"type": "MESSAGES_SNAPSHOT", "messages": every}
    alone = [begun, snapshot, snapshot]
    assert told(write_lines(tmp_path / "a.jsonl", alone)) == WHOLE
    call = {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "pick"}
    streamed = [started("t", hello), call, {"type": "TOOL_CALL_END", "toolCallId": "c1"}]
    streamed += [*said("m1", "Blue."), snapshot, started("t", *every, {**HELLO, "id": "i"})]
    assert told(write_lines(tmp_path / "b.jsonl", streamed)) == [*WHOLE, ("user", "Hello")]


def test_chunks_need_no_beginning_and_a_stream_may_be_a_list_or_server_sent(tmp_path: Path) -> None:
    chunks: list[Json] = [
        started("t", HELLO),
        {"type": "TOOL_CALL_CHUNK", "toolCallId": "c1", "toolCallName": "pick", "delta": "{"},
        {"type": "TOOL_CALL_CHUNK", "delta": "}"},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m1", "role": "assistant", "delta": "Blu"},
        {"type": "TEXT_MESSAGE_CHUNK", "delta": "e."},
        finished("t", 1),
    ]
    assert told(write_lines(tmp_path / "a.jsonl", chunks)) == WHOLE
    (tmp_path / "b.json").write_text(json.dumps(chunks), encoding="utf-8")
    assert told(tmp_path / "b.json") == WHOLE
    sent = "".join(f"event: message\ndata: {json.dumps(one)}\n\n" for one in chunks)
    (tmp_path / "c.txt").write_text(sent.removeprefix("event: message\n"), encoding="utf-8")
    assert told(tmp_path / "c.txt") == WHOLE
    assert AguiImporter().recognises(tmp_path / "c.txt", None)


def test_what_is_no_event_is_named(tmp_path: Path) -> None:
    source = tmp_path / "s.jsonl"
    source.write_text('{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}\n5\n{oops\n')
    _, diagnostics = read(AguiImporter(), source)
    assert [diagnostic.where.rpartition(" ")[2] for diagnostic in diagnostics] == ["2", "3"]


@pytest.mark.asyncio
async def test_the_importer_keeps_the_contract(stream: Path) -> None:
    await check_importer(AguiImporter(), stream)
