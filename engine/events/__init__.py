"""The events: immutable facts about one collaboration, in the past tense.

Every event is a frozen struct whose JSON names its kind. Adding an optional field is compatible;
anything more raises the event's ``schema`` number and adds an upcaster (see ``codec``).
Trace events record what the actors did. Measurement events record the results of scorers, in
separate streams. Review events record what reviewers add, and events of studies what participants
agree to and answer, in the stream ``review``. An event never
embeds history; it refers to other events by trace version.
"""

from __future__ import annotations

from collections.abc import Mapping

from .measurements import (
    AlertSent,
    EffortObserved,
    ProgressRated,
    RecordsLate,
    RecordsLost,
    ScorerFailed,
    SimulatorFlagged,
    StopAdvised,
    UtilityScored,
)
from .parts import (
    JSON,
    CloseReason,
    Event,
    Forgotten,
    Origin,
    Participant,
    Role,
    ScorerRef,
    Tokens,
    Unknown,
)
from .reviews import CommentAdded, RatingGiven, TagAdded, TagRemoved
from .studies import (
    AnswersGiven,
    ConditionAssigned,
    ConditionBegun,
    ConsentGiven,
    ParticipantWithdrew,
)
from .trace import (
    UNKNOWN_MODEL,
    ActionResolved,
    ActionTaken,
    ActorFailed,
    ApprovalAsked,
    ApprovalGiven,
    DecisionSource,
    DraftDropped,
    FeedbackGiven,
    MessageSent,
    ModelCalled,
    NoteTaken,
    Nudged,
    ProfileChanged,
    SessionClosed,
    SessionOpened,
    SnapshotTaken,
    TurnYielded,
)

__all__ = (
    "ACTS",
    "EVENTS",
    "JSON",
    "UNKNOWN_MODEL",
    "ActionResolved",
    "ActionTaken",
    "ActorFailed",
    "AlertSent",
    "AnswersGiven",
    "ApprovalAsked",
    "ApprovalGiven",
    "CloseReason",
    "CommentAdded",
    "ConditionAssigned",
    "ConditionBegun",
    "ConsentGiven",
    "DecisionSource",
    "DraftDropped",
    "EffortObserved",
    "Event",
    "FeedbackGiven",
    "Forgotten",
    "MessageSent",
    "ModelCalled",
    "NoteTaken",
    "Nudged",
    "Origin",
    "Participant",
    "ParticipantWithdrew",
    "ProfileChanged",
    "ProgressRated",
    "RatingGiven",
    "RecordsLate",
    "RecordsLost",
    "Role",
    "ScorerFailed",
    "ScorerRef",
    "SessionClosed",
    "SessionOpened",
    "SimulatorFlagged",
    "SnapshotTaken",
    "StopAdvised",
    "TagAdded",
    "TagRemoved",
    "Tokens",
    "TurnYielded",
    "Unknown",
    "UtilityScored",
)

EVENTS: Mapping[str, type[Event]] = {
    cls.__name__: cls
    for cls in (
        SessionOpened,
        MessageSent,
        ActionTaken,
        ActionResolved,
        SnapshotTaken,
        ApprovalAsked,
        ApprovalGiven,
        NoteTaken,
        DraftDropped,
        ProfileChanged,
        TurnYielded,
        Nudged,
        FeedbackGiven,
        ModelCalled,
        ActorFailed,
        SessionClosed,
        AlertSent,
        EffortObserved,
        ProgressRated,
        UtilityScored,
        ScorerFailed,
        SimulatorFlagged,
        StopAdvised,
        RecordsLate,
        RecordsLost,
        TagAdded,
        TagRemoved,
        CommentAdded,
        RatingGiven,
        ConsentGiven,
        ConditionAssigned,
        ConditionBegun,
        AnswersGiven,
        ParticipantWithdrew,
    )
}
"""Every kind of event, by the name it has on the wire."""

ACTS = frozenset({"MessageSent", "ActionTaken", "SnapshotTaken", "ApprovalAsked", "ApprovalGiven"})
"""Kinds that are acts when a human or an agent emits them: the a_t of the joint trace (paper, 3)."""
