"""A client of the HTTP interface on a simulated network: it asks again until it has an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast, final

import anyio
import httptools
import msgspec

from .link import End, Network

__all__ = ("Answer", "Client", "Manner")

_PATIENCE: Final = 30.0  # seconds for an answer
_TRIES: Final = 12


class Answer(NamedTuple):
    """A response."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401
        """The decoded body."""
        return msgspec.json.decode(self.body)


class Manner(NamedTuple):
    """The ways in which a request deviates from a well-behaved one.

    Attributes:
        half_closed: the client says at once that it sends no more.
        twice: the request is sent again on another connection, and that answer is not awaited.
        left: the client leaves before it has sent all.
        storm: connections that are made before it, and closed at once.
        mute: half of it is sent, and no more; seconds after which the server has given it up.
        late: seconds for which it is held up on the way, so that others overtake it.
    """

    half_closed: bool = False
    twice: bool = False
    left: bool = False
    storm: int = 0
    mute: float = 0.0
    late: float = 0.0


PLAIN: Final = Manner()


@final
class _Exchange(asyncio.Protocol):
    """One connection of a client: requests one after the other."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Answer] | None = None
        self._body = b""
        self._take: Callable[[bytes], None] | None = None
        self._lost: Exception | None = None
        self.transport: End | None = None

    def ask(self, request: bytes, take: Callable[[bytes], None] | None) -> asyncio.Future[Answer]:
        """Sends a request.

        Args:
            request: its bytes; none to send nothing.
            take: gets each part of the answer's body as it comes.
        """
        self._answer = asyncio.get_running_loop().create_future()
        self._body, self._take = b"", take
        if self._lost is not None or self.transport is None:
            self._answer.set_exception(self._lost or ConnectionError("it is not connected yet"))
        else:
            self.transport.write(request)
        return self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(End, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(AssertionError(f"the server sent what is no HTTP: {error}: {data!r}"))

    def eof_received(self) -> bool | None:
        self._fail(ConnectionError("the server has closed the connection"))
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(exc or ConnectionError("the connection is closed"))

    def _fail(self, error: Exception) -> None:
        self._lost = error
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    # --- what the parser finds --------------------------------------------------------------------

    def on_body(self, body: bytes) -> None:
        """A part of an answer's body."""
        self._body += body
        if self._take is not None:
            self._take(body)

    def on_message_complete(self) -> None:
        """An answer is complete."""
        status = self._parser.get_status_code()
        if status >= 200 and self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(status, self._body))


@final
class Client:
    """Makes requests, each again until it is answered.

    Args:
        network: to the server.
        keeps: whether it keeps a connection for its next request.
    """

    def __init__(self, network: Network, *, keeps: bool) -> None:
        self._network = network
        self._keeps = keeps
        self._kept: _Exchange | None = None
        self._stray: list[_Exchange] = []

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        manner: Manner = PLAIN,
        tried: Callable[[], None] = lambda: None,
    ) -> Answer | None:
        """Repeats a request until the answer is final; None if it never is.

        Args:
            method: the method of the request.
            path: with the query.
            body: JSON.
            manner: the manner of the first try.
            tried: called if the outcome of a try is unknown.
        """
        request = self._bytes(method, path, body, {})
        for number in range(_TRIES):
            try:
                with anyio.fail_after(_PATIENCE):
                    answer = await self._once(request, manner if not number else PLAIN)
            except (
                OSError
            ):  # also if the other end has gone before this one says that it sends no more
                tried()
                self.drop()
            else:
                if answer.status not in (408, 503):
                    return answer
                tried()
            await anyio.sleep(0.1 * 2**number)
        return None

    async def follow(self, path: str, after: int, take: Callable[[bytes], None]) -> None:
        """Follows a stream of events from a position, until the connection ends.

        Raises:
            ConnectionError: it has ended, or could not be made.
        """
        request = self._bytes("GET", path, None, {"Last-Event-ID": str(after)})
        exchange = await self._connected()
        try:
            answer = await exchange.ask(request, take)
            if answer.status not in (200, 503):
                raise AssertionError(f"a stream was refused: {answer}")
        finally:
            _leave(exchange)

    def drop(self) -> None:
        """Closes its connections."""
        if self._kept is not None:
            _leave(self._kept)
        for exchange in self._stray:
            _leave(exchange)
        self._kept = None
        self._stray.clear()

    async def _once(self, request: bytes, manner: Manner) -> Answer:
        exchange = self._kept or await self._connected()
        self._kept = None
        if manner.twice:
            stray = await self._connected()
            self._stray.append(stray)
            stray.ask(request, None).add_done_callback(_look)
        transport = exchange.transport
        assert transport is not None
        for _ in range(manner.storm):
            _leave(await self._connected())
        if manner.late:
            transport.stall(manner.late, lost=False)
        if manner.left:
            exchange.ask(request[: len(request) // 2], None).add_done_callback(_look)
            transport.close()
            raise ConnectionError("the client has left")
        if manner.mute:
            await self._be_mute(exchange, request, manner.mute)
        try:
            waiting = exchange.ask(request, None)
            if manner.half_closed:
                transport.write_eof()
            answer = await waiting
        except BaseException:
            _leave(exchange)
            raise
        if self._keeps and not manner.half_closed:
            self._kept = exchange
        else:
            _leave(exchange)
        return answer

    async def _be_mute(self, exchange: _Exchange, request: bytes, seconds: float) -> None:
        """Begins a request, and waits for the server to give it up.

        Raises:
            ConnectionError: it has.
        """
        try:
            with anyio.fail_after(seconds):
                await exchange.ask(request[: len(request) // 2], None)
        except TimeoutError:
            transport = exchange.transport
            if transport is None or not transport.disturbed:
                raise AssertionError("a request that does not arrive is given up") from None
        finally:
            _leave(exchange)
        raise ConnectionError("it was given up")

    async def _connected(self) -> _Exchange:
        exchange = _Exchange()
        self._network.connect(asyncio.get_running_loop(), exchange)
        while exchange.transport is None:
            await anyio.lowlevel.checkpoint()
        return exchange

    def _bytes(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> bytes:
        lines = {"Host": "localhost", **headers}
        if not self._keeps:
            lines["Connection"] = "close"
        if body is not None:
            lines |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + (body or b"")


def _leave(exchange: _Exchange) -> None:
    if exchange.transport is not None:
        exchange.transport.close()


def _look(answer: asyncio.Future[Answer]) -> None:
    """Checks an answer that is not awaited."""
    if not answer.cancelled() and isinstance(answer.exception(), AssertionError):
        asyncio.get_running_loop().call_exception_handler({"exception": answer.exception()})
