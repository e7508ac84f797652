"""The OpenAPI description of the HTTP interface, made from the types that it reads and writes."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ..._version import __version__
from ...engine.events import EVENTS
from .limits import HttpLimits
from .requests import LEFT_OPEN, Batch
from .responses import Appended, Health, HttpProblem, SessionPage, Sessions
from .traces import PARTIAL_SUCCESS

__all__ = ("describe",)

Schema = dict[str, Any]  # JSON, which is built and changed here

_STATUSES: Final = {
    400: "Invalid: names the event and the field",
    401: "No token, or a wrong one",
    404: "No such session",
    408: "The body did not arrive in time",
    409: "The version is not the expected one, an id is taken, the snapshot's base is outdated, or the "
    "session is closed",
    413: "The body or the batch is too large",
    415: "Not application/json in UTF-8",
    421: "Without a token, addressed by another name than this machine's own",
    503: "Overloaded, stopping, or the log cannot be written now: try again later",
}


def describe(limits: HttpLimits, *, traces: bool = False) -> Schema:
    """The description, as OpenAPI 3.1 has it.

    Args:
        limits: described in it.
        traces: whether spans are taken.
    """
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Duolog",
            "version": __version__,
            "description": "An event log of people and agents working together.",
        },
        "paths": _paths(limits) | ({"/v1/traces": {"post": _traces()}} if traces else {}),
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _schemas() -> Schema:
    types = [Batch, Appended, Sessions, SessionPage, Health, HttpProblem, *EVENTS.values()]
    _, schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for kind in EVENTS:
        body = schemas[kind]
        optional = {"kind", LEFT_OPEN.get(kind, "kind")}
        body["required"] = [name for name in body.get("required", []) if name not in optional]
        body["additionalProperties"] = False
    schemas["Posted"]["oneOf"] = [
        {"properties": {"kind": {"const": kind}, "body": _ref(kind)}} for kind in EVENTS
    ]
    return schemas


def _paths(limits: HttpLimits) -> Schema:
    session = _parameter("session", "path", {"type": "string"}, "Id of the session")
    after = _number("after", "Start of the page: `next` of the previous page", 0)
    limit = _number("limit", f"Maximum number of entries, up to {limits.page}", limits.page, 1)
    return {
        "/v1/sessions": {
            "get": _operation("Lists the sessions", "Sessions", [after, limit]),
        },
        "/v1/sessions/{session}": {
            "get": _operation(
                "A session's summary; with `after` also a page of records after a position",
                "SessionPage",
                [session, after, limit],
                404,
            ),
        },
        "/v1/sessions/{session}/events": {
            "post": _operation(
                "Appends events, all of them or none; the same batch of events with ids can be "
                "sent again, and is recorded once. A session begins with SessionOpened; one that "
                "does not is opened by the server.",
                "Appended",
                [session],
                404,
                408,
                409,
                413,
                415,
            )
            | {"requestBody": {"required": True, "content": _json("Batch")}},
        },
        "/v1/sessions/{session}/agui": {"get": _agui()},
        "/v1/stream": {"get": _stream()},
        "/healthz": {"get": _operation("Says whether the server is up", "Health", []) | _FREE},
        "/openapi.json": {
            "get": {
                "summary": "This description",
                "responses": {"200": {"description": "OpenAPI", "content": _anything()}},
            }
            | _FREE
        },
    }


_FREE: Final[Schema] = {"security": []}


def _agui() -> Schema:
    text = {"type": "string"}
    parameters = [
        _parameter("session", "path", text, "Id of the session"),
        _parameter("after", "query", text, "Position to begin after; `now` for new records only"),
        _parameter("updates", "query", text, "1 adds the updates of scoring, as CUSTOM events"),
        _parameter("Last-Event-ID", "header", text, "Like `after`, and takes precedence"),
    ]
    found = _operation("Follows a session as events of AG-UI", "HttpProblem", parameters)
    found["responses"]["200"] = {
        "description": "AG-UI 1.0 events; the last one of each record has its position as `id:`",
        "content": {"text/event-stream": {"schema": text}},
    }
    return found


def _stream() -> Schema:
    text = {"type": "string"}
    parameters = [
        _parameter("session", "query", text, "Only this session"),
        _parameter("after", "query", text, "Position to begin after; `now` for new records only"),
        _parameter("updates", "query", text, "1 adds the updates of scoring"),
        _parameter("Last-Event-ID", "header", text, "Like `after`, and takes precedence"),
    ]
    found = _operation("Follows the log as server-sent events", "HttpProblem", parameters)
    found["responses"]["200"] = {
        "description": "`event: record` with the position as `id:`; `event: update` if requested",
        "content": {"text/event-stream": {"schema": text}},
    }
    return found


def _traces() -> Schema:
    found = _operation(
        "Accepts spans from OTLP/HTTP exporters; those of models, tools and agents become sessions",
        "HttpProblem",
        [],
        408,
        413,
        415,
    )
    found["responses"]["200"] = {
        "description": "Accepted; says how many spans were rejected, if any",
        "content": {"application/json": {"schema": PARTIAL_SUCCESS}},
    }
    content = {**_anything(), "application/x-protobuf": {"schema": {"type": "string"}}}
    return found | {"requestBody": {"required": True, "content": content}}


def _operation(summary: str, answer: str, parameters: list[Schema], *statuses: int) -> Schema:
    responses: Schema = {"200": {"description": "Done", "content": _json(answer)}}
    for status in sorted({400, 401, 421, 503, *statuses}):
        responses[str(status)] = {"description": _STATUSES[status], "content": _json("HttpProblem")}
    return {"summary": summary, "parameters": parameters, "responses": responses}


def _parameter(name: str, where: str, schema: Schema, what: str) -> Schema:
    required = where == "path"
    return {
        "name": name,
        "in": where,
        "required": required,
        "schema": schema,
        "description": what,
    }


def _number(name: str, what: str, default: int, least: int = 0) -> Schema:
    kind = {"type": "integer", "minimum": least, "default": default}
    return _parameter(name, "query", kind, what)


def _json(name: str) -> Schema:
    return {"application/json": {"schema": _ref(name)}}


def _anything() -> Schema:
    return {"application/json": {"schema": {"type": "object"}}}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}
