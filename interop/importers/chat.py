"""The importer for chat messages as OpenAI's interfaces have them, Chat Completions and Responses, and
as Anthropic's has them: Messages.

A file holds one conversation (a list of messages or items, or one on each line), or several
(objects with ``messages``, or with ``input`` and ``output``; a list of them, or one on each line).
Texts of users and assistants are messages, tool calls are actions with their results, reasoning is
the assistant's private note; instructions are messages by the environment that only the assistants
see. Arguments that are not a JSON object stay as they were written.

A conversation never says that it has ended, so its session stays open. If its messages carry no
times, it is on a virtual clock that does not advance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias, final

import msgspec

from ...engine import codec
from ...engine.errors import InvalidInput
from ...engine.events import JSON, Tokens
from ..json_parts import text_at
from .anthropic import has_own_blocks, is_result, plain_text, steps_of_blocks, tokens_of
from .claude_code.questions import QuestionReader
from .conversation.builder import Participants
from .conversation.numbers import count_of
from .conversation.steps import (
    AGENT,
    HUMAN,
    ApprovalRequest,
    ApprovalResponse,
    ModelUse,
    Omission,
    Reasoning,
    Step,
    ToolCall,
    ToolResult,
    Utterance,
)
from .conversation.transcript import Entry, Transcript, beginning_of, read_transcript
from .json_files import Piece, check_held, decode, files_in, pieces_of
from .json_sniff import Shape, shape_of
from .protocol import Diagnostic, Found, Reading
from .timestamps import seconds_of
from .trace_builder import arguments_of

__all__ = ("ChatImporter", "Item", "stamp_of", "steps_of", "text_of", "usage_of")

Item: TypeAlias = Mapping[str, JSON]
"""A message or item, as JSON has it."""

_TEXTS: Final = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})
_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
_HOSTED: Final = "_call"
_RESULT_OF: Final = frozenset({"tool_call_id", "tool_use_id", "toolCallId", "toolUseId"})
"""Keys by which a message names the call that it answers, under any role."""
_RESULTS: Final = frozenset(
    {"tool-result", "tool_call_response", "tool_response", "function_call_output", "tool_result"}
)
"""Types of parts that are results of calls; Anthropic's are read elsewhere."""


def steps_of(item: Item) -> Iterator[Step]:
    """The steps in one message or item.

    Raises:
        InvalidInput: it is none; says why.
    """
    kind = item.get("type", "message")
    if not isinstance(kind, str):
        raise InvalidInput(f"its type is {kind!r}, not a text")
    if kind == "message" or "role" in item:
        yield from _message(item)
        return
    read = _ITEMS.get(kind)
    if read is not None:
        yield from read(item)
    elif kind.endswith(_HOSTED):
        yield from _hosted(kind, item)
    else:
        yield Omission(f"an item of type {kind}")


def text_of(content: JSON) -> tuple[str, list[str]]:
    """The text of a content, and the types of its other parts. A mark such as ``[image_url]``
    replaces each of these.

    Raises:
        InvalidInput: it is not valid content.
    """
    if content is None:
        return "", []
    if isinstance(content, str):
        return content, []
    if not isinstance(content, Sequence):
        raise InvalidInput(f"its content is neither a text nor a list of parts: {_short(content)}")
    texts: list[str] = []
    others: list[str] = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
            continue
        if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
            raise InvalidInput(f"a part of its content lacks a type: {_short(part)}")
        kind = str(part["type"])
        held = part.get("refusal" if kind == "refusal" else "text")
        if kind in _TEXTS or kind == "refusal":
            texts.append(held if isinstance(held, str) else "")
        else:
            others.append(kind)
            texts.append(f"[{kind}]")
    return "\n".join(texts), others


# --- messages -------------------------------------------------------------------------------------


