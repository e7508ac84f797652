"""The HTTP interface of a log, as an ASGI app: posting events, reading sessions, following along."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, final

import anyio
import anyio.to_thread
import msgspec
from sse_starlette import ServerSentEvent
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..._version import __version__
from ...engine.errors import DuologError, InvalidInput
from ...engine.log.contract import EventLog, SessionSummary
from ...engine.log.exchange.jsonl_export import to_jsonl
from ...engine.records import TRACE, Record
from ...engine.text import quantity
from ...scoring.index.lines import SessionLines, listed
from ..follow import Follow, follow_records
from ..importers.traces.live import LiveTraces
from .auth import RequestGuard
from .bodies import CLOSE, RETRY, RequestBodies
from .limits import HttpLimits
from .openapi import describe
from .requests import Drafts, InvalidBatch, TooManyEvents, read_batch
from .responses import Health, Sessions, as_json, invalid_batch, on_error, problem
from .sse import EventStream, agui_events, record_events
from .trace_writer import TraceWriter
from .traces import TraceReceiver
from .validation import name_complaint

__all__ = ("make_app",)

_AT_ONCE: Final = 1 << 15  # bytes of a body that are read on the event loop
_THREADS: Final = 4  # bodies that are read in threads at once
_FOLDS: Final = 64  # sessions whose folds are held, for the rows of lists


def make_app(
    log: EventLog,
    *,
    token: str | None = None,
    limits: HttpLimits | None = None,
    updates: Follow | None = None,
    stopping: anyio.Event | None = None,
    traces: LiveTraces | None = None,
) -> Starlette:
    """The app of a log that is open.

    Args:
        log: the log to read and write.
        token: required from clients; None admits every client that addresses this machine by a
            local name.
        limits: what one client may take.
        updates: follows the log with its scores, for ``/v1/stream?updates=1``.
        stopping: set when the server stops, so that event streams end.
        traces: records spans that are exported to it; without it, none are taken.
    """
    limits = limits or HttpLimits()
    bodies = RequestBodies(limits.buffered)
    description = msgspec.json.encode(describe(limits, traces=traces is not None))
    api = _Api(log, limits, bodies, updates, stopping or anyio.Event(), description)
    app = Starlette(
        routes=[
            Route("/v1/sessions", api.sessions),
            Route("/v1/sessions/{session:path}/events", api.append, methods=["POST"]),
            Route("/v1/sessions/{session:path}/agui", api.agui),
            Route("/v1/sessions/{session:path}", api.session),
            Route("/v1/stream", api.stream),
            Route("/healthz", api.health),
            Route("/openapi.json", api.openapi),
        ],
        middleware=[Middleware(RequestGuard, token=token)],
        exception_handlers={HTTPException: _on_http_error, DuologError: on_error},
    )
    if traces is not None:
        receiver = TraceReceiver(traces, bodies, limits)
        app.router.add_route("/v1/traces", receiver.export, methods=["POST"])
    app.router.redirect_slashes = False
    return app


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = {404: f"there is nothing at {request.url.path}", 405: f"{request.method} is not for it"}
    message = known.get(error.status_code, error.detail)
    return problem(error.status_code, message, error.headers)


@final
class _Api:
    """The endpoints, with their shared state."""

    def __init__(
        self,
        log: EventLog,
        limits: HttpLimits,
        bodies: RequestBodies,
        updates: Follow | None,
        stopping: anyio.Event,
        description: bytes,
    ) -> None:
        self._log = log
        self._limits = limits
        self._bodies = bodies
        self._updates = updates
        self._stopping = stopping
        self._streams: set[EventStream] = set()
        self._line = anyio.CapacityLimiter(_THREADS)
        self._traces = TraceWriter(log)
        self._lines = SessionLines(log, most=_FOLDS)
        self._description = description

    # --- writing ----------------------------------------------------------------------------------

    async def append(self, request: Request) -> Response:
        """Appends a batch of events to a session."""
        session = _session(request.path_params["session"])
        _check_media(request)
        records: Sequence[Record]
        budget = self._limits.of_body
        data = await self._bodies.read(request, budget)
        try:
            budget.check_json(data)
            batch = await self._batch(data)
            if isinstance(batch, InvalidBatch):
                return invalid_batch(batch)
            if isinstance(batch, TooManyEvents):
                most = quantity(self._limits.events, "event")
                return problem(413, f"a batch has at most {most}, not {batch.events}")
            if batch.stream == TRACE:
                records = await self._traces.write(session, batch.drafts, batch.expected_version)
            else:
                records = await self._log.append(
                    session,
                    batch.drafts,
                    stream=batch.stream,
                    expected_version=batch.expected_version,
                )
        finally:
            self._bodies.release(data)
        return as_json({"version": records[-1].version, "records": _lines(records)})

    async def _batch(self, data: bytes) -> Drafts | InvalidBatch | TooManyEvents:
        """The batch in a body; a large one is read in a thread, while others are served."""
        now, most = time.time(), self._limits.events
        if len(data) <= _AT_ONCE:
            return read_batch(data, now, most)
        return await anyio.to_thread.run_sync(read_batch, data, now, most, limiter=self._line)

    # --- reading ----------------------------------------------------------------------------------

    async def sessions(self, request: Request) -> Response:
        """A page of the sessions."""
        after = _whole(request, "after", 0)
        limit = self._page(request)
        page: list[SessionSummary] = []
        seen = 0
        async for summary in self._log.sessions():
            seen += 1
            if seen > after + limit:
                return await self._listed(page, after + limit)
            if seen > after:
                page.append(summary)
        return await self._listed(page, None)

    async def _listed(self, page: Sequence[SessionSummary], following: int | None) -> Response:
        await self._lines.prefetch(page)
        sessions = [listed(summary, await self._lines.line(summary)) for summary in page]
        await self._lines.keep()
        return as_json(Sessions(sessions=tuple(sessions), next=following))

    async def session(self, request: Request) -> Response:
        """A session as lists show it, and with ``after`` a page of its records."""
        session = _session(request.path_params["session"])
        after, limit = _whole(request, "after", 0), self._page(request)
        summary = await self._log.summary(session)
        page: dict[str, object] = {"session": listed(summary, await self._lines.line(summary))}
        if "after" in request.query_params:
            page |= await self._records(session, after, limit)
        return as_json(page)

    async def _records(self, session: str, after: int, limit: int) -> dict[str, object]:
        page: list[msgspec.Raw] = []
        size = 0
        async for record in self._log.read_all(session=session, after_position=after):
            if len(page) >= limit or size > self._limits.page_bytes:
                return {"records": page, "next": after}
            line = to_jsonl(record).rstrip()
            size += len(line)
            after = record.position
            page.append(msgspec.Raw(line))
        return {"records": page, "next": None}

    def _page(self, request: Request) -> int:
        """The page size; values above the limit are cut to the limit."""
        most = self._limits.page
        asked = _whole(request, "limit", most, most=most)
        if not asked:
            raise InvalidInput("limit is a whole number from 1, not '0'")
        return asked

    async def stream(self, request: Request) -> EventStream:
        """Follows the log, as server-sent events."""
        name = request.query_params.get("session")
        session = None if name is None else _session(name)
        after = _after(request, self._log.statistics().position)
        steps = self._follow(request)(self._log, session, after)
        return self._streaming(record_events(steps))

    async def agui(self, request: Request) -> EventStream:
        """Follows a session as events of AG-UI."""
        session = _session(request.path_params["session"])
        await self._log.summary(session)  # raises if there is none
        after = _after(request, self._log.statistics().position)
        events = agui_events(self._log, session, after, self._follow(request))
        return self._streaming(events)

    def _follow(self, request: Request) -> Follow:
        """How to follow the log: with updates, if they are asked for."""
        if request.query_params.get("updates", "0") in ("0", "", "false"):
            return follow_records
        if self._updates is None:
            raise InvalidInput("this server gives no updates: leave 'updates' out")
        return self._updates

    def _streaming(
        self, events: AbstractAsyncContextManager[AsyncIterator[ServerSentEvent]]
    ) -> EventStream:
        if len(self._streams) >= self._limits.streams:
            raise HTTPException(503, "as many streams as may be are open already", RETRY)
        return EventStream(events, self._stopping, self._limits.heartbeat, self._streams)

    # --- the server itself ------------------------------------------------------------------------

    async def health(self, request: Request) -> Response:
        """Whether the server can take requests."""
        status = "stopping" if self._stopping.is_set() else "ok"
        await self._log.checkpoint("health", "1")  # raises if the log cannot be read
        health = Health(status=status, version=__version__, streams=len(self._streams))
        return as_json(health, 200 if status == "ok" else 503)

    async def openapi(self, request: Request) -> Response:
        """The description of all this."""
        return Response(self._description, media_type="application/json")


def _session(name: str) -> str:
    if why := name_complaint(name):
        raise InvalidInput(f"the session's id {why}")
    return name


def _check_media(request: Request) -> None:
    media, _, options = request.headers.get("content-type", "").lower().partition(";")
    charset = options.replace(" ", "").replace('"', "")
    if media.strip() != "application/json" or charset not in ("", "charset=utf-8"):
        raise HTTPException(415, "the body must be application/json, in UTF-8", CLOSE)
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise HTTPException(415, "the body must be sent as it is, not compressed", CLOSE)


def _whole(request: Request, name: str, default: int, most: int = 2**53) -> int:
    """A whole number in the query; those above ``most`` are cut to it."""
    text = request.query_params.get(name)
    return default if text is None else min(_number(text, name), most)


def _number(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise InvalidInput(f"{name} is a whole number from 0, not {text[:40]!r}")
    return int(text)


def _after(request: Request, now: int) -> int:
    """The start of a stream: after the client's last event, else after the requested position."""
    if last := request.headers.get("last-event-id"):
        return _number(last, "Last-Event-ID")
    text = request.query_params.get("after", "0")
    return now if text == "now" else _number(text, "after")


def _lines(records: Sequence[Record]) -> list[msgspec.Raw]:
    return [msgspec.Raw(to_jsonl(record).rstrip()) for record in records]
