"""Encodes a session as events of AG-UI: a fold of its records, without input or output.

Every event is inside a run, as the protocol asks for. If the session was recorded from such
a stream, its runs are those of that stream. Otherwise a run begins with the first record that is
encoded, and ends when a person acts after the agent has, when the agent yields, asks for an approval
or fails, and when the session is closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import singledispatchmethod
from typing import Final, final

import msgspec

from ...engine.events import (
    JSON,
    ActionResolved,
    ActionTaken,
    ActorFailed,
    ApprovalAsked,
    ApprovalGiven,
    FeedbackGiven,
    MessageSent,
    NoteTaken,
    ProgressRated,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    TurnYielded,
    Unknown,
)
from ...engine.files import Contents
from ...engine.records import TRACE, Record
from ...engine.rounds import RoundProjector
from .names import ADVICE, ALONE, AguiEvent, id_in
from .shared_state import SharedState
from .thread_index import unwrap_event
from .validate import drop_misfits

__all__ = (
    "AguiEncoder",
    "Transcript",
    "is_parts",
    "without_nulls",
)


_MEDIA: Final = frozenset({"image", "audio", "video", "document"})


def without_nulls(event: Mapping[str, JSON]) -> AguiEvent:
    """An event without the fields that say nothing, which the protocol leaves out."""
    return {key: value for key, value in event.items() if value is not None}


def is_parts(content: JSON) -> bool:
    """Whether a content is a list of parts: of texts, and of media with their sources."""
    return isinstance(content, list) and all(
        isinstance(part, Mapping)
        and (
            (part.get("type") == "text" and isinstance(part.get("text"), str))
            or (part.get("type") in _MEDIA and isinstance(part.get("source"), Mapping))
        )
        for part in content
    )


@final
class Transcript:
    """The messages of a thread, by id."""

    def __init__(self) -> None:
        self._messages: dict[str, AguiEvent] = {}
        self._calls: dict[str, list[JSON]] = {}

    def messages(self) -> list[JSON]:
        """All of them, in order."""
        return [
            {**message, "toolCalls": list(calls)} if (calls := self._calls.get(ident)) else message
            for ident, message in self._messages.items()
        ]

    def say(
        self, ident: str, role: str, content: JSON, name: str | None, fields: AguiEvent
    ) -> None:
        """A message."""
        message: AguiEvent = {"id": ident, "role": role, "content": content, "name": name}
        self._messages[ident] = without_nulls(message) | fields

    def call(self, ident: str, tool: str, arguments: str, fields: AguiEvent) -> None:
        """A tool call, in the message that it belongs to, else in a separate one."""
        parent = fields.get("parentMessageId")
        holder = parent if isinstance(parent, str) else f"{ident}/message"
        if (
            self._messages.setdefault(holder, {"id": holder, "role": "assistant"})["role"]
            != "assistant"
        ):
            holder = f"{ident}/message"
            self._messages[holder] = {"id": holder, "role": "assistant"}
        function: AguiEvent = {"name": tool, "arguments": arguments}
        calls = self._calls.setdefault(holder, [])
        calls.append({"id": ident, "type": "function", "function": function})

    def result(self, ident: str, call: str, content: JSON, error: str | None) -> None:
        """The result of a tool."""
        message: AguiEvent = {"id": ident, "role": "tool", "toolCallId": call, "content": content}
        self._messages[ident] = message if error is None else {**message, "error": error}


_ROLES: Final[Mapping[str, str]] = {"human": "user", "agent": "assistant"}
_BEHIND: Final = frozenset({"fields", "MESSAGES_SNAPSHOT"})


@final
class AguiEncoder:
    """Encodes the records of one session in order of position, from the first.

    Args:
        session: session id; the thread's, if nothing says otherwise.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._thread = session
        self._run: str | None = None
        self._theirs = False  # whether the run is one of the stream that was recorded
        self._state = SharedState()
        self._contents = Contents()
        self._transcript = Transcript()
        self._first: dict[str, str] = {}  # by role, the actor without a name
        self._fields: dict[str, AguiEvent] = {}
        self._subagents: dict[str, str] = {}
        self._calls: dict[int, str] = {}
        self._rounds = RoundProjector()

    def encode(self, record: Record) -> list[AguiEvent]:
        """The events of a record; none for private or empty ones."""
        if record.stream != TRACE:
            return []
        stamp = round(record.time * 1000)
        encoded = [drop_misfits(event) for event in self._encode(record)]
        return [event | {"timestamp": event.get("timestamp", stamp)} for event in encoded]

    def encode_updates(self, updates: Sequence[msgspec.Struct], after: Record) -> list[AguiEvent]:
        """Updates of scoring after a record, as CUSTOM events with names from ``names.ADVICE``."""
        customs: list[AguiEvent] = []
        for update in updates:
            value = msgspec.json.decode(msgspec.json.encode(update), type=dict[str, JSON])
            kind = str(value.pop("update", type(update).__name__))
            name = ADVICE.get(kind, f"duolog.{kind}")
            stamp = round(after.time * 1000)
            customs.append({"type": "CUSTOM", "name": name, "value": value, "timestamp": stamp})
        if not customs or self._run is not None:
            return customs
        # After its run, or the session, is over: in a small separate run.
        return self._aside(f"{self._session}/{after.position}", customs)

    def encode_state(self) -> list[AguiEvent]:
        """The run, the messages and the state so far, for a client that joins now."""
        held: list[AguiEvent] = [
            {"type": "MESSAGES_SNAPSHOT", "messages": self._transcript.messages()},
            {"type": "STATE_SNAPSHOT", "snapshot": self._state.whole},
        ]
        if self._run is None:
            return self._aside(f"{self._session}/join", held)
        return [self._bound("RUN_STARTED", self._run), *held]

    def _aside(self, run: str, events: list[AguiEvent]) -> list[AguiEvent]:
        return [self._bound("RUN_STARTED", run), *events, self._bound("RUN_FINISHED", run)]

    # --- runs -------------------------------------------------------------------------------------

    def _encode(self, record: Record) -> Iterator[AguiEvent]:
        turned = self._rounds.feed(record) is not None
        if turned and not self._theirs and record.kind != "SessionClosed":
            yield from self._finish()
        yield from self._event(record.event, record)

    def _bound(self, kind: str, run: str) -> AguiEvent:
        return {"type": kind, "threadId": self._thread, "runId": run}

    def _begin(self, record: Record) -> Iterator[AguiEvent]:
        """A run begins, unless one is open."""
        if self._run is None:
            self._run = f"{self._session}/{record.version}"
            yield self._bound("RUN_STARTED", self._run)

    def _finish(self, outcome: AguiEvent | None = None) -> Iterator[AguiEvent]:
        """The run is over, if one is open."""
        if self._run is not None:
            finished = self._bound("RUN_FINISHED", self._run)
            yield finished if outcome is None else {**finished, "outcome": outcome}
        self._run, self._theirs = None, False

    def _custom(self, record: Record, name: str, value: AguiEvent) -> Iterator[AguiEvent]:
        yield from self._begin(record)
        who: AguiEvent = {"actor": record.actor, "role": record.role}
        yield {"type": "CUSTOM", "name": f"duolog.{name}", "value": {**who, **value}}

    # --- events -----------------------------------------------------------------------------------

    @singledispatchmethod
    def _event(self, event: object, record: Record) -> Iterator[AguiEvent]:
        """An event that is not encoded: a private note, a model's call, one that was erased."""
        yield from ()

    @_event.register
    def _(self, event: SessionOpened, record: Record) -> Iterator[AguiEvent]:
        for participant in event.participants:
            self._first.setdefault(participant.role, participant.name)
        if event.request:
            yield from self._begin(record)
            yield from self._say(record, "user", event.request, None, f"{self._session}/request")

    @_event.register
    def _(self, event: MessageSent, record: Record) -> Iterator[AguiEvent]:
        yield from self._begin(record)
        ident = id_in(record.caller_id, "message") or record.id
        yield from self._say(record, self._role(record), event.text, self._name(record), ident)

    def _say(
        self, record: Record, role: str, text: str, name: str | None, ident: str
    ) -> Iterator[AguiEvent]:
        about: AguiEvent = {"messageId": ident} | self._whose(record)
        fields = self._fields.pop(record.caller_id or "", {})
        content = fields.pop("content", text)
        start = without_nulls({"type": "TEXT_MESSAGE_START", **about, "role": role, "name": name})
        yield start | fields
        if text:
            yield {"type": "TEXT_MESSAGE_CONTENT", **about, "delta": text}
        yield {"type": "TEXT_MESSAGE_END", **about}
        self._transcript.say(ident, role, content, name, fields)

    @_event.register
    def _(self, event: NoteTaken, record: Record) -> Iterator[AguiEvent]:
        # A note is its author's alone, but for what an app has shown as reasoning already.
        ident = id_in(record.caller_id, "message")
        if ident is None:
            return
        yield from self._begin(record)
        about: AguiEvent = {"messageId": ident} | self._whose(record)
        fields = self._fields.pop(record.caller_id or "", {})
        yield {"type": "REASONING_MESSAGE_START", **about, "role": "reasoning"} | fields
        if event.text:
            yield {"type": "REASONING_MESSAGE_CONTENT", **about, "delta": event.text}
        yield {"type": "REASONING_MESSAGE_END", **about}
        self._transcript.say(ident, "reasoning", event.text, None, fields)

    @_event.register
    def _(self, event: ActionTaken, record: Record) -> Iterator[AguiEvent]:
        if record.role != "agent":
            value = without_nulls({"name": event.name, "arguments": event.arguments})
            yield from self._custom(record, "action", value | {"version": record.version})
            return
        yield from self._begin(record)
        ident = self._calls[record.version] = id_in(record.caller_id, "call") or record.id
        about: AguiEvent = {"toolCallId": ident} | self._whose(record)
        fields = self._fields.pop(record.caller_id or "", {})
        written = event.raw
        if written is None:
            written = msgspec.json.encode(event.arguments).decode()
        yield {"type": "TOOL_CALL_START", **about, "toolCallName": event.name} | fields
        yield {"type": "TOOL_CALL_ARGS", **about, "delta": written}
        yield {"type": "TOOL_CALL_END", **about}
        self._transcript.call(ident, event.name, written, fields)

    @_event.register
    def _(self, event: ActionResolved, record: Record) -> Iterator[AguiEvent]:
        fields = self._fields.pop(record.caller_id or "", {})
        call = self._calls.get(event.action)
        if call is None:
            value = without_nulls({"outcome": event.outcome, "error": event.error})
            value |= {"action": event.action, "observation": event.observation}
            yield from self._custom(record, "outcome", value)
            return
        yield from self._begin(record)
        ident = id_in(record.caller_id, "message") or record.id
        content = _content(event, listed=record.caller_id is not None)
        if event.outcome != "ok":
            ours = without_nulls({"outcome": event.outcome, "error": event.error or event.outcome})
            metadata = fields.get("metadata")
            fields["metadata"] = {
                **(metadata if isinstance(metadata, dict) else {}),
                "duolog": ours,
            }
        about: AguiEvent = {"messageId": ident, "toolCallId": call, "content": content}
        yield {"type": "TOOL_CALL_RESULT", **about} | fields
        self._transcript.result(ident, call, content, event.error)

    @_event.register
    def _(self, event: SnapshotTaken, record: Record) -> Iterator[AguiEvent]:
        yield from self._begin(record)
        self._state.take_part(self._contents.whole(event).content)
        yield self._snapshot(record)

    def _snapshot(self, record: Record) -> AguiEvent:
        event: AguiEvent = {"type": "STATE_SNAPSHOT", "snapshot": self._state.whole}
        if record.role == "human":
            event["metadata"] = {"duolog": {"actor": record.actor, "role": record.role}}
        return event

    @_event.register
    def _(self, event: ApprovalAsked, record: Record) -> Iterator[AguiEvent]:
        if id_in(record.caller_id, "interrupt") is not None:
            return  # the end of its run says so
        if record.role != "agent":
            yield from self._custom(record, "approval-asked", {"question": event.question})
            return
        yield from self._begin(record)
        waiting: AguiEvent = {"id": record.id, "reason": "approval", "message": event.question}
        yield from self._finish({"type": "interrupt", "interrupts": [waiting]})

    @_event.register
    def _(self, event: ApprovalGiven, record: Record) -> Iterator[AguiEvent]:
        if (record.caller_id or "").startswith("resume/"):
            return  # the beginning of its run says so
        yield from self._finish()
        self._run = f"{self._session}/{record.version}"
        payload: AguiEvent = {"approved": event.approved, "comment": event.comment}
        asked = f"{self._session}/{TRACE}/{event.asked}"
        answer: AguiEvent = {"interruptId": asked, "status": "resolved", "payload": payload}
        yield self._bound("RUN_STARTED", self._run) | {"input": self._request({"resume": [answer]})}

    @_event.register
    def _(self, event: FeedbackGiven, record: Record) -> Iterator[AguiEvent]:
        value: AguiEvent = without_nulls(msgspec.to_builtins(event))
        value.pop("kind", None)
        yield from self._custom(record, "feedback", value)

    @_event.register
    def _(self, event: ProgressRated, record: Record) -> Iterator[AguiEvent]:
        value = without_nulls({"round": event.round, "rating": event.rating})
        yield from self._custom(record, "rated", value)

    @_event.register
    def _(self, event: TurnYielded, record: Record) -> Iterator[AguiEvent]:
        if record.role == "agent" and not self._theirs:
            yield from self._finish()

    @_event.register
    def _(self, event: ActorFailed, record: Record) -> Iterator[AguiEvent]:
        yield from self._begin(record)
        fields = self._fields.pop(record.caller_id or "", {})
        code = None if event.type == "RUN_ERROR" else event.type
        failed: AguiEvent = {"type": "RUN_ERROR", "message": event.error, "code": code}
        yield without_nulls(failed) | fields
        self._run, self._theirs = None, False

    @_event.register
    def _(self, event: SessionClosed, record: Record) -> Iterator[AguiEvent]:
        value = without_nulls({"reason": event.reason, "by": event.by, "detail": event.detail})
        yield from self._custom(record, "closed", value)
        yield from self._finish({"type": "cancelled"} if event.reason == "cancelled" else None)

    @_event.register
    def _(self, event: Unknown, record: Record) -> Iterator[AguiEvent]:
        found = unwrap_event(event)
        if found is None:
            yield from self._custom(record, "unknown", {"kind": event.kind})
            return
        kind, held = found
        if kind == "RUN_STARTED":
            yield from self._resume(held)
        elif kind == "RUN_FINISHED":
            yield from self._begin(record)
            yield held | self._bound(kind, self._run or "")
            self._run, self._theirs = None, False
        elif kind == "fields":
            fields = held.get("fields")
            self._fields[str(held.get("of"))] = dict(fields) if isinstance(fields, dict) else {}
        elif kind not in _BEHIND:
            yield from self._begin(record)
            yield from self._kept(kind, held, record)

    # --- what was kept ----------------------------------------------------------------------------

    def _resume(self, held: AguiEvent) -> Iterator[AguiEvent]:
        """A run of the stream that was recorded begins."""
        run = str(held.get("runId") or "")
        if self._theirs and run == self._run:
            return  # said again, with more than there was in the request
        yield from self._finish()
        self._thread = str(held.get("threadId") or self._thread)
        self._run, self._theirs = run or self._session, True
        begun = held | self._bound("RUN_STARTED", self._run)
        request = begun.get("input")
        if isinstance(request, dict):
            begun["input"] = self._request(request)
        yield begun

    def _request(self, held: AguiEvent) -> AguiEvent:
        """The input that started a run; its messages are encoded one by one. Version 0.1 of the
        protocol asks for all of these fields.
        """
        known: AguiEvent = {"threadId": self._thread, "runId": self._run, "messages": []}
        asked: AguiEvent = {"state": self._state.whole, "tools": [], "context": []}
        return known | asked | {"forwardedProps": {}} | held

    def _kept(self, kind: str, held: AguiEvent, record: Record) -> Iterator[AguiEvent]:
        if kind in ("STATE_SNAPSHOT", "STATE_DELTA"):
            if "snapshot" in held:
                pointer = held.get("output")
                if isinstance(pointer, str) and pointer != self._state.output:
                    part, self._state = self._state.part, SharedState(pointer)
                    self._state.take_part(part)
                self._state.take_rest(held["snapshot"])
            elif not held.get("unchanged"):
                yield from self._passed(held)
                return
            yield self._snapshot(record)
        elif kind == "TEXT_MESSAGE":
            role, name = str(held.get("role")), held.get("name")
            said = name if isinstance(name, str) else None
            yield from self._say(record, _known_role(role), "", said, str(held.get("messageId")))
        elif kind in ALONE and _is_whole(held, ALONE[kind]):
            if kind == "SUBAGENT_STARTED":
                self._subagents[str(held.get("name"))] = str(held.get("subagentRunId"))
            yield held
        else:
            yield from self._passed(held)

    def _passed(self, held: AguiEvent) -> Iterator[AguiEvent]:
        """An event that front ends do not understand, passed through for apps that want it."""
        yield {"type": "RAW", "event": held, "source": "agui"}

    # --- who --------------------------------------------------------------------------------------

    def _role(self, record: Record) -> str:
        return _ROLES.get(record.role) or _known_role(record.actor)

    def _name(self, record: Record) -> str | None:
        """The speaker's name, if the role does not say so already."""
        if record.role == "environment":
            return None if _known_role(record.actor) == record.actor else record.actor
        first = self._first.setdefault(record.role, record.actor)
        return None if record.actor in (first, *self._subagents) else record.actor

    def _whose(self, record: Record) -> AguiEvent:
        """The subagent whose work it is, if it is one's."""
        subagent = self._subagents.get(record.actor)
        return {} if subagent is None else {"subagentRunId": subagent}


def _is_whole(held: AguiEvent, needed: Mapping[str, type]) -> bool:
    return all(key in held and isinstance(held[key], kind) for key, kind in needed.items())


def _known_role(role: str) -> str:
    return role if role in ("system", "developer", "assistant", "user") else "system"


def _content(event: ActionResolved, *, listed: bool) -> JSON:
    """The result of a tool, as text; or as parts, if it came so."""
    found = event.observation
    if isinstance(found, str) or (listed and is_parts(found)):
        return found
    if found is None:
        return event.error or ""
    return msgspec.json.encode(found).decode()
