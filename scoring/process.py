"""Process measures: who takes the initiative, what is confirmed, who interrupts whom, what strains the human.

Initiatives, confirmations and interruptions follow Collaborative Gym (Shao et al. 2024); for the others see
``strain`` and ``loops``. Its annotations come from a model; here they come from
the rules in ``trajectory.phrases``, or from other functions with the same signatures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import final

import msgspec

from ..engine.codec import resolved_action
from ..engine.events import (
    ApprovalAsked,
    ApprovalGiven,
    MessageSent,
    Role,
    SessionOpened,
)
from ..engine.records import TRACE, Record
from .loops import LoopFold
from .strain import StrainFold
from .trajectory.output_lines import OutputLines
from .trajectory.phrases import asks_to_confirm, is_answer, is_halt, takes_initiative

__all__ = ("Annotator", "Process", "ProcessFold", "initiative_entropy")


class Annotator(msgspec.Struct, frozen=True, kw_only=True):
    """Classifies utterances: predicates over the text of one.

    Attributes:
        initiative: it takes the initiative.
        confirmation: it asks for a confirmation.
        answer: it answers such a question, with yes or no.
        halt: it asks another to stop.
    """

    initiative: Callable[[str], bool] = takes_initiative
    confirmation: Callable[[str], bool] = asks_to_confirm
    answer: Callable[[str], bool] = is_answer
    halt: Callable[[str], bool] = is_halt


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """How the parties of a session worked together, apart from its result.

    All but ``initiatives`` are None where nothing can be said: unless a human and an agent take
    part, and where the text of an utterance is not known (erased, or of a newer schema).

    Attributes:
        initiatives: utterances that take the initiative, by actor; 0 for those who never do. Empty
            where the text of an utterance is not known.
        agent_initiatives: the same, of all agents together.
        human_initiatives: the same, of all humans together.
        initiative_entropy: see ``initiative_entropy``; None where nobody has said anything, too.
        confirmations_asked: times an agent asked for approval or for a confirmation.
        confirmations_answered: those that a human answered, with yes or no.
        approved: approvals that humans gave.
        denied: approvals that humans denied.
        halts: messages of humans that ask an agent to stop.
        interruptions: messages of humans while an action of an agent was in flight.
        peak_reading: the most words that waited to be read at one act of a human.
        hesitation: seconds before acts of humans that neither reading nor typing explains.
        clarifications: messages of humans that ask what was meant.
        reworked_lines: lines of the output that humans put back, or took back.
        inquiries: messages of humans that ask something, and their actions.
        loops: runs in which an agent repeats itself, see ``loops``.
        looping_acts: acts of agents that repeat others in them.
    """

    initiatives: Mapping[str, int]
    agent_initiatives: int | None = None
    human_initiatives: int | None = None
    initiative_entropy: float | None = None
    confirmations_asked: int | None = None
    confirmations_answered: int | None = None
    approved: int | None = None
    denied: int | None = None
    halts: int | None = None
    interruptions: int | None = None
    peak_reading: int | None = None
    hesitation: float | None = None
    clarifications: int | None = None
    reworked_lines: int | None = None
    inquiries: int | None = None
    loops: int | None = None
    looping_acts: int | None = None


def initiative_entropy(counts: Iterable[int]) -> float | None:
    """How evenly the initiative is shared: -Σ p_i log_N p_i over N parties, p_i their shares.

    1 if all take it equally often; 0 if one of them never does (Shao et al. 2024); None for fewer
    than two parties.

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
        annotator: classifies utterances; by default by rules.
        output: the lines of the output, where another fold of the session looks at them, too.
    """

    def __init__(
        self, annotator: Annotator | None = None, *, output: OutputLines | None = None
    ) -> None:
        self._annotator = annotator or Annotator()
        self._initiatives: dict[str, int] = {}
        self._roles: dict[str, Role] = {}
        self._in_flight: set[int] = set()
        self._asked = self._answered = 0
        self._approved = self._denied = 0
        self._halts = self._interruptions = 0
        self._open_approvals: set[int] = set()
        self._open_question = False
        self._spoken = False
        self._unreadable = False
        self._strain = StrainFold(output)
        self._loops = LoopFold()

    def feed(self, record: Record) -> None:
        """Takes the next record; those of measurement streams change nothing."""
        if record.stream != TRACE:
            return
        kind = record.kind
        if kind == "ActionResolved":
            if self._in_flight:
                self._in_flight.discard(resolved_action(record.schema, record.body) or 0)
            return
        if record.role == "agent":
            self._loops.feed(record)
            if kind == "ActionTaken":
                self._in_flight.add(record.version)
                self._strain.agent_acted(record.time)
                return
        self._strain.feed(record)
        if kind in ("MessageSent", "ApprovalAsked", "ApprovalGiven"):
            if record.role == "human" or record.role == "agent":
                self._utterance(record)
        elif kind == "SessionOpened":
            event = record.event
            if isinstance(event, SessionOpened):
                for one in event.participants:
                    self._join(one.name, one.role)
            else:
                self._unreadable = True

    @property
    def measures(self) -> Process:
        """The measures so far."""
        if self._unreadable:
            return Process(initiatives={})
        if not {"human", "agent"} <= set(self._roles.values()):
            return Process(initiatives=dict(self._initiatives))
        counts = self._initiatives.values()
        return Process(
            initiatives=dict(self._initiatives),
            agent_initiatives=self._initiatives_of("agent"),
            human_initiatives=self._initiatives_of("human"),
            initiative_entropy=initiative_entropy(counts) if self._spoken else None,
            confirmations_asked=self._asked,
            confirmations_answered=self._answered,
            approved=self._approved,
            denied=self._denied,
            halts=self._halts,
            interruptions=self._interruptions,
            peak_reading=self._strain.peak_reading,
            hesitation=self._strain.hesitation,
            clarifications=self._strain.clarifications,
            reworked_lines=self._strain.reworked_lines,
            inquiries=self._strain.inquiries,
            loops=self._loops.loops,
            looping_acts=self._loops.acts,
        )

    def _join(self, actor: str, role: Role) -> None:
        if role == "human" or role == "agent":
            self._roles.setdefault(actor, role)
            self._initiatives.setdefault(actor, 0)

    def _initiatives_of(self, role: Role) -> int:
        return sum(
            count for actor, count in self._initiatives.items() if self._roles[actor] == role
        )

    def _utterance(self, record: Record) -> None:
        event = record.event
        human = record.role == "human"
        if record.actor not in self._roles:
            self._join(record.actor, record.role)
        if isinstance(event, ApprovalGiven):
            self._decision(event, human)
            return
        if isinstance(event, MessageSent):
            text = event.text
        elif isinstance(event, ApprovalAsked):
            text = event.question
        else:  # erased, or of a newer schema
            self._unreadable = True
            return
        self._spoken = True
        self._initiatives[record.actor] += self._annotator.initiative(text)
        if human:
            self._human_message(text)
        elif isinstance(event, ApprovalAsked):
            self._asked += 1
            self._open_approvals.add(record.version)
        elif self._annotator.confirmation(text):
            self._asked += 1
            self._open_question = True

    def _human_message(self, text: str) -> None:
        """Only the first message after a question can answer it."""
        if self._open_question and self._annotator.answer(text):
            self._answered += 1
        self._open_question = False
        self._halts += self._annotator.halt(text)
        self._interruptions += bool(self._in_flight)

    def _decision(self, event: ApprovalGiven, human: bool) -> None:
        if not human:
            return
        if event.asked in self._open_approvals:
            self._open_approvals.discard(event.asked)
            self._answered += 1
        if event.approved:
            self._approved += 1
        else:
            self._denied += 1
