"""Streams of AG-UI's events, as apps send them, and a front end that reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from ag_ui.core import Event
from duolog.interop.agui.json_patch import apply_patch
from hypothesis import strategies as st
from pydantic import TypeAdapter

__all__ = ("CHAT", "REQUEST", "Front", "Json", "check", "hostile", "models", "streamed")

Json = dict[str, Any]

models: TypeAdapter[Any] = TypeAdapter(Event)
"""Makes any of the protocol's own models."""


def check(events: Iterable[Json], *, known: bool = True) -> list[Json]:
    """Events that the protocol's own models take, without a field that they do not know."""
    events = list(events)
    for event in events:
        model = models.validate_python(event)
        if known:
            assert not model.model_extra, (event, model.model_extra)
            assert model.model_dump(mode="json", by_alias=True) == event
    return events


async def streamed(events: Iterable[Any]) -> AsyncIterator[Any]:
    """Events as they come."""
    for event in events:
        yield event


class Front:
    """The state of a front end after a stream: runs, messages, calls, state, and all the rest.

    It is strict about what the protocol asks of a producer: everything lies in a run, and what has
    begun ends.

    Args:
        events: the stream.
        known: whether to refuse fields that the protocol does not know.
    """

    def __init__(self, events: Iterable[Json], *, known: bool = True) -> None:
        self.runs: list[tuple[str, Any]] = []
        self.said: dict[str, tuple[str, str | None, str]] = {}
        self.calls: dict[str, tuple[str, str]] = {}
        self.results: dict[str, Any] = {}
        self.state: Any = {}
        self.customs: list[tuple[str, Any]] = []
        self.rest: list[Json] = []
        self._run: str | None = None
        self._open: set[str] = set()
        for event in check(events, known=known):
            self._take(event)
        assert self._open == set()

    def _take(self, event: Json) -> None:
        kind = event["type"]
        if kind == "RUN_STARTED":
            assert self._run is None, "a run in a run"
            self._run = event["runId"]
            for message in event.get("input", {}).get("messages", []):
                self._message(message)
            return
        assert self._run is not None, f"{kind} outside of a run"
        if kind in ("RUN_FINISHED", "RUN_ERROR"):
            assert not self._open
            assert kind == "RUN_ERROR" or event["runId"] == self._run
            end = event.get("outcome", "success") if kind == "RUN_FINISHED" else event["message"]
            self.runs.append((self._run, end))
            self._run = None
        elif kind.startswith(("TEXT_MESSAGE", "REASONING_MESSAGE")):
            self._piece(event)
        elif kind.startswith("TOOL_CALL"):
            self._call(event)
        elif kind == "STATE_SNAPSHOT":
            self.state = event["snapshot"]
        elif kind == "STATE_DELTA":
            self.state = apply_patch(self.state, event["delta"])
        elif kind == "MESSAGES_SNAPSHOT":
            for message in event["messages"]:
                self._message(message)
        elif kind == "CUSTOM":
            self.customs.append((event["name"], event["value"]))
        else:
            self.rest.append({k: v for k, v in event.items() if k != "timestamp"})

    def _piece(self, event: Json) -> None:
        ident, kind = event["messageId"], event["type"]
        if kind.endswith("START"):
            assert ident not in self._open
            self._open.add(ident)
            self.said[ident] = (event.get("role", "assistant"), event.get("name"), "")
        elif kind.endswith("CONTENT"):
            assert ident in self._open
            role, name, text = self.said[ident]
            self.said[ident] = (role, name, text + event["delta"])
        else:
            self._open.remove(ident)

    def _call(self, event: Json) -> None:
        ident, kind = event["toolCallId"], event["type"]
        if kind.endswith("START"):
            assert ident not in self._open
            self._open.add(ident)
            self.calls[ident] = (event["toolCallName"], "")
        elif kind.endswith("ARGS"):
            name, arguments = self.calls[ident]
            self.calls[ident] = (name, arguments + event["delta"])
        elif kind.endswith("END"):
            self._open.remove(ident)
        else:
            self.results[ident] = event["content"]

    def _message(self, message: Json) -> None:
        role = message["role"]
        if role == "tool":
            self.results[message["toolCallId"]] = message["content"]
        elif message.get("content"):
            self.said[message["id"]] = (role, message.get("name"), message["content"])
        for call in message.get("toolCalls", []):
            function = call["function"]
            self.calls[call["id"]] = (function["name"], function["arguments"])


