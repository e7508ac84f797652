"""Spans, out of attributes: those of the semantic conventions for generative AI, or OpenInference's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ....engine.events import JSON, Tokens
from ..conversation.numbers import amount_of
from . import ai_sdk
from .spans import Span, SpanKind, value_of

__all__ = ("is_conversation", "nested", "span_of")

_OPERATIONS: Final[Mapping[str, SpanKind]] = {
    "chat": "model",
    "text_completion": "model",
    "generate_content": "model",
    "responses": "model",
    "completion": "model",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "create_agent": "agent",
    "invoke_workflow": "agent",
}
_KINDS: Final[Mapping[str, SpanKind]] = {"LLM": "model", "TOOL": "tool", "AGENT": "agent"}
_ENTITIES: Final[Mapping[str, SpanKind]] = {"tool": "tool", "agent": "agent"}
_PREFIXES: Final = ("gen_ai.", "openinference.", "llm.", "duolog.", "traceloop.", "ai.")
_ENTITY: Final = "traceloop.entity"  # OpenLLMetry's, of tools and agents
_MESSAGES: Final = ("gen_ai.input.messages", "gen_ai.output.messages")
_INDEX: Final = re.compile(r"[0-9]{1,9}")
_ACTOR_KIND: Final = "duolog.actor.kind"  # as Duolog's own export has it
_PURPOSE: Final = "duolog.model.purpose"


def is_conversation(attributes: Mapping[str, JSON]) -> bool:
    """Whether a span's attributes speak of models, tools or agents at all."""
    return any(key.startswith(_PREFIXES) for key in attributes)


def span_of(
    attributes: Mapping[str, JSON],
    *,
    id: str,
    trace: str,
    where: str,
    name: str,
    start: float,
    parent: str | None = None,
    end: float | None = None,
    error: str | None = None,
    kind: str | None = None,
) -> Span:
    """A span.

    Args:
        attributes: by their dotted names.
        id: its own.
        trace: id of the trace.
        where: the place in the source.
        name: the name of the span.
        start: seconds since the epoch.
        parent: id of the span around it.
        end: seconds since the epoch.
        error: the failure, if any.
        kind: OpenInference's, if it is stored next to the attributes.
    """
    kind = kind or _text(attributes, "openinference.span.kind")
    openinference = kind is not None
    found: SpanKind = _KINDS.get(str(kind).upper(), "other")
    if not openinference:
        found = _kind_of(attributes, name)
    return Span(
        id=id,
        trace=trace,
        where=where,
        name=name,
        kind=found,
        start=start,
        parent=parent,
        end=end,
        conversation=_text(
            attributes, "gen_ai.conversation.id", "session.id", *ai_sdk.CONVERSATION
        ),
        input=_input(attributes, found),
        output=_output(attributes, found),
        tool=_text(attributes, "gen_ai.tool.name", "tool.name", "ai.toolCall.name")
        or (_text(attributes, f"{_ENTITY}.name") if found == "tool" else None),
        call=_text(attributes, "gen_ai.tool.call.id", "tool.id", "tool_call.id", "ai.toolCall.id"),
        agent=_agent(attributes, name, found),
        model=_text(
            attributes,
            "gen_ai.response.model",
            "gen_ai.request.model",
            "llm.model_name",
            "ai.response.model",
            "ai.model.id",
        ),
        tokens=_tokens(attributes) if found == "model" else None,
        error=error,
        cost=amount_of(attributes.get("duolog.model.cost")),
        purpose=_text(attributes, _PURPOSE),
        called=not (_ACTOR_KIND in attributes and _PURPOSE not in attributes),
        task=_text(attributes, "gen_ai.workflow.name"),
        instance=_text(attributes, "duolog.session.instance"),
        problem=_text(attributes, "duolog.session.problem"),
    )


def _kind_of(attributes: Mapping[str, JSON], name: str) -> SpanKind:
    """The kind of a span of the semantic conventions; older versions only encode it in the name."""
    operation = _text(attributes, "gen_ai.operation.name", "llm.request.type")
    if operation is not None:
        return _OPERATIONS.get(operation, "other")
    own = ai_sdk.kind_of(attributes, name)
    if own is not None:
        return own
    if attributes.get(_ACTOR_KIND) == "human":
        return "human"
    entity = _text(attributes, "traceloop.span.kind")
    if entity is not None:
        return _ENTITIES.get(entity, "other")
    if any(key.startswith(("gen_ai.prompt", "gen_ai.completion")) for key in attributes):
        return "model"
    if any(key in attributes for key in _MESSAGES) and _ACTOR_KIND not in attributes:
        return "model"
    return _OPERATIONS.get(name.partition(" ")[0], "other") if " " in name else "other"


