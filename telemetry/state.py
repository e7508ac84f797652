"""What a recorder has to know of a session to record what comes next: a fold of its trace."""

from __future__ import annotations

from bisect import bisect_right
from typing import final

from ..engine.events import ActionResolved, SessionClosed
from ..engine.log.contract import EventLog
from ..engine.records import Record
from ..engine.rounds import Round, RoundProjector

__all__ = ("Trace", "load_trace")


@final
class Trace:
    """Takes the records of a session's trace in order.

    Attributes:
        version: of the last record; 0 before the first.
        time: of the last record.
        closed: whether the session is closed.
        snapshot: trace version of the latest snapshot; None where there is none.
        in_flight: versions of the actions without outcome, in order.
        asked: versions of the approvals asked for.
        ids: the callers' ids, and the versions that have them.
    """

    def __init__(self) -> None:
        self.version = 0
        self.time = float("-inf")
        self.closed = False
        self.snapshot: int | None = None
        self.in_flight: dict[int, None] = {}
        self.asked: set[int] = set()
        self.ids: dict[str, int] = {}
        self._rounds = RoundProjector()
        self._before: Round | None = None
        self._firsts = [1]

    def feed(self, record: Record) -> None:
        """Takes the next record."""
        version, kind = record.version, record.kind
        self.version = version
        self.time = max(self.time, record.time)
        if record.caller_id is not None:
            self.ids[record.caller_id] = version
        over = self._rounds.feed(record)
        if over is not None:
            self._before = over
            self._firsts.append(over.last + 1)
        if kind == "SnapshotTaken":
            self.snapshot = version
        elif kind == "ActionTaken":
            self.in_flight[version] = None
        elif kind == "ActionResolved":
            event = record.event
            if isinstance(event, ActionResolved):
                self.in_flight.pop(event.action, None)
        elif kind == "ApprovalAsked":
            self.asked.add(version)
        elif kind == "SessionClosed":
            event = record.event
            self.closed = True
            if isinstance(event, SessionClosed):
                self.in_flight.clear()

    def rated_round(self, of: int | None = None) -> tuple[int, int | None]:
        """The round that a rating given now is about, and the version of an act in it, the last.

        That is the last round in which an agent did something: who rates after having taken over
        rates what the agent did before.

        Args:
            of: trace version of an act, if the rating is about the round of that one.
        """
        if of is not None:
            return bisect_right(self._firsts, of), of
        now, before = self._rounds.current, self._before
        about = now if now.agent_acts or before is None else before
        return about.number, about.last_act


async def load_trace(log: EventLog, session: str) -> Trace:
    """The trace of a session as the log holds it now.

    Raises:
        CodecError: a body that is needed is damaged.
        LogError: the log cannot be read.
    """
    trace = Trace()
    async for record in log.read(session):
        trace.feed(record)
    return trace
