"""Spans of the AI SDK (Vercel), whose attributes are named ``ai.*``.

A call of ``generateText`` or ``streamText`` is a span with the prompt and the last answer; inside of it
lie one for each call of the model (``.doGenerate``, ``.doStream``) and one for each tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....engine.events import JSON
from .spans import SpanKind, value_of

__all__ = ("CONVERSATION", "FUNCTION", "TOOL_CALL", "input_of", "kind_of", "output_of")

TOOL_CALL: Final = "ai.toolCall"
"""The name of a tool's span."""
FUNCTION: Final = "ai.telemetry.functionId"
"""The name that a program gave to the whole call: that of its agent."""
CONVERSATION: Final = tuple(
    f"ai.telemetry.metadata.{key}" for key in ("sessionId", "conversationId", "threadId", "chatId")
)
"""Where programs say which conversation a call belongs to."""
_CALLS: Final = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")
_TEXT: Final = ("ai.response.text", "ai.response.object", "ai.result.text", "ai.result.object")
_REASONING: Final = ("ai.response.reasoning", "ai.response.reasoningText")
_TOOL_CALLS: Final = ("ai.response.toolCalls", "ai.result.toolCalls")


def kind_of(attributes: Mapping[str, JSON], name: str) -> SpanKind | None:
    """The kind of a span of the AI SDK; None for any other span.

    Args:
        attributes: by their dotted names.
        name: the name of the span.
    """
    said = attributes.get("ai.operationId")
    operation = said if isinstance(said, str) else name.partition(" ")[0]
    if operation == TOOL_CALL:
        return "tool"
    if operation.removesuffix(".doGenerate").removesuffix(".doStream") in _CALLS:
        return "model"
    return "other" if isinstance(said, str) else None


def input_of(attributes: Mapping[str, JSON], kind: SpanKind) -> JSON:
    """The messages that a model was given, or the arguments of a tool; None if there are none."""
    if kind == "tool":
        return attributes.get("ai.toolCall.args")
    if kind != "model":
        return None
    if "ai.prompt.messages" in attributes:
        return attributes["ai.prompt.messages"]
    prompt = value_of(attributes.get("ai.prompt"))
    if not isinstance(prompt, Mapping):
        return prompt
    said: list[JSON] = []
    if prompt.get("system"):
        said.append({"role": "system", "content": prompt["system"]})
    for key in ("prompt", "messages"):
        held = prompt.get(key)
        if isinstance(held, str):
            said.append({"role": "user", "content": held})
        elif isinstance(held, list):
            said += held
    return said


def output_of(attributes: Mapping[str, JSON], kind: SpanKind) -> JSON:
    """The message that a model gave, or the result of a tool; None if there is none."""
    if kind == "tool":
        return attributes.get("ai.toolCall.result")
    if kind != "model":
        return None
    parts: list[JSON] = []
    for thought in (attributes[key] for key in _REASONING if attributes.get(key)):
        parts.append({"type": "reasoning", "text": thought})
        break
    for text in (attributes[key] for key in _TEXT if attributes.get(key)):
        parts.append({"type": "text", "text": text})
        break
    for calls in (value_of(attributes[key]) for key in _TOOL_CALLS if attributes.get(key)):
        if isinstance(calls, list):
            parts += [{**call, "type": "tool-call"} for call in calls if isinstance(call, dict)]
        break
    files = value_of(attributes.get("ai.response.files"))
    if isinstance(files, list):
        parts += [{"type": "file"} for _ in files]
    return {"role": "assistant", "parts": parts} if parts else None
