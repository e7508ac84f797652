"""The receiver of OTLP/HTTP: spans of models, tools and agents, which become sessions.

Any OpenTelemetry SDK or collector can export to it. It answers as the specification says: in the
encoding of the request, with the number of spans that were rejected and why, if there are any.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

import anyio
import anyio.to_thread
import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ...engine.budget import Budget
from ...engine.errors import DuologError, InvalidInput, MissingExtra, TooLarge
from ..importers.traces.live import LiveTraces
from ..importers.traces.otlp import spans_of_request
from ..importers.traces.otlp_protobuf import REQUEST_FIELDS, spans_of_message
from ..importers.traces.spans import Span
from .bodies import CLOSE, RequestBodies
from .limits import HttpLimits
from .responses import on_error, problem
from .validation import name_complaint

__all__ = ("PARTIAL_SUCCESS", "Export", "Rejected", "TraceReceiver", "read_spans")

_JSON: Final = "application/json"
_PROTOBUF: Final = "application/x-protobuf"
_ENCODINGS: Final = frozenset({"gzip", "deflate"})
_WHERE: Final = "the request"
_SHOWN: Final = 500  # characters of an error message

PARTIAL_SUCCESS: Final = {
    "type": "object",
    "properties": {
        "partialSuccess": {
            "type": "object",
            "properties": {
                "rejectedSpans": {"type": "string"},
                "errorMessage": {"type": "string"},
            },
        }
    },
}
"""The schema of an answer, in JSON."""


class Rejected(NamedTuple):
    """Spans that are not taken, and why the first of them is not."""

    spans: int
    why: str


@final
class TraceReceiver:
    """Takes requests to export traces.

    Args:
        traces: records the spans.
        bodies: receives bodies.
        limits: how large they may be.
    """

    def __init__(self, traces: LiveTraces, bodies: RequestBodies, limits: HttpLimits) -> None:
        self._traces = traces
        self._bodies = bodies
        self._budget = limits.of_traces
        self._line = anyio.CapacityLimiter(1)

    async def export(self, request: Request) -> Response:
        """Takes the spans of a request."""
        media = request.headers.get("content-type", "").lower().partition(";")[0].strip()
        try:
            if media not in (_JSON, _PROTOBUF):
                raise HTTPException(415, f"the body must be {_PROTOBUF} or {_JSON}", CLOSE)
            encoding = request.headers.get("content-encoding", "identity").lower()
            if encoding != "identity" and encoding not in _ENCODINGS:
                raise HTTPException(415, f"unsupported content encoding {encoding[:40]!r}", CLOSE)
            rejected = await self._take(request, media, compressed=encoding in _ENCODINGS)
        except HTTPException as error:
            return _refusal(media, problem(error.status_code, error.detail, error.headers), error)
        except DuologError as error:
            return _refusal(media, on_error(request, error), error)
        return _answer(media, rejected)

    async def _take(self, request: Request, media: str, *, compressed: bool) -> Rejected:
        data = await self._bodies.read(request, self._budget)
        try:
            # One at a time: decompressed, a body is larger than the size that was counted.
            found = await anyio.to_thread.run_sync(
                read_spans, data, media, compressed, self._budget, limiter=self._line
            )
        finally:
            self._bodies.release(data)
        if found.rejected.spans and not found.spans and found.whole:
            raise HTTPException(400, found.rejected.why)
        rejected, why = found.rejected
        kept: list[Span] = []
        for span in found.spans:
            if complaint := name_complaint(span.conversation or span.trace):
                rejected += 1
                why = why or f"{span.where}: the id of its conversation {complaint}"
            else:
                kept.append(span)
        refused = await self._traces.take(kept, found.size)
        for span in kept:
            if span.conversation in refused:
                rejected += 1
                why = why or refused[span.conversation]
        return Rejected(rejected, why)


class Export(NamedTuple):
    """The spans in a request.

    Attributes:
        spans: that can be taken.
        size: bytes that all of it takes.
        rejected: what cannot be taken.
        whole: whether it is the request itself that cannot be taken.
    """

    spans: list[Span]
    size: int
    rejected: Rejected
    whole: bool


def read_spans(data: bytes, media: str, compressed: bool, budget: Budget) -> Export:
    """The spans in a body.

    Raises:
        HTTPException: it is more than a request may take, or nothing here reads it.
    """
    if compressed:
        data = _inflated(data, budget)
    read = spans_of_request if media == _JSON else spans_of_message
    try:
        if media == _JSON:
            budget.check_json(data)
        else:
            budget.check_protobuf(data, REQUEST_FIELDS)
    except TooLarge as error:
        raise HTTPException(413, f"the body is too large: {error}", CLOSE) from None
    spans: list[Span] = []
    rejected, why, whole = 0, "", False
    try:
        for one in read(data, _WHERE):
            if isinstance(one, Span):
                spans.append(one)
            else:
                rejected += 1
                whole = one.where == _WHERE
                why = why or (one.what if whole else f"{one.where}: {one.what}")
    except MissingExtra as error:
        raise HTTPException(415, f"{error}; or send {_JSON}") from None
    return Export(spans, len(data), Rejected(rejected, why), whole)


def _inflated(data: bytes, budget: Budget) -> bytes:
    """A body that was compressed.

    Raises:
        HTTPException: it becomes too much, or does not decompress.
    """
    try:
        return budget.inflated(data)
    except TooLarge as error:
        raise HTTPException(413, f"the body is too large: {error}", CLOSE) from None
    except InvalidInput as error:
        raise HTTPException(400, f"the body cannot be read: {error}") from None


def _answer(media: str, rejected: Rejected) -> Response:
    """The answer to a request that was taken, whole or in part."""
    why = rejected.why[:_SHOWN]
    if media == _JSON:
        held: dict[str, object] = {}
        if rejected.spans:
            said = {"rejectedSpans": str(rejected.spans), "errorMessage": why}
            held = {"partialSuccess": said}
        return Response(msgspec.json.encode(held), media_type=_JSON)
    body = b""
    if rejected.spans:
        partial = b"\x08" + _varint(rejected.spans) + _text(b"\x12", why)
        body = b"\x0a" + _varint(len(partial)) + partial
    return Response(body, media_type=_PROTOBUF)


def _refusal(media: str, answer: Response, error: Exception) -> Response:
    """A refusal, as a message ``Status`` if the request was not JSON."""
    if media != _PROTOBUF:
        return answer
    said = error.detail if isinstance(error, HTTPException) else str(error)
    headers = {
        name: value
        for name, value in answer.headers.items()
        if name in ("retry-after", "connection")
    }
    status = _text(b"\x12", said)
    return Response(status, answer.status_code, headers=headers, media_type=_PROTOBUF)


def _text(tag: bytes, text: str) -> bytes:
    """A text as a field of a protobuf message."""
    data = text.encode()
    return tag + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """A whole number as protobuf writes it: seven bits in a byte, the lowest first."""
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
    return bytes(data)
