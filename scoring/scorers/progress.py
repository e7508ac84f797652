"""Progress judges: rate each round from the human's message, the agent's actions, and the reply.

``ProgressJudge`` collects the evidence and records the verdicts of any function on it;
``rule_judge`` is one that works offline. For a judge that asks a model, pass an async function that
asks it about the evidence, and return the ``ModelCalled`` with the verdict: it is recorded in the
judge's own stream, so that a replay never calls the model again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, final

import msgspec

from ...engine.errors import InvalidInput
from ...engine.events import (
    JSON,
    ActionResolved,
    ActionTaken,
    ApprovalAsked,
    MessageSent,
    ModelCalled,
    ProgressRated,
    ScorerRef,
    SessionOpened,
    SnapshotTaken,
)
from ...engine.records import TRACE, Record
from ...engine.rounds import Round, Rounds
from ...engine.scorers.observing import finished
from ...engine.scorers.protocol import Cost, Measurement, SessionScorer
from ..turns import Annotator, Label, Turn, annotate
from .utility import cost_of, reference

__all__ = (
    "RULE_JUDGE",
    "AgentAction",
    "Evidence",
    "ProgressJudge",
    "RateRound",
    "Verdict",
    "labels_judge",
    "labels_verdict",
    "reaction",
    "reply_of",
    "rule_judge",
    "rule_verdict",
)

_SHORT = 2000  # bytes of a message that rules read at once

RULE_JUDGE = "rule-judge"
"""Name of the offline judge."""

NO_REPLY = "the human said nothing after the round"
UNREADABLE = "the rules do not know the language of the human's message"


class AgentAction(msgspec.Struct, frozen=True):
    """An action of an agent: its name, and its outcome (None while it is in flight)."""

    name: str
    outcome: str | None = None


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence that a judge has about a round.

    Attributes:
        round: the round, closed.
        request: the initial request.
        before: the human's last message, in the round or before it; the request if there is none.
        said: what agents said or asked in the round.
        did: actions of agents in the round.
        update: the last snapshot of agents in the round; None if they took none.
        after: the human's next message.
    """

    round: Round
    request: str
    before: str
    said: tuple[str, ...]
    did: tuple[AgentAction, ...]
    update: SnapshotTaken | None
    after: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A judge's answer.

    Attributes:
        rating: 1 to 5; None if there is none, with the reason in ``missing``.
        explanation: in the judge's words.
        missing: why there is no rating.
        calls: the model calls behind it.

    Raises:
        InvalidInput: a rating out of range, or neither a rating nor a reason.
    """

    rating: int | None = None
    explanation: str = ""
    missing: str | None = None
    calls: tuple[ModelCalled, ...] = ()

    def __post_init__(self) -> None:
        if self.rating is None:
            if not (self.missing or "").strip():
                raise InvalidInput("a missing rating needs a reason")
        elif not 1 <= self.rating <= 5:
            raise InvalidInput(f"a rating is 1 to 5, not {self.rating}")


RateRound: TypeAlias = Callable[[Evidence], Verdict | Awaitable[Verdict]]
"""Judges a round; may be async."""


def rule_verdict(evidence: Evidence) -> Verdict:
    """Judges by rules, offline: did anything happen, and how does the human react?

    From 3: +1 if the agent updated the output; -1 if it neither updated, nor said anything, nor had
    an action succeed. The labels of the human's next message (``turns``) change it: see ``reaction``.
    Limited to 1 to 5. The rating is missing if the rules do not know the language of the message.
    """
    return labels_verdict(evidence, annotate(reply_of(evidence)))


def reply_of(evidence: Evidence) -> Turn:
    """The human's next message after a round, with the messages before it."""
    return Turn(text=evidence.after, before="\n".join(evidence.said), said=evidence.before)


def labels_verdict(evidence: Evidence, labels: frozenset[Label] | None) -> Verdict:
    """The verdict of ``rule_verdict``, by the labels of the human's next message.

    Args:
        evidence: the evidence of the round.
        labels: None if the message cannot be read.
    """
    if labels is None:
        return Verdict(missing=UNREADABLE)
    reasons: list[str] = []
    rating = 3
    if evidence.round.updated:
        rating += 1
        reasons.append("the output was updated")
    elif not evidence.said and not any(did.outcome == "ok" for did in evidence.did):
        rating -= 1
        reasons.append("nothing came of the round")
    change, why = reaction(labels)
    rating += change
    reasons += why
    explanation = "; ".join(reasons) or "nothing stands out"
    return Verdict(rating=min(max(rating, 1), 5), explanation=explanation)


def reaction(labels: frozenset[Label]) -> tuple[int, list[str]]:
    """How the human reacts to a round, by the labels of their next message.

    +1 for praise, -1 for a complaint or a correction, -1 for a halt, and -1 if they say it again.

    Args:
        labels: of their next message.

    Returns:
        What it changes of the rating, and why.
    """
    change, reasons = 0, []
    if "praise" in labels:
        change += 1
        reasons.append("the human is pleased")
    if "complaint" in labels or "correction" in labels:
        change -= 1
        reasons.append("the human complains")
    if "halt" in labels:
        change -= 1
        reasons.append("the human calls a halt")
    if "repeat" in labels:
        change -= 1
        reasons.append("the human has to say it again")
    return change, reasons


