"""A session's trace as spans: the session, its rounds, turns in them, actions and model calls.

A turn is what one actor did within one round. Spans nest as session, round, turn, and in a turn its
actions and model calls; an action may outlast its turn, and be resolved when another round is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import final

from ...engine.events import (
    ActionResolved,
    ActionTaken,
    ActorFailed,
    ApprovalAsked,
    ApprovalGiven,
    Event,
    MessageSent,
    ModelCalled,
    Participant,
    SessionClosed,
    SessionOpened,
)
from ...engine.records import TRACE, Record
from ...engine.rounds import Round, RoundProjector, Rounds, is_act
from . import names
from .evaluations import EVALUATED, SessionContext, evaluation_signals
from .gen_ai import call_signals, message, session_labels, text_part, written
from .signals import (
    SESSION,
    Attributes,
    MetricMeasured,
    Signal,
    SpanEnded,
    SpanStarted,
    TraceOrigin,
    Value,
    round_key,
)

__all__ = ("SpanFold",)

_WORK = frozenset({"ModelCalled", "NoteTaken", "ActorFailed"})


@final
class _Turn:
    """The acts of one actor in the open round."""

    def __init__(self, key: str, start: float, role: str) -> None:
        self.key = key
        self.start = self.end = start
        self.role = role
        self.acts = 0
        self.snapshots = 0
        self.error: str | None = None
        self.detail: str | None = None
        self.said: list[str] = []


@final
class _Action:
    """An action in flight."""

    def __init__(self, key: str, start: float, name: str, turn: _Turn) -> None:
        self.key = key
        self.start = start
        self.name = name
        self.turn = turn


@final
class SpanFold:
    """Takes the records of one session, of all streams in order of position, and gives signals.

    Args:
        session: session id.
        content: whether what people, agents and tools said may be exported.
        rounds: how rounds are counted.
        origin: the session that a fork was made from.
    """

    def __init__(
        self,
        session: str,
        *,
        content: bool = False,
        rounds: Rounds = "handoff",
        origin: TraceOrigin | None = None,
    ) -> None:
        self._session = session
        self._content = content
        self._origin = origin
        self._projector = RoundProjector(rounds)
        self._virtual = False
        self._begun = self._closed = False
        self._start = self._end = 0.0
        self._round_start = self._round_end = 0.0
        self._agents: Mapping[str, Participant] = {}
        self._labels: Attributes = {}
        self._turns: dict[str, _Turn] = {}
        self._actions: dict[int, _Action] = {}
        self._called: dict[str, float] = {}  # by actor: when its last model call ended
        self._snapshots: dict[int, str] = {}  # by version: the turn that it was taken in
        self._asked: dict[int, float] = {}  # by version: when an approval was asked for
        self._heard: list[str] = []  # what humans said in the round that is open
        self._failed: str | None = None

    def feed(self, record: Record) -> list[Signal]:
        """Takes the next record.

        Raises:
            CodecError: a body that is needed is damaged.
        """
        return list(self._signals(record))

    def _signals(self, record: Record) -> Iterator[Signal]:
        if record.stream == TRACE:
            if not self._begun:
                yield from self._begin(record)
            if not self._closed:
                self._end = max(self._end, record.time)
                yield from self._follow(record)
        if record.kind in EVALUATED:
            around = SessionContext(
                self._labels, self._snapshots, self._projector.convention, self._content
            )
            yield from evaluation_signals(record, around)
        yield MetricMeasured(names.EVENTS, 1, {**self._labels, names.KIND: record.kind})

    # --- the session ------------------------------------------------------------------------------

    def _begin(self, record: Record) -> Iterator[Signal]:
        self._begun = True
        self._start = self._end = self._round_end = record.time
        event = record.event if record.kind == "SessionOpened" else None
        task = ""
        attributes: dict[str, Value] = {
            names.OPERATION: "invoke_workflow",
            names.CONVERSATION: self._session,
            names.SESSION_ID: self._session,
        }
        if isinstance(event, SessionOpened):
            task = event.task
            self._virtual = event.clock == "virtual"
            self._agents = {one.name: one for one in event.participants if one.role == "agent"}
            attributes[names.CLOCK] = event.clock
            if event.instance:
                attributes[names.INSTANCE] = event.instance
            if event.problem:
                attributes[names.PROBLEM] = event.problem
            self._labels = session_labels(event)
        name = f"invoke_workflow {task}".strip()
        attributes |= self._labels
        yield SpanStarted(SESSION, None, name, record.time, attributes, origin=self._origin)
        yield self._begin_round(record.time)

    def _follow(self, record: Record) -> Iterator[Signal]:
        """The next record of the trace."""
        over = self._projector.feed(record)
        if over is not None and record.kind != "SessionClosed":
            yield from self._end_round(over)
            yield self._begin_round(record.time)
        self._round_end = max(self._round_end, record.time)
        if record.role in ("human", "agent") and (is_act(record) or record.kind in _WORK):
            yield from self._work(record)
        elif record.kind == "TurnYielded" and (turn := self._turns.get(record.actor)):
            turn.end = max(turn.end, record.time)
        handle = _HANDLERS.get(record.kind)
        if handle is not None:
            yield from handle(self, record)

    def _ask(self, record: Record) -> Iterator[Signal]:
        self._asked[record.version] = record.time
        return iter(())

    def _decide(self, record: Record) -> Iterator[Signal]:
        """The decision on an approval; how long it took, if a person decided."""
        given = record.event
        asked = self._asked.pop(given.asked, None) if isinstance(given, ApprovalGiven) else None
        if not isinstance(given, ApprovalGiven) or asked is None:
            return
        decision = "expired" if given.expired else "approved" if given.approved else "rejected"
        source = {names.APPROVAL_SOURCE: given.source or "unknown"}
        decided: Attributes = {**self._labels, names.APPROVAL_DECISION: decision, **source}
        yield MetricMeasured(names.APPROVALS, 1, decided)
        if given.source == "person":
            yield MetricMeasured(names.APPROVAL_LATENCY, max(0.0, record.time - asked), decided)

    def _close(self, record: Record) -> Iterator[Signal]:
        self._closed = True
        event = record.event
        reason = event.reason if isinstance(event, SessionClosed) else "ended"
        for action in self._actions.values():
            yield from self._end_action(action, record.time, "cancelled")
        self._actions.clear()
        yield from self._end_round(self._projector.current)
        attributes: dict[str, Value] = {
            names.CLOSE_REASON: reason,
            names.SESSION_ROUNDS: self._projector.number,
        }
        error = None
        if reason == "failed":
            error = self._failed or "failed"
        yield SpanEnded(SESSION, self._end, attributes, error)
        labels = {**self._labels, names.CLOSE_REASON: reason}
        yield MetricMeasured(names.SESSION_DURATION, self._end - self._start, labels)

    # --- rounds and turns -------------------------------------------------------------------------

    def _begin_round(self, start: float) -> Signal:
        number = self._projector.number
        self._round_start = self._round_end = start
        self._heard = []
        return SpanStarted(
            round_key(number), SESSION, "round", start, self._identified({names.ROUND: number})
        )

    def _end_round(self, over: Round) -> Iterator[Signal]:
        for turn in self._turns.values():
            yield from self._end_turn(turn)
        self._turns.clear()
        attributes = {names.ROUND_STAGE: over.stage, names.ROUND_UPDATED: over.updated}
        yield SpanEnded(round_key(over.number), self._round_end, attributes)
        labels = {**self._labels, names.ROUND_STAGE: over.stage}
        yield MetricMeasured(names.ROUND_DURATION, self._round_end - self._round_start, labels)

    def _work(self, record: Record) -> Iterator[Signal]:
        """An actor does something in its turn, which may begin with this."""
        turn = self._turns.get(record.actor)
        if turn is None:
            start = self._call_start(record) if record.kind == "ModelCalled" else record.time
            turn = self._turns[record.actor] = _Turn(
                f"turn/{self._projector.number}/{record.actor}", start, record.role
            )
            yield self._began_turn(turn, record)
        turn.end = max(turn.end, record.time)
        turn.acts += is_act(record)
        if record.kind == "SnapshotTaken":
            turn.snapshots += 1
            self._snapshots[record.version] = turn.key
        elif self._content and record.kind in ("MessageSent", "ApprovalAsked"):
            event = record.event
            text = event.text if isinstance(event, MessageSent) else ""
            if isinstance(event, ApprovalAsked):
                text = event.question
            (turn.said if record.role == "agent" else self._heard).append(text)

    def _began_turn(self, turn: _Turn, record: Record) -> Signal:
        actor = record.actor
        attributes: dict[str, Value] = {names.ACTOR: actor, names.ACTOR_KIND: turn.role}
        attributes[names.ROUND] = self._projector.number
        name = "human_turn"
        if turn.role == "agent":
            known = self._agents.get(actor)
            agent = (known.policy if known else None) or actor
            attributes |= {names.OPERATION: "invoke_agent", names.AGENT: agent}
            name = f"invoke_agent {agent}"
        parent = round_key(self._projector.number)
        attributes = {**self._identified(attributes)}
        event = record.event
        request = event.traceparent if isinstance(event, Event) else None
        return SpanStarted(turn.key, parent, name, turn.start, attributes, request=request)

    def _end_turn(self, turn: _Turn) -> Iterator[Signal]:
        attributes: dict[str, Value] = {
            names.TURN_ACTS: turn.acts,
            names.TURN_SNAPSHOTS: turn.snapshots,
        }
        if self._content and turn.role == "agent":
            heard = [message("user", [text_part(text)]) for text in self._heard]
            said = [message("assistant", [text_part(text)]) for text in turn.said]
            if heard:
                attributes[names.INPUT_MESSAGES] = written(heard)
            if said:
                attributes[names.OUTPUT_MESSAGES] = written(said)
        yield SpanEnded(turn.key, turn.end, attributes, turn.error, turn.detail)
        if turn.role == "agent":
            failed = {} if turn.error is None else {names.ERROR_TYPE: turn.error}
            labels = {**self._labels, **failed}
            yield MetricMeasured(names.TURN_DURATION, turn.end - turn.start, labels)

    def _fail(self, record: Record) -> Iterable[Signal]:
        event = record.event
        if isinstance(event, ActorFailed):
            self._failed = event.type
            if turn := self._turns.get(record.actor):
                turn.error = event.type
                turn.detail = event.error if self._content else None
        return ()

    # --- actions and model calls ------------------------------------------------------------------

    def _act(self, record: Record) -> Iterator[Signal]:
        turn = self._turns.get(record.actor)
        if turn is None:  # the environment's own doing
            return
        event = record.event
        name = event.name if isinstance(event, ActionTaken) else "_OTHER"
        action = _Action(f"action/{record.version}", record.time, name, turn)
        self._actions[record.version] = action
        attributes: dict[str, Value] = {
            names.OPERATION: "execute_tool",
            names.TOOL: name,
            names.TOOL_CALL: record.id,
            names.ACTOR_KIND: record.role,
        }
        if self._content and isinstance(event, ActionTaken):
            attributes[names.TOOL_ARGUMENTS] = written(event.arguments)
        yield SpanStarted(
            action.key,
            turn.key,
            f"execute_tool {name}",
            record.time,
            self._identified(attributes),
        )

    def _resolve(self, record: Record) -> Iterator[Signal]:
        event = record.event
        if not isinstance(event, ActionResolved):
            return  # it was forgotten, so that nothing says which action it was
        action = self._actions.pop(event.action, None)
        if action is None:
            return
        action.turn.end = max(action.turn.end, record.time)
        error = None if event.outcome == "ok" else event.outcome
        result: dict[str, Value] = {}
        if self._content and event.observation is not None:
            result[names.TOOL_RESULT] = written(event.observation)
        detail = event.error if self._content else None
        yield from self._end_action(action, record.time, error, result, detail)

    def _end_action(
        self,
        action: _Action,
        time: float,
        error: str | None,
        result: Attributes | None = None,
        detail: str | None = None,
    ) -> Iterator[Signal]:
        end = max(action.start, time)
        yield SpanEnded(action.key, end, result or {}, error, detail)
        labels = {**self._labels, names.TOOL: action.name}
        failed = {} if error is None else {names.ERROR_TYPE: error}
        yield MetricMeasured(names.TOOL_DURATION, end - action.start, {**labels, **failed})

    def _call(self, record: Record) -> Iterator[Signal]:
        event = record.event
        turn = self._turns.get(record.actor)
        if turn is None or not isinstance(event, ModelCalled):
            return
        start = self._call_start(record)
        self._called[record.actor] = start + event.latency
        if self._virtual and record.role == "agent":
            turn.end = max(turn.end, start + event.latency)
        yield from call_signals(
            event,
            f"call/{record.version}",
            turn.key,
            start,
            self._session,
            self._labels,
            content=self._content,
        )

    def _call_start(self, record: Record) -> float:
        """When a model call began: it is recorded when its reply is there, except that on virtual
        time the seconds that it takes pass afterwards.
        """
        event = record.event
        if not isinstance(event, ModelCalled):
            return record.time
        if self._virtual:
            return max(record.time, self._called.get(record.actor, record.time))
        return record.time - event.latency

    def _identified(self, attributes: Mapping[str, Value]) -> Attributes:
        """Attributes of a span, with the session that it belongs to."""
        return {**attributes, names.CONVERSATION: self._session}


_HANDLERS: Mapping[str, Callable[[SpanFold, Record], Iterable[Signal]]] = {
    "ActionTaken": SpanFold._act,
    "ActionResolved": SpanFold._resolve,
    "ActorFailed": SpanFold._fail,
    "ApprovalAsked": SpanFold._ask,
    "ApprovalGiven": SpanFold._decide,
    "ModelCalled": SpanFold._call,
    "SessionClosed": SpanFold._close,
}
"""Additional attributes of a trace record, by its kind."""