def _message(item: Item) -> Iterator[Step]:
    role = _text(item, "role")
    if role in ("tool", "function") or (role == HUMAN and _RESULT_OF & item.keys()):
        named = (item.get(key) for key in (*sorted(_RESULT_OF), "name"))
        call = next((one for one in named if one is not None), None)
        text, others = text_of(item.get("content"))
        yield ToolResult(call if isinstance(call, str) else "", text)
        yield from _lost(others)
        return
    if role not in _ROLES:
        raise InvalidInput(f"its role is {role!r}, not one of {', '.join(sorted(_ROLES))}, tool")
    name = item.get("name")
    name = name if isinstance(name, str) and name else None
    if has_own_blocks(item.get("content")):
        yield from steps_of_blocks(role, name, item.get("content"))
        return
    if role == HUMAN and item.get("type") in _RESULTS:
        text, others = text_of(item.get("content"))
        yield ToolResult("", text)
        yield from _lost(others)
        return
    if role == HUMAN and _results_in(item.get("content")):
        yield from _answers(item, name)
        return
    if role == HUMAN and (tool := _written_by_tool(item.get("content"))) is not None:
        yield from _message(tool)
        return
    for key in ("reasoning_content", "reasoning"):
        thought = item.get(key)
        if isinstance(thought, str) and thought:
            yield Reasoning(thought)
            break
    text, others = text_of(item.get("content"))
    refusal = item.get("refusal")
    text = text or (refusal if isinstance(refusal, str) else "")
    calls = list(_calls(item, role, name))
    if text or (not calls and item.get("content") is not None):
        yield Utterance(role, name, text)
    yield from _lost(others)
    yield from calls


def _results_in(content: JSON) -> list[Item]:
    """The parts of a content that are results of calls, under any role."""
    listed = content if isinstance(content, Sequence) and not isinstance(content, str) else ()
    return [one for one in listed if isinstance(one, Mapping) and str(one.get("type")) in _RESULTS]


def _written_by_tool(content: JSON) -> Item | None:
    """The message of a tool that is the text of a user's message, as JSON; None for any other text."""
    if not isinstance(content, str) or not content.startswith(("{", "[")):
        return None
    try:
        held: JSON = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        return None
    if isinstance(held, Mapping) and held.get("role") in ("tool", "function"):
        return held
    listed = held if isinstance(held, list) else [held]
    kinds = [one.get("type") if isinstance(one, Mapping) else None for one in listed]
    if any(kind in _RESULTS or is_result(kind) for kind in kinds):
        return {"role": HUMAN, "content": listed}
    return None


def _answers(item: Item, name: str | None) -> Iterator[Step]:
    """The results in a message of role ``user``, and the person's own text."""
    content = item.get("content")
    results = _results_in(content)
    for part in results:
        ids = (part.get(key) for key in (*sorted(_RESULT_OF), "call_id", "id"))
        call = next((one for one in ids if isinstance(one, str)), "")
        held = (part.get(key) for key in ("output", "result", "response", "content"))
        yield ToolResult(call, next((one for one in held if one is not None), None))
    listed = content if isinstance(content, Sequence) else ()
    text, others = text_of([part for part in listed if part not in results])
    if text:
        yield Utterance(HUMAN, name, text)
    yield from _lost(others)


def _calls(item: Item, role: str, name: str | None) -> Iterator[ToolCall]:
    old = item.get("function_call")
    if isinstance(old, Mapping):
        yield _did(role, name, _text(old, "name"), _text(old, "name"), old.get("arguments"))
    listed = item.get("tool_calls")
    if listed is None:
        return
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise InvalidInput(f"its tool_calls are not a list: {_short(listed)}")
    for call in listed:
        if not isinstance(call, Mapping):
            raise InvalidInput(f"a tool call is not an object: {_short(call)}")
        free = call.get("custom")
        held = call.get("function", call if free is None else free)
        if not isinstance(held, Mapping):
            raise InvalidInput(f"a tool call lacks a function: {_short(call)}")
        arguments = held.get("arguments", held.get("input"))
        if held is free and isinstance(arguments, str):
            arguments = {"input": arguments}
        yield _did(role, name, text_at(call, "id"), _text(held, "name"), arguments)


def _did(role: str, name: str | None, call: str, tool: str, arguments: JSON) -> ToolCall:
    if isinstance(arguments, Mapping):
        return ToolCall(role, name, call, tool, arguments, None)
    if arguments is None or arguments == "":
        return ToolCall(role, name, call, tool, {}, None)
    if not isinstance(arguments, str):
        raise InvalidInput(f"the arguments of {tool} are neither a text nor an object")
    value, raw = arguments_of(arguments)
    return ToolCall(role, name, call, tool, value, raw)


