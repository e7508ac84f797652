"""Events of studies with people: consent, assignment, answers and withdrawal, in streams ``review``."""

from __future__ import annotations

from collections.abc import Mapping

from .parts import JSON, Event

__all__ = (
    "AnswersGiven",
    "ConditionAssigned",
    "ConditionBegun",
    "ConsentGiven",
    "ParticipantWithdrew",
)


class ConsentGiven(Event, frozen=True):
    """A person answered whether they take part in a study.

    Attributes:
        study: name of the study.
        agreed: whether they take part.
        text: digest of the consent text that they were shown.
    """

    study: str
    agreed: bool
    text: str = ""


class ConditionAssigned(Event, frozen=True):
    """A participant was assigned to conditions.

    Attributes:
        study: name of the study.
        conditions: the conditions, in the order in which they meet them.
        instances: the task instance in each of them.
    """

    study: str
    conditions: tuple[str, ...]
    instances: tuple[str, ...] = ()


class ConditionBegun(Event, frozen=True):
    """A participant began a session of the study.

    Attributes:
        place: number of the condition in their order, from 1.
        condition: its name.
        session: id of the session, in the study's log.
    """

    place: int
    condition: str
    session: str


class AnswersGiven(Event, frozen=True):
    """A participant answered a questionnaire.

    Attributes:
        questionnaire: its name.
        place: number of the condition that it is about, from 1; None if it is about none.
        answers: a value for each item; items that were skipped are missing.
    """

    questionnaire: str
    place: int | None = None
    answers: Mapping[str, JSON] = {}


class ParticipantWithdrew(Event, frozen=True):
    """A participant withdrew. Their records are erased, and the envelope of this one stays.

    Attributes:
        study: name of the study.
    """

    study: str
