"""Conversations from a log as spans: requests to export traces, in OTLP/JSON.

A session is one trace. A person's message is a separate span, an agent's reply is a model call with
its messages and tokens, and an action is the execution of a tool. Replies and actions lie in the
turn of their agent, and all spans in the session. The names are those of the semantic conventions
for generative AI, as far as these have one. A reply holds only the messages since the previous one,
so a file grows in proportion to the session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final, final

import msgspec

from ..engine.events import (
    JSON,
    UNKNOWN_MODEL,
    ActionResolved,
    ActionTaken,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Participant,
    SessionClosed,
    SessionOpened,
)
from ..engine.records import TRACE, Record
from .chat_export import call_id_of
from .otel import names
from .otel.gen_ai import model_named, usage, written

__all__ = ("WrittenTrace", "spans_of", "trace_line")

_Json = dict[str, JSON]

_LEFT_OUT: Final = frozenset(
    "SnapshotTaken ApprovalAsked ApprovalGiven FeedbackGiven ProfileChanged DraftDropped ActionTaken ModelCalled".split()
)
"""Kinds that are left out, if they are not an agent's actions or model calls."""
_NANO: Final = 10**9
_INTERNAL, _CLIENT = 1, 3
_ERROR: Final = 2


class WrittenTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A session as spans.

    Attributes:
        spans: as OTLP/JSON has them; empty if there is nothing that it can express.
        left_out: number of events by kind that it cannot express.
    """

    spans: list[_Json]
    left_out: Mapping[str, int]


def spans_of(session: str, records: Iterable[Record]) -> WrittenTrace:
    """A session as spans.

    Args:
        session: its id.
        records: the records of its trace, in order, from the first.
    """
    writer = _Writer(session)
    for record in records:
        if record.stream == TRACE:
            writer.take(record)
    return WrittenTrace(spans=writer.finish(), left_out=dict(writer.left_out))


def trace_line(trace: WrittenTrace) -> bytes:
    """A session as a line of JSON, with its end: a request to export its spans."""
    resource = {"attributes": [_attribute("service.name", names.SCOPE)]}
    scope = {"scope": {"name": names.SCOPE}, "spans": trace.spans}
    held = {"resource": resource, "scopeSpans": [scope], "schemaUrl": names.SCHEMA_URL}
    return msgspec.json.encode({"resourceSpans": [held]}) + b"\n"


class _Reply(msgspec.Struct):
    """An agent's messages and calls in one reply, and the model call behind them."""

    span: int
    actor: str
    start: float
    end: float
    heard: list[_Json]
    parts: list[_Json] = []
    call: ModelCalled | None = None


class _Turn(msgspec.Struct):
    """All that an agent did."""

    span: int
    start: float
    end: float


