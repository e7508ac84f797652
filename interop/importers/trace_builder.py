"""Builds the trace of a foreign session, by the command handler that all doors share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec

from ...engine import codec
from ...engine.errors import InvalidInput
from ...engine.events import (
    JSON,
    ActionResolved,
    ActionTaken,
    Event,
    Role,
    SessionClosed,
    SnapshotTaken,
    Unknown,
    UtilityScored,
)
from ...engine.records import TRACE, Draft
from ...engine.scorers.protocol import measurement_id, stream_of
from ...engine.session.commands import (
    CloseSession,
    Command,
    Sender,
    TakeAction,
    command_of,
    edit_files,
    handle,
    is_plain,
)
from ...engine.session.state import TraceState
from .json_files import PIECE
from .protocol import Foreign

__all__ = ("TraceBuilder", "arguments_of")


def arguments_of(text: str) -> tuple[Mapping[str, JSON], str | None]:
    """The arguments of a call in JSON, as an event has them: the object that they are, and the text
    as well if it is none or if its spelling would be lost.
    """
    try:
        PIECE.check_json(text)
        value: JSON = msgspec.json.decode(text)
    except (InvalidInput, msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}, text
    if not isinstance(value, dict):
        return {}, text
    return value, None if msgspec.json.encode(value).decode() == text else text


@final
class TraceBuilder:
    """Turns what happened in a foreign session into drafts, in order.

    Args:
        session: id of the session.

    Attributes:
        state: the state of the trace.
        time: the time of the last trace event.
    """

    def __init__(self, session: str) -> None:
        self.state = TraceState(session)
        self.time = 0.0

    @property
    def session(self) -> str:
        """Id of the session."""
        return self.state.session

    @property
    def version(self) -> int:
        """Version of the last trace event."""
        return self.state.version

    def put(
        self, event: Event | Unknown, actor: str, role: Role, time: float, *, id: str | None = None
    ) -> Foreign:
        """The next trace event, other than the close.

        Args:
            event: the fact. A snapshot was made from the last one, unless it says otherwise.
            actor: who.
            role: the actor's.
            time: seconds.
            id: the source's own, unique in the session.

        Raises:
            InvalidInput: it refers to an event that is not there.
        """
        state = self.state
        if is_plain(event, state):  # most are: a command would only be unpacked again
            self.time = time
            draft = Draft(event, actor, role, time, id)
            state.feed_draft(draft)
            return Foreign(state.session, TRACE, draft)
        (found,) = self._handle(command_of(event), Sender(actor, role, time, id))
        return found

    def act(
        self,
        actor: str,
        role: Role,
        time: float,
        taken: ActionTaken,
        *,
        error: str | None = None,
        observation: JSON = None,
    ) -> list[Foreign]:
        """An action with its outcome, which is at once; ``error`` says why it failed."""
        outcome = ActionResolved(
            action=0,
            outcome="ok" if error is None else "failed",
            observation=observation,
            error=error,
        )
        return self._handle(TakeAction(taken, outcome), Sender(actor, role, time))

    def submit(self, actor: str, role: Role, time: float, content: JSON) -> Foreign:
        """A new version of the shared output, made from the last."""
        snapshot = SnapshotTaken(content=content, digest=codec.digest(content))
        return self.put(snapshot, actor, role, time)

    def edit(
        self,
        actor: str,
        role: Role,
        time: float,
        changed: Mapping[str, str | None],
        *,
        shown: Mapping[str, str] | None = None,
        id: str | None = None,
    ) -> Foreign:
        """A new version of several files, made from the last.

        Args:
            actor: who.
            role: the actor's.
            time: seconds.
            changed: the whole texts of the files that changed, by path; None for one that is gone.
            shown: the unified diffs that the person was shown, by path.
            id: the source's own, unique in the session.
        """
        command = edit_files(changed, shown=shown)
        (found,) = self._handle(command, Sender(actor, role, time, id))
        return found

    def close(self, closed: SessionClosed, role: Role, time: float) -> list[Foreign]:
        """The end, by the actor that it names; cancels actions in flight."""
        return self._handle(CloseSession(closed), Sender(closed.by, role, time))

    def measure(self, scored: UtilityScored) -> Foreign:
        """A score of the last snapshot; of the last round if the session lacks a snapshot."""
        state = self.state
        if state.snapshot is not None:
            scored = msgspec.structs.replace(scored, snapshot=state.snapshot)
            of = f"snapshot/{state.snapshot}"
        else:
            last = state.rounds.current
            scored = msgspec.structs.replace(scored, round=last.number, until=last.last_act)
            of = f"round/{last.number}"
        ref = scored.scorer
        draft = Draft(scored, ref.name, "scorer", self.time, id=measurement_id(ref, of))
        return Foreign(self.session, stream_of(ref), draft)

    def _handle(self, command: Command, sender: Sender) -> list[Foreign]:
        self.time = sender.time
        state, session = self.state, self.state.session
        found: list[Foreign] = []
        for draft in handle(command, state, sender).drafts:
            state.feed_draft(draft)
            found.append(Foreign(session, TRACE, draft))
        return found
