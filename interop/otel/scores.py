"""OpenTelemetry from a log: what its records say, and what scoring derives from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Final, final

from ...engine.errors import InvalidInput, MissingExtra
from ...engine.events import SessionOpened, StopAdvised
from ...engine.log.backoff import FIRST
from ...engine.log.contract import EventLog
from ...engine.records import Record
from ...engine.rounds import is_act
from ...scoring.oversight import Oversight, OversightFold
from ...scoring.trajectory.fold import TrajectoryFold
from ...scoring.trajectory.options import Options, plugged_annotator
from ...scoring.trajectory.updates import (
    EffortUpdated,
    RoundClosed,
    SessionEnded,
    StopAdvice,
    Update,
    UtilityUpdated,
)
from . import names
from .exporter import OtelExport
from .gen_ai import session_labels
from .providers import LoggerProvider, MeterProvider, TracerProvider
from .signals import (
    SESSION,
    Attributes,
    EventEmitted,
    MetricMeasured,
    Signal,
    SignalFold,
    SpanNoted,
    TraceOrigin,
    Value,
    round_key,
)
from .spans import SpanFold

__all__ = ("ScoreSignals", "otel_export")

_COUNTED: Final[Mapping[str, tuple[str, Attributes]]] = {
    "rounds": (names.EFFORT_ROUNDS, {}),
    "acts": (names.EFFORT_ACTS, {}),
    "deferrals": (names.EFFORT_DEFERRALS, {}),
    "seconds": (names.EFFORT_TIME, {}),
    "tokens_written": (names.EFFORT_TOKENS, {names.DIRECTION: "written"}),
    "tokens_read": (names.EFFORT_TOKENS, {names.DIRECTION: "read"}),
}
"""Measures of effort that can be added up over sessions, and their metrics."""


def otel_export(
    log: EventLog,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    content: bool = False,
    session: str | None = None,
    options: Options | None = None,
    name: str | None = "otel",
    after_position: int = 0,
    virtual_epoch: float = 0.0,
    session_url: str | None = None,
    deadline: float = 10.0,
    retry: float = FIRST,
) -> OtelExport:
    """Exports a log to OpenTelemetry as it grows: spans, evaluation events and metrics.

    Enter it with ``async with`` while the log is open. It sets nothing up: the providers are the
    product's, or the global ones. It runs in a separate thread; a slow or failing exporter delays
    nothing, and failures are logged and counted.

    The log keeps a checkpoint under ``name``, so that the export continues there after a restart.
    Only what was exported in the last seconds before a process was killed is exported again: its
    spans under the same ids, its events with the same ``duolog.log.position``.

    Args:
        log: the log.
        tracer_provider: of spans; None for the global one.
        meter_provider: of metrics; None for the global one.
        logger_provider: of events; None for the global one.
        content: whether to export the texts of people, agents, tools and models, too.
        session: only this one; None for all.
        options: how to score: rounds, tolerances, whose utility and ratings count.
        name: under which the log keeps the checkpoint; one per destination. None keeps none.
        after_position: position to begin after if the log keeps no checkpoint under that name.
        virtual_epoch: of sessions on virtual time, UTC epoch seconds at which that begins.
        session_url: address of a session, with ``{session}`` for its id, e.g. in the workbench; the
            session's span and its turns have it as ``duolog.session.url``.
        deadline: seconds for which leaving it continues to export.
        retry: seconds before the first new attempt if the log cannot be read.

    Raises:
        MissingExtra: OpenTelemetry is not installed.
        InvalidInput: ``session_url`` has no ``{session}``.
    """
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        raise MissingExtra("otel", "exporting to OpenTelemetry")
    from .sdk import Emitter

    scoring = options or Options()

    def folds(name: str, origin: TraceOrigin | None) -> Sequence[SignalFold]:
        spans = SpanFold(name, content=content, rounds=scoring.rounds, origin=origin)
        return ScoreSignals(name, scoring), spans

    if session_url is not None and "{session}" not in session_url:
        raise InvalidInput(
            f"session_url holds {{session}} for the id, and {session_url!r} does not"
        )
    emitter = Emitter(
        tracer_provider,
        meter_provider,
        logger_provider,
        epoch=virtual_epoch,
        session_url=session_url,
    )
    return OtelExport(
        log,
        emitter,
        folds,
        session=session,
        name=name,
        after_position=after_position,
        deadline=deadline,
        retry=retry,
    )


@final
class ScoreSignals:
    """Facts from scoring: utility and effort of rounds and sessions, and advice to stop.

    Args:
        session: session id.
        options: how to score.
    """

    def __init__(self, session: str, options: Options) -> None:
        self._fold = TrajectoryFold(session, options)
        self._oversight = OversightFold(plugged_annotator(options))
        self._overseen = Oversight()
        self._counted: dict[str, float] = {}
        self._stops: set[tuple[int, int]] = set()
        self._labels: Attributes = {}
        self._ended = self._measured = False

    def feed(self, record: Record) -> list[Signal]:
        """Takes the next record, of any stream, in order of position.

        Raises:
            CodecError: a body that is needed is damaged.
        """
        return list(self._signals(record))

    def _signals(self, record: Record) -> Iterator[Signal]:
        opened = record.event if record.kind == "SessionOpened" else None
        if isinstance(opened, SessionOpened):
            self._labels = session_labels(opened)
        for update in self._fold.feed(record):
            yield from self._of_update(update, record)
        self._oversight.feed(record)
        if record.kind == "SessionClosed" or (record.role == "human" and is_act(record)):
            yield from self._oversee()
        event = record.event if record.kind == "StopAdvised" else None
        if isinstance(event, StopAdvised):
            yield from self._stop(record, event.round, event.tau, enforced=event.enforced)

    def _of_update(self, update: Update, record: Record) -> Iterator[Signal]:
        if isinstance(update, RoundClosed):
            point = update.point
            attributes: dict[str, Value] = {
                names.STALE: point.stale,
                **_utility(names.ROUND_UTILITY, point.utility),
                **_effort(point.effort),
            }
            if point.rating is not None:
                attributes[names.ROUND_RATING] = point.rating
            yield SpanNoted(round_key(update.round), attributes)
            yield from self._count(point.effort)
        elif isinstance(update, EffortUpdated):
            yield from self._count(update.effort)
        elif isinstance(update, StopAdvice):
            yield from self._stop(record, update.round, update.tau, enforced=False)
        elif isinstance(update, UtilityUpdated):
            if self._ended and update.through == len(self._fold.trajectory().points):
                yield from self._final(update.utility)
        elif isinstance(update, SessionEnded):
            last = self._fold.trajectory().points[-1]
            ended: Attributes = {
                **_utility(names.SESSION_UTILITY, last.utility),
                **_effort(last.effort),
            }
            yield SpanNoted(SESSION, ended)
            yield from self._count(last.effort)
            self._ended = True
            yield from self._final(last.utility)

    def _oversee(self) -> Iterator[Signal]:
        """The growth of oversight; called when no agent is in the middle of a turn."""
        before, self._overseen = self._overseen, self._oversight.measures
        now = self._overseen
        for acts, seconds in now.stretches[len(before.stretches) :]:
            yield MetricMeasured(names.STRETCH_ACTS, acts, self._labels)
            if now.opened is not None:
                yield MetricMeasured(names.STRETCH_DURATION, seconds, self._labels)
        for metric, count, counted in (
            (names.INTERRUPTIONS, now.interruptions, before.interruptions),
            (names.QUESTIONS, now.questions, before.questions),
            (names.CORRECTIONS, now.corrections, before.corrections),
            (names.FAILURES_REPORTED, now.failures, before.failures),
        ):
            if count is not None and count > (counted or 0):
                yield MetricMeasured(metric, count - (counted or 0), self._labels)

    def _final(self, utility: float | None) -> Iterator[Signal]:
        """The final utility as a metric, once, even if it is scored only after the end."""
        if utility is not None and not self._measured:
            self._measured = True
            yield MetricMeasured(names.FINAL_UTILITY, utility, self._labels)

    def _count(self, effort: Mapping[str, float | None]) -> Iterator[Signal]:
        """The growth of effort. A measure can shrink, as when the human reads less than was shown.
        It then counts again once it exceeds its earlier maximum.
        """
        for measure, (metric, attributes) in _COUNTED.items():
            value = effort.get(measure)
            before = self._counted.get(measure, 0.0)
            if value is not None and value > before:
                self._counted[measure] = value
                yield MetricMeasured(metric, value - before, {**self._labels, **attributes})

    def _stop(self, record: Record, number: int, tau: int, *, enforced: bool) -> Iterator[Signal]:
        """Stop advice, once: it follows from the ratings, and may also be recorded."""
        if (number, tau) in self._stops:
            return
        self._stops.add((number, tau))
        attributes: dict[str, Value] = {
            names.CONVERSATION: record.session,
            names.POSITION: record.position,
            names.ROUND: number,
            names.TAU: tau,
            names.ENFORCED: enforced,
        }
        yield EventEmitted(names.STOP, record.time, attributes, (round_key(number), SESSION))
        yield MetricMeasured(names.STOPS, 1, {**self._labels, names.TAU: tau})


def _utility(name: str, utility: float | None) -> Attributes:
    """The utility as an attribute, if it was measured."""
    return {} if utility is None else {name: utility}


def _effort(effort: Mapping[str, float | None]) -> dict[str, Value]:
    return {names.EFFORT + measure: value for measure, value in effort.items() if value is not None}
