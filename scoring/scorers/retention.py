"""Retention: how much of the agent's draft survives the human's later edits; no ground truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, final

from ...engine.events import CloseReason, ScorerRef, SessionClosed, SnapshotTaken
from ...engine.files import Contents, output_text
from ...engine.records import TRACE, Record
from ...engine.rounds import Round, is_blank
from ...engine.scorers.protocol import Cost, Measurement, SessionScorer
from ...engine.text import count_words, new_words
from .utility import Missing, Score, measured, reference

__all__ = ("RetentionUtility", "retention")

_SHORT: Final = 4096  # characters that are compared at once

_LEFT: Final[frozenset[CloseReason]] = frozenset({"abandoned", "tolerance"})
"""Close reasons that say that the human left before the end."""


def retention(draft: str, later: str, before: str = "") -> Score | Missing:
    """The share of a draft's words that a later version still holds.

    Args:
        draft: the version of the agent.
        later: the version of the human after it.
        before: the version that the agent started from.

    Returns:
        1 - (words of ``draft`` that ``later`` does not hold) / (words of ``draft``), in [0, 1].
        Words are compared as ``text.new_words`` does, so that moving a line loses nothing. Part
        ``changes`` is the same for the words that the agent had added to ``before``, None if
        there are none. Missing for a draft without words.
    """
    total = count_words(draft)
    if not total:
        return Missing("the draft is empty")
    lines = draft.splitlines()
    lost = Counter(new_words(later.splitlines(), lines).split())
    changes = Counter(new_words(before.splitlines(), lines).split())
    own = changes.total()
    kept = 1.0 - (lost & changes).total() / own if own else None
    return Score(1.0 - lost.total() / total, {"changes": kept})


@final
class RetentionUtility:
    """Scores drafts of agents by how much of them humans keep.

    A human's snapshot is scored at once: how much it kept of the agent's latest draft. The draft
    itself is scored when it is final, that is when the agent submits another or the session closes:
    how much the human's last version kept, or 1 if the human left it unchanged to the end. Missing
    if the agent replaced it before any human edited it. 0 if the human left (the session was closed
    as ``abandoned`` or ``tolerance``) before any human edited it.
    """

    def __init__(self) -> None:
        self.ref = reference("retention", "3")

    def begin(self, session: str) -> SessionScorer:
        """Starts to score one session from its first record."""
        return _Retention(self.ref)


@final
class _Retention:
    def __init__(self, ref: ScorerRef) -> None:
        self._ref = ref
        self._contents = Contents()
        self._latest = ""
        self._draft: str | None = None
        self._before = ""
        self._version = 0
        self._kept: Score | Missing | None = None  # by the human's last version of the draft

    def cost(self, record: Record, over: Round | None) -> Cost:
        if record.kind not in ("SnapshotTaken", "SessionClosed"):
            return "quick"
        size = len(record.body or b"") + len(self._draft or "")
        return "quick" if size < _SHORT else "computes"

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.stream != TRACE:
            return ()
        if record.kind == "SessionClosed":
            closed = record.event
            left = isinstance(closed, SessionClosed) and closed.reason in _LEFT
            return self._settle(replaced=False, left=left)
        event = record.event if record.kind == "SnapshotTaken" else None
        if not isinstance(event, SnapshotTaken):
            return ()
        text = "" if is_blank(event) else output_text(self._contents.whole(event))
        if record.role == "agent":
            settled = self._settle(replaced=True)
            self._before, self._draft = self._latest, text
            self._latest, self._version, self._kept = text, record.version, None
            return settled
        if record.role != "human":
            return ()
        self._latest = text
        if self._draft is None:
            self._kept = Missing("the agent has made no draft yet")
        else:
            self._kept = retention(self._draft, text, self._before)
        of = f"snapshot/{record.version}"
        return (measured(self._ref, self._kept, of, snapshot=record.version),)

    def _settle(self, *, replaced: bool, left: bool = False) -> Sequence[Measurement]:
        """Scores the draft that has become final, if there is one."""
        if self._draft is None:
            return ()
        result = self._kept
        if result is None and replaced:
            result = Missing("the agent replaced the draft before a human edited it")
        elif result is None:
            result = retention(self._draft, "" if left else self._draft, self._before)
        self._draft = None
        of = f"snapshot/{self._version}"
        return (measured(self._ref, result, of, snapshot=self._version),)
