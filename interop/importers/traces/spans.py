"""Spans, whatever program wrote them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from ....engine.events import JSON, Tokens
from ..json_files import PIECE

__all__ = ("LEVELS", "Span", "SpanKind", "value_of", "with_messages")

LEVELS: Final = 64
"""Spans around one that are looked at, from the inside: frameworks nest a few dozen at most."""

SpanKind: TypeAlias = Literal["model", "tool", "agent", "human", "other", "link"]
"""A call of a model, the execution of a tool, the turn of an agent or of a person, or anything else
in a conversation; and a span of something else, which only says what lies in what."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A span.

    Attributes:
        id: its own, unique in its trace.
        trace: id of the trace.
        parent: id of the span around it.
        where: the place in the source.
        name: the name of the span.
        kind: the kind of the span.
        start: seconds since the epoch.
        end: likewise; None if it never ended.
        conversation: id of the conversation, if the span says it.
        input: messages of a model call, arguments of a tool.
        output: the output of the model or tool.
        tool: name of the tool.
        call: id of the call that a tool was executed for.
        agent: name of the agent whose turn it is.
        model: that answered.
        tokens: that the provider counted.
        error: the failure; None if there is none.
        cost: US dollars; None if unknown.
        purpose: what a model was called for; None if it is not said.
        called: a model was called; else it only says what an agent said.
        task: name of the task, if the span is a whole session.
        instance: the instance of the task, likewise.
        problem: the problem of the task, likewise.
        remote: the span around it belongs to another program.
    """

    id: str
    trace: str
    where: str
    name: str
    kind: SpanKind
    start: float
    parent: str | None = None
    end: float | None = None
    conversation: str | None = None
    input: JSON = None
    output: JSON = None
    tool: str | None = None
    call: str | None = None
    agent: str | None = None
    model: str | None = None
    tokens: Tokens | None = None
    error: str | None = None
    cost: float | None = None
    purpose: str | None = None
    called: bool = True
    task: str | None = None
    instance: str | None = None
    problem: str | None = None
    remote: bool = False

    @property
    def key(self) -> str:
        """Its name in ids of events."""
        return f"{self.trace}-{self.id}".replace("/", "_")


# --- values in spans, which may be JSON in a string -----------------------------------------------


_DEPTH: Final = 3  # how often one value may be JSON in a string


def value_of(held: JSON) -> JSON:
    """A value, which may be JSON in a string, and that in a string again."""
    for _ in range(_DEPTH):
        if not isinstance(held, str) or held[:1] not in ('"', "{", "["):
            break
        if not PIECE.holds(held):
            break
        try:
            held = msgspec.json.decode(held)
        except (msgspec.DecodeError, RecursionError):
            break
    return held


# --- events of a span that hold its messages, as earlier semantic conventions have them -----------


_MESSAGE: Final = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_CHOICE: Final = "gen_ai.choice"
_WHOLE: Final[Mapping[str, str]] = {
    "gen_ai.content.prompt": "gen_ai.prompt",
    "gen_ai.content.completion": "gen_ai.completion",
}
_DETAILS: Final = "gen_ai.client.inference.operation.details"
_BODIES: Final = ("gen_ai.event.content", "event.body", "body")


def with_messages(
    attributes: Mapping[str, JSON], events: Iterable[tuple[str, Mapping[str, JSON]]]
) -> Mapping[str, JSON]:
    """The attributes of a span, and the messages that are only in its events.

    Args:
        attributes: the attributes of the span, by their dotted names.
        events: the events of the span, in order: name and attributes.
    """
    more: dict[str, JSON] = {}
    heard: list[JSON] = []
    said: list[JSON] = []
    for name, held in events:
        found = _MESSAGE.fullmatch(name)
        if name == _DETAILS:
            more.update(held)
        elif name in _WHOLE:
            more[_WHOLE[name]] = held.get(_WHOLE[name])
        elif name == _CHOICE:
            body = _body(held)
            message = value_of(body.get("message"))
            said.append(
                {"role": "assistant", **(message if isinstance(message, Mapping) else body)}
            )
        elif found is not None:
            heard.append({"role": found[1], **_body(held)})
    if heard:
        more["gen_ai.input.messages"] = heard
    if said:
        more["gen_ai.output.messages"] = said
    return {**more, **attributes} if more else attributes


def _body(held: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The message in an event: in its attributes, or in one of them."""
    for key in _BODIES:
        body = value_of(held.get(key))
        if isinstance(body, Mapping):
            held = body
            break
    body = {key: value_of(value) if key == "tool_calls" else value for key, value in held.items()}
    if "id" in body and "tool_call_id" not in body and body.get("role", "tool") == "tool":
        body["tool_call_id"] = body["id"]
    return body
