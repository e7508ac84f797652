"""Writes down the trace of a foreign session: counts versions, so that events can refer to others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import msgspec

from ...engine import codec
from ...engine.events import (
    ACTS,
    JSON,
    ActionResolved,
    ActionTaken,
    Event,
    Role,
    SnapshotTaken,
    UtilityScored,
)
from ...engine.records import ENVIRONMENT, TRACE, Draft
from ...engine.scorers.protocol import measurement_id, stream_of
from .protocol import Foreign

__all__ = ("Scribe", "arguments_of")


def arguments_of(text: str) -> tuple[Mapping[str, JSON], str | None]:
    """The arguments of a call in JSON, as an event has them: the object that they are, and the text
    as well where it is none or where its spelling would be lost.
    """
    try:
        value: JSON = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}, text
    if not isinstance(value, dict):
        return {}, text
    return value, None if msgspec.json.encode(value).decode() == text else text


@final
class Scribe:
    """Turns what happened into drafts, in order.

    Args:
        session: id of the session.

    Attributes:
        version: of the last trace event.
        last_act: version of the last act of a human or agent; None where there is none.
        snapshot: version of the last snapshot; None where there is none.
        round: number of the round by handoffs.
        time: of the last trace event.
    """

    def __init__(self, session: str) -> None:
        self.session = session
        self.version = 0
        self.last_act: int | None = None
        self.snapshot: int | None = None
        self.round = 1
        self.time = 0.0
        self._handed_over = False

    def put(
        self,
        event: Event,
        actor: str,
        role: Role,
        time: float,
        *,
        id: str | None = None,
        cause: int | None = None,
    ) -> Foreign:
        """The next trace event.

        Args:
            event: the fact.
            actor: who.
            role: the actor's.
            time: seconds.
            id: the source's own, unique in the session.
            cause: version that it answers.
        """
        self.version += 1
        self.time = time
        if type(event).__name__ in ACTS and role in ("human", "agent"):
            self.last_act = self.version
            if isinstance(event, SnapshotTaken):
                self.snapshot = self.version
            if role == "agent":
                self._handed_over = True
            elif self._handed_over:
                self.round += 1
                self._handed_over = False
        answers = None if cause is None else f"{TRACE}/{cause}"
        return Foreign(self.session, TRACE, Draft(event, actor, role, time, id=id, cause=answers))

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
        found = [self.put(taken, actor, role, time)]
        outcome = ActionResolved(
            action=self.version,
            outcome="ok" if error is None else "failed",
            observation=observation,
            error=error,
        )
        found.append(self.put(outcome, ENVIRONMENT, "environment", time, cause=self.version))
        return found

    def submit(self, actor: str, role: Role, time: float, content: JSON) -> Foreign:
        """A new version of the shared output, made from the last."""
        event = SnapshotTaken(content=content, digest=codec.digest(content), base=self.snapshot)
        return self.put(event, actor, role, time)

    def measure(self, scored: UtilityScored) -> Foreign:
        """A score of the last snapshot; of the last round where there is no snapshot."""
        if self.snapshot is not None:
            scored = msgspec.structs.replace(scored, snapshot=self.snapshot)
            of = f"snapshot/{self.snapshot}"
        else:
            scored = msgspec.structs.replace(scored, round=self.round, until=self.last_act)
            of = f"round/{self.round}"
        ref = scored.scorer
        draft = Draft(scored, ref.name, "scorer", self.time, id=measurement_id(ref, of))
        return Foreign(self.session, stream_of(ref), draft)
