"""Writes the records of a session by hand, and runs a scorer on them: for tests of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, final

from ..engine import codec
from ..engine.events import (
    JSON,
    CloseReason,
    Event,
    MessageSent,
    Participant,
    ProgressRated,
    Role,
    ScorerRef,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    UtilityScored,
)
from ..engine.files import changed_files
from ..engine.records import TRACE, Record
from ..engine.scorers.observing import Observer
from ..engine.scorers.protocol import Measurement, Scorer

__all__ = ("RecordWriter", "run_scorer")

HUMAN = Participant(name="ann", role="human")
AGENT = Participant(name="bot", role="agent")


@final
class RecordWriter:
    """Writes the records of one session as a log would: positions, versions and times grow.

    Each method appends one record and returns it. Time advances by a second per record, unless
    ``at`` gives it.

    Args:
        session: session id.

    Attributes:
        records: all records so far, in order of position.
    """

    def __init__(self, session: str = "s") -> None:
        self.session = session
        self.records: list[Record] = []
        self._versions: dict[str, int] = {}
        self._time = 0.0
        self._files: Mapping[str, str] = {}

    def add(
        self,
        event: Event,
        actor: str,
        role: Role,
        *,
        stream: str = TRACE,
        at: float | None = None,
    ) -> Record:
        """Appends any event."""
        kind, schema = codec.kind_of(event)
        self._time = self._time + 1.0 if at is None else at
        version = self._versions[stream] = self._versions.get(stream, 0) + 1
        record = Record(
            position=len(self.records) + 1,
            session=self.session,
            stream=stream,
            version=version,
            kind=kind,
            schema=schema,
            time=self._time,
            actor=actor,
            role=role,
            cause=None,
            seen=None,
            caller_id=None,
            body=codec.encode_body(event),
        )
        self.records.append(record)
        return record

    def opened(
        self,
        *,
        request: str | None = None,
        clock: Literal["utc", "virtual"] = "utc",
        config: Mapping[str, JSON] | None = None,
        participants: tuple[Participant, ...] = (HUMAN, AGENT),
        private: Mapping[str, JSON] | None = None,
    ) -> Record:
        """The opening; by default of ``ann``, a person, and ``bot``, an agent."""
        event = SessionOpened(
            task="test",
            instance="1",
            participants=participants,
            clock=clock,
            request=request,
            config=config or {},
            private=private or {},
        )
        return self.add(event, "engine", "environment", at=0.0)

    def human(self, said: str | Event, *, actor: str = "ann", at: float | None = None) -> Record:
        """A message of a human, or any other event of a human."""
        event = MessageSent(text=said) if isinstance(said, str) else said
        return self.add(event, actor, "human", at=at)

    def agent(self, said: str | Event, *, actor: str = "bot", at: float | None = None) -> Record:
        """A message of an agent, or any other event of an agent."""
        event = MessageSent(text=said) if isinstance(said, str) else said
        return self.add(event, actor, "agent", at=at)

    def output(
        self, content: JSON, *, by: Literal["human", "agent"] = "agent", at: float | None = None
    ) -> Record:
        """A version of the shared output."""
        event = SnapshotTaken(content=content, digest=codec.digest(content))
        return self.add(event, "ann" if by == "human" else "bot", by, at=at)

    def files(
        self,
        changed: Mapping[str, str | None],
        *,
        shown: Mapping[str, str] | None = None,
        by: Literal["human", "agent"] = "agent",
        at: float | None = None,
    ) -> Record:
        """A version of a shared output of several files: see ``files.changed_files``."""
        event = changed_files(self._files, changed, shown=shown)
        self._files = event.files or {}
        return self.add(event, "ann" if by == "human" else "bot", by, at=at)

    def scored(
        self,
        value: float | None,
        *,
        snapshot: Record | None = None,
        round: int | None = None,
        scorer: str = "u@1",
    ) -> Record:
        """A utility score of a snapshot or of a round; None for a missing one."""
        event = UtilityScored(
            scorer=_ref(scorer),
            snapshot=snapshot.version if snapshot else None,
            round=round,
            value=value,
            missing="no score" if value is None else None,
        )
        return self.add(event, event.scorer.name, "scorer", stream=scorer)

    def rated(
        self,
        round: int,
        rating: int | None,
        *,
        judge: str | None = "judge@1",
        until: Record | None = None,
        rounds: Literal["handoff", "human-turn"] = "handoff",
    ) -> Record:
        """A progress rating by a judge, or by the human if ``judge`` is None."""
        event = ProgressRated(
            round=round,
            rating=rating,
            until=until.version if until else None,
            rounds=rounds,
            missing="no rating" if rating is None else None,
            scorer=_ref(judge) if judge else None,
        )
        if judge is None:
            return self.add(event, "ann", "human")
        return self.add(event, judge.partition("@")[0], "scorer", stream=judge)

    def closed(self, reason: CloseReason = "finished", *, at: float | None = None) -> Record:
        """The end."""
        return self.add(SessionClosed(reason=reason, by="engine"), "engine", "environment", at=at)


async def run_scorer(scorer: Scorer, records: Iterable[Record]) -> list[Measurement]:
    """The measurements of a scorer for a session, given its trace records in order."""
    running = Observer(scorer.begin("s"))
    measurements: list[Measurement] = []
    for record in records:
        if record.stream == TRACE:
            measurements += await running.observe(record)
    return measurements


def _ref(stream: str) -> ScorerRef:
    name, _, version = stream.partition("@")
    return ScorerRef(name=name, version=version, config="")
