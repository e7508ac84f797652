"""OpenTelemetry providers that keep what they are given, and ways to look at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler

Labels: TypeAlias = Mapping[str, object]


class Memory:
    """A destination; its providers are what a product would set up.

    Args:
        sampler: of spans; None for the default.
    """

    def __init__(self, sampler: Sampler | None = None) -> None:
        self._spans = InMemorySpanExporter()
        self._events = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider(sampler=sampler)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.loggers = LoggerProvider()
        self.loggers.add_log_record_processor(SimpleLogRecordProcessor(self._events))
        self.meters = MeterProvider([self._reader])

    def spans(self, session: str | None = None) -> list[ReadableSpan]:
        """The spans that ended, of a session or of all, in the order of their ends."""
        return [
            span
            for span in self._spans.get_finished_spans()
            if session in (None, (span.attributes or {}).get("gen_ai.conversation.id"))
        ]

    def span(self, name: str, number: int = 0) -> ReadableSpan:
        """The n-th span of a name, by when it began."""
        found = [span for span in self.spans() if span.name == name]
        return sorted(found, key=lambda span: span.start_time or 0)[number]

    def events(self) -> list[tuple[str, int, Labels]]:
        """The events: name, the id of the span that they are about, attributes."""
        found = [one.log_record for one in self._events.get_finished_logs()]
        return [(e.event_name or "", e.span_id or 0, dict(e.attributes or {})) for e in found]

    def metrics(self) -> dict[str, list[tuple[Labels, float, int]]]:
        """By name: attributes, sum, and count of each data point."""
        data = self._reader.get_metrics_data()
        found: dict[str, list[tuple[Labels, float, int]]] = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        attributes = dict(point.attributes or {})
                        if isinstance(point, HistogramDataPoint):
                            said = (attributes, point.sum, point.count)
                        else:
                            said = (attributes, getattr(point, "value", 0), 1)
                        found.setdefault(metric.name, []).append(said)
        return found


def ids(span: ReadableSpan) -> tuple[int, int]:
    """Trace and span of a span."""
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def parent(span: ReadableSpan) -> int | None:
    """The span that it lies in."""
    return None if span.parent is None else span.parent.span_id


def seconds(span: ReadableSpan) -> tuple[float, float]:
    """When it began and ended."""
    return (span.start_time or 0) / 1e9, (span.end_time or 0) / 1e9
