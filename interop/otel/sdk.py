"""Sends spans, events and metrics to OpenTelemetry, through the product's providers."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from typing import NamedTuple, final
from urllib.parse import quote

from opentelemetry._logs import LoggerProvider, LogRecord, SeverityNumber, get_logger_provider
from opentelemetry.context import Context
from opentelemetry.metrics import Counter, Histogram, MeterProvider, get_meter_provider
from opentelemetry.sdk.trace import Tracer as SdkTracer
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TracerProvider,
    get_tracer_provider,
    set_span_in_context,
)

from ..._version import __version__
from . import names
from .signals import (
    SESSION,
    EventEmitted,
    MetricMeasured,
    Signal,
    SpanEnded,
    SpanNoted,
    SpanStarted,
    TraceOrigin,
)

__all__ = ("Emitter", "SessionEmitter")

_SEVERITIES = {"info": SeverityNumber.INFO, "warn": SeverityNumber.WARN}


class _Ids(NamedTuple):
    """The identity of a span: the same however often the session is exported."""

    trace: int
    span: int


@final
class _Wanted(IdGenerator):
    """Gives the ids that are wanted next on this thread; random ones if none are."""

    def __init__(self) -> None:
        self._random = RandomIdGenerator()
        self._local = threading.local()

    def want(self, ids: _Ids | None) -> None:
        """Says which ids the next span gets."""
        self._local.ids = ids

    def generate_span_id(self) -> int:
        """The id of the next span."""
        ids: _Ids | None = getattr(self._local, "ids", None)
        return self._random.generate_span_id() if ids is None else ids.span

    def generate_trace_id(self) -> int:
        """The id of the next trace."""
        ids: _Ids | None = getattr(self._local, "ids", None)
        return self._random.generate_trace_id() if ids is None else ids.trace


@final
class Emitter:
    """Emits through a tracer, a logger and meters; shared by all sessions.

    The ids of spans are derived from the session, if the tracer is one of the SDK's: so a session
    that is exported again, or further after a restart, is the same trace. Any other tracer gives
    random ids, and after a restart the spans are in a separate trace.

    Args:
        tracer_provider: None for the global one; so are the others.
        meter_provider: of metrics.
        logger_provider: of events.
        epoch: start of virtual time, UTC epoch seconds.
        session_url: address of a session, with ``{session}`` for its id; None for none.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        *,
        epoch: float = 0.0,
        session_url: str | None = None,
    ) -> None:
        about = (names.SCOPE, __version__)
        self._providers = (
            tracer_provider or get_tracer_provider(),
            logger_provider or get_logger_provider(),
        )
        self.epoch = epoch
        self.session_url = session_url
        self.tracer = self._providers[0].get_tracer(*about, schema_url=names.SCHEMA_URL)
        self.logger = self._providers[1].get_logger(*about, schema_url=names.SCHEMA_URL)
        self.wanted: _Wanted | None = None
        if isinstance(self.tracer, SdkTracer):
            # This tracer is ours alone, by its scope, and shared by all who emit to the provider.
            if not isinstance(self.tracer.id_generator, _Wanted):
                self.tracer.id_generator = _Wanted()
            self.wanted = self.tracer.id_generator
        meter = (meter_provider or get_meter_provider()).get_meter(
            *about, schema_url=names.SCHEMA_URL
        )
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        for name, (kind, unit, text, bounds) in names.INSTRUMENTS.items():
            if kind == "counter":
                self._counters[name] = meter.create_counter(name, unit, text)
            else:
                self._histograms[name] = meter.create_histogram(
                    name, unit, text, explicit_bucket_boundaries_advisory=bounds
                )

    def session(self, session: str, opened: float, *, virtual: bool) -> SessionEmitter:
        """Makes the emitter of one session's signals; see ``SessionEmitter``."""
        return SessionEmitter(self, session, opened, virtual=virtual)

    def measure(self, signal: MetricMeasured) -> None:
        """Records a metric."""
        if counter := self._counters.get(signal.name):
            counter.add(signal.value, signal.attributes)
        else:
            self._histograms[signal.name].record(signal.value, signal.attributes)

    def flush(self, seconds: float) -> bool:
        """Flushes spans and events; returns whether this is known to have worked. Metrics have
        their own schedule.
        """
        done = True
        for provider in self._providers:
            flush = getattr(provider, "force_flush", None)  # the SDK's have it, the API's need not
            if flush is not None:
                done = bool(flush(int(1000 * seconds))) and done
        return done


