"""Messages in spans, in the shapes that frameworks give them, as steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ...json_parts import items_at, items_of, text_at
from ..anthropic import is_result, result_of
from ..chat import steps_of
from ..conversation.steps import AGENT, HUMAN, Reasoning, Step, ToolCall, ToolResult, Utterance
from .spans import value_of

__all__ = ("Message", "messages_of", "texts_in")

_CALLS: Final = ("function_call", "functionCall")
_RESULTS: Final = ("function_response", "functionResponse")
_BEDROCK: Final = ("toolUse", "toolResult")  # of the Converse interface
_FAILURES: Final = frozenset({"error-text", "error-json", "execution-denied"})
_TEXTS: Final = frozenset({"text", "output_text", "input_text"})
_THOUGHT: Final = re.compile("reasoning|thinking", re.IGNORECASE)


def steps_of_parts(parts: Sequence[JSON], side: str) -> Iterator[Step]:
    """The steps of a message. A person's message is one text, however many parts it has.

    Args:
        parts: the parts of the message, in order.
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
    for key in (*_CALLS, *_RESULTS, *_BEDROCK):
        held = part.get(key)
        if isinstance(held, Mapping):
            return _keyed(key, held)
    kind = part.get("type")
    if kind == "tool_call":
        return _call(_id(part.get("id")), part.get("name"), part.get("arguments"))
    if kind == "tool-call":
        given = part.get("input", part.get("args"))
        return _call(text_at(part, "toolCallId"), part.get("toolName"), given)
    if kind == "tool_call_response":
        result = part.get("response", part.get("result", part.get("content")))
        return ToolResult(_id(part.get("id")), result)
    if kind == "tool-result":
        return _tool_result(part)
    if kind == "function_call_output":
        return ToolResult(text_at(part, "call_id"), part.get("output"))
    if is_result(kind):
        return result_of({"content": part.get("text"), **part})
    text = part.get("content", part.get("text"))
    if part.get("thought") is True or _THOUGHT.search(str(kind)):
        return Reasoning(text if isinstance(text, str) else "")
    if isinstance(text, str) and (kind is None or kind in _TEXTS):
        return Utterance("", None, text)
    return Utterance("", None, f"[{kind or next(iter(part), 'part')}]")


def _keyed(key: str, held: Mapping[str, JSON]) -> Step:
    """A call or a result that a part holds under a key such as ``functionCall``."""
    if key in _CALLS:
        return _call(text_at(held, "id"), held.get("name"), held.get("args"))
    if key in _RESULTS:
        return ToolResult(text_at(held, "id") or text_at(held, "name"), held.get("response"))
    call = text_at(held, "toolUseId")
    if key == "toolUse":
        return _call(call, held.get("name"), held.get("input"))
    content = held.get("content")
    failed = held.get("status") == "error"
    return ToolResult(
        call, content, "\n".join(texts_in(content)) or "it failed" if failed else None
    )


def _tool_result(part: Mapping[str, JSON]) -> ToolResult:
    """A result as the AI SDK has it: with its type around it, or, in older versions, bare."""
    output = part.get("output", part.get("result"))
    failed = part.get("isError") is True
    if isinstance(output, Mapping) and "type" in output and {"value", "reason"} & output.keys():
        failed = failed or output["type"] in _FAILURES
        output = output.get("value", output.get("reason"))
    why = output if isinstance(output, str) and output else "it failed"
    return ToolResult(text_at(part, "toolCallId"), output, why if failed else None)


def _call(id: str, name: JSON, arguments: JSON) -> ToolCall:
    value = value_of(arguments)
    given = value if isinstance(value, Mapping) else {}
    raw = None if isinstance(value, Mapping) or value is None else str(arguments)
    return ToolCall(AGENT, None, id, str(name), given, raw)


def _id(value: JSON) -> str:
    """An id, which may have several parts."""
    return "" if value is None else str(value)


# --- messages in spans, in the shapes that frameworks give them, as steps -------------------------


_ROLES: Final = {
    "human": HUMAN,
    "user": HUMAN,
    "ai": AGENT,
    "assistant": AGENT,
    "model": AGENT,
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
    "customer": HUMAN,
    "client": HUMAN,
    "visitor": HUMAN,
    "bot": AGENT,
    "agent": AGENT,
    "chatbot": AGENT,
}
_RESULT_OF: Final = ("tool_call_id", "tool_use_id", "toolCallId", "toolUseId")
"""Keys by which a message names the call that it answers, under any role."""
_HOLDERS: Final = (
    "messages",
    "output",
    "input",
    "choices",
    "generations",
    "contents",
    "candidates",
    "args",
)
_OWN_PARTS: Final = frozenset({"tool-call", "tool-result", "tool_call", "tool_call_response"})
_CLASS: Final = re.compile("message(chunk)?$")  # LangChain names the type by its class
_TOOLS: Final = re.compile("tool|function|observation")
_SPOKEN: Final = re.compile(
    r"^(system|developer|user|human|assistant|ai|tool|function): ", re.MULTILINE
)


class Message(NamedTuple):
    """A message.

    Attributes:
        role: the side of the speaker.
        steps: its contents.
        named: whether it names its role; if not, ``role`` is a guess from its place.
    """

    role: str
    steps: tuple[Step, ...]
    named: bool = True

    @property
    def text(self) -> str:
        """The text of the message."""
        return "\n".join(step.text for step in self.steps if isinstance(step, Utterance))


