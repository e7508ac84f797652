"""Utility of what a session has brought about so far: every closed round, by a fold of your own.

For what no single snapshot shows: what the human has understood, learned, or checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, final

from ...engine.events import JSON, ScorerRef
from ...engine.records import TRACE, Record
from ...engine.rounds import Round, RoundProjector, Rounds
from ...engine.scorers.computing import RunFunction, run_at_once
from ...engine.scorers.protocol import Measurement, SessionScorer
from .utility import Missing, Score, measured, reference

__all__ = ("BeginFold", "FoldUtility", "SessionFold")


class SessionFold(Protocol):
    """What a utility has to remember of one session."""

    def feed(self, record: Record) -> None:
        """Takes the next trace record."""
        ...

    def score(self, over: Round) -> Score | Missing | None:
        """The utility at the end of a round, of which all records have been taken.

        Args:
            over: the round, closed.

        Returns:
            The score; None if there is nothing to score, so that the utility stays as it was.
        """
        ...


BeginFold: TypeAlias = Callable[[], SessionFold]
"""Makes a fold for one session."""


@final
class FoldUtility:
    """Scores every closed round by a fold over all that happened until then.

    Args:
        name: of the scorer.
        version: raise it when the fold changes, so that new scores do not mix with old ones.
        begin: makes a fold for a session. An exception from it quarantines the scorer there.
        config: the settings that the fold depends on; each score carries their digest.
        rounds: how rounds are counted.

    Raises:
        InvalidInput: the name or version is empty.
    """

    ref: ScorerRef

    def __init__(
        self,
        name: str,
        version: str,
        begin: BeginFold,
        *,
        config: JSON = None,
        rounds: Rounds = "handoff",
    ) -> None:
        self.ref = reference(name, version, {"rounds": rounds, "config": config})
        self._begin = begin
        self._rounds: Rounds = rounds

    def begin(self, session: str) -> SessionScorer:
        """Starts to score one session from its first record."""
        return _Folded(self.ref, self._begin(), self._rounds)


@final
class _Folded:
    def __init__(self, ref: ScorerRef, fold: SessionFold, rounds: Rounds) -> None:
        self._ref = ref
        self._fold = fold
        self._rounds: Rounds = rounds
        self._projector = RoundProjector(rounds)
        self._run: RunFunction = run_at_once

    def compute_by(self, run: RunFunction) -> None:
        self._run = run

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.stream != TRACE:
            return ()
        over = self._projector.feed(record)
        if over is None:
            self._fold.feed(record)
            return ()
        # The close belongs to the round that it ends; anything else that ends one, to the next.
        last = record.kind == "SessionClosed"
        if last:
            self._fold.feed(record)
        result = await self._run(self._fold.score, over)
        if not last:
            self._fold.feed(record)
        if result is None:
            return ()
        of = f"round/{over.number}"
        return (measured(self._ref, result, of, over=over, rounds=self._rounds),)