def _lost(others: Sequence[str]) -> Iterator[Omission]:
    for kind in dict.fromkeys(others):
        yield Omission(f"content of type {kind}, for which a mark stands in the text")


_FREE: Final = "custom_tool_call"


# --- items ----------------------------------------------------------------------------------------


def _function_call(item: Item) -> Iterator[Step]:
    arguments = item.get("arguments", item.get("input"))
    if item.get("type") == _FREE and isinstance(arguments, str):
        arguments = {"input": arguments}  # a text by its nature, and no JSON that was lost
    call = text_at(item, "call_id") or text_at(item, "id")
    yield _did("assistant", None, call, _text(item, "name"), arguments)


def _function_output(item: Item) -> Iterator[Step]:
    output = item.get("output")
    others: list[str] = []
    if isinstance(output, Sequence) and not isinstance(output, str):
        output, others = text_of(output)
    yield ToolResult(text_at(item, "call_id"), output)
    yield from _lost(others)


def _reasoning(item: Item) -> Iterator[Step]:
    summary, _ = text_of(item.get("summary"))
    content, _ = text_of(item.get("content"))
    text = summary or content
    if text:
        yield Reasoning(text)
    elif item.get("encrypted_content"):
        yield Omission("reasoning that is encrypted")


def _approval_request(item: Item) -> Iterator[Step]:
    made = _did("assistant", None, "", _text(item, "name"), item.get("arguments"))
    written = item.get("arguments")
    text = f"{made.tool}({written if isinstance(written, str) else ''})"
    yield ApprovalRequest(text_at(item, "id"), made.tool, made.arguments, text)


def _approval_response(item: Item) -> Iterator[Step]:
    approve = item.get("approve")
    if not isinstance(approve, bool):
        raise InvalidInput(f"its answer is {approve!r}, neither true nor false")
    reason = item.get("reason")
    comment = reason if isinstance(reason, str) else ""
    yield ApprovalResponse(text_at(item, "approval_request_id"), approve, comment)


def _hosted(kind: str, item: Item) -> Iterator[Step]:
    """A tool that the provider ran itself: the call and its result are one item."""
    call = text_at(item, "call_id") or text_at(item, "id")
    own = {"type", "id", "call_id", "status", "output", "error"}
    arguments = {key: value for key, value in item.items() if key not in own and value is not None}
    yield ToolCall("assistant", None, call, kind.removesuffix(_HOSTED), arguments, None)
    if item.get("call_id") is None:
        error = item.get("error")
        failed = item.get("status") in ("failed", "incomplete") or error is not None
        why = _short(error) if error is not None else f"its status is {item.get('status')}"
        yield ToolResult(call, item.get("output"), why if failed else None)


_ITEMS: Final[Mapping[str, Callable[[Item], Iterator[Step]]]] = {
    "function_call": _function_call,
    "custom_tool_call": _function_call,
    "function_call_output": _function_output,
    "custom_tool_call_output": _function_output,
    "computer_call_output": _function_output,
    "local_shell_call_output": _function_output,
    "reasoning": _reasoning,
    "mcp_approval_request": _approval_request,
    "mcp_approval_response": _approval_response,
}


# --- values ---------------------------------------------------------------------------------------


def _text(item: Item, key: str) -> str:
    value = item.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"its {key} is {_short(value)}, not a text")
    return value


def _short(value: JSON) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else f"{text[:79]}…"


# --- conversations in files -----------------------------------------------------------------------


