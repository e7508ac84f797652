"""Conversations out of a log, as messages of Chat Completions or as items of Responses.

Interfaces like these know two sides. What people and agents say becomes messages; names other than
``user`` and ``assistant`` are kept beside the role. An agent's actions become tool calls, each with
its result right behind the message that holds it, as the interfaces ask for; its versions of the
shared output become calls of ``submit``. What neither form can say is counted and left out: what
people did without a word, say. A conversation that was imported comes out as it went in, but for
the spelling of JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias, final

import msgspec

from ..engine.events import (
    JSON,
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    NoteTaken,
    SnapshotTaken,
)
from ..engine.records import TRACE, Record
from .importers.chat.session import AGENT, HUMAN

__all__ = ("Written", "items_of", "messages_of")

_Json: TypeAlias = dict[str, JSON]

_SUBMIT: Final = "submit"
_NO_RESULT: Final = "no result"
_WORDLESS: Final = frozenset({"ActionTaken", "SnapshotTaken"})


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation, written down.

    Attributes:
        items: messages or items, in order.
        left_out: how many events of which kind could not be said.
    """

    items: list[_Json]
    left_out: Mapping[str, int]


class _Call(msgspec.Struct):
    """A tool call, and what came of it."""

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


def messages_of(records: Iterable[Record]) -> Written:
    """A session as messages of Chat Completions.

    Args:
        records: of its trace, in order, from the first.
    """
    writer = _Writer(notes=False)
    items: list[_Json] = []
    for part in writer.write(records):
        if isinstance(part, _Call):
            continue  # told behind the message that it was made in
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
            content = _told(call.result)
            items.append({"role": "tool", "tool_call_id": call.id, "content": content})
    return Written(items=items, left_out=dict(writer.left_out))


def items_of(records: Iterable[Record]) -> Written:
    """A session as items of Responses; an agent's notes are its reasoning.

    Args:
        records: of its trace, in order, from the first.
    """
    writer = _Writer(notes=True)
    items: list[_Json] = []
    for entry in writer.write(records):
        if isinstance(entry, _Call):
            output = _told(entry.result)
            items.append({"type": "function_call_output", "call_id": entry.id, "output": output})
        else:
            items += _items(entry)
    return Written(items=items, left_out=dict(writer.left_out))


def _items(part: _Part) -> Iterator[_Json]:
    """The items of a message without the results of its calls, which come where they came."""
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

    def write(self, records: Iterable[Record]) -> list[_Part | _Call]:
        """The messages of a session, and each call once more where its result came."""
        for record in records:
            if record.stream == TRACE:
                self._take(record)
        return self._entries

    def _take(self, record: Record) -> None:
        event = record.event
        if isinstance(event, MessageSent):
            self._say(record, event.text)
        elif isinstance(event, ApprovalAsked):
            self._say(record, event.question)
        elif isinstance(event, ApprovalGiven):
            self._say(record, event.comment or ("Approved." if event.approved else "Denied."))
        elif isinstance(event, ActionResolved):
            call = self._calls.get(event.action)
            if call is not None:
                call.result = event.observation if event.observation is not None else event.error
                self._entries.append(call)
        elif record.role == "agent":
            self._work(record, event)
        elif record.role == "human" and record.kind in _WORDLESS:
            self.left_out[record.kind] += 1

    def _work(self, record: Record, event: object) -> None:
        """What an agent did without saying it."""
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
        call = _Call(_call_id(record), tool, arguments, _NO_RESULT)
        self._calls[record.version] = call
        index = _index(record)
        last = self._last
        if last is None or index is None or (last.index, last.role) != (index, AGENT):
            last = self._put(_Part(AGENT, _name(record), index, None, []))
        last.calls.append(call)
        return call


def _role(record: Record) -> str:
    if record.role == "human":
        return HUMAN
    if record.role == "agent":
        return AGENT
    return "developer" if record.actor == "developer" else "system"


def _name(record: Record) -> str | None:
    """A name, where the role does not say it already."""
    return None if record.actor in (HUMAN, AGENT, "system", "developer") else record.actor


def _index(record: Record) -> str | None:
    """Which item of its source an event was in; None where it was in none."""
    parts = (record.caller_id or "").split("/", 2)
    return parts[1] if len(parts) > 1 and parts[0] == "item" else None


def _call_id(record: Record) -> str:
    """The id of a call: the source's own, else one made from the version."""
    parts = (record.caller_id or "").split("/", 3)
    if len(parts) == 4 and parts[0] == "item" and parts[3]:
        return parts[3]
    return f"call_{record.version}"


def _told(result: JSON) -> str:
    return result if isinstance(result, str) else _json(result)


def _json(value: JSON) -> str:
    return msgspec.json.encode(value).decode()
