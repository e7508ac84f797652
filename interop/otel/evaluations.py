"""Scores, ratings and feedback as ``gen_ai.evaluation.result`` events, and as metrics.

The conventions do not name the evaluator yet; until they do, Duolog's own attributes do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from ...engine.events import (
    FeedbackGiven,
    ProgressRated,
    ScorerFailed,
    ScorerRef,
    SimulatorFlagged,
    UtilityScored,
)
from ...engine.records import TRACE, Record
from ...engine.rounds import Rounds
from . import names
from .signals import SESSION, Attributes, EventEmitted, MetricMeasured, Signal, Value, round_key

__all__ = ("EVALUATED", "SessionContext", "evaluation_signals")


class SessionContext(NamedTuple):
    """The known facts about the session of an evaluation.

    Attributes:
        labels: the labels of the session, for metrics.
        turns: by the version of a snapshot, the key of the turn in which it was taken.
        rounds: how the rounds that have spans are counted.
        content: whether contents may be exported.
    """

    labels: Attributes
    turns: Mapping[int, str]
    rounds: Rounds
    content: bool

    def of_round(self, number: int, counted: Rounds) -> tuple[str, ...]:
        """The spans that a judgement of a round is about."""
        return (round_key(number), SESSION) if counted == self.rounds else (SESSION,)


def evaluation_signals(record: Record, around: SessionContext) -> Iterator[Signal]:
    """The signals of a measurement, or of a person's judgement in the trace.

    Args:
        record: the record of one of the kinds in ``EVALUATED``.
        around: the session.
    """
    yield from _KINDS[record.kind](record, around)


def _utility(record: Record, around: SessionContext) -> Iterator[Signal]:
    event = record.event
    if not isinstance(event, UtilityScored):
        return
    attributes = _attributes("utility", record, event.scorer)
    about: tuple[str, ...] = (SESSION,)
    if event.round is not None:
        attributes[names.ROUND] = event.round
        about = around.of_round(event.round, event.rounds)
    elif event.snapshot is not None and event.snapshot in around.turns:
        about = (around.turns[event.snapshot], SESSION)
    for part, value in event.parts.items():
        if value is not None:
            attributes[names.SCORE_PART + part] = value
    if event.value is None:
        yield _missing(record, attributes, about, event.missing if around.content else None)
        return
    attributes[names.SCORE_VALUE] = event.value
    yield EventEmitted(names.EVALUATION, record.time, attributes, about)
    yield MetricMeasured(
        names.SCORES, event.value, {**around.labels, names.SCORER: event.scorer.name}
    )


def _progress(record: Record, around: SessionContext) -> Iterator[Signal]:
    event = record.event
    if not isinstance(event, ProgressRated):
        return
    attributes = _attributes("progress", record, event.scorer)
    attributes[names.ROUND] = event.round
    about = around.of_round(event.round, event.rounds)
    if event.rating is None:
        yield _missing(record, attributes, about, event.missing if around.content else None)
        return
    attributes[names.SCORE_VALUE] = event.rating
    if around.content and event.explanation:
        attributes[names.EXPLANATION] = event.explanation
    yield EventEmitted(names.EVALUATION, record.time, attributes, about)
    judge = record.role if event.scorer is None else event.scorer.name
    yield MetricMeasured(names.RATINGS, event.rating, {**around.labels, names.SCORER: judge})


def _feedback(record: Record, around: SessionContext) -> Iterator[Signal]:
    event = record.event
    if not isinstance(event, FeedbackGiven):
        return
    attributes = _attributes("feedback", record, None)
    if event.thumbs is not None:
        attributes[names.SCORE_LABEL] = event.thumbs
    if event.edits_kept is not None:
        attributes[names.SCORE_VALUE] = event.edits_kept
    if around.content and event.comment:
        attributes[names.EXPLANATION] = event.comment
    turn = None if event.of is None else around.turns.get(event.of)
    about = (SESSION,) if turn is None else (turn, SESSION)
    yield EventEmitted(names.EVALUATION, record.time, attributes, about)


def _failed(record: Record, around: SessionContext) -> Iterator[Signal]:
    event = record.event
    if not isinstance(event, ScorerFailed):
        return
    attributes = _attributes(event.scorer.name, record, event.scorer)
    attributes[names.ERROR_TYPE] = event.type
    if around.content:
        attributes[names.EXPLANATION] = event.error
    yield EventEmitted(names.EVALUATION, record.time, attributes, severity="warn")
    failure = {names.SCORER: event.scorer.name, names.ERROR_TYPE: event.type}
    yield MetricMeasured(names.SCORER_FAILURES, 1, {**around.labels, **failure})


def _flagged(record: Record, around: SessionContext) -> Iterator[Signal]:
    event = record.event
    if not isinstance(event, SimulatorFlagged):
        return
    attributes = _identified(record)
    attributes[names.FAULT] = event.fault
    yield EventEmitted(names.FLAGGED, record.time, attributes, severity="warn")


def _missing(
    record: Record, attributes: dict[str, Value], about: tuple[str, ...], why: str | None
) -> Signal:
    attributes[names.ERROR_TYPE] = "missing"
    if why:
        attributes[names.EXPLANATION] = why
    return EventEmitted(names.EVALUATION, record.time, attributes, about)


def _attributes(name: str, record: Record, scorer: ScorerRef | None) -> dict[str, Value]:
    attributes = _identified(record)
    attributes[names.EVALUATION_NAME] = name
    if scorer is not None:
        attributes[names.SCORER] = scorer.name
        attributes[names.SCORER_VERSION] = scorer.version
        if scorer.config:
            attributes[names.SCORER_CONFIG] = scorer.config
    elif record.stream == TRACE:
        attributes[names.SCORER] = record.role
    return attributes


def _identified(record: Record) -> dict[str, Value]:
    return {names.CONVERSATION: record.session, names.POSITION: record.position}


_KINDS: Final[Mapping[str, Callable[[Record, SessionContext], Iterator[Signal]]]] = {
    "UtilityScored": _utility,
    "ProgressRated": _progress,
    "FeedbackGiven": _feedback,
    "ScorerFailed": _failed,
    "SimulatorFlagged": _flagged,
}

EVALUATED: Final = frozenset(_KINDS)
"""Kinds of records that judge something."""
