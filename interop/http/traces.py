"""The receiver of OTLP/HTTP: spans of models, tools and agents, which become sessions.

Any OpenTelemetry SDK or collector can export to it. It answers as the specification says: in the
encoding of the request, with the number of spans that were rejected and why, if there are any.
"""

from __future__ import annotations

import zlib
from typing import Final, NamedTuple, final

import anyio.to_thread
import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ...engine.errors import DuologError, MissingExtra
from ..importers.protocol import Remark
from ..importers.traces.live import LiveTraces
from ..importers.traces.otlp import spans_of_request
from ..importers.traces.otlp_protobuf import spans_of_message
from ..importers.traces.spans import Span
from .bodies import CLOSE, RequestBodies
from .limits import HttpLimits
from .responses import on_error, problem
from .validation import name_complaint

__all__ = ("PARTIAL_SUCCESS", "TraceReceiver")

_JSON: Final = "application/json"
_PROTOBUF: Final = "application/x-protobuf"
_ENCODINGS: Final = frozenset({"gzip", "deflate"})
_BIT: Final = 1 << 12  # bytes of a compressed body that are decompressed at once
_EITHER: Final = 32 + zlib.MAX_WBITS  # gzip or zlib, as the data says
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


class _Rejected(NamedTuple):
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
        self._most = limits.traces

    async def export(self, request: Request) -> Response:
        """Takes the spans of a request."""
        media = request.headers.get("content-type", "").lower().partition(";")[0].strip()
        try:
            if media not in (_JSON, _PROTOBUF):
                raise HTTPException(415, f"the body has to be {_PROTOBUF} or {_JSON}", CLOSE)
            encoding = request.headers.get("content-encoding", "identity").lower()
            if encoding != "identity" and encoding not in _ENCODINGS:
                raise HTTPException(415, f"there is no decoding {encoding[:40]!r} here", CLOSE)
            rejected = await self._take(request, media, compressed=encoding in _ENCODINGS)
        except HTTPException as error:
            return _refusal(media, problem(error.status_code, error.detail, error.headers), error)
        except DuologError as error:
            return _refusal(media, on_error(request, error), error)
        return _answer(media, rejected)

    async def _take(self, request: Request, media: str, *, compressed: bool) -> _Rejected:
        data = await self._bodies.read(request, self._most)
        try:
            found = await anyio.to_thread.run_sync(_read, data, media, compressed, self._most)
        finally:
            self._bodies.release(data)
        wrong = [one for one in found.spans if isinstance(one, Remark)]
        spans = [one for one in found.spans if isinstance(one, Span)]
        if wrong and not spans and wrong[0].where == _WHERE:
            raise HTTPException(400, wrong[0].what)
        why = [f"{one.where}: {one.what}" for one in wrong]
        kept: list[Span] = []
        for span in spans:
            if complaint := name_complaint(span.conversation or span.trace):
                why.append(f"{span.where}: the id of its conversation {complaint}")
            else:
                kept.append(span)
        refused = await self._traces.take(kept, found.size)
        why += [refused[one.conversation] for one in kept if one.conversation in refused]
        return _Rejected(len(why), why[0] if why else "")


class _Request(NamedTuple):
    """What a request holds: its spans, and bytes that they take."""

    spans: list[Span | Remark]
    size: int


def _read(data: bytes, media: str, compressed: bool, most: int) -> _Request:
    if compressed:
        data = _inflated(data, most)
    read = spans_of_request if media == _JSON else spans_of_message
    try:
        return _Request(list(read(data, _WHERE)), len(data))
    except MissingExtra as error:
        raise HTTPException(415, f"{error}; or send {_JSON}") from None


def _inflated(data: bytes, most: int) -> bytes:
    """A body that was compressed, no larger than it may be."""
    parts: list[bytes] = []
    size = 0
    member = zlib.decompressobj(_EITHER)
    try:
        # Bit by bit: what a member leaves is copied, and there may be very many of them.
        for begin in range(0, len(data), _BIT):
            left = data[begin : begin + _BIT]
            while left:
                if member.eof:
                    member = zlib.decompressobj(_EITHER)
                parts.append(member.decompress(left, most + 1 - size))
                size += len(parts[-1])
                if size > most:
                    raise HTTPException(
                        413, f"a body has at most {most} bytes, decompressed", CLOSE
                    )
                left = member.unused_data
    except zlib.error as error:
        raise HTTPException(400, f"the body does not decompress: {error}") from None
    if data and not member.eof:
        raise HTTPException(400, "the body is cut off: it does not decompress to its end")
    return b"".join(parts)


def _answer(media: str, rejected: _Rejected) -> Response:
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
    """A refusal, as a message ``Status`` where the request was no JSON."""
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
