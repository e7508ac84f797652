"""Spans out of requests in the binary encoding of OTLP, as most exporters send them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ....engine.budget import Fields
from ....engine.errors import InvalidInput, MissingExtra
from ....engine.events import JSON
from ..protocol import Diagnostic
from .otlp import otlp_span
from .spans import Span, with_messages

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

__all__ = ("REQUEST_FIELDS", "spans_of_message")

_VALUE: dict[int, Fields] = {}
_PAIR: Final[Fields] = {2: _VALUE}
_VALUE.update({5: {1: _VALUE}, 6: {1: _PAIR}})
_SPAN: Final[Fields] = {9: _PAIR, 11: {3: _PAIR}, 13: {4: _PAIR}, 15: {}}

REQUEST_FIELDS: Final[Fields] = {1: {1: {1: _PAIR, 3: {}}, 2: {1: {3: _PAIR}, 2: _SPAN}}}
"""Which fields of a request to export traces are messages."""


def spans_of_message(data: bytes, where: str) -> Iterator[Span | Diagnostic]:
    """The spans in a request; a diagnostic for each invalid one.

    Raises:
        MissingExtra: the definitions of OpenTelemetry are not installed.
    """
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )
    except ModuleNotFoundError as error:
        raise MissingExtra("otel", "reading OTLP in protobuf") from error
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(data)
    except DecodeError as error:
        yield Diagnostic("problem", f"invalid request to export traces: {error}", where)
        return
    number = 0
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                number += 1
                place = f"{where}, span {number}"
                try:
                    yield _span(span, place)
                except InvalidInput as error:
                    yield Diagnostic("problem", f"invalid span: {error}", place)
                except RecursionError:  # in the name of an attribute, which may say a path
                    yield Diagnostic("problem", "invalid span: it nests too deeply", place)


def _span(span: SpanMessage, where: str) -> Span:
    if not span.trace_id or not span.span_id:
        raise InvalidInput("it lacks an id")
    events = ((one.name, _by_name(one.attributes)) for one in span.events)
    return otlp_span(
        with_messages(_by_name(span.attributes), events),
        id=span.span_id.hex(),
        trace=span.trace_id.hex(),
        where=where,
        name=span.name,
        parent=span.parent_span_id.hex() or None,
        times=(span.start_time_unix_nano, span.end_time_unix_nano),
        failed=span.status.code == span.status.STATUS_CODE_ERROR,
        message=span.status.message,
        flags=span.flags,
    )


def _by_name(attributes: Iterable[KeyValue]) -> dict[str, JSON]:
    return {one.key: _plain(one.value) for one in attributes}


def _plain(value: AnyValue) -> JSON:
    """A typed value as JSON has it; bytes in base64. The library has bounded how deep it nests."""
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "int_value":
            return value.int_value
        case "double_value":
            return value.double_value
        case "bytes_value":
            return base64.b64encode(value.bytes_value).decode()
        case "array_value":
            return [_plain(one) for one in value.array_value.values]
        case "kvlist_value":
            return {one.key: _plain(one.value) for one in value.kvlist_value.values}
        case _:
            return None