def messages_of(held: JSON, role: str) -> list[Message]:
    """The messages in an input or output.

    Args:
        held: a text, a message, a list of messages, or an object around them.
        role: the role of a text that names none.
    """
    value = value_of(held)
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return _in_text(value) or [Message(role, (Utterance(role, None, value),))]
    if isinstance(value, Mapping):
        inner = _held(value)
        return list(_message(value, role)) if inner is None else messages_of(inner, role)
    if isinstance(value, Sequence):
        return [one for item in value for one in messages_of(item, role)]
    return []


def _held(value: Mapping[str, JSON]) -> JSON:
    """The contents of an object that only wraps messages; None for any other."""
    if "role" not in value:
        for holder in _HOLDERS:
            inner = value.get(holder)
            if items_of(inner):
                return inner
        for key in ("content", "kwargs"):
            inner = value.get(key)
            if isinstance(inner, Mapping) and (key == "content" or _held(inner) is not None):
                return inner
        if isinstance(value.get("contents"), str):
            return value["contents"]
    message = value.get("message")
    return message if isinstance(message, Mapping) else None


def _in_text(text: str) -> list[Message]:
    """The messages in a text that has each behind its role; none if it is one message."""
    places = [match.span() for match in _SPOKEN.finditer(text)]
    instructed = text.startswith(("system", "developer"))
    if not places or places[0][0] or (len(places) < 2 and not instructed):
        return []
    ends = [start for start, _ in places[1:]] + [len(text)]
    found: list[Message] = []
    for (start, begin), end in zip(places, ends, strict=True):
        side = _ROLES[text[start : begin - 2]]
        said = text[begin:end].strip("\n")
        step = ToolResult("", said) if side == "tool" else Utterance(side, None, said)
        found.append(Message(side, (step,)))
    return found


def texts_in(held: JSON) -> Iterator[str]:
    """Every text inside a value."""
    value = value_of(held)
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from texts_in(inner)


def _message(item: Mapping[str, JSON], role: str) -> Iterator[Message]:
    inner = item.get("kwargs")
    if item.get("type") == "constructor" and isinstance(inner, Mapping):
        item = {"type": _last(item.get("id")), **inner}
    own = item.get("role") or item.get("type")
    said = str(own or role).lower()
    side = _ROLES.get(said) or _ROLES.get(_CLASS.sub("", said))
    if side is None and "type" in item and "role" not in item:
        yield from _item(item)
        return
    answered = next((key for key in _RESULT_OF if isinstance(item.get(key), str)), None)
    if answered is not None and side in (HUMAN, None):
        side = "tool"
    elif side is None and role == HUMAN:
        # A role that is none of a person's is the tool's own name, or something like it.
        tool = "" if _TOOLS.search(said) else str(own)
        yield Message("tool", (ToolResult(tool, item.get("content")),))
        return
    side = side or role
    parts = item["parts"] if items_at(item, "parts") else item.get("content")
    if items_at(item, "parts") or any(_is_part(one) for one in items_of(parts)):
        yield Message(side, tuple(steps_of_parts(items_of(parts), side)))
        return
    if side == "tool":
        call = item[answered] if answered is not None else None
        if isinstance(call, str):
            failed = item.get("status") == "error"
            content = item.get("content")
            yield Message(side, (ToolResult(call, content, _why(content) if failed else None),))
        return
    whole = {"role": side, "content": item.get("content"), "tool_calls": _calls(item)}
    listed = whole["content"]
    if not isinstance(listed, str) and isinstance(listed, Sequence):
        calls = [one for one in listed if isinstance(one, Mapping) and "function" in one]
        if calls:
            whole["tool_calls"] = [*items_of(whole["tool_calls"]), *calls]
            whole["content"] = [one for one in listed if one not in calls] or None
    if whole["content"] == "" and whole["tool_calls"]:
        whole["content"] = None
    try:
        steps = tuple(steps_of(whole))
    except InvalidInput:  # an unknown shape: only its texts can be read
        steps = tuple(Utterance(side, None, text) for text in texts_in(item.get("content")) if text)
    yield Message(side, steps, own is not None)


def _item(item: Mapping[str, JSON]) -> Iterator[Message]:
    """An item of Responses that is not a message; none for anything else."""
    try:
        steps = tuple(steps_of(item))
    except InvalidInput:
        return
    role = "tool" if any(isinstance(step, ToolResult) for step in steps) else AGENT
    yield Message(role, steps)


def _calls(item: Mapping[str, JSON]) -> JSON:
    more = item.get("additional_kwargs")
    calls = item.get("tool_calls")
    if not calls and isinstance(more, Mapping):
        calls = more.get("tool_calls")
    shaped: list[JSON] = []
    for call in items_of(calls):
        if isinstance(call, Mapping) and "args" in call and "function" not in call:
            call = {
                "id": call.get("id"),
                "function": {"name": call.get("name"), "arguments": call["args"]},
            }
        elif isinstance(call, Mapping) and "toolName" in call:
            given = call.get("input", call.get("args"))
            call = {
                "id": call.get("toolCallId"),
                "function": {"name": call["toolName"], "arguments": given},
            }
        shaped.append(call)
    return shaped


def _is_part(value: JSON) -> bool:
    """Whether a part of a content is one that no interface of chats has."""
    if not isinstance(value, Mapping):
        return False
    if "type" in value:
        return str(value["type"]) in _OWN_PARTS
    return any(key in value for key in ("text", *_CALLS, *_RESULTS, *_BEDROCK))


def _last(value: JSON) -> JSON:
    return items_of(value)[-1] if items_of(value) else None


def _why(content: JSON) -> str:
    return content if isinstance(content, str) and content else "it failed"
