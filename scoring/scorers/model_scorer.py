"""Turns scorers that call functions into scorers that call models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NoReturn, final

from ...engine.codec import digest
from ...engine.errors import DuologError
from ...engine.models.calls.scorer_caller import ScorerCaller
from ...engine.models.gateway import Models
from ...engine.models.prompting.conversation import ModelUse
from ...engine.models.protocol import Caller, ModelRequest
from ...engine.records import Record
from ...engine.rounds import Round, Rounds
from ...engine.scorers.protocol import (
    Computing,
    Cost,
    Measurement,
    RoundScorer,
    Scorer,
    SessionScorer,
)

__all__ = ("ModelScorer", "version_of")


def version_of(number: str, use: ModelUse, *more: object) -> str:
    """The version of a scorer that asks a model: its number, and a digest of all that decides.

    With it, the measurements of two models on one session are in separate streams.

    Args:
        number: raised when the code changes.
        use: which model is asked, and how.
        more: prompts and the like.
    """
    return f"{number}-{digest([use, *more])[:8]}"


@final
class ModelScorer:
    """A scorer that calls models, with a separate caller for each session.

    Its model calls are recorded in its own stream, before the measurements that follow from the
    replies. A session that resumes takes recorded replies instead of calling again.

    Args:
        models: access to the models.
        make: makes the scorer, given the caller that it uses; always with the same name, version
            and configuration.
    """

    def __init__(self, models: Models, make: Callable[[Caller], Scorer]) -> None:
        self._models = models
        self._make = make
        self.ref = make(_NoCaller()).ref

    def begin(self, session: str) -> SessionScorer:
        """Starts to score one session from its first record."""
        caller = ScorerCaller(self._models, session, self.ref)
        return _ModelSession(self._make(caller).begin(session), caller)


@final
class _ModelSession:
    def __init__(self, scorer: SessionScorer, caller: ScorerCaller) -> None:
        self._scorer = scorer
        self._caller = caller
        self.rounds: Rounds | None = scorer.rounds if isinstance(scorer, RoundScorer) else None

    def attend(
        self, recorded: Sequence[Record], excused: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._caller.attend(recorded, excused)

    def cost(self, record: Record, over: Round | None) -> Cost:
        return self._scorer.cost(record, over) if isinstance(self._scorer, Computing) else "waits"

    async def observe(self, record: Record) -> Sequence[Measurement]:
        measurements = await self._scorer.observe(record)
        return [*self._caller.take(), *measurements]

    async def close_round(self, over: Round) -> Sequence[Measurement]:
        assert isinstance(self._scorer, RoundScorer)
        measurements = await self._scorer.close_round(over)
        return [*self._caller.take(), *measurements]


@final
class _NoCaller:
    """A caller for the time outside of sessions, when no model may be called."""

    async def ask(self, request: ModelRequest, *, purpose: str) -> NoReturn:
        raise DuologError(f"{request.model!r} was asked outside of any session")
