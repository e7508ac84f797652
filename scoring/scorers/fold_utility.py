"""Utility of a whole session so far: your fold scores every closed round.

Use it for results that a single snapshot does not show, such as what the human has understood.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, final

from ...engine.events import JSON, ScorerRef
from ...engine.records import TRACE, Record
from ...engine.rounds import Round, Rounds
from ...engine.scorers.protocol import Cost, Measurement, SessionScorer
from .utility import Missing, Score, measured, reference

__all__ = ("BeginFold", "FoldUtility", "SessionFold")


class SessionFold(Protocol):
    """A utility's state for one session."""

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
        name: the name of the scorer.
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
        self.rounds: Rounds = rounds

    def cost(self, record: Record, over: Round | None) -> Cost:
        return "quick" if over is None else "computes"

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.stream == TRACE:
            self._fold.feed(record)
        return ()

    async def close_round(self, over: Round) -> Sequence[Measurement]:
        result = self._fold.score(over)
        if result is None:
            return ()
        of = f"round/{over.number}"
        return (measured(self._ref, result, of, over=over, rounds=self.rounds),)
