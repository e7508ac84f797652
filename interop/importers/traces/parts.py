"""Parts of messages, as steps: those of the semantic conventions, of Gemini, and of the AI SDK."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ....engine.events import JSON
from ..conversation.steps import AGENT, HUMAN, Reasoning, Step, ToolCall, ToolResult, Utterance
from .values import value_of

__all__ = ("steps_of_parts",)

_CALLS: Final = ("function_call", "functionCall")
_RESULTS: Final = ("function_response", "functionResponse")
_FAILURES: Final = frozenset({"error-text", "error-json", "execution-denied"})
_TEXTS: Final = frozenset({"text", "output_text", "input_text"})


def steps_of_parts(parts: Sequence[JSON], side: str) -> Iterator[Step]:
    """The steps of a message. What a person said is one text, however many parts it has.

    Args:
        parts: of the message, in order.
        side: whose message it is.
    """
    said: list[str] = []
    for part in parts:
        if isinstance(part, str):
            part = {"type": "text", "text": part}
        if not isinstance(part, Mapping):
            continue
        step = _step(part)
        if not isinstance(step, Utterance):
            yield step
        elif side == HUMAN:
            said.append(step.text)
        else:
            yield Utterance(side, None, step.text)
    if said:
        yield Utterance(side, None, "\n".join(said))


def _step(part: Mapping[str, JSON]) -> Step:
    for key in _CALLS:
        held = part.get(key)
        if isinstance(held, Mapping):
            return _call(_text(held, "id"), held.get("name"), held.get("args"))
    for key in _RESULTS:
        held = part.get(key)
        if isinstance(held, Mapping):
            return ToolResult(_text(held, "id") or _text(held, "name"), held.get("response"))
    kind = part.get("type")
    if kind == "tool_call":
        return _call(_id(part.get("id")), part.get("name"), part.get("arguments"))
    if kind == "tool-call":
        given = part.get("input", part.get("args"))
        return _call(_text(part, "toolCallId"), part.get("toolName"), given)
    if kind == "tool_call_response":
        result = part.get("response", part.get("result", part.get("content")))
        return ToolResult(_id(part.get("id")), result)
    if kind == "tool-result":
        return _tool_result(part)
    text = part.get("content", part.get("text"))
    if kind in ("reasoning", "thinking") or part.get("thought") is True:
        return Reasoning(text if isinstance(text, str) else "")
    if isinstance(text, str) and (kind is None or kind in _TEXTS):
        return Utterance("", None, text)
    return Utterance("", None, f"[{kind or next(iter(part), 'part')}]")


def _tool_result(part: Mapping[str, JSON]) -> ToolResult:
    """A result as the AI SDK has it: with its type around it, or, in older versions, bare."""
    output = part.get("output", part.get("result"))
    failed = part.get("isError") is True
    if isinstance(output, Mapping) and "type" in output and {"value", "reason"} & output.keys():
        failed = failed or output["type"] in _FAILURES
        output = output.get("value", output.get("reason"))
    why = output if isinstance(output, str) and output else "it failed"
    return ToolResult(_text(part, "toolCallId"), output, why if failed else None)


def _call(id: str, name: JSON, arguments: JSON) -> ToolCall:
    value = value_of(arguments)
    given = value if isinstance(value, Mapping) else {}
    raw = None if isinstance(value, Mapping) or value is None else str(arguments)
    return ToolCall(AGENT, None, id, str(name), given, raw)


def _id(value: JSON) -> str:
    """An id, which may have several parts."""
    return "" if value is None else str(value)


def _text(held: Mapping[str, JSON], key: str) -> str:
    value = held.get(key)
    return value if isinstance(value, str) else ""
