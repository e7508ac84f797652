"""Conversations from a log, as messages of Chat Completions or as items of Responses.

Both formats know two sides. Messages of people and agents become messages; if the format has a
field for names, other names than ``user`` and ``assistant`` are kept there. If the request was
never sent as a message, it becomes the first message. An agent's actions become tool calls: in Chat
Completions the results follow right behind the message, as the format requires. An agent's
snapshots become calls of ``submit``. Events that a format cannot express, such as the actions of
people, are counted and left out. An imported conversation is exported unchanged, except for the
formatting of JSON. Events that an importer derived from a call, such as an approval's question or a
file's text, are left out: the call contains them already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias, final

import msgspec

from ..engine.events import (
    JSON,
    UNKNOWN_MODEL,
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    Forgotten,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Participant,
    SessionOpened,
    SnapshotTaken,
    Tokens,
    Unknown,
)
from ..engine.records import TRACE, Record
from .importers.conversation.steps import AGENT, HUMAN

__all__ = (
    "ChatForm",
    "WrittenConversation",
    "call_id_of",
    "conversation_line",
    "items_of",
    "messages_of",
    "write_conversation",
)

ChatForm: TypeAlias = Literal["chat", "responses"]
"""Chat Completions, or Responses."""

_Json: TypeAlias = dict[str, JSON]

_SUBMIT: Final = "submit"
_NO_RESULT: Final = "no result"
_WORDLESS: Final = frozenset({"ActionTaken", "SnapshotTaken"})
_CONVERSATION: Final = _WORDLESS | {"MessageSent", "ApprovalAsked", "ApprovalGiven", "NoteTaken"}


class WrittenConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation in one of the formats.

    Attributes:
        items: messages or items, in order; empty if there is nothing that the format can express.
        left_out: number of events by kind that the format cannot express.
        about: the main agent's model and the tokens of its calls, as far as they are known.
    """

    items: list[_Json]
    left_out: Mapping[str, int]
    about: Mapping[str, JSON] = {}


class _Call(msgspec.Struct):
    """A tool call with its result."""

    id: str
    tool: str
    arguments: str
    result: JSON = None


class _Part(msgspec.Struct):
    """A message with the calls that were made in it."""

    role: str
    name: str | None
    index: str | None
    text: str | None = None
    calls: list[_Call] = []
    thought: bool = False


def write_conversation(records: Iterable[Record], form: ChatForm) -> WrittenConversation:
    """A session in one of the formats; see ``messages_of`` and ``items_of``."""
    return messages_of(records) if form == "chat" else items_of(records)


def conversation_line(session: str, conversation: WrittenConversation, form: ChatForm) -> bytes:
    """A conversation as a line of JSON, with its end: an object with the session's id as ``id``.

    The conversation is under ``messages`` for Chat Completions and under ``input`` for Responses,
    as the importer reads them.
    """
    key = "messages" if form == "chat" else "input"
    held = {"id": session, **conversation.about, key: conversation.items}
    return msgspec.json.encode(held) + b"\n"


def messages_of(records: Iterable[Record]) -> WrittenConversation:
    """A session as messages of Chat Completions.

    Args:
        records: the records of its trace, in order, from the first.
    """
    writer = _Writer(notes=False)
    items: list[_Json] = []
    for part in writer.write(records):
        if isinstance(part, _Call):
            continue  # written behind the message that holds the call
        message: _Json = {"role": part.role, "content": part.text}
        if part.name is not None:
            message["name"] = part.name
        if part.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.tool, "arguments": call.arguments},
                }
                for call in part.calls
            ]
        items.append(message)
        for call in part.calls:
            content = _as_text(call.result)
            items.append({"role": "tool", "tool_call_id": call.id, "content": content})
    return writer.written(items)


