"""Process measures: initiative, confirmations, interruptions, and strain on the human.

Initiatives, confirmations and interruptions follow Collaborative Gym (Shao et al. 2024); for the others see
``strain`` and ``loops``. Its annotations come from a model; here they come from the rules in
``turns``, or from another ``turns.Annotator``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
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
from .turns import Annotator, Label, Turn, annotate

__all__ = ("Process", "ProcessFold", "initiative_entropy")


_CONFIRM = re.compile(
    r"\b(?:(?:shall|should|may|can|could) (?:i|we)|do you want me to|"
    r"(?:would|do) you (?:like|mind|agree|approve|prefer)|"
    r"is (?:that|this|it) (?:ok(?:ay)?|fine|right|correct|acceptable|all right|alright)|"
    r"are you (?:ok(?:ay)?|fine|happy) with|(?:please |can you |could you )?confirm|"
    r"does (?:that|this|it) (?:work|look|sound|suit)|ok(?:ay)? (?:with you|if i))\b"
)
"""How an agent asks a question to be answered with yes or no."""


class Process(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How the parties of a session worked together, apart from its result.

    All but ``initiatives`` are None if nothing can be said: unless a human and an agent take part, or
    if the text of an utterance is not known (erased, or of a newer schema). Initiatives are missing if
    the annotator cannot read a message, answers, halts and clarifications if it is a human's.

    Attributes:
        initiatives: utterances that inform or ask, by actor; 0 for those who never do. Empty if the
            text of an utterance is not known, or the annotator cannot read it.
        agent_initiatives: the same, of all agents together.
        human_initiatives: the same, of all humans together.
        initiative_entropy: see ``initiative_entropy``; also None if nothing was said.
        confirmations_asked: times an agent asked for approval or for a confirmation.
        confirmations_answered: those that a human answered, with yes or no.
        approved: approvals that humans gave.
        denied: approvals that humans denied.
        halts: messages of humans that ask an agent to stop.
        interruptions: messages of humans while an action of an agent was in flight.
        peak_reading: the most words that waited to be read at one act of a human.
        hesitation: seconds before acts of humans that neither reading nor typing explains.
        clarifications: messages of humans that ask about the agent's words or work.
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
        annotator: labels utterances; by default by rules.
        output: the lines of the output, if another fold of the session shares them.
    """

    def __init__(
        self, annotator: Annotator | None = None, *, output: OutputLines | None = None
    ) -> None:
        self._annotate: Annotator = annotator or annotate
        self._initiatives: dict[str, int] = {}
        self._roles: dict[str, Role] = {}
        self._in_flight: set[int] = set()
        self._asked = self._answered = 0
        self._approved = self._denied = 0
        self._halts = self._interruptions = self._clarifications = 0
        self._said: dict[Role, str] = {}
        self._unlabelled: set[Role] = set()
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
        labelled = not self._unlabelled
        human = "human" not in self._unlabelled
        return Process(
            initiatives=dict(self._initiatives) if labelled else {},
            agent_initiatives=self._initiatives_of("agent"),
            human_initiatives=self._initiatives_of("human"),
            initiative_entropy=initiative_entropy(counts) if self._spoken and labelled else None,
            confirmations_asked=self._asked,
            confirmations_answered=self._answered if human else None,
            approved=self._approved,
            denied=self._denied,
            halts=self._halts if human else None,
            interruptions=self._interruptions,
            peak_reading=self._strain.peak_reading,
            hesitation=self._strain.hesitation,
            clarifications=self._clarifications if human else None,
            reworked_lines=self._strain.reworked_lines,
            inquiries=self._strain.inquiries,
            loops=self._loops.loops,
            looping_acts=self._loops.acts,
        )

    def _join(self, actor: str, role: Role) -> None:
        if role == "human" or role == "agent":
            self._roles.setdefault(actor, role)
            self._initiatives.setdefault(actor, 0)

    def _initiatives_of(self, role: Role) -> int | None:
        if role in self._unlabelled:
            return None
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
        turn = Turn(text=text)
        if human:
            before, said = self._said.get("agent", ""), self._said.get("human", "")
            turn = Turn(text=text, before=before, said=said)
        labels = self._annotate(turn)
        self._said[record.role] = text
        if labels is None:
            self._unlabelled.add(record.role)
            labels = frozenset()
        self._initiatives[record.actor] += "informs" in labels or "asks" in labels
        if human:
            self._human_message(labels)
        elif isinstance(event, ApprovalAsked):
            self._asked += 1
            self._open_approvals.add(record.version)
        elif "?" in text and _CONFIRM.search(text.lower()):
            self._asked += 1
            self._open_question = True

    def _human_message(self, labels: frozenset[Label]) -> None:
        """Only the first message after a question can answer it."""
        if self._open_question and ("confirm" in labels or "deny" in labels):
            self._answered += 1
        self._open_question = False
        self._halts += "halt" in labels
        self._clarifications += "clarify" in labels
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