REQUEST: Json = {
    "threadId": "t1",
    "runId": "r1",
    "state": {"draft": "", "open": True},
    "messages": [
        {"id": "u0", "role": "system", "content": "Be brief."},
        {"id": "u1", "role": "user", "content": "Where is my parcel?"},
    ],
    "tools": [{"name": "track", "description": "Finds a parcel.", "parameters": {}}],
    "context": [],
    "forwardedProps": {"locale": "en"},
}
"""A front end's request."""

_S = 1_790_000_000_000

CHAT: list[Json] = [
    {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "timestamp": _S},
    {"type": "STEP_STARTED", "stepName": "look"},
    {"type": "REASONING_START", "messageId": "k0"},
    {"type": "REASONING_MESSAGE_START", "messageId": "k1", "role": "reasoning"},
    {"type": "REASONING_MESSAGE_CONTENT", "messageId": "k1", "delta": "I should "},
    {"type": "REASONING_MESSAGE_CONTENT", "messageId": "k1", "delta": "look it up."},
    {"type": "REASONING_MESSAGE_END", "messageId": "k1"},
    {"type": "REASONING_END", "messageId": "k0"},
    {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Let me "},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "look."},
    {"type": "TEXT_MESSAGE_END", "messageId": "m1", "timestamp": _S + 1000},
    {
        "type": "TOOL_CALL_START",
        "toolCallId": "c1",
        "toolCallName": "track",
        "parentMessageId": "m1",
    },
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"parc'},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": 'el": "7"}'},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
    {"type": "TOOL_CALL_RESULT", "messageId": "m2", "toolCallId": "c1", "content": "lost"},
    {"type": "STATE_SNAPSHOT", "snapshot": {"draft": "We are sorry.", "open": True}},
    {
        "type": "STATE_DELTA",
        "delta": [
            {"op": "replace", "path": "/draft", "value": "We are sorry. We send another."},
            {"op": "add", "path": "/sent", "value": [1]},
        ],
    },
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m3", "role": "assistant", "delta": "It is "},
    {"type": "TEXT_MESSAGE_CHUNK", "delta": "lost, "},
    {"type": "TEXT_MESSAGE_CHUNK", "delta": "sorry."},
    {"type": "TOOL_CALL_CHUNK", "toolCallId": "c2", "toolCallName": "send", "delta": "{"},
    {"type": "TOOL_CALL_CHUNK", "delta": "}"},
    {
        "type": "ACTIVITY_SNAPSHOT",
        "messageId": "a1",
        "activityType": "PLAN",
        "content": {"entries": [{"content": "look", "status": "completed"}]},
    },
    {"type": "CUSTOM", "name": "mood", "value": None},
    {"type": "RAW", "event": {"provider": [1, 2]}, "source": "somebody"},
    {"type": "STEP_FINISHED", "stepName": "look"},
    {
        "type": "RUN_FINISHED",
        "threadId": "t1",
        "runId": "r1",
        "result": {"ok": True},
        "usage": [{"model": "m", "inputTokens": 9, "outputTokens": 3, "totalTokens": 12}],
    },
]
"""The events that an app streams back."""

_junk = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "role", "op", "path", "value"]), inner, max_size=3)
    ),
    max_leaves=6,
)
_kinds = [str(event["type"]) for event in CHAT] + ["MESSAGES_SNAPSHOT", "RUN_ERROR", "NEW_THING"]
hostile = st.fixed_dictionaries(
    {"type": st.sampled_from(_kinds)},
    optional={
        "messageId": st.sampled_from(["m1", "m2", 7]),
        "toolCallId": st.sampled_from(["c1", "c2", None]),
        "toolCallName": _junk,
        "runId": st.sampled_from(["r1", "r2"]),
        "role": st.sampled_from(["user", "assistant", "tool", 3]),
        "delta": _junk,
        "snapshot": _junk,
        "messages": _junk,
        "input": _junk,
        "content": _junk,
        "outcome": _junk,
        "usage": _junk,
        "timestamp": st.sampled_from([0, 1_790_000_000_000, "now", 1e300]),
    },
)
"""An event that is not as it should be."""
