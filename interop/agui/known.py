"""What a log holds of a thread already, so that nothing of it is recorded twice."""

from __future__ import annotations

from collections import Counter
from typing import Final, final

import msgspec

from ...engine import codec
from ...engine.events import (
    JSON,
    ActionResolved,
    ApprovalGiven,
    Event,
    Forgotten,
    SnapshotTaken,
    Unknown,
)
from ...engine.log.contract import EventLog
from ...engine.records import Record
from ...telemetry.receipt import Ref
from .names import KEPT, AguiEvent, id_in
from .shared_state import SharedState

__all__ = ("Known", "kept", "kept_in", "load_known", "mark_of", "said_by", "unstamped")

_UNSAID: Final = frozenset({"timestamp", "rawEvent"})


def kept(event: AguiEvent, kind: str | None = None) -> Unknown:
    """An event as the log keeps it, under its type or another kind."""
    named = event.get("type") if kind is None else kind
    return Unknown(f"{KEPT}{named}", 1, msgspec.json.encode(event))


def kept_in(event: object) -> tuple[str, AguiEvent] | None:
    """The kind and the event that the log keeps in one of its own; None where it is none of ours."""
    if not isinstance(event, Unknown) or not event.kind.startswith(KEPT):
        return None
    try:
        return event.kind.removeprefix(KEPT), msgspec.json.decode(event.body, type=dict[str, JSON])
    except msgspec.DecodeError:
        return None


def mark_of(event: Event | Unknown | Forgotten) -> str:
    """A digest of what an event says, whatever others it refers to."""
    if isinstance(event, Unknown):
        return codec.digest((event.kind, event.body.decode(errors="replace")))
    if isinstance(event, ActionResolved):
        event = msgspec.structs.replace(event, action=0)
    elif isinstance(event, ApprovalGiven):
        event = msgspec.structs.replace(event, asked=0)
    elif isinstance(event, SnapshotTaken):
        event = msgspec.structs.replace(event, base=None)
    return codec.digest(event)


def unstamped(event: AguiEvent) -> AguiEvent:
    """What an event says, whenever it was sent and whatever it was translated from."""
    return {key: value for key, value in event.items() if key not in _UNSAID}


def said_by(event: AguiEvent) -> str:
    """A digest of what an event says."""
    return codec.digest(unstamped(event))


@final
class Known:
    """Takes the records of a trace in order; and, by ``note``, what is on its way there.

    Attributes:
        state: the shared state.
        marks: by id in the log, what the event says.
        calls: by id of a call, the action.
        resolved: by id of a call, the mark of its result.
        asked: by id of an interrupt, the question.
        subagents: by id of an invocation, the name of the subagent.
        runs: by id of a run's beginning, a digest of what it says.
        gone: ids of messages that a snapshot of all messages left out.
        counts: how often each thing was said in the run that is open, without an id of its own.

    Args:
        output: which part of the state the shared output is.
    """

    def __init__(self, output: str) -> None:
        self.state = SharedState(output)
        self.marks: dict[str, str] = {}
        self.calls: dict[str, Ref] = {}
        self.resolved: dict[str, str] = {}
        self.asked: dict[str, Ref] = {}
        self.subagents: dict[str, str] = {}
        self.runs: dict[str, str] = {}
        self.gone: set[str] = set()
        self.counts: Counter[tuple[str, str]] = Counter()
        self._names: dict[int, str] = {}

    def feed(self, record: Record) -> None:
        """Takes a record of the trace."""
        event = record.event
        if isinstance(event, SnapshotTaken):
            self.state.take_part(event.content)
        elif isinstance(event, ActionResolved) and event.action in self._names:
            self.resolved[self._names[event.action]] = mark_of(event)
        ident = record.caller_id
        if ident is None:
            return
        self.marks[ident] = mark_of(event)
        call = id_in(ident, "call")
        if call is not None and record.kind == "ActionTaken":
            self.calls.setdefault(call, record.version)
            self._names[record.version] = call
        asked = id_in(ident, "interrupt")
        if asked is not None and record.kind == "ApprovalAsked":
            self.asked[asked] = record.version
        found = kept_in(event)
        if found is None:
            return
        kind, body = found
        if kind == "STATE_SNAPSHOT" and "snapshot" in body:
            self.state.take_rest(body["snapshot"])
        elif kind == "MESSAGES_SNAPSHOT":
            without = body.get("without")
            self.gone |= {str(one) for one in without} if isinstance(without, list) else set()
        elif kind == "SUBAGENT_STARTED":
            self.meet(body)
        elif kind == "RUN_STARTED":
            self.runs.setdefault(ident, said_by(body))

    def meet(self, event: AguiEvent) -> None:
        """A subagent begins."""
        name, run = event.get("name"), event.get("subagentRunId")
        if isinstance(name, str) and name and isinstance(run, str):
            self.subagents[run] = name


async def load_known(log: EventLog, session: str, output: str) -> Known:
    """What a log holds of a session now.

    Raises:
        CodecError: a body that is needed is damaged.
        LogError: the log cannot be read.
    """
    known = Known(output)
    async for record in log.read(session):
        known.feed(record)
    return known