def items_of(records: Iterable[Record]) -> WrittenConversation:
    """A session as items of Responses; an agent's notes are its reasoning.

    Args:
        records: the records of its trace, in order, from the first.
    """
    writer = _Writer(notes=True)
    items: list[_Json] = []
    for entry in writer.write(records):
        if isinstance(entry, _Call):
            output = _as_text(entry.result)
            items.append({"type": "function_call_output", "call_id": entry.id, "output": output})
        else:
            items += _items(entry)
    return writer.written(items)


def _items(part: _Part) -> Iterator[_Json]:
    """The items of a message and its calls; the results follow at their own places."""
    if part.thought:
        summary: list[JSON] = [{"type": "summary_text", "text": part.text}]
        yield {"type": "reasoning", "summary": summary}
    elif part.text is not None:
        kind = "output_text" if part.role == AGENT else "input_text"
        content: list[JSON] = [{"type": kind, "text": part.text}]
        yield {"type": "message", "role": part.role, "content": content}
    for call in part.calls:
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.tool,
            "arguments": call.arguments,
        }


@final
class _Writer:
    def __init__(self, *, notes: bool) -> None:
        self.left_out: Counter[str] = Counter()
        self._notes = notes
        self._entries: list[_Part | _Call] = []
        self._last: _Part | None = None
        self._calls: dict[int, _Call] = {}
        self._imported = False
        self._agent: Participant | None = None
        self._model: str | None = None  # that it called first
        self._used: list[Tokens] = []
        self._open: dict[int, ActionTaken] = {}
        self._implied: set[int] = set()  # questions that calls ask already
        self._resolved: str | None = None  # whose action the record before resolved

    def written(self, items: list[_Json]) -> WrittenConversation:
        """The conversation, as these messages or items have it."""
        about: _Json = {}
        model = self._model or (self._agent.model if self._agent is not None else None)
        if model is not None:
            about["model"] = model
        if self._used:
            about["usage"] = _usage(self._used)
        return WrittenConversation(items=items, left_out=dict(self.left_out), about=about)

    def write(self, records: Iterable[Record]) -> list[_Part | _Call]:
        """The messages of a session, and each call again at the place of its result."""
        for record in records:
            if record.stream == TRACE:
                resolved, self._resolved = self._resolved, None
                self._note(record)
                if self._is_implied(record, resolved):
                    self.left_out[record.kind] += 1
                else:
                    self._take(record)
        return self._entries

    def _note(self, record: Record) -> None:
        """Notes what later records need to know about this one."""
        match record.event:
            case SessionOpened(config=config, participants=participants):
                self._imported = "imported" in config
                agents = (one for one in participants if one.role == "agent")
                self._agent = next(agents, None)
            case ModelCalled(tokens=tokens, model=model) if (
                self._agent is not None and record.actor == self._agent.name
            ):
                if self._model is None and model != UNKNOWN_MODEL:
                    self._model = model
                self._used.append(tokens)
            case ActionTaken() as taken if record.role == "agent":
                self._open[record.version] = taken
            case ActionResolved(action=action) if action in self._open:
                self._resolved = self._open.pop(action).name
            case _:
                pass

    def _is_implied(self, record: Record, resolved: str | None) -> bool:
        """Whether a call already contains an event that an importer derived from it."""
        match record.event:
            case ApprovalAsked(action=action, arguments=arguments) if self._imported:
                asked = any(
                    one.name == action and one.arguments == arguments for one in self._open.values()
                ) or (resolved == action)
                if asked:
                    self._implied.add(record.version)
                return asked
            case ApprovalGiven(asked=question):
                return question in self._implied
            case SnapshotTaken():
                return self._imported and resolved is not None
            case _:
                return False

    def _take(self, record: Record) -> None:
        event = record.event
        if isinstance(event, Forgotten | Unknown):
            if record.kind in _CONVERSATION:
                self.left_out[record.kind] += 1
        elif isinstance(event, SessionOpened):
            if event.request:
                self._put(_Part(HUMAN, None, None, event.request, []))
        elif isinstance(event, MessageSent):
            self._say(record, event.text)
        elif isinstance(event, ApprovalAsked):
            self._say(record, event.question)
        elif isinstance(event, ApprovalGiven):
            self._say(record, event.comment or ("Approved." if event.approved else "Denied."))
        elif isinstance(event, ActionResolved):
            call = self._calls.get(event.action)
            if call is not None and event.outcome != "cancelled":
                call.result = event.observation if event.observation is not None else event.error
                self._entries.append(call)
        elif record.role == "agent":
            self._work(record, event)
        elif record.role == "human" and record.kind in _WORDLESS:
            self.left_out[record.kind] += 1

    def _work(self, record: Record, event: object) -> None:
        """Actions, snapshots and notes of an agent."""
        if isinstance(event, ActionTaken):
            written = event.raw
            arguments = _json(event.arguments) if written is None else written
            self._call(record, event.name, arguments)
        elif isinstance(event, SnapshotTaken):
            call = self._call(record, _SUBMIT, _json({"content": event.content}))
            call.result = f"version {record.version}"
            self._entries.append(call)
        elif isinstance(event, NoteTaken):
            if self._notes:
                self._put(_Part(AGENT, _name(record), None, event.text, thought=True))
            else:
                self.left_out[record.kind] += 1

    def _say(self, record: Record, text: str) -> None:
        self._put(_Part(_role(record), _name(record), _index(record), text, []))

    def _put(self, part: _Part) -> _Part:
        self._entries.append(part)
        self._last = part
        return part

    def _call(self, record: Record, tool: str, arguments: str) -> _Call:
        call = _Call(call_id_of(record), tool, arguments, _NO_RESULT)
        self._calls[record.version] = call
        index = _index(record)
        last = self._last
        if last is None or index is None or (last.index, last.role) != (index, AGENT):
            last = self._put(_Part(AGENT, _name(record), index, None, []))
        last.calls.append(call)
        return call