@final
class SessionEmitter:
    """Emits the signals of one session.

    Args:
        emitter: shared by all sessions.
        session: session id.
        opened: time of its first record, on its clock.
        virtual: whether its clock is a virtual one.
    """

    def __init__(self, emitter: Emitter, session: str, opened: float, *, virtual: bool) -> None:
        self._emitter = emitter
        self._epoch = emitter.epoch if virtual else 0.0
        self._origin = TraceOrigin(session, opened)
        self._spans: dict[str, Span] = {}
        self._flags = TraceFlags(TraceFlags.SAMPLED)
        self._traces: set[int] = set()  # of requests, linked from the session

    def emit(self, signal: Signal) -> None:
        """Emits one signal; whatever the providers raise is raised."""
        if isinstance(signal, MetricMeasured):
            self._emitter.measure(signal)
        elif isinstance(signal, EventEmitted):
            self._emit_event(signal)
        elif isinstance(signal, SpanStarted):
            self._begin(signal)
        elif isinstance(signal, SpanNoted):
            if span := self._spans.get(signal.key):
                span.set_attributes(signal.attributes)
        else:
            self._end(signal)

    def _begin(self, signal: SpanStarted) -> None:
        emitter = self._emitter
        parent = None if signal.parent is None else self._context_of((signal.parent, SESSION))
        links: tuple[Link, ...] = ()
        if signal.origin is not None and emitter.wanted is not None:
            ids = _ids_of(signal.origin, SESSION)
            links = (Link(SpanContext(ids.trace, ids.span, is_remote=False)),)
        request = None if signal.request is None else _context_in(signal.request)
        if request is not None:
            links = () if parent is None else (Link(parent),)
            parent = request
            if request.trace_id not in self._traces and (whole := self._spans.get(SESSION)):
                self._traces.add(request.trace_id)
                whole.add_link(request)
        attributes = dict(signal.attributes)
        if emitter.session_url is not None and (request is not None or signal.key == SESSION):
            session = quote(self._origin.session, safe="")
            attributes[names.SESSION_URL] = emitter.session_url.replace("{session}", session)
        if emitter.wanted is not None:
            emitter.wanted.want(_ids_of(self._origin, signal.key))
        try:
            span = emitter.tracer.start_span(
                signal.name,
                context=_within(parent),
                kind=SpanKind.CLIENT if signal.client else SpanKind.INTERNAL,
                attributes=attributes,
                links=links,
                start_time=self._nanoseconds(signal.start),
            )
        finally:
            if emitter.wanted is not None:
                emitter.wanted.want(None)
        self._spans[signal.key] = span
        if signal.key == SESSION:
            self._flags = span.get_span_context().trace_flags

    def _end(self, signal: SpanEnded) -> None:
        span = self._spans.pop(signal.key, None)
        if span is None:
            return
        span.set_attributes(signal.attributes)
        if signal.error is not None:
            span.set_attribute(names.ERROR_TYPE, signal.error)
            span.set_status(Status(StatusCode.ERROR, signal.detail))
        span.end(self._nanoseconds(signal.end))

    def _emit_event(self, signal: EventEmitted) -> None:
        self._emitter.logger.emit(
            LogRecord(
                timestamp=self._nanoseconds(signal.time),
                context=_within(self._context_of(signal.about)),
                severity_number=_SEVERITIES[signal.severity],
                attributes=signal.attributes,
                event_name=signal.name,
            )
        )

    def _context_of(self, keys: Sequence[str]) -> SpanContext | None:
        """The identity of the first of some spans that is known; an ended one's is, if derived."""
        for key in keys:
            if span := self._spans.get(key):
                return span.get_span_context()
            if self._emitter.wanted is not None:
                ids = _ids_of(self._origin, key)
                return SpanContext(ids.trace, ids.span, is_remote=False, trace_flags=self._flags)
        return None

    def _nanoseconds(self, seconds: float) -> int:
        return round((self._epoch + seconds) * 1e9)


def _within(context: SpanContext | None) -> Context:
    """A context that holds this span, and nothing of the product's."""
    span = INVALID_SPAN if context is None else NonRecordingSpan(context)
    return set_span_in_context(span, Context())


def _context_in(traceparent: str) -> SpanContext | None:
    """The span that a W3C ``traceparent`` names; None if it names none."""
    parts = traceparent.split("-")
    try:
        trace, span, flags = (int(part, 16) for part in parts[1:4])
    except ValueError:
        return None
    return SpanContext(trace, span, is_remote=True, trace_flags=TraceFlags(flags))


def _ids_of(origin: TraceOrigin, key: str) -> _Ids:
    """The ids of a span: a session opened again elsewhere under the same id is another one."""
    session = f"duolog\0{origin.session}\0{origin.opened!r}".encode("utf-8", "surrogatepass")
    trace = hashlib.sha256(session).digest()
    span = hashlib.sha256(session + b"\0" + key.encode("utf-8", "surrogatepass")).digest()
    return _Ids(int.from_bytes(trace[:16]) or 1, int.from_bytes(span[:8]) or 1)
