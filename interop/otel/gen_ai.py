"""A model call as a span and metrics, in the words of the conventions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from ...engine.events import JSON, ModelCalled, SessionOpened
from . import names
from .signals import Attributes, MetricMeasured, Signal, SpanEnded, SpanStarted, Value

__all__ = (
    "ModelNamed",
    "call_signals",
    "error_kind",
    "message",
    "model_named",
    "session_labels",
    "text_part",
    "usage",
    "written",
)


_PROVIDERS: Final[Mapping[str, str]] = {
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "groq": "groq",
    "mistral": "mistral_ai",
    "openai": "openai",
    "perplexity": "perplexity",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""Providers as LiteLLM names them before the slash, and as the conventions do."""

_FAMILIES: Final = (
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("claude-", "anthropic"),
    ("gemini-", "gcp.gemini"),
)
"""Models that are commonly asked for without their provider."""


class ModelNamed(NamedTuple):
    """A model as the conventions name it: the provider, ``_OTHER`` if unknown, and the model."""

    provider: str
    model: str


def model_named(model: str) -> ModelNamed:
    """Separates provider and model in a name as LiteLLM takes it, e.g. ``openai/gpt-4o``."""
    before, slash, rest = model.partition("/")
    if slash and rest:
        return ModelNamed(_PROVIDERS.get(before, before), rest)
    for prefix, provider in _FAMILIES:
        if model.startswith(prefix):
            return ModelNamed(provider, model)
    return ModelNamed("_OTHER", model)


def error_kind(error: str) -> str:
    """The kind of an error in its text, e.g. ``ModelTimeout: no answer``; ``_OTHER`` without one."""
    kind, colon, _ = error.partition(":")
    return kind if colon and kind.isidentifier() else "_OTHER"


def call_signals(
    event: ModelCalled,
    key: str,
    parent: str,
    start: float,
    session: str,
    labels: Attributes,
    *,
    content: bool,
) -> Iterator[Signal]:
    """The span of a model call, with its metrics.

    Args:
        event: the call.
        key: the key of its span.
        parent: key of the span that it lies in.
        start: when it began.
        session: session id.
        labels: the labels of the session, for metrics.
        content: whether contents may be exported.
    """
    provider, model = model_named(event.model)
    about = {
        names.OPERATION: "chat",
        names.PROVIDER: provider,
        names.REQUEST_MODEL: model,
    }
    begun: dict[str, Value] = {
        **about,
        names.CONVERSATION: session,
        names.PURPOSE: event.purpose,
        names.ATTEMPT: event.attempt,
    }
    yield SpanStarted(key, parent, f"chat {model}", start, begun, client=True)
    error = None if event.error is None else error_kind(event.error)
    detail = event.error if content else None
    ended = {**usage(event), **_reply(event.reply, content=content)}
    yield SpanEnded(key, start + event.latency, ended, error, detail)
    failed = {} if error is None else {names.ERROR_TYPE: error}
    yield MetricMeasured(names.OPERATION_DURATION, event.latency, {**labels, **about, **failed})
    for direction, count in (("input", event.tokens.prompt), ("output", event.tokens.completion)):
        if count is not None:
            kind = {names.TOKEN_TYPE: direction}
            yield MetricMeasured(names.TOKEN_USAGE, count, {**labels, **about, **kind})
    if event.cost is not None:
        priced = {names.PROVIDER: provider, names.REQUEST_MODEL: model}
        yield MetricMeasured(names.MODEL_COST, event.cost, {**labels, **priced})


def usage(event: ModelCalled) -> dict[str, Value]:
    """The known usage of a model call: tokens by class, and their cost."""
    tokens = event.tokens
    found = {
        names.INPUT_TOKENS: tokens.prompt,
        names.OUTPUT_TOKENS: tokens.completion,
        names.CACHED_TOKENS: tokens.cached,
        names.CREATED_TOKENS: tokens.cache_creation,
        names.REASONING_TOKENS: tokens.reasoning,
        names.COST: event.cost,
    }
    return {name: value for name, value in found.items() if value is not None}


def _reply(reply: JSON, *, content: bool) -> dict[str, Value]:
    """The contents of a reply, if it has the shape that Duolog's own callers record."""
    found: dict[str, Value] = {}
    if not isinstance(reply, Mapping):
        return found
    model, finish = reply.get("model"), reply.get("finish")
    if isinstance(model, str):
        found[names.RESPONSE_MODEL] = model
    if isinstance(finish, str):
        found[names.FINISH_REASONS] = (finish,)
    if content:
        found[names.OUTPUT_MESSAGES] = written([_message(reply, finish)])
    return found


def _message(reply: Mapping[str, JSON], finish: JSON) -> JSON:
    parts: list[JSON] = []
    if isinstance(said := reply.get("text"), str) and said:
        parts.append(text_part(said))
    calls = reply.get("tool_calls")
    for call in calls if isinstance(calls, list | tuple) else ():
        if isinstance(call, Mapping):
            named = {name: call.get(name) for name in ("id", "name", "arguments")}
            parts.append({"type": "tool_call", **named})
    return message("assistant", parts, finish)


def session_labels(opened: SessionOpened) -> dict[str, Value]:
    """The task, and the first agent: its policy, else its name."""
    labels: dict[str, Value] = {names.WORKFLOW: opened.task} if opened.task else {}
    first = next((one for one in opened.participants if one.role == "agent"), None)
    if first is not None:
        labels[names.AGENT] = first.policy or first.name
    return labels


_encode = msgspec.json.Encoder().encode


def written(value: JSON) -> str:
    """A value as the JSON text that an attribute can hold."""
    return _encode(value).decode()


def text_part(text: str) -> Mapping[str, JSON]:
    """A part of a message that is text."""
    return {"type": "text", "content": text}


def message(
    role: Literal["user", "assistant"], parts: Sequence[JSON], finish: JSON = None
) -> Mapping[str, JSON]:
    """A message; with why the model ended it, if a model did."""
    made: dict[str, JSON] = {"role": role, "parts": parts}
    if finish is not None:
        made["finish_reason"] = finish
    return made