def _usage(calls: Sequence[Tokens]) -> JSON:
    """The sum of the tokens of calls, as the provider would have counted them."""

    def total(field: str) -> int | None:
        values = [value for one in calls if (value := getattr(one, field)) is not None]
        return sum(values) if values else None

    prompt, completion, cached = total("prompt"), total("completion"), total("cached")
    created, reasoning = total("cache_creation"), total("reasoning")
    held: _Json
    if created is not None:  # Anthropic counts cached tokens separately from the prompt
        held = {
            "input_tokens": prompt,
            "output_tokens": completion,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": created,
        }
    else:
        held = {"prompt_tokens": prompt, "completion_tokens": completion}
        if cached is not None:
            held["prompt_tokens_details"] = {"cached_tokens": cached}
        if reasoning is not None:
            held["completion_tokens_details"] = {"reasoning_tokens": reasoning}
    return {name: value for name, value in held.items() if value is not None}


def _role(record: Record) -> str:
    if record.role == "human":
        return HUMAN
    if record.role == "agent":
        return AGENT
    return "developer" if record.actor == "developer" else "system"


def _name(record: Record) -> str | None:
    """A name, if the role does not say it already."""
    return None if record.actor in (HUMAN, AGENT, "system", "developer") else record.actor


def _index(record: Record) -> str | None:
    """Which item of its source an event was in; None if it was in none."""
    parts = (record.caller_id or "").split("/", 2)
    return parts[1] if len(parts) > 1 and parts[0] == "item" else None


def call_id_of(record: Record) -> str:
    """The id of a call: the source's own, else one made from the version."""
    parts = (record.caller_id or "").split("/", 3)
    if len(parts) == 4 and parts[0] == "item" and parts[3]:
        return parts[3]
    return f"call_{record.version}"


def _as_text(result: JSON) -> str:
    return result if isinstance(result, str) else _json(result)


def _json(value: JSON) -> str:
    return msgspec.json.encode(value).decode()
