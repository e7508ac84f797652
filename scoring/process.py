"""Process measures: who takes the initiative, what is confirmed, who interrupts whom.

After Collaborative Gym (Shao et al. 2024), whose annotations come from a model; here they come from
the rules in ``cues``, or from any functions of the same shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import final

import msgspec

from ..engine.events import ActionResolved, ApprovalAsked, ApprovalGiven, MessageSent, SessionOpened
from ..engine.records import TRACE, Record
from .trajectory.phrases import asks_to_confirm, is_answer, is_halt, takes_initiative

__all__ = ("Annotator", "Process", "ProcessFold", "initiative_entropy")


class Annotator(msgspec.Struct, frozen=True, kw_only=True):
    """What tells one utterance from another; functions of its text.

    Attributes:
        initiative: does it take the initiative?
        confirmation: does it ask for a confirmation?
        answer: does it answer one, with yes or no?
        halt: does it tell another to stop?
    """

    initiative: Callable[[str], bool] = takes_initiative
    confirmation: Callable[[str], bool] = asks_to_confirm
    answer: Callable[[str], bool] = is_answer
    halt: Callable[[str], bool] = is_halt


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """How a session went, apart from what came of it.

    Attributes:
        initiatives: utterances that take the initiative, by actor; 0 for those who never do.
        initiative_entropy: see ``initiative_entropy``; None for fewer than two parties.
        confirmations_asked: times an agent asked for leave or for a confirmation.
        confirmations_answered: those that a human answered, with yes or no.
        approved: approvals that humans gave.
        denied: approvals that humans denied.
        halts: messages of humans that tell an agent to stop.
        interruptions: messages of humans while an action of an agent's was in flight.
    """

    initiatives: Mapping[str, int]
    initiative_entropy: float | None
    confirmations_asked: int
    confirmations_answered: int
    approved: int
    denied: int
    halts: int
    interruptions: int


def initiative_entropy(counts: Iterable[int]) -> float | None:
    """How evenly the initiative is shared: -Σ p_i log_N p_i over N parties, p_i their shares.

    1 where all take it equally often; 0 where any of them never does (Shao et al. 2024); None for
    fewer than two parties.

    Args:
        counts: initiatives by party, 0 included.
    """
    listed = list(counts)
    if len(listed) < 2:
        return None
    if min(listed) < 1:
        return 0.0
    total = sum(listed)
    shares = [count / total for count in listed]
    return -math.fsum(share * math.log(share) for share in shares) / math.log(len(listed))


@final
class ProcessFold:
    """Folds the trace of one session into its process measures, one record at a time.

    Args:
        annotator: what tells one utterance from another.
    """

    def __init__(self, annotator: Annotator | None = None) -> None:
        self._tell = annotator or Annotator()
        self._initiatives: dict[str, int] = {}
        self._flying: set[int] = set()
        self._asked = self._answered = 0
        self._approved = self._denied = 0
        self._halts = self._interruptions = 0
        self._open: set[int] = set()
        self._question = False

    def feed(self, record: Record) -> None:
        """Takes the next record; those of measurement streams change nothing."""
        if record.stream != TRACE:
            return
        kind = record.kind
        if kind == "ActionTaken":
            if record.role == "agent":
                self._flying.add(record.version)
        elif kind == "ActionResolved":
            event = record.event
            if isinstance(event, ActionResolved):
                self._flying.discard(event.action)
        elif kind in ("MessageSent", "ApprovalAsked", "ApprovalGiven"):
            if record.role == "human" or record.role == "agent":
                self._say(record)
        elif kind == "SessionOpened":
            event = record.event
            if isinstance(event, SessionOpened):
                for one in event.participants:
                    if one.role == "human" or one.role == "agent":
                        self._initiatives.setdefault(one.name, 0)

    @property
    def measures(self) -> Process:
        """The measures so far."""
        return Process(
            initiatives=dict(self._initiatives),
            initiative_entropy=initiative_entropy(self._initiatives.values()),
            confirmations_asked=self._asked,
            confirmations_answered=self._answered,
            approved=self._approved,
            denied=self._denied,
            halts=self._halts,
            interruptions=self._interruptions,
        )

    def _say(self, record: Record) -> None:
        event = record.event
        human = record.role == "human"
        if isinstance(event, ApprovalGiven):
            self._decide(event, human)
            return
        if isinstance(event, MessageSent):
            text = event.text
        elif isinstance(event, ApprovalAsked):
            text = event.question
        else:  # forgotten, or of a newer schema
            return
        taken = self._initiatives.setdefault(record.actor, 0)
        if self._tell.initiative(text):
            self._initiatives[record.actor] = taken + 1
        if human:
            self._answer(text)
        elif isinstance(event, ApprovalAsked):
            self._asked += 1
            self._open.add(record.version)
        elif self._tell.confirmation(text):
            self._asked += 1
            self._question = True

    def _answer(self, text: str) -> None:
        """A human said something: an answer if the question was the last thing said to it."""
        if self._question and self._tell.answer(text):
            self._answered += 1
        self._question = False
        self._halts += self._tell.halt(text)
        self._interruptions += bool(self._flying)

    def _decide(self, event: ApprovalGiven, human: bool) -> None:
        if not human:
            return
        if event.asked in self._open:
            self._open.discard(event.asked)
            self._answered += 1
        if event.approved:
            self._approved += 1
        else:
            self._denied += 1
