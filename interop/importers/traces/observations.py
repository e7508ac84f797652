"""Observations of Langfuse, and the traces that they belong to, as spans."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON, Tokens
from ..conversation.numbers import count_of
from ..json_files import decode
from ..protocol import Reading
from ..timestamps import seconds_of
from .ai_sdk import TOOL_CALL
from .spans import Span, SpanKind
from .values import value_of

__all__ = ("Score", "Trace", "span_of_observation")

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_KINDS: Final[Mapping[str, SpanKind]] = {"GENERATION": "model", "TOOL": "tool", "AGENT": "agent"}
_TURN: Final = re.compile(r"(?:invoke_agent|agent_run)\s+\[?([^\]]+)\]?")
"""What frameworks call the span of an agent's turn, with the agent's name behind it."""


class Score(msgspec.Struct, rename="camel"):
    """A score of a trace."""

    name: str
    value: JSON = None
    comment: str | None = None
    source: str | None = None


class Trace(msgspec.Struct, rename="camel"):
    """A trace; its observations stand in it, or beside it."""

    id: str
    name: str | None = None
    session_id: str | None = None
    input: JSON = None
    scores: list[Score | str] | None = None
    observations: list[msgspec.Raw] = []


class _Observation(msgspec.Struct, rename="camel"):
    id: str
    type: str
    start_time: str
    trace_id: str | None = None
    session_id: str | None = None
    name: str | None = None
    end_time: str | None = None
    parent_observation_id: str | None = None
    model: str | None = None
    level: str | None = None
    status_message: str | None = None
    input: JSON = None
    output: JSON = None
    usage_details: Mapping[str, JSON] | None = None
    usage: Mapping[str, JSON] | None = None
    input_usage: int | None = None
    output_usage: int | None = None
    metadata: JSON = None


def span_of_observation(
    data: bytes | msgspec.Raw, traces: Mapping[str, Trace], where: str, reading: Reading
) -> Span:
    """An observation as a span.

    Args:
        data: its JSON.
        traces: that are known, by id.
        where: its place.
        reading: how times are read.

    Raises:
        InvalidInput: it is none.
    """
    one = decode(data, _Observation)
    start = seconds_of(one.start_time, reading.zone)
    if start is None:
        raise InvalidInput(f"its startTime {one.start_time!r} is no time")
    trace = traces.get(one.trace_id or "") or next(iter(traces.values()), None)
    of = one.trace_id or (trace.id if trace is not None else one.id)
    attributes = _attributes(one.metadata)
    kind = _KINDS.get(one.type, "other")
    if kind == "other" and (
        attributes.get("gen_ai.operation.name") == "execute_tool" or one.name == TOOL_CALL
    ):
        kind = "tool"
    output = value_of(one.output)
    why = one.status_message or (output if isinstance(output, str) and output else "it failed")
    return Span(
        id=one.id,
        trace=of,
        where=where,
        name=one.name or one.type,
        kind=kind,
        start=start,
        parent=one.parent_observation_id,
        end=seconds_of(one.end_time, reading.zone),
        conversation=one.session_id or (trace.session_id if trace is not None else None),
        input=one.input,
        output=one.output,
        tool=_text(attributes, "gen_ai.tool.name") or _text(attributes, "ai.toolCall.name"),
        call=_text(attributes, "gen_ai.tool.call.id") or _text(attributes, "ai.toolCall.id"),
        agent=_agent(one, attributes) if kind == "agent" else None,
        model=one.model,
        tokens=_tokens(one) if kind == "model" else None,
        error=why if one.level == "ERROR" else None,
    )


def _attributes(metadata: JSON) -> Mapping[str, JSON]:
    """The attributes of the span that an observation was made from, where it was."""
    held = value_of(metadata)
    found = held.get("attributes") if isinstance(held, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _agent(one: _Observation, attributes: Mapping[str, JSON]) -> str | None:
    """The name of an agent; None where it is that of a run, of which each has another."""
    said = _text(attributes, "gen_ai.agent.name")
    found = _TURN.fullmatch(one.name or "")
    name = said or (found[1] if found is not None else one.name)
    if name is None or _UUID.search(name):
        return None
    outermost = one.parent_observation_id is None
    return None if outermost and said is None and found is None else name


def _tokens(one: _Observation) -> Tokens | None:
    names = {
        "prompt": ("input", "prompt", "promptTokens"),
        "completion": ("output", "completion", "completionTokens"),
        "cached": ("input_cache_read", "prompt_details.cache_read", "input_cached_tokens"),
        "reasoning": ("output_reasoning", "completion_details.reasoning"),
    }
    counts: dict[str, int] = {}
    for held in (one.usage_details or {}, one.usage or {}):
        for field, keys in names.items():
            for key in keys:
                value = count_of(held.get(key))
                if value is not None:
                    counts.setdefault(field, value)
    if not counts and (one.input_usage or one.output_usage):
        return Tokens(prompt=count_of(one.input_usage), completion=count_of(one.output_usage))
    return Tokens(**counts) if counts else None


def _text(attributes: Mapping[str, JSON], key: str) -> str | None:
    value = attributes.get(key)
    return value if isinstance(value, str) and value else None
