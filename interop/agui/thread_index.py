"""An index of the recorded part of a thread, so that nothing is recorded twice."""

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
from ...engine.files import Contents
from ...engine.log.contract import EventLog
from ...engine.records import Record
from ...telemetry.receipt import Ref
from .names import KEPT, AguiEvent, id_in
from .shared_state import SharedState

__all__ = (
    "ThreadIndex",
    "agui_digest",
    "event_digest",
    "load_thread_index",
    "unwrap_event",
    "without_timestamp",
    "wrap_event",
)

_UNSAID: Final = frozenset({"timestamp", "rawEvent"})


def wrap_event(event: AguiEvent, kind: str | None = None) -> Unknown:
    """An AG-UI event as an event of the log, unread; its kind is its type, or the given one."""
    named = event.get("type") if kind is None else kind
    return Unknown(f"{KEPT}{named}", 1, msgspec.json.encode(event))


def unwrap_event(event: object) -> tuple[str, AguiEvent] | None:
    """The kind and the AG-UI event in an event of the log; None if it holds none."""
    if not isinstance(event, Unknown) or not event.kind.startswith(KEPT):
        return None
    try:
        return event.kind.removeprefix(KEPT), msgspec.json.decode(event.body, type=dict[str, JSON])
    except msgspec.DecodeError:
        return None


def event_digest(event: Event | Unknown | Forgotten) -> str:
    """A digest of an event of the log, without its references to other events."""
    if isinstance(event, Unknown):
        return codec.digest((event.kind, event.body.decode(errors="replace")))
    if isinstance(event, ActionResolved):
        event = msgspec.structs.replace(event, action=0)
    elif isinstance(event, ApprovalGiven):
        event = msgspec.structs.replace(event, asked=0)
    elif isinstance(event, SnapshotTaken):
        event = msgspec.structs.replace(event, base=None)
    return codec.digest(event)


def without_timestamp(event: AguiEvent) -> AguiEvent:
    """An AG-UI event without its time stamp and the raw event that it was made from."""
    return {key: value for key, value in event.items() if key not in _UNSAID}


def agui_digest(event: AguiEvent) -> str:
    """A digest of an AG-UI event, without its time stamp."""
    return codec.digest(without_timestamp(event))


@final
class ThreadIndex:
    """Built by applying the records of a trace in order; ``Deduplicator`` adds what is on its way there.

    Attributes:
        state: the shared state.
        marks: by id in the log, a digest of the event.
        calls: by id of a call, the action.
        resolved: by id of a call, the digest of its result.
        asked: by id of an interrupt, the question.
        subagents: by id of an invocation, the name of the subagent.
        runs: by id of a run's beginning, a digest of what it says.
        gone: ids of messages that a snapshot of all messages left out.
        counts: occurrences, in the open run, of each event without an id.

    Args:
        output: which part of the state the shared output is.
    """

    def __init__(self, output: str) -> None:
        self.state = SharedState(output)
        self._contents = Contents()
        self.marks: dict[str, str] = {}
        self.calls: dict[str, Ref] = {}
        self.resolved: dict[str, str] = {}
        self.asked: dict[str, Ref] = {}
        self.subagents: dict[str, str] = {}
        self.runs: dict[str, str] = {}
        self.gone: set[str] = set()
        self.counts: Counter[tuple[str, str]] = Counter()
        self._names: dict[int, str] = {}

    def apply(self, record: Record) -> None:
        """Applies a record of the trace."""
        event = record.event
        if isinstance(event, SnapshotTaken):
            self.state.take_part(self._contents.whole(event).content)
        elif isinstance(event, ActionResolved) and event.action in self._names:
            self.resolved[self._names[event.action]] = event_digest(event)
        ident = record.caller_id
        if ident is None:
            return
        self.marks[ident] = event_digest(event)
        call = id_in(ident, "call")
        if call is not None and record.kind == "ActionTaken":
            self.calls.setdefault(call, record.version)
            self._names[record.version] = call
        asked = id_in(ident, "interrupt")
        if asked is not None and record.kind == "ApprovalAsked":
            self.asked[asked] = record.version
        found = unwrap_event(event)
        if found is None:
            return
        kind, body = found
        if kind == "STATE_SNAPSHOT" and "snapshot" in body:
            self.state.take_rest(body["snapshot"])
        elif kind == "MESSAGES_SNAPSHOT":
            without = body.get("without")
            self.gone |= {str(one) for one in without} if isinstance(without, list) else set()
        elif kind == "SUBAGENT_STARTED":
            self.add_subagent(body)
        elif kind == "RUN_STARTED":
            self.runs.setdefault(ident, agui_digest(body))

    def add_subagent(self, event: AguiEvent) -> None:
        """Adds a subagent that begins."""
        name, run = event.get("name"), event.get("subagentRunId")
        if isinstance(name, str) and name and isinstance(run, str):
            self.subagents[run] = name


async def load_thread_index(log: EventLog, session: str, output: str) -> ThreadIndex:
    """The index of a session as it is now in a log.

    Raises:
        CodecError: a body that is needed is damaged.
        LogError: the log cannot be read.
    """
    known = ThreadIndex(output)
    async for record in log.read(session):
        known.apply(record)
    return known
