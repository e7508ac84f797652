"""One session of Collaborative Gym: its records, turned into events one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, final

from ....engine.events import (
    ActionTaken,
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    Nudged,
    Role,
    SessionOpened,
)
from ....engine.records import ENVIRONMENT
from ..protocol import Foreign, Found, Reading
from ..timestamps import seconds_of
from ..trace_builder import TraceBuilder
from .call_syntax import ActionCall, Signatures, parse_call
from .differences import Differences
from .files import ChatLine, Row
from .state import State

__all__ = ("FINISH", "SessionReader", "call_of", "role_of", "succeeded")

FINISH: Final = "FINISH"
_EDIT: Final = "EDITOR_UPDATE"
_SAY: Final = "SEND_TEAMMATE_MESSAGE"
_ASK: Final = "REQUEST_TEAMMATE_CONFIRM"
_ANSWERS: Final = {"ACCEPT_CONFIRMATION": True, "REJECT_CONFIRMATION": False}

_SIGNATURES: Final[Signatures] = {
    _EDIT: [["text"]],
    _SAY: [["message"]],
    _ASK: [["request_id", "pending_action"]],
    **{name: [["request_id"]] for name in _ANSWERS},
    FINISH: [[]],
    "START": [["task_description", "query"], ["task_description"]],
    "FLIGHT_SEARCH": [["origin", "destination", "date"]],
    "ACCOMMODATION_SEARCH": [["city"]],
    "RESTAURANT_SEARCH": [["city"]],
    "ATTRACTION_SEARCH": [["city"]],
    "DISTANCE_MATRIX": [["origins", "destinations", "mode"], ["origins", "destinations"]],
    "BUSINESS_SEARCH": [["term", "location", "limit"]],
    "INTERNET_SEARCH": [["query"]],
    "EXECUTE_JUPYTER_CELL": [["code"]],
}
_FAILED: Final = re.compile(r"failed\s*(?:\(action_error: (.*)\))?\s*", re.DOTALL)
_IDLE: Final = "Idle for a long time"
_FAILURE: Final = "takes an action but fails"


def role_of(role: str) -> Role:
    """Whose role it is; the published analysis, too, goes by what the name contains."""
    if "user" in role:
        return "human"
    return "environment" if role == "environment" else "agent"


def call_of(row: Row) -> ActionCall:
    """The act of a record."""
    return parse_call(row.action, _SIGNATURES)


def succeeded(row: Row) -> bool:
    """Whether the act of a record succeeded."""
    return row.action_status.startswith("succeeded")


@final
class SessionReader:
    """Turns records into events.

    Args:
        builder: builds the trace.
        reading: how times are read.
        differences: what the published analysis would make of the records.
    """

    def __init__(self, builder: TraceBuilder, reading: Reading, differences: Differences) -> None:
        self._builder = builder
        self._reading = reading
        self._differences = differences
        self._state = State()
        self._asked: dict[str, int] = {}
        self._timed = False
        self._members: tuple[str, ...] = ()
        self.acts: dict[Role, int] = {"human": 0, "agent": 0}

    def begin(self, row: Row) -> float | None:
        """The time of the first record; None where the log has none."""
        time = seconds_of(row.timestamp, self._reading.zone)
        self._timed = time is not None
        return time

    def opened(self, opened: SessionOpened, row: Row | None, time: float) -> Foreign:
        """The opening, with what the first record says of the state."""
        self._members = tuple(one.name for one in opened.participants)
        if row is not None:
            self._state.take(row)
        return self._builder.put(opened, ENVIRONMENT, "environment", time)

    def time_of(self, stamp: object) -> float:
        """A time; that of the event before where there is none, or the log began without."""
        time = seconds_of(stamp, self._reading.zone) if self._timed else None
        return self._builder.time if time is None else time

    def read(self, row: Row) -> Iterator[Found]:
        """The events of the next record."""
        yield from self._notices(row)
        role = role_of(row.role)
        if role in self.acts:
            self.acts[role] += 1
        call = call_of(row)
        text = self._edited(row, call) if role != "environment" and succeeded(row) else None
        self._differences.take(row, role, text)
        time = self.time_of(row.timestamp)
        if text is not None:
            yield self._builder.submit(row.role, role, time, text)
        else:
            yield from self._act(row, role, call, time)

    def end(self, row: Row) -> Iterator[Found]:
        """Takes a last record that finishes the session, and is no act; gives what came before."""
        yield from self._notices(row)
        role = role_of(row.role)
        self.acts[role] += 1
        self._differences.take(row, role, None)

    def _edited(self, row: Row, call: ActionCall) -> str | None:
        """The text of the editor after an edit that succeeded: as the log has it, else from the
        act; None where it is no edit.
        """
        if call.name != _EDIT:
            return None
        if self._state.editor is not None:
            return self._state.editor
        arguments = call.arguments
        if "text" in arguments:
            return arguments["text"]
        return next(iter(arguments.values())) if len(arguments) == 1 else None

    def _notices(self, row: Row) -> Iterator[Foreign]:
        """What has come into the chat without a record: the environment's notices."""
        self._state.take(row)
        for said in self._state.news:
            yield from self._notice(said)

    def _notice(self, said: ChatLine) -> Iterator[Foreign]:
        if role_of(said.role) != "environment" or _FAILURE in said.message:
            return  # members' messages have records, and failures are outcomes
        time = self.time_of(said.timestamp)
        if not said.message.startswith(_IDLE):
            yield self._builder.put(MessageSent(text=said.message), said.role, "environment", time)
            return
        for member in self._members:
            event = Nudged(to=member, reason=said.message)
            yield self._builder.put(event, said.role, "environment", time)

    def _act(self, row: Row, role: Role, call: ActionCall, time: float) -> Iterator[Foreign]:
        collaborative = "collaborative" in row.action_type
        if collaborative and call.readable and succeeded(row):
            said = self._said(row, role, call, time)
            if said is not None:
                yield said
                return
        taken = ActionTaken(
            name=call.name or "unreadable",
            arguments=call.arguments,
            raw=None if call.readable else row.action,
            collaborative=collaborative,
        )
        error = None if succeeded(row) else _why(row.action_status)
        found = self._state.found(row.role, call.name) if error is None else None
        yield from self._builder.act(row.role, role, time, taken, error=error, observation=found)

    def _said(self, row: Row, role: Role, call: ActionCall, time: float) -> Foreign | None:
        """A message, a question or an answer; None for another act."""
        arguments = call.arguments
        if call.name == _SAY and "message" in arguments:
            event = MessageSent(text=arguments["message"])
            return self._builder.put(event, row.role, role, time)
        if call.name == _ASK and "pending_action" in arguments:
            return self._ask(row, role, call, time)
        approved = _ANSWERS.get(call.name)
        if approved is None:
            return None
        asked = self._asked.pop(arguments.get("request_id", ""), None)
        if asked is None:
            return None
        given = ApprovalGiven(asked=asked, approved=approved)
        return self._builder.put(given, row.role, role, time)

    def _ask(self, row: Row, role: Role, call: ActionCall, time: float) -> Foreign:
        event = ApprovalAsked(question=call.arguments["pending_action"])
        found = self._builder.put(event, row.role, role, time)
        self._asked[call.arguments.get("request_id", "")] = self._builder.version
        return found


def _why(status: str) -> str:
    found = _FAILED.fullmatch(status)
    return (found.group(1) if found else status) or "it failed, and the log does not say why"
