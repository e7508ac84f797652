"""Feedback as utility: thumbs, and the share of the agent's work that people kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import msgspec

from ...engine.events import FeedbackGiven, ScorerRef, UtilityScored
from ...engine.records import TRACE, Record
from ...engine.rounds import Round, Rounds, is_act
from ...engine.scorers.protocol import Cost, Measurement, SessionScorer
from ..trajectory.round_index import RoundIndex
from .utility import Missing, Score, reference

__all__ = ("FeedbackUtility", "value_of")


def value_of(feedback: FeedbackGiven) -> Score | Missing | None:
    """The value of a feedback: the mean of thumbs (up 1, down 0) and ``edits_kept``, if given.

    Missing if ``edits_kept`` is not in [0, 1]; None if there is only a comment.
    """
    parts: dict[str, float | None] = {}
    if feedback.thumbs is not None:
        parts["thumbs"] = 1.0 if feedback.thumbs == "up" else 0.0
    if feedback.edits_kept is not None:
        if not 0.0 <= feedback.edits_kept <= 1.0:
            return Missing(f"edits_kept is a share in [0, 1], and {feedback.edits_kept!r} is not")
        parts["edits_kept"] = feedback.edits_kept
    values = [part for part in parts.values() if part is not None]
    return Score(sum(values) / len(values), parts) if values else None


@final
class FeedbackUtility:
    """Scores the snapshot that feedback is about, or the round of any other record.

    Feedback on the session as a whole is about its last snapshot, or its last round if there is
    none. Later feedback on the same thing replaces earlier feedback.
    """

    def __init__(self) -> None:
        self.ref = reference("feedback", "1")

    def begin(self, session: str) -> SessionScorer:
        """Starts to score one session from its first record."""
        return _FeedbackSession(self.ref)


@final
class _FeedbackSession:
    rounds: Rounds = "handoff"

    def __init__(self, ref: ScorerRef) -> None:
        self._ref = ref
        self._index = RoundIndex(self.rounds)
        self._index.begin(1)
        self._closed = False
        self._last_act: int | None = None  # in the round that is open, or the last one
        self._snapshots: set[int] = set()
        self._last_snapshot: int | None = None
        self._version = 0

    def cost(self, record: Record, over: Round | None) -> Cost:
        return "quick"  # it only counts

    async def close_round(self, over: Round) -> Sequence[Measurement]:
        if not self._closed:
            self._index.begin(over.last + 1)
            self._last_act = None
        return ()

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.stream != TRACE:
            return ()
        self._version = record.version
        self._closed = self._closed or record.kind == "SessionClosed"
        if is_act(record):
            self._last_act = record.version
        if record.kind == "SnapshotTaken" and record.role in ("human", "agent"):
            self._snapshots.add(record.version)
            self._last_snapshot = record.version
        event = record.event if record.kind == "FeedbackGiven" else None
        result = value_of(event) if isinstance(event, FeedbackGiven) else None
        if result is None or not isinstance(event, FeedbackGiven):
            return ()
        return (Measurement(self._scored(event, result), f"feedback/{record.version}"),)

    def _scored(self, event: FeedbackGiven, result: Score | Missing) -> UtilityScored:
        of = event.of
        if of is None:
            of = self._last_snapshot or self._last_act or 1
        snapshot = of if of in self._snapshots else None
        number = None
        if snapshot is None:
            number = self._index.of_version(of, self._version)
            if number is None:
                result = Missing(f"the feedback is about version {of}, which the trace has not")
        scored = UtilityScored(
            scorer=self._ref, snapshot=snapshot, round=number, until=of if number else None
        )
        if isinstance(result, Missing):
            return msgspec.structs.replace(scored, missing=result.reason)
        return msgspec.structs.replace(scored, value=result.value, parts=result.parts)
