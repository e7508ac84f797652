"""Spans, whatever program wrote them."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from ....engine.events import JSON, Tokens

__all__ = ("Span", "SpanKind")

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
        name: of the span.
        kind: what it is.
        start: seconds since the epoch.
        end: likewise; None where it never ended.
        conversation: id of the conversation, where the span says it.
        input: what went in: messages of a model call, arguments of a tool.
        output: what came out.
        tool: name of the tool.
        call: id of the call that a tool was executed for.
        agent: name of the agent whose turn it is.
        model: that answered.
        tokens: that the provider counted.
        error: what went wrong; None for nothing.
        cost: US dollars; None where unknown.
        purpose: what a model was called for; None where it is not said.
        called: a model was called; else it only says what an agent said.
        task: name of the task, where the span is a whole session.
        instance: of the task, likewise.
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
    remote: bool = False

    @property
    def key(self) -> str:
        """What it is called in ids of events."""
        return f"{self.trace}-{self.id}".replace("/", "_")