def nested(attributes: Mapping[str, JSON], prefix: str) -> list[JSON]:
    """A list that is flattened into dotted names, such as ``PREFIX.0.message.role``."""
    held = attributes.get(prefix)
    if isinstance(held, Sequence) and not isinstance(held, str):
        return [_bare(item) for item in held]
    tree: dict[str, JSON] = {}
    for key, value in attributes.items():
        if key.startswith(f"{prefix}."):
            _put(tree, key[len(prefix) + 1 :].split("."), value)
    listed = _listed(tree)
    return [_bare(item) for item in listed] if isinstance(listed, list) else []


def _put(tree: dict[str, JSON], path: Sequence[str], value: JSON) -> None:
    for part in path[:-1]:
        inner = tree.get(part)
        if not isinstance(inner, dict):
            inner = tree[part] = {}
        tree = inner
    tree[path[-1]] = value


def _listed(tree: JSON) -> JSON:
    """A tree whose keys are numbers, as a list."""
    if not isinstance(tree, dict):
        return tree
    if tree and all(_INDEX.fullmatch(key) for key in tree):
        return [_listed(tree[key]) for key in sorted(tree, key=int)]
    return {key: _listed(value) for key, value in tree.items()}


def _bare(item: JSON) -> JSON:
    """OpenInference's message as the message that it is, its calls as calls."""
    if not isinstance(item, Mapping):
        return item
    held = item.get("message", item)
    if not isinstance(held, Mapping):
        return held
    calls = held.get("tool_calls")
    if isinstance(calls, Sequence) and not isinstance(calls, str):
        bare = [call.get("tool_call", call) for call in calls if isinstance(call, Mapping)]
        held = {**held, "tool_calls": bare}
    contents = held.get("contents")
    if isinstance(contents, Sequence) and not isinstance(contents, str) and "content" not in held:
        parts = [c.get("message_content", c) for c in contents if isinstance(c, Mapping)]
        held = {**held, "content": parts}
    return held


def _input(attributes: Mapping[str, JSON], kind: SpanKind) -> JSON:
    if kind == "model":
        for prefix in ("llm.input_messages", "gen_ai.prompt"):
            if found := nested(attributes, prefix):
                return found
        for key in ("gen_ai.input.messages", "gen_ai.prompt"):
            if key in attributes:
                return attributes[key]
    if kind == "tool" and "gen_ai.tool.call.arguments" in attributes:
        return attributes["gen_ai.tool.call.arguments"]
    if own := ai_sdk.input_of(attributes, kind):
        return own
    return attributes.get("input.value", _inside(attributes.get(f"{_ENTITY}.input"), "inputs"))


def _output(attributes: Mapping[str, JSON], kind: SpanKind) -> JSON:
    if kind == "human":
        return attributes.get("gen_ai.output.messages")
    if kind == "model":
        for prefix in ("llm.output_messages", "gen_ai.completion"):
            if found := nested(attributes, prefix):
                return found
        for key in ("gen_ai.output.messages", "gen_ai.completion"):
            if key in attributes:
                return attributes[key]
    if kind == "tool" and "gen_ai.tool.call.result" in attributes:
        return attributes["gen_ai.tool.call.result"]
    if own := ai_sdk.output_of(attributes, kind):
        return own
    return attributes.get("output.value", _inside(attributes.get(f"{_ENTITY}.output"), "outputs"))


def _inside(held: JSON, key: str) -> JSON:
    """The input or output inside the wrapper of a framework's callback."""
    value = value_of(held)
    return value[key] if isinstance(value, Mapping) and key in value else value


def _agent(attributes: Mapping[str, JSON], name: str, kind: SpanKind) -> str | None:
    return _text(attributes, "gen_ai.agent.name", "agent.name", ai_sdk.FUNCTION) or (
        name if kind == "agent" else None
    )


def _tokens(attributes: Mapping[str, JSON]) -> Tokens | None:
    names = {
        "prompt": (
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.prompt_tokens",
            "llm.token_count.prompt",
            "ai.usage.inputTokens",
            "ai.usage.promptTokens",
        ),
        "completion": (
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.token_count.completion",
            "ai.usage.outputTokens",
            "ai.usage.completionTokens",
        ),
        "cached": (
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "llm.token_count.prompt_details.cache_read",
            "ai.usage.cachedInputTokens",
            "ai.usage.inputTokenDetails.cacheReadTokens",
        ),
        "cache_creation": (
            "gen_ai.usage.cache_creation.input_tokens",
            "llm.token_count.prompt_details.cache_write",
            "ai.usage.inputTokenDetails.cacheWriteTokens",
        ),
        "reasoning": (
            "gen_ai.usage.reasoning.output_tokens",
            "llm.token_count.completion_details.reasoning",
            "ai.usage.reasoningTokens",
            "ai.usage.outputTokenDetails.reasoningTokens",
        ),
    }
    counts: dict[str, int] = {}
    for field, keys in names.items():
        for key in keys:
            value = amount_of(value_of(attributes.get(key)))
            if value is not None:
                counts.setdefault(field, int(value))
    return Tokens(**counts) if counts else None


def _text(attributes: Mapping[str, JSON], *keys: str) -> str | None:
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and value:
            return value
    return None
