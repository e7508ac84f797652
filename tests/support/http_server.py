"""The HTTP interface on loopback, and a client that can also say what no client should."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from typing import Any, NamedTuple

import anyio
from anyio.abc import SocketStream
from duolog.engine.log.contract import EventLog
from duolog.interop.follow import Follow
from duolog.interop.http.app import make_app
from duolog.interop.http.limits import HttpLimits
from duolog.interop.http.server import HttpServer
from duolog.interop.importers.traces.live import LiveTraces

__all__ = ("Answer", "Client", "Told", "message", "serving", "until")


class Answer(NamedTuple):
    """A response; names of headers in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The decoded body."""
        found: dict[str, Any] = json.loads(self.body)
        return found


class Told(NamedTuple):
    """A server-sent event."""

    id: int | None
    event: str
    data: dict[str, Any]


def message(text: str = "hello", **envelope: object) -> dict[str, object]:
    """A message of Ann's, as it is posted."""
    return {
        "kind": "MessageSent",
        "actor": "ann",
        "role": "human",
        "body": {"text": text},
    } | envelope


async def until(condition: Callable[[], object]) -> None:
    """Waits until a condition holds that nothing signals."""
    with anyio.fail_after(120):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.001)


class Client:
    """Speaks to a server; a connection for each request."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.port = port
        self.token = token

    def head(self, method: str, path: str, headers: dict[str, str], size: int | None) -> bytes:
        """The head of a request."""
        lines = {"Host": f"127.0.0.1:{self.port}", "Connection": "close"}
        if self.token is not None:
            lines["Authorization"] = f"Bearer {self.token}"
        if size is not None:
            lines |= {"Content-Type": "application/json", "Content-Length": str(size)}
        lines |= headers
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
        return f"{method} {path} HTTP/1.1\r\n{text}\r\n".encode("latin-1")

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Makes a request."""
        head = self.head(method, path, headers or {}, None if body is None else len(body))
        return await self.raw(head + (body or b""))

    async def get(self, path: str, **headers: str) -> Answer:
        """Gets something."""
        return await self.request("GET", path, headers=headers)

    async def post(self, session: str, *events: object, **batch: object) -> Answer:
        """Posts a batch."""
        body = json.dumps({"events": list(events)} | batch).encode()
        return await self.request("POST", f"/v1/sessions/{session}/events", body)

    async def raw(self, data: bytes) -> Answer:
        """Sends bytes, and reads what comes until the connection ends."""
        with anyio.fail_after(120):
            async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
                await stream.send(data)
                return _answer(await _rest(stream), data[:4].decode("latin-1"))

    @asynccontextmanager
    async def follow(
        self, query: str = "", path: str = "/v1/stream", **headers: str
    ) -> AsyncIterator[AsyncIterator[Told]]:
        """Follows the log, or a session of it."""
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            await stream.send(self.head("GET", f"{path}{query}", headers, None))
            yield _told(stream)


async def _rest(stream: SocketStream) -> bytes:
    data = b""
    try:
        async for part in stream:
            data += part
    except anyio.BrokenResourceError:
        pass  # an answer may have come before the connection was cut off
    return data


def _answer(data: bytes, method: str) -> Answer:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(": ")
        headers[name.lower()] = value
    if not first or len(body) < int(headers.get("content-length", 0)) * (method != "HEAD"):
        raise ConnectionError("the connection was cut off in the middle of an answer")
    return Answer(int(first.split()[1]), headers, body)


async def _told(stream: SocketStream) -> AsyncIterator[Told]:
    """The events in a chunked body."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, data = data.partition(b"\r\n\r\n")
    assert b" 200 " in head, head
    text = b""
    while True:
        while (end := data.find(b"\r\n")) < 0:
            data += await stream.receive()
        size = int(data[:end], 16)
        if not size:
            return
        while len(data) < end + 4 + size:
            data += await stream.receive()
        text += data[end + 2 : end + 2 + size]
        data = data[end + 4 + size :]
        *events, text = text.split(b"\n\n")
        for event in events:
            if told := _event(event.decode()):
                yield told


def _event(text: str) -> Told | None:
    fields = dict(line.split(": ", 1) for line in text.split("\n") if not line.startswith(":"))
    if "data" not in fields:
        return Told(None, "comment", {}) if text.startswith(":") else None
    ident = fields.get("id")
    data = json.loads(fields["data"])
    return Told(None if ident is None else int(ident), fields.get("event", "message"), data)


@asynccontextmanager
async def serving(
    log: EventLog,
    *,
    token: str | None = None,
    limits: HttpLimits | None = None,
    updates: Follow | None = None,
    traces: LiveTraces | None = None,
) -> AsyncIterator[tuple[Client, HttpServer]]:
    """A server of the log, and a client of it; stops it at the end."""
    limits = limits or HttpLimits()
    stopping = anyio.Event()
    app = make_app(
        log, token=token, limits=limits, updates=updates, stopping=stopping, traces=traces
    )
    server = HttpServer(app, stopping, limits)
    bound = socket.create_server(("127.0.0.1", 0))
    with closing(bound):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.run, [bound])
            await server.started()
            try:
                yield Client(bound.getsockname()[1], token), server
            finally:
                server.stop()
