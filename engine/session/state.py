"""The state of a session's trace: one fold, shared by everything that writes traces.

The sequencer, the recorder, the HTTP interface and the importers keep it, and the handler of
commands uses it. It holds the facts that the next event depends on, but no message texts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import final

from ..codec import kind_of
from ..errors import InvalidInput
from ..events import ACTS, ActionResolved, CloseReason, SessionClosed, SnapshotTaken
from ..log.contract import EventLog
from ..records import TRACE, Draft, Record
from ..rounds import Round, RoundProjector

__all__ = ("TraceState", "load_state")


@final
class TraceState:
    """Takes the records of a session's trace in order.

    Args:
        session: session id.

    Attributes:
        session: session id.
        version: the version of the last record; 0 before the first.
        first: time of the first record.
        time: the latest time of all records.
        snapshot: trace version of the latest snapshot; None if there is none.
        files: the digests of its files, by path; empty if it is not of files.
        in_flight: versions of the actions without outcome, in order.
        asked: versions of the approvals asked for.
        closed: why the session was closed; None while it is open.
        detail: how it was closed.
        rounds: rounds by handoff.
        acts: acts of humans and agents.
        ids: the callers' ids, and the versions that have them.
    """

    def __init__(self, session: str) -> None:
        self.session = session
        self.version = 0
        self.first = 0.0
        self.time = float("-inf")
        self.snapshot: int | None = None
        self.files: Mapping[str, str] = {}
        self.in_flight: dict[int, None] = {}
        self.asked: set[int] = set()
        self.closed: CloseReason | None = None
        self.detail = ""
        self.rounds = RoundProjector()
        self.acts = 0
        self.ids: dict[str, int] = {}
        self._over: list[Round] = []

    def feed(self, record: Record) -> None:
        """Takes the next record.

        Raises:
            CodecError: a body that is needed is damaged.
        """
        version, kind = record.version, record.kind
        self._pass(version, record.time, record.caller_id)
        if kind in ACTS:
            role = record.role
            if role == "agent" or role == "human":
                self.acts += 1
                over = self.rounds.feed(record)
                if over is not None:
                    self._over.append(over)
            if kind == "SnapshotTaken":
                self.snapshot = version
                event = record.event
                self.files = (event.files or {}) if isinstance(event, SnapshotTaken) else {}
            elif kind == "ActionTaken":
                self.in_flight[version] = None
            elif kind == "ApprovalAsked":
                self.asked.add(version)
        else:
            take = _OTHERS.get(kind)
            if take is not None:
                take(self, record)

    def feed_draft(self, draft: Draft) -> None:
        """Takes a draft as the record that it is about to be."""
        kind, schema = kind_of(draft.event)
        if kind not in ACTS and kind not in _OTHERS:  # a record of it would be made in vain
            self._pass(self.version + 1, draft.time, draft.id)
            return
        self.feed(
            Record(
                0,
                self.session,
                TRACE,
                self.version + 1,
                kind,
                schema,
                draft.time,
                draft.actor,
                draft.role,
                draft.cause,
                draft.seen,
                draft.id,
                None,
                draft.event,
            )
        )

    def copy(self) -> TraceState:
        """An independent state, to try out several commands in a row. It does not know callers'
        ids.
        """
        twin = TraceState.__new__(TraceState)
        twin.__dict__.update(self.__dict__)
        twin.in_flight = self.in_flight.copy()
        twin.asked = self.asked.copy()
        twin.rounds = self.rounds.copy()
        twin.ids = {}
        twin._over = self._over.copy()
        return twin

    def rated_round(
        self, number: int | None = None, *, of: int | None = None
    ) -> tuple[int, int | None]:
        """The round that a rating is about, and a trace version that names it: its last act.

        Without a number that is the latest round that holds an act of an agent: who rates after
        having taken over rates what the agent did before.

        Args:
            number: the number of the round by handoff, if the rating names one.
            of: trace version of an event, if the rating is about the round of that one.

        Raises:
            InvalidInput: there is no such round or version, or no agent has acted yet.
        """
        now = self.rounds.current
        if of is not None:
            if not 1 <= of <= self.version:
                raise InvalidInput(f"session {self.session!r} lacks a version {of} to rate")
            if of >= now.first:
                return len(self._over) + 1, of
            return bisect_right(self._over, of, key=lambda over: over.first), of
        if number is not None:
            if not 1 <= number <= now.number:
                raise InvalidInput(
                    f"session {self.session!r} cannot rate round {number}: it is in round "
                    f"{now.number}"
                )
            about = now if number == now.number else self._over[number - 1]
        elif now.agent_acts:
            about = now
        elif self._over:  # a round ends only after an agent has acted in it
            about = self._over[-1]
        else:
            raise InvalidInput(
                f"there is nothing to rate in session {self.session!r}: no agent has acted yet"
            )
        return about.number, about.last_act

    def _pass(self, version: int, time: float, caller_id: str | None) -> None:
        """Takes the fields that every record has."""
        self.version = version
        if time > self.time:
            self.time = time
            if version == 1:
                self.first = time
        if caller_id is not None:
            self.ids[caller_id] = version

    def _open(self, record: Record) -> None:
        self.rounds.feed(record)

    def _resolve(self, record: Record) -> None:
        event = record.event
        if isinstance(event, ActionResolved):
            self.in_flight.pop(event.action, None)

    def _close(self, record: Record) -> None:
        event = record.event
        self.rounds.feed(record)
        self.closed = "ended"  # whatever a body that cannot be read may say of it
        if isinstance(event, SessionClosed):
            self.closed, self.detail = event.reason, event.detail
            self.in_flight.clear()


_OTHERS: Mapping[str, Callable[[TraceState, Record], None]] = {
    "SessionOpened": TraceState._open,
    "ActionResolved": TraceState._resolve,
    "SessionClosed": TraceState._close,
}
"""How to process a record that is not an act, by its kind; other kinds change nothing."""


async def load_state(log: EventLog, session: str, known: TraceState | None = None) -> TraceState:
    """The state of a session's trace as the log holds it now.

    Args:
        log: the log.
        session: session id.
        known: an earlier state of the trace, to read on from; it is used up.

    Raises:
        CodecError: a body that is needed is damaged.
        LogError: the log cannot be read.
    """
    state = TraceState(session) if known is None else known
    async for record in log.read(session, after_version=state.version):
        state.feed(record)
    return state
