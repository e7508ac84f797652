"""The signals for OpenTelemetry, independent of its libraries: spans, events and metrics.

Spans are named by keys that are unique in their session. The same log always gives the same
signals, in the same order, so a fold that restarts ends up with the same open spans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from ...engine.records import Record

__all__ = (
    "SESSION",
    "Attributes",
    "EventEmitted",
    "MetricMeasured",
    "Signal",
    "SignalFold",
    "SpanEnded",
    "SpanNoted",
    "SpanStarted",
    "TraceOrigin",
    "Value",
    "round_key",
    "still_open",
)

Value: TypeAlias = str | int | float | bool | Sequence[str]
Attributes: TypeAlias = Mapping[str, Value]

SESSION = "session"
"""Key of the span that is the session."""


def round_key(number: int) -> str:
    """Key of a round's span."""
    return f"round/{number}"


class TraceOrigin(NamedTuple):
    """A session as far as the identity of its trace goes: its id, and when it was opened."""

    session: str
    opened: float


class SpanStarted(NamedTuple):
    """A span began.

    Attributes:
        key: the key of the span.
        parent: key of the span that it lies in; None for the session.
        name: the name of the span.
        start: seconds, on the session's clock.
        attributes: known from the start.
        client: whether it calls an external service.
        origin: the session that this one was forked from.
        request: the W3C trace context of the request that it is part of: its parent there.
    """

    key: str
    parent: str | None
    name: str
    start: float
    attributes: Attributes
    client: bool = False
    origin: TraceOrigin | None = None
    request: str | None = None


class SpanNoted(NamedTuple):
    """Something more became known of a span that has not ended."""

    key: str
    attributes: Attributes


class SpanEnded(NamedTuple):
    """A span ended.

    Attributes:
        key: the key of the span.
        end: seconds, on the session's clock.
        attributes: what became known by then.
        error: what kind of failure it ended in, if it did.
        detail: the detail of the failure, in words; only if contents may be exported.
    """

    key: str
    end: float
    attributes: Attributes
    error: str | None = None
    detail: str | None = None


class EventEmitted(NamedTuple):
    """An event of the Logs API.

    Attributes:
        name: the name of the event.
        time: seconds, on the session's clock.
        attributes: the attributes of the event.
        about: keys of the spans that it is about; the first that can be found counts.
        severity: ``warn`` if something went wrong.
    """

    name: str
    time: float
    attributes: Attributes
    about: tuple[str, ...] = (SESSION,)
    severity: Literal["info", "warn"] = "info"


class MetricMeasured(NamedTuple):
    """A metric took a value, or grew by it."""

    name: str
    value: float
    attributes: Attributes


Signal: TypeAlias = SpanStarted | SpanNoted | SpanEnded | EventEmitted | MetricMeasured


class SignalFold(Protocol):
    """Folds the records of one session, of all streams in order of position, into signals."""

    def feed(self, record: Record) -> Sequence[Signal]:
        """Takes the next record.

        Raises:
            CodecError: a body that is needed is damaged.
        """
        ...


def still_open(
    open_spans: dict[str, list[SpanStarted | SpanNoted]], signals: Sequence[Signal]
) -> None:
    """Takes signals that are not emitted again; keeps what is needed of spans that are open."""
    for signal in signals:
        if isinstance(signal, SpanStarted):
            open_spans[signal.key] = [signal]
        elif isinstance(signal, SpanNoted) and signal.key in open_spans:
            open_spans[signal.key].append(signal)
        elif isinstance(signal, SpanEnded):
            open_spans.pop(signal.key, None)
