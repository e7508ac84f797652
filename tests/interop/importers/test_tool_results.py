"""Results of tools in the place of a user's message: importers do not take them for the human's words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from duolog.engine.events import ActionResolved, MessageSent
from duolog.interop.importers.atif import AtifImporter
from duolog.interop.importers.chat import ChatImporter
from duolog.interop.importers.claude_code.sessions import ClaudeCodeImporter
from duolog.interop.importers.codex import CodexImporter
from duolog.interop.importers.inspect_logs import InspectImporter
from duolog.interop.importers.openhands import OpenHandsImporter
from duolog.interop.importers.protocol import Importer
from duolog.interop.importers.swe_agent import SweAgentImporter
from foreign_logs import read, trace_of

Json = dict[str, Any]

GAVE = "It rains in Oslo."
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
BLOCK: Json = {"type": "tool_result", "tool_use_id": "c1", "content": GAVE}


def at(second: int) -> str:
    return f"2026-05-02T12:00:{second:02d}.000Z"


def chat(result: Json) -> list[Json]:
    return [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        result,
        {"role": "assistant", "content": "Done"},
        {"role": "user", "content": "Thanks"},
    ]


def codex(result: Json) -> list[Json]:
    def text(role: str, kind: str, said: str) -> Json:
        return {"type": "message", "role": role, "content": [{"type": kind, "text": said}]}

    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}
    items = [
        text("user", "input_text", "Hi"),
        call,
        result,
        text("assistant", "output_text", "Done"),
        text("user", "input_text", "Thanks"),
    ]
    lines: list[Json] = [{"timestamp": at(0), "type": "session_meta", "payload": {"id": "s"}}]
    return lines + [
        {"timestamp": at(n), "type": "response_item", "payload": item}
        for n, item in enumerate(items, 1)
    ]


def claude_code(result: Json, **more: object) -> list[Json]:
    def line(number: int, side: str, content: object, **extra: object) -> Json:
        return {
            "uuid": f"u{number}",
            "parentUuid": f"u{number - 1}" if number > 1 else None,
            "isSidechain": False,
            "sessionId": "s",
            "type": side,
            "message": {"role": side, "id": f"m{number}", "model": "c", "content": content},
            "timestamp": at(number),
            **extra,
        }

    use = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}
    return [
        line(1, "user", "Hi"),
        line(2, "assistant", [use]),
        line(3, "user", [BLOCK]),
        line(4, "user", [result], **more),
        line(5, "assistant", [{"type": "text", "text": "Done"}]),
        line(6, "user", "Thanks"),
    ]


def openhands(result: Json) -> list[Json]:
    def said(number: int, source: str, **message: object) -> Json:
        return {
            "id": f"m{number}",
            "timestamp": at(number),
            "source": source,
            "kind": "MessageEvent",
            "llm_message": message,
        }

    def text(said: str) -> list[Json]:
        return [{"type": "text", "text": said}]

    action = {
        "id": "a1",
        "timestamp": at(2),
        "source": "agent",
        "kind": "ActionEvent",
        "tool_name": "weather",
        "tool_call_id": "c1",
        "tool_call": {"id": "c1", "name": "weather", "arguments": "{}"},
        "action": {"kind": "WeatherAction"},
        "thought": [],
    }
    observation = {
        "id": "o1",
        "timestamp": at(3),
        "source": "user",
        "kind": "ObservationEvent",
        "tool_name": "weather",
        "tool_call_id": "c1",
        "action_id": "a1",
        "observation": {"kind": "WeatherObservation", "content": text(GAVE)},
    }
    return [
        said(1, "user", role="user", content=text("Hi")),
        action,
        observation,
        said(4, "user", content=text(GAVE), **result),
        said(5, "agent", role="assistant", content=text("Done")),
        said(6, "user", role="user", content=text("Thanks")),
    ]


def atif(step: Json) -> Json:
    call = {"tool_call_id": "c1", "function_name": "weather", "arguments": {}}
    steps: list[Json] = [
        {"source": "user", "message": "Hi"},
        {"source": "agent", "message": "", "tool_calls": [call]},
        {"source": "user", **step},
        {"source": "agent", "message": "Done"},
        {"source": "user", "message": "Thanks"},
    ]
    return {"schema_version": "ATIF-v1.5", "agent": {"name": "x"}, "steps": steps}


def inspect(result: Json) -> Json:
    call = {"id": "c1", "function": "weather", "arguments": {}, "type": "function"}
    messages = chat(result)
    messages[1] = {"role": "assistant", "content": "", "tool_calls": [call]}
    sample = {"id": 1, "epoch": 1, "input": "Hi", "target": "", "messages": messages}
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "t", "model": "m"},
        "samples": [sample],
    }


def swe_agent(result: Json) -> Json:
    calls = [CALL]
    history: list[Json] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "action": "ls", "tool_calls": calls},
        result,
    ]
    return {"history": history, "trajectory": [], "info": {}}


OUTPUT: Json = {"type": "function_call_output", "call_id": "c1", "output": GAVE}
RESULTS: list[Json] = [{"source_call_id": "c1", "content": GAVE}]

CASES: dict[str, tuple[Callable[[], Importer], object]] = {
    "chat, JSON of a tool": (
        ChatImporter,
        chat({"role": "user", "content": json.dumps({"role": "tool", "content": GAVE})}),
    ),
    "chat, JSON of blocks": (
        ChatImporter,
        chat({"role": "user", "content": json.dumps([BLOCK])}),
    ),
    "chat, a type": (ChatImporter, chat({"role": "user", "type": "tool_result", "content": GAVE})),
    "chat, of a tool server": (
        ChatImporter,
        chat({"role": "user", "content": [{**BLOCK, "type": "mcp_tool_result"}]}),
    ),
    "chat, of a search": (
        ChatImporter,
        chat({"role": "user", "content": [{**BLOCK, "type": "web_search_tool_result"}]}),
    ),
    "codex, a part": (
        CodexImporter,
        codex({"type": "message", "role": "user", "content": [OUTPUT]}),
    ),
    "claude code, of a tool server": (
        ClaudeCodeImporter,
        claude_code({**BLOCK, "type": "mcp_tool_result", "tool_use_id": "c2"}),
    ),
    "claude code, what a tool brought": (
        ClaudeCodeImporter,
        claude_code({"type": "text", "text": "A skill."}, sourceToolUseID="c1"),
    ),
    "openhands, a tool's role": (OpenHandsImporter, openhands({"role": "tool"})),
    "openhands, the id of a call": (
        OpenHandsImporter,
        openhands({"role": "user", "tool_call_id": "c1"}),
    ),
    "atif, an observation": (
        AtifImporter,
        atif({"message": "", "observation": {"results": RESULTS}}),
    ),
    "atif, an observation and its text": (
        AtifImporter,
        atif({"message": GAVE, "observation": {"results": RESULTS}}),
    ),
    "inspect, the id of a call": (
        InspectImporter,
        inspect({"role": "user", "content": GAVE, "tool_call_id": "c1"}),
    ),
    "inspect, blocks": (InspectImporter, inspect({"role": "user", "content": [BLOCK]})),
    "swe-agent, blocks": (SweAgentImporter, swe_agent({"role": "user", "content": [BLOCK]})),
}


@pytest.mark.parametrize("case", CASES)
def test_a_result_in_a_users_place_is_no_message_of_the_human(case: str, tmp_path: Path) -> None:
    make, held = CASES[case]
    path = tmp_path / "log.json"
    if isinstance(held, list) and make is not ChatImporter:
        path = tmp_path / "log.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in held))
    else:
        path.write_text(json.dumps(held))
    records = trace_of(read(make(), path)[0])
    said = [r.event.text for r in records if isinstance(r.event, MessageSent) and r.role == "human"]
    assert said in (["Hi", "Thanks"], ["Hi"])
    resolved = [r.event.observation for r in records if isinstance(r.event, ActionResolved)]
    assert resolved == [GAVE]


def test_images_of_a_tools_result_in_inspect_are_no_message_of_the_human(tmp_path: Path) -> None:
    held = inspect({"role": "user", "content": "an image", "tool_call_id": ["c1"]})
    path = tmp_path / "log.json"
    path.write_text(json.dumps(held))
    records = trace_of(read(InspectImporter(), path)[0])
    said = [(r.role, r.event.text) for r in records if isinstance(r.event, MessageSent)]
    assert ("environment", "an image") in said