_IDS: Final = ("conversation_id", "session_id", "thread_id", "id")
_STAMPS: Final = ("timestamp", "created_at", "created")
_HOLDERS: Final = frozenset({"messages", "input", "output", "choices"})
_SAYING: Final = frozenset({"content", "tool_calls", "function_call"})
_ITEM: Final = frozenset({"call_id", "content", "name"})
_ENDINGS: Final = (".json", ".jsonl")


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in a file.

    Attributes:
        session: its id: its own, else one made from the file's name and the conversation's text.
        where: its place.
        items: messages and items in order.
        about: the other fields of the conversation.
    """

    session: str
    where: str
    items: Sequence[Item]
    about: Mapping[str, JSON]


def is_item(shape: Shape) -> bool:
    """Whether the first object in a file is a message or an item."""
    keys = shape.keys
    if "summary" in keys and not keys & (_ITEM | {"id"}) and not shape.inner.get("summary"):
        return False  # a text, not a model's reasoning
    return ("role" in keys and bool(keys & _SAYING)) or (
        "type" in keys and bool(keys & (_ITEM | {"summary"}))
    )


def is_whole(shape: Shape) -> bool:
    """Whether the first object in a file holds a conversation."""
    if "messages" in shape.keys:
        return "role" in shape.inner.get("messages", {"role"})
    for holder in ("input", "output"):
        inner = shape.inner.get(holder, frozenset())
        if holder in shape.keys and inner & {"role", "type"}:
            return True
    return {"input", "model"} <= shape.keys


def conversations_in(source: Path) -> Iterator[Conversation | Diagnostic]:
    """The conversations in a file, or in all files below a directory.

    Raises:
        InvalidInput: there are none, or a file cannot be read.
    """
    if not source.is_dir():
        yield from _in_file(source)
        return
    files = [path for path in files_in(source, "**/*") if path.suffix in _ENDINGS]
    if not files:
        raise InvalidInput(f"no files in {source} end in {' or '.join(_ENDINGS)}")
    for path in files:
        yield from _in_file(path)


def _in_file(path: Path) -> Iterator[Conversation | Diagnostic]:
    shape = shape_of(path)
    if shape is None:
        raise InvalidInput(f"{path} contains no chat messages: it is not JSON")
    if shape.form != "object" and (is_item(shape) or not is_whole(shape)):
        yield from _one(path)
        return
    several = shape.form != "object"
    for piece in pieces_of(path):
        try:
            held = decode(piece.data, dict[str, JSON])
            items = _items(held)
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid conversation: {error}", piece.where)
            continue
        name = f"{path.stem}-{piece.number}" if several else path.stem
        yield Conversation(
            session=_own_id(held) or _made_id(name, items),
            where=piece.where,
            items=items,
            about={key: value for key, value in held.items() if key not in _HOLDERS},
        )


def _one(path: Path) -> Iterator[Conversation | Diagnostic]:
    """A file whose elements or lines are the messages of one conversation."""
    items: list[Item] = []
    for piece in pieces_of(path):
        found = _item(piece)
        if isinstance(found, Diagnostic):
            yield found
        else:
            items.append(found)
            check_held(len(items), path)
    session = _made_id(path.stem, items)
    yield Conversation(session=session, where=str(path), items=items, about={})


def _item(piece: Piece) -> Item | Diagnostic:
    try:
        return decode(piece.data, dict[str, JSON])
    except InvalidInput as error:
        return Diagnostic("problem", f"invalid message: {error}", piece.where)


def _items(held: Mapping[str, JSON]) -> list[Item]:
    """The messages and items of an object that holds a conversation."""
    items: list[Item] = []
    for key in ("instructions", "system"):
        said = held.get(key)
        if text := plain_text(said):
            items.append({"role": "system", "content": text})
    found = False
    for key in ("messages", "input", "output"):
        listed = held.get(key)
        if listed is None:
            continue
        found = True
        if isinstance(listed, str):
            items.append({"role": "user" if key == "input" else "assistant", "content": listed})
            continue
        items += _listed(key, listed)
    choices = held.get("choices")
    if isinstance(choices, Sequence) and choices and isinstance(choices[0], Mapping):
        found = True
        items += _listed("choices", [choices[0].get("message")])
    if not found and not ("role" in held or "type" in held):
        raise InvalidInput("it has neither messages nor input and output")
    return items if found else [held]


def _listed(key: str, listed: JSON) -> list[Item]:
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise InvalidInput(f"its {key} are not a list")
    items: list[Item] = []
    for number, item in enumerate(listed, start=1):
        if not isinstance(item, Mapping):
            raise InvalidInput(f"{key}, element {number} is not an object")
        items.append(item)
    return items


def _own_id(held: Mapping[str, JSON]) -> str | None:
    for key in _IDS:
        value = held.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip():
            return str(value)
    return None


def _made_id(name: str, items: Sequence[Item]) -> str:
    return f"{name}-{codec.digest(items)[:12]}"


def stamp_of(item: Item) -> JSON:
    """When a message was sent, as it says; None if it does not."""
    for key in _STAMPS:
        stamp = item.get(key)
        if stamp is not None:
            return stamp
    return None


def usage_of(value: JSON) -> Tokens | None:
    """Tokens, as OpenAI's interfaces or Anthropic's count them; None if nothing is counted."""
    if not isinstance(value, Mapping):
        return None
    if "cache_read_input_tokens" in value:
        return tokens_of(value)
    tokens = Tokens(
        prompt=_count(value, "prompt_tokens", "input_tokens"),
        completion=_count(value, "completion_tokens", "output_tokens"),
        cached=_detail(value, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens"),
        reasoning=_detail(
            value, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens"
        ),
    )
    return None if tokens == Tokens() else tokens


def _count(value: Mapping[str, JSON], *keys: str) -> int | None:
    for key in keys:
        found = count_of(value.get(key))
        if found is not None:
            return found
    return None


def _detail(value: Mapping[str, JSON], keys: Sequence[str], what: str) -> int | None:
    for key in keys:
        found = value.get(key)
        if isinstance(found, Mapping):
            return _count(found, what)
    return None


# --- the importer for chat messages as OpenAI's interfaces have them, Chat Completions and Response


_NAME: Final = "chat"
_OTHERS: Final = frozenset(
    "termination_reason reward_info traj simulations leafUuid parentUuid traceId observations"
    " model_stats".split()
)
"""Keys of other formats, some of them in their ``info``."""


@final
class ChatImporter:
    """Reads chat messages."""

    name = _NAME
    about = "chat messages as OpenAI's Chat Completions and Responses, or Anthropic's Messages, have them"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file begins with a message, an item, or an object that holds some."""
        if shape is None or (shape.keys | shape.inner.get("info", frozenset())) & _OTHERS:
            return False
        return is_item(shape) or is_whole(shape)

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads all conversations.

        Raises:
            InvalidInput: there are none, or a file cannot be read.
        """
        for found in conversations_in(source):
            if isinstance(found, Diagnostic):
                yield found
            else:
                yield from _read(found, reading)


def _read(found: Conversation, reading: Reading) -> Iterator[Found]:
    model = found.about.get("model")
    entries: list[Entry] = []
    questions = QuestionReader()
    for index, item in enumerate(found.items, start=1):
        where = f"{found.where}, message {index}"
        try:
            used = _usage(item, item.get("model", model), "act", _name(item))
            steps = (*used, *questions.read(steps_of(item)))
        except InvalidInput as error:
            yield Diagnostic("problem", f"invalid message: {error}", where, found.session)
            continue
        entries.append(Entry(index, where, seconds_of(stamp_of(item), reading.zone), steps))
    if not entries:
        yield Diagnostic("problem", "a conversation without messages", found.where, found.session)
        return
    named = (_name(item) for item in found.items if item.get("role") == AGENT)
    whole = _usage(found.about, model, "act (all calls)", next(named, None))
    entries.append(Entry(len(found.items) + 1, found.where, None, whole))
    metadata, task = found.about.get("metadata"), found.about.get("task")
    transcript = Transcript(
        session=found.session,
        format=_NAME,
        where=found.where,
        entries=entries,
        participants=Participants(step for entry in entries for step in entry.steps),
        start=beginning_of(entries),
        task=task if isinstance(task, str) else None,
        models={AGENT: model if isinstance(model, str) else None},
        config={"metadata": metadata} if isinstance(metadata, Mapping) and metadata else {},
    )
    yield from read_transcript(transcript, reading)


def _name(item: Item) -> str | None:
    """The sender's name, if the role does not say it already."""
    name = item.get("name")
    return name if isinstance(name, str) and name else None


def _usage(item: Item, model: JSON, purpose: str, agent: str | None) -> tuple[ModelUse, ...]:
    """The model call behind a message, if its tokens are counted."""
    usage = usage_of(item.get("usage"))
    if usage is None:
        return ()
    named = model if isinstance(model, str) and model else None
    return (ModelUse(model=named, tokens=usage, purpose=purpose, name=agent),)
