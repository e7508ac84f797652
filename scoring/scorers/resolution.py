"""Resolution as utility: do the human's words after a round say that the request is settled?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, final

from ...engine.events import (
    CloseReason,
    MessageSent,
    ScorerRef,
    SessionClosed,
    SessionOpened,
)
from ...engine.records import TRACE, Record
from ...engine.rounds import Round, Rounds
from ...engine.scorers.protocol import Cost, Measurement, SessionScorer
from .last_words import Standing, standing
from .utility import Missing, Score, measured, reference

__all__ = ("ReadWords", "ResolutionUtility")

ReadWords: TypeAlias = Callable[[str, str], Standing]
"""Reads the standing of a request from the human's words (first) and earlier words (second)."""

UNSAID: Final = "the human's last words do not say whether the request is settled"

_SHORT: Final = 2000  # bytes of a message that rules read at once

_VALUES: Final[dict[Standing, float]] = {"resolved": 1.0, "unresolved": 0.0}
_ENDED: Final[dict[CloseReason, float]] = {"finished": 1.0, "abandoned": 0.0, "tolerance": 0.0}
"""Close reasons that say how it ended."""


@final
class ResolutionUtility:
    """Scores a chat without an output: 1 if its request is settled, 0 if it is not.

    The round that the human answers is scored as soon as the human says that it is done, works or
    is appreciated (1), or that it is wrong, does not help, has to be asked again or is given up (0).
    Other words score nothing: the utility stays as it was. A session that was closed as ``finished``
    is settled, one closed as ``abandoned`` or ``tolerance`` is not. If neither the last words nor
    the close reason decide it, the last round's score is missing.

    Args:
        read: reads the words, in place of ``last_words.standing``, whose rules are for English.
        version: the version of the scorer; raise it when ``read`` changes. ``2`` belongs to the
            default.
        rounds: how rounds are counted.
    """

    def __init__(
        self, read: ReadWords = standing, *, version: str = "2", rounds: Rounds = "handoff"
    ) -> None:
        self.ref = reference("resolution", version, {"rounds": rounds})
        self._read = read
        self._rounds: Rounds = rounds

    def begin(self, session: str) -> SessionScorer:
        """Starts to score one session from its first record."""
        return _Resolution(self.ref, self._read, self._rounds)


@final
class _Resolution:
    def __init__(self, ref: ScorerRef, read: ReadWords, rounds: Rounds) -> None:
        self._ref = ref
        self._read = read
        self.rounds: Rounds = rounds
        self._over: Round | None = None  # the last one with an act of an agent
        self._before = ""  # the human's words before that act
        self._said = ""
        self._known = False  # whether the human's words on that round are clear
        self._reason: CloseReason | None = None

    def cost(self, record: Record, over: Round | None) -> Cost:
        said = record.kind == "MessageSent" and record.role == "human"
        quick = self._read is standing and len(record.body or b"") < _SHORT
        return "computes" if said and not quick else "quick"

    async def close_round(self, over: Round) -> Sequence[Measurement]:
        if over.agent_acts:
            self._over, self._before, self._known = over, self._said, False
        return () if self._reason is None else self._settle(self._reason)

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.stream != TRACE:
            return ()
        event = record.event if record.kind in _READ else None
        if isinstance(event, SessionOpened):
            self._said = (event.request or "").strip()
        elif isinstance(event, MessageSent) and record.role == "human":
            self._said = event.text
            value = _VALUES.get(self._read(event.text, self._before))
            return self._scored(f"message/{record.version}", value)
        elif isinstance(event, SessionClosed):
            self._reason = event.reason
        return ()

    def _settle(self, reason: CloseReason) -> Sequence[Measurement]:
        value = _ENDED.get(reason)
        if value is None and not self._known:
            return self._measured("closed", Missing(UNSAID))
        return self._scored("closed", value)

    def _scored(self, of: str, value: float | None) -> Sequence[Measurement]:
        self._known = self._known or value is not None
        return () if value is None else self._measured(of, Score(value))

    def _measured(self, of: str, result: Score | Missing) -> Sequence[Measurement]:
        if self._over is None:  # no agent has acted yet
            return ()
        return (measured(self._ref, result, of, over=self._over, rounds=self.rounds),)


_READ: Final = frozenset({"SessionOpened", "MessageSent", "SessionClosed"})
