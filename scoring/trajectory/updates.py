"""Typed updates that scoring emits during a session; a replay emits the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from ...engine.events import CloseReason
from ...engine.records import Record
from ...engine.rounds import Stage
from ..oversight import Approvals
from .points import Point

__all__ = (
    "AnyUpdate",
    "ChatAdvised",
    "EffortUpdated",
    "OversightUpdated",
    "RatingUpdated",
    "RoundClosed",
    "RoundOpened",
    "ScorerDown",
    "SessionEnded",
    "StageChanged",
    "StopAdvice",
    "StopWithdrawn",
    "Trigger",
    "Update",
    "UtilityUpdated",
)

ChatMove: TypeAlias = Literal["answer", "ask", "confirm", "escalate"]
"""The next move of an agent in a chat.

``answer``: reply, look something up or carry out an agreement, and ask nothing. ``ask``: ask for what is
missing. ``confirm``: say what would be done, and wait for a yes. ``escalate``: hand over to a person.
"""


class Update(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="update", tag=True):
    """What all updates share.

    Attributes:
        session: session id.
        round: number of the round that it is about.
        position: the position of the record that brought it about.
        version: the trace version that had been reached.
    """

    session: str
    round: int
    position: int
    version: int


class Trigger(msgspec.Struct, frozen=True, gc=False):
    """What brings updates about.

    Attributes:
        record: the record, of any stream.
        version: the trace version that had been reached with it.
    """

    record: Record
    version: int

    def about(self, number: int) -> tuple[str, int, int, int]:
        """The first fields of an update about a round: session, round, position and version.

        Args:
            number: the number of the round.
        """
        record = self.record
        return record.session, number, record.position, self.version


class RoundOpened(Update, frozen=True, kw_only=True):
    """A round began; the first one with the session.

    Attributes:
        stage: the stage of the session, as it is now.
        utility: the utility at its beginning; None if utility is missing.
        missing: why utility is missing.
        output: whether the session is about a shared output, as far as is known.
    """

    stage: Stage = "initial"
    utility: float | None = 0.0
    missing: str | None = None
    output: bool = True


class RoundClosed(Update, frozen=True, kw_only=True):
    """A round is over.

    Attributes:
        point: its point, as far as that is known; utility and rating may still follow.
        missing: why utility is missing.
    """

    point: Point
    missing: str | None = None


class UtilityUpdated(Update, frozen=True, kw_only=True):
    """The utility of a round changed: the open round, or an earlier one.

    Attributes:
        value: the round's own utility; None if it has none.
        utility: U_k, the utility after the round: the value, or the one carried forward; None if
            utility is missing.
        through: the last round, so far, that this utility is carried forward to.
        stale: the round has something newer, whose score is missing.
        parts: named parts of the score that brought this about.
        missing: why that score is missing, or utility altogether.
        scorer: ``name@version`` of the scorer.
    """

    value: float | None
    utility: float | None
    through: int
    stale: bool = False
    parts: Mapping[str, float | None] = {}
    missing: str | None = None
    scorer: str = ""


class EffortUpdated(Update, frozen=True, kw_only=True):
    """The human acted: the effort so far. A round's effort at its end is in ``RoundClosed``.

    Attributes:
        effort: by measure, see ``effort.MEASURES``.
    """

    effort: Mapping[str, float | None]


class OversightUpdated(Update, frozen=True, kw_only=True):
    """How a person watches over the agents of this session, so far; with ``Options(oversight=True)``.

    It follows an act of a human, a decision on an approval, a stop of an agent at work, and the close,
    if a number has changed. ``docs/measures.md`` defines the numbers.

    Attributes:
        agent_turns: stretches of acts of agents between acts of humans.
        interruptions: messages of humans while an action was in flight, and stops of an agent at work.
        interruptions_by_turn: interruptions / agent turns; None before the first.
        questions: messages of agents that ask the human something.
        corrections: messages of humans that correct the agent; None if the rules cannot read them all.
        failures: messages of humans that report dissatisfaction; None likewise.
        approvals: the approvals that agents asked for, and what became of them.
        approves_everything: whether a person approved all that they decided on; None before that.
        latency: seconds that the last decision by a person took; None before that.
        latency_trend: seconds by which a decision takes longer than the one before; None for fewer
            than 3 decisions.
        stretch_acts: acts in the latest turn of an agent.
        stretch_seconds: its seconds.
        attended: seconds that the human attended to this session; None on a virtual clock.
    """

    agent_turns: int = 0
    interruptions: int = 0
    interruptions_by_turn: float | None = None
    questions: int = 0
    corrections: int | None = 0
    failures: int | None = 0
    approvals: Approvals = Approvals()
    approves_everything: bool | None = None
    latency: float | None = None
    latency_trend: float | None = None
    stretch_acts: int = 0
    stretch_seconds: float = 0.0
    attended: float | None = None


class RatingUpdated(Update, frozen=True, kw_only=True):
    """A round's rating is known: a value, or that it is missing.

    Attributes:
        rating: 1 to 5; None if it is missing.
        pending: it is not known after all, since a newer version of the judge counts now.
        missing: why.
        explanation: in the judge's words.
        by: the rater: an actor, or ``name@version`` of a scorer.
    """

    rating: int | None
    pending: bool = False
    missing: str | None = None
    explanation: str = ""
    by: str = ""


class ChatAdvised(Update, frozen=True, kw_only=True):
    """The next move by the rules of chats, after a message of the human.

    It follows each message in a session that declares that there is no output. If a session declares
    nothing, it comes until the first output, but only if the human is satisfied, has had enough, or
    wants a person.

    Attributes:
        move: the agent's next move; None if the rules cannot read the message.
        why: the rule that applied, in words.
    """

    move: ChatMove | None
    why: str


class StageChanged(Update, frozen=True, kw_only=True):
    """The session moved to another stage with this round."""

    stage: Stage


class StopAdvice(Update, frozen=True, kw_only=True):
    """The human would stop after this round: k_τ is reached.

    Attributes:
        tau: the tolerance τ that is used up.
        rounds: the unproductive rounds that it rests on, in order.
        ratings: theirs.
        redelivered: another process may have handed it to its handler before: that process was
            killed, or could not acknowledge it.
    """

    tau: int
    rounds: tuple[int, ...]
    ratings: tuple[int, ...]
    redelivered: bool = False


class StopWithdrawn(Update, frozen=True, kw_only=True):
    """An advice no longer holds: a rating that it rests on was corrected, or another judge counts.

    Attributes:
        tau: the tolerance of the advice.
    """

    tau: int


class ScorerDown(Update, frozen=True, kw_only=True):
    """A scorer raised, and measures this session no more.

    Attributes:
        scorer: ``name@version``.
        error: what it raised.
    """

    scorer: str
    error: str


class SessionEnded(Update, frozen=True, kw_only=True):
    """The session is closed. Measurements may still follow.

    Attributes:
        state: the reason.
        by: an actor, or the engine's rule.
    """

    state: CloseReason
    by: str


AnyUpdate: TypeAlias = (
    RoundOpened
    | RoundClosed
    | UtilityUpdated
    | EffortUpdated
    | OversightUpdated
    | RatingUpdated
    | ChatAdvised
    | StageChanged
    | StopAdvice
    | StopWithdrawn
    | ScorerDown
    | SessionEnded
)
"""Any update, e.g. for a decoder."""
