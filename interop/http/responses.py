"""Responses to clients: pages and problems as JSON, and the status of each error."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ...engine.errors import (
    CodecError,
    DuologError,
    DuplicateConflict,
    InvalidInput,
    LogClosed,
    LogGone,
    LogUnavailable,
    NewerLog,
    OutcomeUnknown,
    SessionClosedError,
    SessionNotFound,
    StaleBase,
    TooLarge,
    VersionConflict,
)
from ...engine.events import JSON, Role
from ...engine.logger import get_logger
from ...scoring.index.lines import ListedSession
from .requests import InvalidBatch

__all__ = (
    "Appended",
    "Health",
    "HttpProblem",
    "RecordData",
    "SessionPage",
    "Sessions",
    "as_json",
    "invalid_batch",
    "on_error",
    "problem",
)

Headers: TypeAlias = Mapping[str, str]


class RecordData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record, as ``stores.jsonl`` writes it; here to be described.

    Attributes:
        position: global order in the log, from 1.
        session: session id.
        stream: ``trace`` or a scorer's stream.
        version: order in the stream, from 1.
        kind: name of the event's type.
        schema: schema number of the body.
        time: seconds (UTC epoch, or virtual from 0).
        actor: who.
        role: the actor's role.
        body: the event; null or absent if it was erased.
        text: the body as a text, if it would not fit on a line.
        cause: ``stream/version`` that it answers.
        seen: trace version that the actor had seen.
        id: the caller's id.
    """

    position: int
    session: str
    stream: str
    version: int
    kind: str
    schema: int
    time: float
    actor: str
    role: Role
    body: dict[str, JSON] | None = None
    text: str | None = None
    cause: str | None = None
    seen: int | None = None
    id: str | None = None


class Appended(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an append: its records, or those that the log had already, and the version of
    the last of them.
    """

    version: int
    records: tuple[RecordData, ...]


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """A page of sessions in order of their first record; ``next`` is the ``after`` of the next
    page, null if there is none.
    """

    sessions: tuple[ListedSession, ...]
    next: int | None


class SessionPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session as lists show it and, if they were asked for, records of all its streams after a
    position; ``next`` is the ``after`` of the next page, null if there is none.
    """

    session: ListedSession
    records: tuple[RecordData, ...] | None = None
    next: int | None = None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How the server does: ``ok``, or ``stopping``; its version; how many event streams are open."""

    status: str
    version: str
    streams: int


class HttpProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request was refused.

    Attributes:
        error: a name for programs, e.g. ``version-conflict``.
        message: the problem, and how to fix it.
        event: index of the event at fault in its batch, from 0.
        field: path of the field at fault, e.g. ``body.text``.
        id: the event's id that is taken.
        expected: the version that the stream should have had.
        actual: the version that it has.
    """

    error: str
    message: str
    event: int | None = None
    field: str | None = None
    id: str | None = None
    expected: int | None = None
    actual: int | None = None


_STATUS: Mapping[type[DuologError], tuple[int, str]] = {
    VersionConflict: (409, "version-conflict"),
    DuplicateConflict: (409, "duplicate-conflict"),
    SessionClosedError: (409, "session-closed"),
    StaleBase: (409, "stale-base"),
    SessionNotFound: (404, "session-not-found"),
    InvalidInput: (400, "invalid"),
    TooLarge: (413, "too-large"),
    CodecError: (400, "invalid"),
    LogUnavailable: (503, "log-unavailable"),
    OutcomeUnknown: (503, "outcome-unknown"),
    LogGone: (503, "log-gone"),
    LogClosed: (503, "log-closed"),
    NewerLog: (503, "log-read-only"),
}


def as_json(value: object, status: int = 200, headers: Headers | None = None) -> Response:
    """An answer in JSON."""
    return Response(
        msgspec.json.encode(value), status, headers=headers, media_type="application/json"
    )


def problem(status: int, message: str, headers: Headers | None = None) -> Response:
    """A refusal, named after its HTTP status."""
    name = HTTPStatus(status).phrase.lower().replace(" ", "-")
    return as_json(HttpProblem(error=name, message=message), status, headers)


def invalid_batch(found: InvalidBatch) -> Response:
    """The refusal of a batch."""
    where = "" if found.event is None else f"event {found.event}: "
    field = f"{found.field}: " if found.field else ""
    return as_json(
        HttpProblem(
            error="invalid",
            message=f"{where}{field}{found.what}",
            event=found.event,
            field=found.field or None,
        ),
        400,
    )


def on_error(request: Request, error: Exception) -> Response:
    """The answer to an error of the engine's."""
    status, name = _STATUS.get(type(error), (500, "internal"))  # type: ignore[arg-type]
    if status == 500:
        get_logger("http").error(
            "a request failed", path=request.url.path, error=f"{type(error).__name__}: {error}"
        )
    return as_json(
        HttpProblem(
            error=name,
            message=str(error),
            id=error.event_id if isinstance(error, DuplicateConflict) else None,
            expected=error.expected if isinstance(error, VersionConflict) else None,
            actual=error.actual if isinstance(error, VersionConflict) else None,
        ),
        status,
        {"Retry-After": "1"} if status == 503 else None,
    )