@final
class ProgressJudge:
    """Rates each round with a function, when it is due.

    Due at the first human message after the round. A round without one, such as the last, is
    recorded as missing when the session closes: a judge needs the reply, and the published
    analysis does not rate the last round either.

    Args:
        name: the name of the scorer; ``config["judge"]`` of a session names it.
        version: raise it when the function changes, so that new ratings do not mix with old ones.
        rate: the function. An exception from it quarantines the judge for the session.
        config: the settings that the function depends on, e.g. model and prompt digest.
        rounds: how rounds are counted.

    Raises:
        InvalidInput: the name or version is empty.
    """

    def __init__(
        self,
        name: str,
        version: str,
        rate: RateRound,
        *,
        config: JSON = None,
        rounds: Rounds = "handoff",
    ) -> None:
        self.ref = reference(name, version, {"rounds": rounds, "config": config})
        self._rate = rate
        self._rounds: Rounds = rounds

    def begin(self, session: str) -> SessionScorer:
        """Starts to judge one session from its first record."""
        return _Judging(self.ref, self._rate, self._rounds)


def rule_judge(rounds: Rounds = "handoff") -> ProgressJudge:
    """The offline judge: ``rule_verdict`` under the name ``rule-judge``."""
    return ProgressJudge(RULE_JUDGE, "2", rule_verdict, rounds=rounds)


def labels_judge(
    annotator: Annotator, name: str, version: str, rounds: Rounds = "handoff"
) -> ProgressJudge:
    """A judge that rates as ``rule_verdict`` does, from the labels of another annotator.

    Args:
        annotator: labels the human's messages; it may know other languages.
        name: the name of the scorer.
        version: raise it when the annotator changes.
        rounds: how rounds are counted.
    """

    def rate(evidence: Evidence) -> Verdict:
        return labels_verdict(evidence, annotator(reply_of(evidence)))

    return ProgressJudge(name, version, rate, rounds=rounds)


_EVIDENCE = frozenset(
    {
        "SessionOpened",
        "MessageSent",
        "ApprovalAsked",
        "ActionTaken",
        "ActionResolved",
        "SnapshotTaken",
    }
)


@final
class _Gathered:
    """The evidence of one round while it is collected; actions may end after the round."""

    __slots__ = ("actions", "before", "said", "update")

    def __init__(self) -> None:
        self.before = ""
        self.said: list[str] = []
        self.actions: dict[int, AgentAction] = {}
        self.update: SnapshotTaken | None = None


@final
class _Judging:
    def __init__(self, ref: ScorerRef, rate: RateRound, rounds: Rounds) -> None:
        self._ref = ref
        self._rate = rate
        self.rounds: Rounds = rounds
        self._cost = cost_of(rate)
        self._request = ""
        self._said = ""
        self._gathered = _Gathered()
        self._waiting: list[tuple[Round, _Gathered]] = []
        self._in_flight: dict[int, _Gathered] = {}  # by the action's version, for its round
        self._closed = False

    def cost(self, record: Record, over: Round | None) -> Cost:
        due = record.role == "human" and record.kind == "MessageSent" and (over or self._waiting)
        if not due or (self._rate is rule_verdict and len(record.body or b"") < _SHORT):
            return "quick"
        return self._cost

    async def close_round(self, over: Round) -> Sequence[Measurement]:
        self._gathered.before = self._said or self._request
        self._waiting.append((over, self._gathered))
        self._gathered = _Gathered()
        return self._give_up() if self._closed else ()

    async def observe(self, record: Record) -> Sequence[Measurement]:
        if record.stream != TRACE:
            return ()
        if record.kind == "SessionClosed":
            self._closed = True
        if record.kind not in _EVIDENCE:
            return ()
        event = record.event
        if isinstance(event, SessionOpened):
            self._request = (event.request or "").strip()
        elif isinstance(event, ActionResolved):
            self._resolve(event)
        elif record.role == "agent":
            self._gather(record)
        elif record.role == "human" and isinstance(event, MessageSent):
            self._said = event.text
            self._request = self._request or event.text
            return await self._judge(event.text)
        return ()

    def _gather(self, record: Record) -> None:
        event = record.event
        if isinstance(event, MessageSent):
            self._gathered.said.append(event.text)
        elif isinstance(event, ApprovalAsked):
            self._gathered.said.append(event.question)
        elif isinstance(event, ActionTaken):
            self._gathered.actions[record.version] = AgentAction(event.name)
            self._in_flight[record.version] = self._gathered
        elif isinstance(event, SnapshotTaken):
            self._gathered.update = event

    def _resolve(self, event: ActionResolved) -> None:
        gathered = self._in_flight.pop(event.action, None)
        if gathered is not None:
            name = gathered.actions[event.action].name
            gathered.actions[event.action] = AgentAction(name, event.outcome)

    async def _judge(self, after: str) -> list[Measurement]:
        """Rates all rounds that waited for this message."""
        due, self._waiting = self._waiting, []
        measurements: list[Measurement] = []
        for over, gathered in due:
            evidence = Evidence(
                round=over,
                request=self._request,
                before=gathered.before,
                said=tuple(gathered.said),
                did=tuple(gathered.actions.values()),
                update=gathered.update,
                after=after,
            )
            measurements += self._rated(over, await finished(self._rate(evidence)))
        return measurements

    def _give_up(self) -> list[Measurement]:
        """Records missing ratings for the rounds that still wait when the session closes."""
        due, self._waiting = self._waiting, []
        return [rated for over, _ in due for rated in self._rated(over, Verdict(missing=NO_REPLY))]

    def _rated(self, over: Round, verdict: Verdict) -> list[Measurement]:
        of = f"round/{over.number}"
        rated = ProgressRated(
            round=over.number,
            rating=verdict.rating,
            until=over.last_act or over.last,
            rounds=self.rounds,
            explanation=verdict.explanation,
            missing=verdict.missing if verdict.rating is None else None,
            scorer=self._ref,
        )
        calls = [
            Measurement(call, f"{of}/call/{number}")
            for number, call in enumerate(verdict.calls, start=1)
        ]
        return [*calls, Measurement(rated, of)]
