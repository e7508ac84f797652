"""The importer for OTLP in JSON: requests to export traces, in one document or one on each line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, final

import msgspec

from ....engine.errors import InvalidInput
from ....engine.events import JSON
from ...json_parts import items_at
from ..json_files import AT_ONCE, decode, size_of
from ..json_sniff import Shape, shape_of
from ..json_stream import Member, elements_of, lines_at, members_of, places_of
from ..protocol import Diagnostic, Found, Reading
from .attributes import is_conversation, span_of
from .spans import Span, with_messages
from .stored import ReadsSpans, SpanPiece, read_held, read_stored

__all__ = ("OtlpImporter", "otlp_span", "spans_of_request")

_NAME: Final = "otlp"
_NANO: Final = 1e-9
_ERROR: Final = 2
_WHOLE: Final = re.compile(r"-?[0-9]{1,19}")
_SAYS_REMOTE: Final = 0x300  # it is known whether the span around it is remote, and it is
_LATEST: Final = 253_402_300_799 * 10**9  # until the year 9999


class _Attribute(msgspec.Struct):
    key: str
    value: JSON = None


class _Status(msgspec.Struct):
    code: int | str = 0
    message: str = ""


class _Event(msgspec.Struct):
    name: str = ""
    attributes: list[_Attribute] = []


class _Span(msgspec.Struct, rename="camel"):
    trace_id: str
    span_id: str
    name: str = ""
    parent_span_id: str | None = None
    start_time_unix_nano: str | int = 0
    end_time_unix_nano: str | int = 0
    attributes: list[_Attribute] = []
    events: list[_Event] = []
    status: _Status = msgspec.field(default_factory=_Status)
    flags: int = 0


class _Scope(msgspec.Struct):
    spans: list[msgspec.Raw] = []


class _Resource(msgspec.Struct, rename="camel"):
    scope_spans: list[_Scope] = []


class _Request(msgspec.Struct, rename="camel"):
    resource_spans: list[_Resource]


@final
class OtlpImporter:
    """Reads traces of OpenTelemetry."""

    name = _NAME
    about = "OTLP in JSON, with attributes of the GenAI conventions, the AI SDK or OpenInference"

    def recognises(self, source: Path, shape: Shape | None) -> bool:
        """Whether a file begins with a request to export traces."""
        return shape is not None and "resourceSpans" in shape.keys

    def read(self, source: Path, reading: Reading) -> Iterator[Found]:
        """Reads the conversations in a file.

        Raises:
            InvalidInput: it cannot be read.
        """
        if size_of(source) > AT_ONCE:
            yield from read_stored(source, *_pieces(source), _NAME, reading)
            return
        yield from read_held(source, spans_of_request, _NAME, reading)


def _pieces(source: Path) -> tuple[Iterator[SpanPiece], ReadsSpans]:
    """The pieces of a long file, which are requests on lines, or else spans; and what reads them."""
    shape = shape_of(source)
    if shape is None or shape.form != "object":
        placed = elements_of(source) if shape and shape.form == "array" else lines_at(source)
        requests = (
            SpanPiece(f"{source}, request {number}", member, data)
            for number, (member, data) in enumerate(placed, start=1)
        )
        return requests, spans_of_request
    spans = (
        SpanPiece(f"{source}, span {number}", member, data)
        for number, (member, data) in enumerate(_spans_in(source), start=1)
    )
    return spans, _one_span


def _spans_in(source: Path) -> Iterator[tuple[Member, bytes]]:
    """The spans of a document, wherever they lie in it."""
    for resource in _elements_under(source, members_of(source), "resourceSpans"):
        for scope in _elements_under(source, members_of(source, resource), "scopeSpans"):
            spans = members_of(source, scope).get("spans")
            if spans is not None:
                yield from elements_of(source, spans.offset)


def _elements_under(source: Path, members: Mapping[str, Member], name: str) -> Iterator[Member]:
    held = members.get(name)
    return iter(()) if held is None else places_of(source, held.offset)


def _one_span(data: bytes | msgspec.Raw, where: str) -> Iterator[Span | Diagnostic]:
    yield _read(data, where)


def spans_of_request(data: bytes | msgspec.Raw, where: str) -> Iterator[Span | Diagnostic]:
    """The spans in a request; a diagnostic for each invalid one."""
    try:
        request = decode(data, _Request)
    except InvalidInput as error:
        yield Diagnostic("problem", f"invalid request to export traces: {error}", where)
        return
    number = 0
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for raw in scope.spans:
                number += 1
                place = f"{where}, span {number}"
                yield _read(raw, place)


def _read(data: bytes | msgspec.Raw, where: str) -> Span | Diagnostic:
    """A span, or its problem."""
    try:
        return _span(decode(data, _Span), where)
    except InvalidInput as error:
        return Diagnostic("problem", f"invalid span: {error}", where)
    except RecursionError:
        return Diagnostic("problem", "invalid span: it nests too deeply", where)


def _span(span: _Span, where: str) -> Span:
    if not span.trace_id or not span.span_id:
        raise InvalidInput("it lacks an id")
    try:
        start, end = int(span.start_time_unix_nano), int(span.end_time_unix_nano)
    except ValueError as error:
        raise InvalidInput(f"its timestamps are not numbers: {error}") from error
    events = ((one.name, _by_name(one.attributes)) for one in span.events)
    return otlp_span(
        with_messages(_by_name(span.attributes), events),
        id=span.span_id,
        trace=span.trace_id,
        where=where,
        name=span.name,
        parent=span.parent_span_id or None,
        times=(start, end),
        failed=span.status.code in (_ERROR, "STATUS_CODE_ERROR"),
        message=span.status.message,
        flags=span.flags,
    )


def otlp_span(
    attributes: Mapping[str, JSON],
    *,
    id: str,
    trace: str,
    where: str,
    name: str,
    parent: str | None,
    times: tuple[int, int],
    failed: bool,
    message: str,
    flags: int,
) -> Span:
    """A span as OTLP has it, in whatever encoding.

    Args:
        attributes: by their names.
        id: its own.
        trace: id of its trace.
        where: the place in the source.
        name: the name of the span.
        parent: id of the span around it.
        times: beginning and end, nanoseconds since the epoch; 0 if it has not ended.
        failed: it ended in an error.
        message: the message of the error.
        flags: the flags of the span.

    Raises:
        InvalidInput: it cannot be recorded.
    """
    start, end = times
    if not 0 <= start < _LATEST or not 0 <= end < _LATEST:
        raise InvalidInput("its timestamps must be nanoseconds since the Unix epoch")
    remote = flags & _SAYS_REMOTE == _SAYS_REMOTE
    if not is_conversation(attributes):
        return Span(
            id=id,
            trace=trace,
            where=where,
            name=name,
            kind="link",
            start=start * _NANO,
            parent=parent,
            remote=remote,
        )
    kind = attributes.get("error.type")
    why = message or (kind if isinstance(kind, str) else "it failed")
    found = span_of(
        attributes,
        id=id,
        trace=trace,
        where=where,
        name=name,
        start=start * _NANO,
        parent=parent,
        end=end * _NANO if end else None,
        error=why if failed else None,
    )
    return msgspec.structs.replace(found, remote=True) if remote else found


def _by_name(attributes: Sequence[_Attribute]) -> dict[str, JSON]:
    return {one.key: _plain(one.value) for one in attributes}


def _plain(value: JSON) -> JSON:
    """A typed value of OTLP as JSON has it."""
    if not isinstance(value, Mapping):
        return value
    for key, held in value.items():
        if key == "intValue" and isinstance(held, str) and _WHOLE.fullmatch(held):
            return int(held)
        if key == "arrayValue" and isinstance(held, Mapping):
            return [_plain(one) for one in items_at(held, "values")]
        if key == "kvlistValue" and isinstance(held, Mapping):
            pairs = (one for one in items_at(held, "values") if isinstance(one, Mapping))
            return {str(one.get("key")): _plain(one.get("value")) for one in pairs}
        return held
    return None
