"""Decodes messages, tool calls and their results, streamed or in a list, into entries to record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final

import msgspec

from ...engine import codec
from ...engine.errors import InvalidInput
from ...engine.events import JSON, ActionResolved, ActionTaken, MessageSent, NoteTaken, Role
from ...telemetry.actor import RecordedActor
from ...telemetry.receipt import Awaited, Receipt
from ..importers.chat import steps_of, text_of
from ..importers.conversation.steps import Omission, ToolCall, Utterance
from ..importers.trace_builder import arguments_of
from .assembler import WholeCall, WholeMessage
from .entries import AguiEntry, Deduplicator, add_entry, parse_timestamp
from .names import AguiEvent, call_id, message_id
from .thread_index import event_digest, without_timestamp, wrap_event

__all__ = ("MessageDecoder",)

_ROLES: Final[Mapping[str, Role]] = {
    "user": "human",
    "assistant": "agent",
    "reasoning": "agent",
    "system": "environment",
    "developer": "environment",
}
_HELD: Final = frozenset(
    "id role content name toolCalls toolCallId error subagentRunId activityType".split()
)


@final
class MessageDecoder:
    """Decodes the messages and actions of people and agents.

    Args:
        entries: makes entries for items missing from the log.
        agents: the recipients of instructions.
    """

    def __init__(self, entries: Deduplicator, agents: Sequence[str]) -> None:
        self._entries = entries
        self._agents = tuple(agents)
        self._nameless: dict[str, int] = {}

    # --- as it is streamed ------------------------------------------------------------------------

    def spoken(self, one: WholeMessage) -> Iterator[AguiEntry]:
        """A message that was streamed."""
        role = "reasoning" if one.reasoning else one.role
        name = self._speaker(one.subagent, one.name)
        yield from self._say(one.id, role, name, one.text, one.fields, one.time, one.problem)

    def called(self, one: WholeCall) -> Iterator[AguiEntry]:
        """A tool call that was streamed."""
        name = self._speaker(one.subagent, None)
        yield from self._call(
            one.id, one.tool, one.arguments, name, one.fields, one.time, one.problem
        )

    def result(self, event: AguiEvent) -> Iterator[AguiEntry]:
        """The result of a tool call, as an event or as a message of the role ``tool``."""
        known = self._entries.known
        given = event.get("toolCallId")
        call = _bare(given if isinstance(given, str) else "")
        content, error = event.get("content"), _error(event)
        outcome = ActionResolved(
            action=0, outcome="ok" if error is None else "failed", observation=content, error=error
        )
        mark = event_digest(outcome)
        message = event.get("messageId", event.get("id"))
        ident = message_id(message) if isinstance(message, str) else f"result/{call}"
        if known.marks.get(ident) in (mark, event_digest(wrap_event(without_timestamp(event)))):
            return
        action, held = known.calls.get(call), known.resolved.get(call)
        if action is None:
            yield from self._entries.keep_as(ident, event, f"a result of no call (id {call!r})")
            return
        if held is not None:
            if held != mark:
                why = f"a second result of a call (id {call!r})"
                yield from self._entries.keep_as(ident, event, why)
            return
        known.resolved[call] = mark
        fresh = self._entries.fresh(ident, mark)
        if fresh is None:
            return
        named = {*_HELD, "type", "messageId", "timestamp", "rawEvent"}
        rest = {key: value for key, value in event.items() if key not in named}
        if _is_ours(rest.get("metadata")):
            del rest["metadata"]
        yield from self._entries.keep_fields(fresh, rest)

        def do(actor: RecordedActor[Awaited], at: float) -> Awaited:
            return actor.resolves(action, content, error=error, id=fresh, at=at)

        yield AguiEntry(do, "agent", None, parse_timestamp(event.get("timestamp")))

    # --- in a list --------------------------------------------------------------------------------

    def messages(self, listed: JSON) -> Iterator[AguiEntry]:
        """The messages of a thread, of which the log may hold some."""
        if listed is None:
            return
        if not isinstance(listed, list):
            event: AguiEvent = {"type": "messages", "messages": listed}
            yield from self._entries.keep(event, "its messages are no list")
            return
        self._nameless.clear()
        for item in listed:
            if isinstance(item, dict):
                try:
                    yield from self._message(item)
                except InvalidInput as error:
                    yield from self._keep(item, f"a message cannot be read: {error}")
            else:
                yield from self._keep(item, "a message is no object")

    def _keep(self, item: JSON, problem: str) -> Iterator[AguiEntry]:
        """Keeps an item that is not a message, once however often it is in the list."""
        event: AguiEvent = {"type": "message", "message": item}
        ident = message_id(f"~{codec.digest(item)[:24]}")
        yield from self._entries.keep_as(ident, event, problem)

    def _message(self, item: AguiEvent) -> Iterator[AguiEntry]:
        role, ident = item.get("role"), self._id(item)
        fields = {key: value for key, value in item.items() if key not in _HELD}
        name = self._speaker(_text(item, "subagentRunId"), _text(item, "name"))
        if role == "tool":
            yield from self.result(item)
        elif role == "activity":
            event = {
                "type": "ACTIVITY_SNAPSHOT",
                "messageId": ident,
                "activityType": item.get("activityType"),
                "content": item.get("content"),
                **fields,
            }
            yield from self.activity(event)
        elif role == "reasoning":
            text, _ = text_of(item.get("content"))
            yield from self._say(ident, role, name, text, fields, None, None)
        else:
            yield from self._chat(item, ident, name, fields)

    def _chat(
        self, item: AguiEvent, ident: str, name: str | None, fields: AguiEvent
    ) -> Iterator[AguiEntry]:
        steps = list(steps_of({**item, "tool_calls": item.get("toolCalls")}))
        if any(isinstance(step, Omission) for step in steps):
            fields = {**fields, "content": item.get("content")}
        calls = iter(self._calls(item))
        for step in steps:
            if isinstance(step, Utterance):
                yield from self._say(ident, step.role, name, step.text, fields, None, None)
            elif isinstance(step, ToolCall):
                rest: AguiEvent = {"parentMessageId": ident, **next(calls, {})}
                written = (
                    step.raw
                    if step.raw is not None
                    else msgspec.json.encode(step.arguments).decode()
                )
                yield from self._call(step.call, step.tool, written, name, rest, None, None)

    def _calls(self, item: AguiEvent) -> Iterator[AguiEvent]:
        """The additional fields of a message's calls."""
        listed = item.get("toolCalls")
        for call in listed if isinstance(listed, list) else ():
            held = ("id", "type", "function")
            yield {k: v for k, v in call.items() if k not in held} if isinstance(call, dict) else {}

    def activity(self, event: AguiEvent) -> Iterator[AguiEntry]:
        """An agent's report of its activity, kept as received."""
        ident = event.get("messageId")
        held = wrap_event(event)
        if not isinstance(ident, str) or not ident:
            yield from self._entries.keep(event, "it lacks a messageId")
            return
        fresh = self._entries.fresh(message_id(ident), event_digest(held))
        if fresh is not None:
            yield add_entry(held, fresh, at=parse_timestamp(event.get("timestamp")))

    def _id(self, item: AguiEvent) -> str:
        """A message's id; without an id, its text and the number of repetitions identify it."""
        given = item.get("id")
        if isinstance(given, str) and given:
            return given
        mark = f"{item.get('role')}-{codec.digest(item)[:12]}"
        number = self._nameless[mark] = self._nameless.get(mark, 0) + 1
        return f"~{mark}-{number}"

    # --- both -------------------------------------------------------------------------------------

    def _say(
        self,
        ident: str,
        role: str,
        name: str | None,
        text: str,
        fields: AguiEvent,
        stamp: JSON,
        problem: str | None,
    ) -> Iterator[AguiEntry]:
        whose = _ROLES.get(role)
        if whose is None:
            whose, problem = "environment", problem or f"a message of the role {role!r}"
        if whose == "environment":
            name = name or role
        event: MessageSent | NoteTaken = MessageSent(
            text=text, to=self._agents if whose == "environment" else ()
        )
        if role == "reasoning":
            event = NoteTaken(text=text)
        diagnostic = None if problem is None else f"message {ident!r}: {problem}"
        if not ident:
            scoped: AguiEvent = {"type": "reasoning", "text": text}
            fresh = self._entries.scoped(scoped)
        else:
            empty = wrap_event({"messageId": ident, "role": role, "name": name}, "TEXT_MESSAGE")
            saying = empty if not text else event
            known = message_id(ident) in self._entries.known.marks
            fresh = self._entries.fresh(message_id(ident), event_digest(saying))
            if fresh is not None and known:
                diagnostic = diagnostic or f"message {ident!r} came again with other contents"
        if fresh is None:
            return
        yield from self._entries.keep_fields(fresh, fields)
        at = parse_timestamp(stamp)
        if not text and ident:
            yield add_entry(empty, fresh, at=at, problem=diagnostic)
        else:
            yield add_entry(event, fresh, role=whose, name=name, at=at, problem=diagnostic)

    def _call(
        self,
        ident: str,
        tool: str,
        written: str,
        name: str | None,
        fields: AguiEvent,
        stamp: JSON,
        problem: str | None,
    ) -> Iterator[AguiEntry]:
        arguments, raw = arguments_of(written) if written else ({}, None)
        taken = ActionTaken(name=tool or "tool", arguments=arguments, raw=raw)
        known = call_id(ident) in self._entries.known.marks
        fresh = self._entries.fresh(call_id(ident), event_digest(taken))
        if fresh is None:
            return
        if known:
            problem = problem or "it came again with other contents"
        yield from self._entries.keep_fields(fresh, fields)

        def done(receipt: Receipt) -> None:
            self._entries.known.calls.setdefault(_bare(ident), receipt)

        yield add_entry(
            taken,
            fresh,
            role="agent",
            name=name,
            at=parse_timestamp(stamp),
            problem=None if problem is None else f"tool call {ident!r}: {problem}",
            done=done,
        )

    def _speaker(self, subagent: str | None, name: str | None) -> str | None:
        if subagent is None:
            return name
        return self._entries.known.subagents.get(subagent, subagent)


def _bare(ident: str) -> str:
    """A call's id as the log has it, which shortens those that are very long."""
    return call_id(ident).partition("/")[2]


def _text(item: AguiEvent, key: str) -> str | None:
    value = item.get(key)
    return value if isinstance(value, str) and value else None


def _error(event: AguiEvent) -> str | None:
    """Why a tool failed, if that is said: in a message, or in what ``encoder`` adds to an event."""
    error = event.get("error")
    metadata = event.get("metadata")
    if error is None and isinstance(metadata, Mapping):
        ours = metadata.get("duolog")
        error = ours.get("error") if isinstance(ours, Mapping) else None
    return error if isinstance(error, str) else None


def _is_ours(metadata: JSON) -> bool:
    return isinstance(metadata, Mapping) and set(metadata) == {"duolog"}