@final
class _Writer:
    def __init__(self, session: str) -> None:
        self.left_out: Counter[str] = Counter()
        self._session = session
        self._digest = sha256(session.encode()).hexdigest()
        self._spans: list[_Json] = []
        self._number = 1  # of the last span; the first is the session's
        self._start: float | None = None
        self._end = 0.0
        self._root: _Json = {}
        self._agents: Mapping[str, Participant] = {}
        self._main: str | None = None
        self._turns: dict[str, _Turn] = {}
        self._heard: list[_Json] = []
        self._replies: dict[str, _Reply] = {}
        self._paused: dict[str, list[_Reply]] = {}  # that wait for their model call
        self._called_first: dict[str, bool] = {}
        self._actions: dict[int, tuple[Record, ActionTaken, str]] = {}
        self._calls: set[str] = set()

    def take(self, record: Record) -> None:
        """Takes the next record of the trace."""
        if self._start is None:
            self._start = record.time
        self._end = max(self._end, record.time)
        event, agent = record.event, record.role == "agent"
        match event:
            case SessionOpened():
                self._open(record, event)
            case MessageSent(text=text) if not agent:
                self._listen(record, text)
            case MessageSent(text=text):
                self._say(record, {"type": "text", "content": text})
            case NoteTaken(text=text) if agent:
                self._say(record, {"type": "reasoning", "content": text})
            case ActionTaken() if agent:
                self._act(record, event)
            case ActionResolved(action=action) if action in self._actions:
                self._resolve(record, event)
            case ModelCalled() if agent:
                self._call(record, event)
            case SessionClosed(reason=reason):
                self._root[names.CLOSE_REASON] = reason
            case _ if record.kind in _LEFT_OUT:
                self.left_out[record.kind] += 1
            case _:
                pass

    def finish(self) -> list[_Json]:
        """All spans, in the order in which they began."""
        self._flush()
        if not self._spans:
            return []
        start = self._start or 0.0
        for actor, turn in self._turns.items():
            about = {names.OPERATION: "invoke_agent", names.AGENT: self._agent(actor)}
            name = f"invoke_agent {about[names.AGENT]}"
            self._span(turn.span, name, turn.start, turn.end, about, around=1)
        task = self._root.get(names.WORKFLOW)
        name = f"invoke_workflow {task}" if task else "invoke_workflow"
        self._span(1, name, start, self._end, {names.OPERATION: "invoke_workflow", **self._root})
        return sorted(self._spans, key=lambda span: str(span["spanId"]))

    # --- what happens -----------------------------------------------------------------------------

    def _open(self, record: Record, event: SessionOpened) -> None:
        self._agents = {one.name: one for one in event.participants if one.role == "agent"}
        self._main = next(iter(self._agents), None)
        self._root |= {names.CLOCK: event.clock, names.INSTANCE: event.instance}
        if event.task:
            self._root[names.WORKFLOW] = event.task
        if event.request:
            self._listen(msgspec.structs.replace(record, role="human"), event.request)

    def _listen(self, record: Record, text: str) -> None:
        """Takes a person's message, or text from the instructions."""
        human = record.role == "human"
        part: _Json = {"type": "text", "content": text}
        said: _Json = {"role": "user" if human else "system", "parts": [part]}
        self._heard.append(said)
        if human:
            self._flush()
            about = {
                names.ACTOR_KIND: "human",
                names.ACTOR: record.actor,
                names.OUTPUT_MESSAGES: written([said]),
            }
            self._span(self._next(), "human_turn", record.time, record.time, about, around=1)

    def _say(self, record: Record, part: _Json) -> None:
        self._called_first.setdefault(record.actor, False)
        reply = self._reply(record)
        reply.parts.append(part)
        reply.end = max(reply.end, record.time)

    def _act(self, record: Record, event: ActionTaken) -> None:
        call = call_id_of(record)
        while call in self._calls:  # models use ids twice
            call = f"{call}/{record.version}"
        self._calls.add(call)
        self._actions[record.version] = record, event, call
        given: JSON = event.arguments if event.raw is None else event.raw
        part: _Json = {"type": "tool_call", "id": call, "name": event.name, "arguments": given}
        self._say(record, part)

    def _resolve(self, record: Record, event: ActionResolved) -> None:
        taken, action, call = self._actions.pop(event.action)
        if event.outcome == "cancelled":
            return
        self._pause(taken.actor)
        result = event.observation if event.observation is not None else event.error
        about: dict[str, JSON] = {
            names.OPERATION: "execute_tool",
            names.TOOL: action.name,
            names.TOOL_CALL: call,
            names.TOOL_ARGUMENTS: written(dict(action.arguments)),
            names.TOOL_RESULT: result if isinstance(result, str) else written(result),
        }
        error = (event.error or "it failed") if event.outcome == "failed" else None
        around = self._turn(taken.actor, taken.time, record.time)
        name = f"execute_tool {action.name}"
        self._span(self._next(), name, taken.time, record.time, about, around=around, error=error)

    def _call(self, record: Record, event: ModelCalled) -> None:
        """A model call, which is recorded before what it said, or behind."""
        first = self._called_first.setdefault(record.actor, True)
        if first:
            self._flush(record.actor)
        waiting = self._paused.get(record.actor)
        held = waiting[0] if waiting else self._reply(record)
        held.call = event
        if not first:
            self._flush(record.actor)

    # --- spans ------------------------------------------------------------------------------------

    def _reply(self, record: Record) -> _Reply:
        """The reply that an agent is giving."""
        reply = self._replies.get(record.actor)
        if reply is None:
            self._turn(record.actor, record.time, record.time)
            reply = _Reply(
                self._next(), record.actor, record.time, record.time, self._heard, parts=[]
            )
            self._heard = []
            self._replies[record.actor] = reply
        return reply

    def _pause(self, actor: str) -> None:
        """A result has come: the agent's next message begins another reply."""
        reply = self._replies.pop(actor, None)
        if reply is not None:
            self._paused.setdefault(actor, []).append(reply)
        if self._called_first.get(actor):
            self._flush(actor)

    def _flush(self, actor: str | None = None) -> None:
        """Writes replies that are over: of one agent, or of all."""
        for name in [actor] if actor is not None else [*self._replies, *self._paused]:
            for reply in (*self._paused.pop(name, ()), self._replies.pop(name, None)):
                if reply is not None:
                    self._write(reply)

    def _write(self, reply: _Reply) -> None:
        said: _Json = {"role": "assistant", "parts": reply.parts}
        about: dict[str, JSON] = {names.OPERATION: "chat", names.ACTOR_KIND: "agent"}
        if reply.heard:
            about[names.INPUT_MESSAGES] = written(list(reply.heard))
        if reply.parts:
            about[names.OUTPUT_MESSAGES] = written([said])
        name, error, start = "chat", None, reply.start
        known = self._agents.get(reply.actor)
        if reply.call is None:
            about |= _model(known.model if known is not None else None)
        else:
            about |= _used(reply.call)
            name, error = f"chat {reply.call.model}", reply.call.error
            start = max(self._start or 0.0, reply.start - reply.call.latency)
        around = self._turn(reply.actor, start, reply.end)
        self._span(
            reply.span, name, start, reply.end, about, around=around, error=error, kind=_CLIENT
        )

    def _turn(self, actor: str, start: float, end: float) -> int:
        """The span of all that an agent did."""
        turn = self._turns.get(actor)
        if turn is None:
            turn = self._turns[actor] = _Turn(self._next(), start, end)
        turn.start, turn.end = min(turn.start, start), max(turn.end, end)
        return turn.span

    def _agent(self, actor: str) -> str:
        known = self._agents.get(actor)
        policy = known.policy if known is not None and actor == self._main else None
        return policy or actor

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _span(
        self,
        number: int,
        name: str,
        start: float,
        end: float,
        about: Mapping[str, JSON],
        *,
        around: int | None = None,
        error: str | None = None,
        kind: int = _INTERNAL,
    ) -> None:
        attributes = {names.CONVERSATION: self._session, **about}
        span: _Json = {
            "traceId": self._digest[:32],
            "spanId": self._span_id(number),
            "name": name,
            "kind": kind,
            "startTimeUnixNano": _nanoseconds(start),
            "endTimeUnixNano": _nanoseconds(max(start, end)),
            "attributes": [_attribute(key, value) for key, value in attributes.items()],
            "status": {} if error is None else {"code": _ERROR, "message": error},
        }
        if around is not None:
            span["parentSpanId"] = self._span_id(around)
        self._spans.append(span)

    def _span_id(self, number: int) -> str:
        """Ids grow, so that spans that begin at one time keep their order."""
        return f"{self._digest[32:40]}{number:08x}"


def _used(event: ModelCalled) -> dict[str, JSON]:
    """The known attributes of a model call."""
    return {**_model(event.model), names.PURPOSE: event.purpose, **usage(event)}


def _model(model: str | None) -> dict[str, JSON]:
    if model is None or model == UNKNOWN_MODEL:
        return {}
    return {names.PROVIDER: model_named(model).provider, names.REQUEST_MODEL: model}


def _attribute(key: str, value: JSON) -> _Json:
    kind = {bool: "boolValue", int: "intValue", float: "doubleValue"}.get(type(value))
    held: JSON = str(value) if kind == "intValue" else value
    return {"key": key, "value": {kind or "stringValue": held}}


def _nanoseconds(time: float) -> str:
    """A time as OTLP has it; those before 1970 are taken for its first moment."""
    return str(max(0, round(time * _NANO)))
