"""A conversation as spans of OTLP: two turns, each a separate trace, with a subagent in one."""

from __future__ import annotations

import json
from typing import Any

__all__ = ("CONVERSATION", "request", "story")

CONVERSATION = "conv-9"

Json = dict[str, Any]


def request(*spans: Json) -> Json:
    """Spans as they are exported."""
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def story(arguments: Json | None = None, answer: str = "At 8.") -> list[Json]:
    """All spans, in the order in which they end; those around others come last."""
    called = arguments or {
        "type": "tool_call",
        "id": "c1",
        "name": "search",
        "arguments": {"to": "Lyon"},
    }
    asked, reply = _message("user", "Find a train"), _message("assistant", answer)
    call = {"role": "assistant", "parts": [called]}
    return [
        _span("t1", 2, "chat", around=1, said=_said([asked], call)),
        _span("t1", 4, "chat", around=3, said=_said([_message("user", "Look")], reply)),
        _span("t1", 3, "invoke_agent", around=1, agent="helper"),
        _span(
            "t1",
            5,
            "execute_tool",
            around=1,
            tool=called,
        ),
        _span("t1", 6, "chat", around=1, said=_said([asked, call], reply)),
        _span("t1", 1, "invoke_agent", around=0, agent="planner"),
        _span("t1", 0, ""),
        _span("t2", 8, "chat", around=7, said=_said([asked, call, reply, asked], reply)),
        _span("t2", 7, "invoke_agent", agent="planner"),
    ]


def _said(given: list[Json], answer: Json) -> Json:
    return {
        "gen_ai.input.messages": json.dumps(given),
        "gen_ai.output.messages": json.dumps([answer]),
        "gen_ai.response.model": "m",
    }


def _message(role: str, text: str) -> Json:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _span(
    trace: str,
    number: int,
    operation: str,
    *,
    around: int | None = None,
    agent: str = "",
    tool: Json | None = None,
    said: Json | None = None,
) -> Json:
    held = {**(said or {})}
    if agent:
        held["gen_ai.agent.name"] = agent
    if tool:
        held |= {"gen_ai.tool.name": tool["name"], "gen_ai.tool.call.id": tool["id"]}
    if operation:
        held["gen_ai.operation.name"] = operation
    if operation == "invoke_agent":
        held["gen_ai.conversation.id"] = CONVERSATION
    span: Json = {
        "traceId": trace,
        "spanId": f"s{number}",
        "name": operation or "POST /chat",
        "startTimeUnixNano": str(number * 10**9),
        "endTimeUnixNano": str(number * 10**9 + 10**8),
        "attributes": [{"key": key, "value": {"stringValue": v}} for key, v in held.items()],
        "status": {},
    }
    if around is not None:
        span["parentSpanId"] = f"s{around}"
    return span
