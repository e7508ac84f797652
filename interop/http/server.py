"""Runs an app on sockets with uvicorn, and guards its connections: how many, and for how long.

uvicorn answers 503 beyond a number of connections only once a request has come, and waits for ever
for the first one. Here a connection too many is refused when it is made, and one whose client
does not send its request, or does not read the answer, is ended.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from socket import socket
from typing import Final, cast, final

import anyio
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from .clients import Proxies
from .limits import HttpLimits

__all__ = (
    "HttpProtocol",
    "HttpServer",
)


_HEAD: Final = 1 << 16  # bytes of a head, or of what frames a body


@final
class HttpProtocol(HttpToolsProtocol):
    """The requests of one connection, one after the other."""

    _waiting = 0
    _moved = False

    @property
    def answering(self) -> bool:
        """Whether a request has arrived whose answer is not complete."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """Takes input; refuses it if it is not HTTP, or a head is too large."""
        self._moved = False
        try:
            super().data_received(data)
        except UnicodeDecodeError:  # an address that is not even ASCII
            self.send_400_response("Invalid HTTP request received.")
            return
        if self._moved:
            self._waiting = 0
            return
        self._waiting += len(data)
        if self._waiting > _HEAD:
            if self.answering:  # input is not read before that: no response can be sent in between
                self.transport.abort()
            else:
                self.send_400_response("The head of the request is too large.")

    def on_headers_complete(self) -> None:
        """A head is complete."""
        self._moved = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of a body has come."""
        self._moved = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is complete."""
        self._moved = True
        super().on_message_complete()


_LINGER: Final = 1.0  # seconds for a client that is refused to read why
_LINGERING: Final = 64  # such clients at once; others are cut off
_GRACE: Final = 10  # seconds for requests to be answered while the server stops
_TOO_MANY: Final = b"too many connections; try again"
_STOPPING: Final = b"the server is stopping; try again"
_REASON: Final = b'{"error":"service-unavailable","message":"%b"}'
_REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%b"
)


@final
class HttpServer:
    """A server of one app.

    Args:
        app: what answers.
        stopping: set when it begins to stop; event streams end then.
        limits: how many connections there may be, and how patient it is.

    Attributes:
        refused: connections that were too many.
    """

    def __init__(self, app: ASGIApp, stopping: anyio.Event, limits: HttpLimits) -> None:
        self._stopping = stopping
        self._limits = limits
        self._proxies = Proxies(limits.proxies)
        self.refused = 0
        self._connections: set[_Connection] = set()
        self._clients: Counter[str] = Counter()
        self._lingering: set[_Refused] = set()
        self._started = anyio.Event()
        config = uvicorn.Config(
            app,
            # uvicorn calls it with names to make a protocol, and asks for nothing else of it.
            http=cast(type[asyncio.Protocol], self._connect),
            ws="none",
            lifespan="off",
            loop="none",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_GRACE,
            callback_notify=self._notify,
        )
        self._config = config
        self._uvicorn = uvicorn.Server(config)

    async def run(self, sockets: Sequence[socket]) -> None:
        """Serves until it is stopped; then answers the requests that it has, and returns.

        If it is cancelled, its connections and requests end at once.
        """
        try:
            await self._uvicorn.serve(sockets=list(sockets))
        except asyncio.CancelledError:
            self._abandon()
            raise

    def _abandon(self) -> None:
        """Ends what a cancelled uvicorn leaves as it is.

        If a socket were closed while the loop still listens to it, the loop would take the next socket
        with the same number for this one, and would accept nothing.
        """
        for server in getattr(self._uvicorn, "servers", ()):  # it has none before it has started
            server.close()
        for connection in [*self._uvicorn.server_state.connections]:
            if connection.transport is not None:
                connection.transport.abort()
        for task in self._uvicorn.server_state.tasks:
            task.cancel()

    async def started(self) -> None:
        """Waits until it serves."""
        await self._started.wait()

    def stop(self) -> None:
        """Begins to stop; at a second call, ends at once."""
        if self._stopping.is_set():
            self._uvicorn.force_exit = True
        self._stopping.set()
        self._uvicorn.should_exit = True

    async def _notify(self) -> None:
        self._started.set()

    def _connect(self, **arguments: object) -> asyncio.Protocol:
        """A protocol for a new connection."""
        if self._stopping.is_set():  # nothing else would end it yet
            return _Refused(_STOPPING, self._lingering)
        if len(self._connections) >= self._limits.connections:
            self.refused += 1
            return _Refused(_TOO_MANY, self._lingering)
        make = cast(Callable[..., HttpProtocol], HttpProtocol)
        connection = _Connection(
            make(**arguments), self._limits.patience, self._admit, self._discard
        )
        self._connections.add(connection)
        return connection

    def _admit(self, connection: _Connection) -> asyncio.Protocol | None:
        """Counts a connection to its client; what refuses it, if the client has too many."""
        client = connection.client
        crowded = self._clients[client] >= self._limits.per_client
        if client and crowded and not self._proxies.trusts(client):
            self.refused += 1
            self._connections.discard(connection)
            return _Refused(_TOO_MANY, self._lingering)
        self._clients[client] += 1
        return None

    def _discard(self, connection: _Connection) -> None:
        self._connections.discard(connection)
        self._clients[connection.client] -= 1
        if not self._clients[connection.client]:
            del self._clients[connection.client]


@final
class _Connection(asyncio.Protocol):
    """A connection with a clock: on its request while it arrives, on its answer while it waits.

    Attributes:
        client: the address at the other end; empty if there is none, as on a local socket.
    """

    def __init__(
        self,
        inner: HttpProtocol,
        patience: float,
        admit: Callable[[_Connection], asyncio.Protocol | None],
        lost: Callable[[_Connection], None],
    ) -> None:
        self._inner = inner
        self._patience = patience
        self._admit = admit
        self._lost = lost
        self.client = ""
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.client = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        refusal = self._admit(self)
        if refusal is not None:
            self._transport.set_protocol(refusal)
            refusal.connection_made(transport)
            return
        self._inner.connection_made(self._transport)
        self._reading = self._later()

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)
        if self._inner.answering:
            _cancel(self._reading)
            self._reading = None
        elif self._reading is None:
            self._reading = self._later()

    def eof_received(self) -> bool | None:
        self._inner.eof_received()
        return None

    def pause_writing(self) -> None:
        self._inner.pause_writing()
        self._writing = self._later()

    def resume_writing(self) -> None:
        _cancel(self._writing)
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._reading)
        _cancel(self._writing)
        self._lost(self)
        self._inner.connection_lost(exc)

    def _later(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._patience, self._transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


@final
class _Refused(asyncio.Protocol):
    """A connection that is not wanted: it gets a refusal, and is ended."""

    def __init__(self, why: bytes, others: set[_Refused]) -> None:
        self._why = why
        self._others = others
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        made = cast(asyncio.Transport, transport)
        if len(self._others) >= _LINGERING:
            made.abort()
            return
        self._others.add(self)
        self._end = asyncio.get_running_loop().call_later(_LINGER, made.abort)
        # The client's input is read meanwhile: otherwise the system would discard the answer.
        reason = _REASON % self._why
        made.write(_REFUSAL % (len(reason), reason))
        try:
            made.write_eof()
        except OSError:  # the client is gone already
            made.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._end)
        self._others.discard(self)
