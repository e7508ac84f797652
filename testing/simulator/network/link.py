"""Connections whose bytes arrive in pieces, late or never, between a server and clients in one process.

They behave as TCP does: bytes come in order and once, and no one reports bytes lost with a connection.
Only whole requests, each on a separate connection, can overtake each other or come twice.
"""

from __future__ import annotations

import asyncio
import errno
from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, cast, final

from ..loop import SimulatedLoop

__all__ = ("LINK_FAULTS", "End", "Listener", "Network", "NetworkLoop")

LINK_FAULTS: Final = ("cut", "vanish", "delay")
"""A connection is reset; its bytes vanish, and both ends learn it much later; it stalls for some
time."""

_HIGH: Final = 2048  # bytes on their way from which a writer is told to wait
_LOW: Final = 512
_GIVEN_UP: Final = 900.0  # seconds after which both ends learn that a connection is dead
_LATENCY: Final = 0.05

Factory = Callable[[], asyncio.BaseProtocol]


@final
class Network:
    """All connections of a run.

    Args:
        random: draws in which pieces and when bytes arrive.
        faults: what happens at which delivery, counted from 1, with a number for what is left to chance.
        stop: has the server stop.
    """

    def __init__(
        self, random: Random, faults: Mapping[int, tuple[str, int]], stop: Callable[[], None]
    ) -> None:
        self._stop = stop
        self.random = random
        self.happened: list[str] = []
        self.deliveries = 0
        self.listener: Factory | None = None
        self.open = 0
        self._faults = faults
        self._clients = 0

    def connect(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.BaseProtocol) -> None:
        """Connects a client.

        Raises:
            ConnectionRefusedError: nobody listens.
        """
        if self.listener is None:
            raise ConnectionRefusedError("nobody listens")
        self._clients += 1
        near = End(loop, self, protocol, ("10.0.0.1", self._clients))
        far = End(loop, self, self.listener(), ("10.0.0.2", 80))
        near.join(far)

    def calm(self) -> None:
        """From here on nothing goes wrong."""
        self._faults = {}

    def fault(self, end: End) -> bool:
        """Counts a delivery; whether the connection still delivers."""
        self.deliveries += 1
        kind, draw = self._faults.get(self.deliveries, ("", 0))
        if not kind:
            return True
        self.happened.append(kind)
        if kind == "stop":
            self._stop()
            return True
        if kind == "cut":
            end.cut()
            return False
        end.stall(_GIVEN_UP if kind == "vanish" else 10.0 ** (draw % 5 - 2), lost=kind == "vanish")
        return False


@final
class End(asyncio.Transport):
    """One end of a connection, for the protocol that has it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        network: Network,
        protocol: asyncio.BaseProtocol,
        name: tuple[str, int],
    ) -> None:
        super().__init__()
        self._loop = loop
        self._network = network
        self._protocol = protocol
        self._name = name
        self._peer: End = self
        self._outbox: deque[bytes] = deque()
        self._size = 0
        self._finishing = False  # the stream ends after the outbox
        self._finished = False
        self._closing = False
        self._over = False
        self._scheduled = False
        self._reading = True
        self._made = False
        self._full = False
        self._stalled = 0.0

    def join(self, peer: End) -> None:
        """Makes a connection of two ends."""
        self._peer, peer._peer = peer, self
        self._network.open += 2
        self._loop.call_soon(self._make)
        # A server may accept a connection late; the client may have left by then.
        if self._network.random.random() < 0.5:
            self._loop.call_soon(peer._make)
        else:
            self._loop.call_later(self._network.random.random() * _LATENCY, peer._make)

    def _make(self) -> None:
        self._made = True
        self._protocol.connection_made(self)
        if self._over:
            self._protocol.connection_lost(None)
        self._peer._schedule()

    # --- what a protocol asks of its transport ----------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 (as asyncio has it)
        """Addresses."""
        return {"peername": self._peer._name, "sockname": self._name}.get(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hands the connection to another protocol."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Who has it."""
        return self._protocol

    def is_closing(self) -> bool:
        """Whether it is closed, or will be once all is sent."""
        return self._closing

    def can_write_eof(self) -> bool:
        """Always."""
        return True

    def get_write_buffer_size(self) -> int:
        """Bytes on their way."""
        return self._size

    def is_reading(self) -> bool:
        """Whether arriving bytes are handed over."""
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        """Leaves arriving bytes unread."""
        self._reading = False

    def resume_reading(self) -> None:
        """Takes the bytes that have arrived."""
        self._reading = True
        self._peer._schedule()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends."""
        if not data or self._finishing or self._over:
            return
        self._outbox.append(bytes(data))
        self._size += len(data)
        if self._size > _HIGH and not self._full:
            self._full = True
            cast(asyncio.Protocol, self._protocol).pause_writing()
        self._schedule()

    def write_eof(self) -> None:
        """Sends no more.

        Raises:
            OSError: the other end is gone already.
        """
        if self._peer._closing and self._outbox and not self._closing:
            raise OSError(errno.ENOTCONN, "the other end is gone")
        self._finishing = True
        self._schedule()

    def close(self) -> None:
        """Ends the connection once all is sent."""
        self._closing = True
        if self._finished:  # it has said before that it sends no more
            self._lose(None)
        self.write_eof()

    def abort(self) -> None:
        """Ends the connection now."""
        self._closing = True
        self._lose(None)
        self._loop.call_soon(self._peer._lose, ConnectionResetError("reset by the other end"))

    # --- what becomes of it -----------------------------------------------------------------------

    def cut(self) -> None:
        """Both ends learn that the connection is gone."""
        self._lose(ConnectionResetError("the connection was cut"))
        self._peer._lose(ConnectionResetError("the connection was cut"))

    def stall(self, seconds: float, *, lost: bool) -> None:
        """Nothing arrives for some time, in either direction; then all, or both learn of it."""
        until = self._loop.time() + seconds
        for end in (self, self._peer):
            end._stalled = until
            if not lost:
                end._schedule()
        if lost:
            self._loop.call_at(until, self.cut)

    @property
    def disturbed(self) -> bool:
        """Whether the connection has stalled: the other end may have missed bytes, or sent some that
        did not arrive.
        """
        return self._stalled > 0

    def _lose(self, error: Exception | None) -> None:
        if self._over:
            return
        self._over = self._closing = self._finishing = True
        self._network.open -= 1
        self._outbox.clear()
        self._size = 0
        if self._made:
            self._loop.call_soon(self._protocol.connection_lost, error)

    def _schedule(self) -> None:
        if self._scheduled or self._over or self._finished or not self._peer._made:
            return
        self._scheduled = True
        now = self._loop.time()
        if self._stalled > now:
            self._loop.call_at(self._stalled, self._deliver)
        elif self._network.random.random() < 0.7:
            self._loop.call_soon(self._deliver)
        else:
            self._loop.call_later(self._network.random.random() * _LATENCY, self._deliver)

    def _deliver(self) -> None:
        """Hands a piece of the sent bytes to the other end."""
        self._scheduled = False
        peer = self._peer
        if self._over or self._finished:
            return
        if self._stalled > self._loop.time():
            self._schedule()
            return
        if not peer.is_reading() and not peer._closing:
            return  # until it resumes
        if not self._network.fault(self):
            return
        if not self._outbox:
            self._deliver_end()
            return
        if peer._closing:  # these bytes will never be read
            self._loop.call_soon(self._lose, ConnectionResetError("the other end is closed"))
            return
        data = self._outbox.popleft()
        if self._network.random.random() < 0.3:
            at = self._network.random.randrange(len(data)) + 1
            if data[at:]:
                self._outbox.appendleft(data[at:])
            data = data[:at]
        self._size -= len(data)
        cast(asyncio.Protocol, peer._protocol).data_received(data)
        if self._full and self._size <= _LOW and not self._over:
            self._full = False
            cast(asyncio.Protocol, self._protocol).resume_writing()
        if self._outbox or self._finishing:
            self._schedule()

    def _deliver_end(self) -> None:
        if not self._finishing:
            return
        self._finished = True
        peer = self._peer
        if not peer._closing and not cast(asyncio.Protocol, peer._protocol).eof_received():
            peer.close()
        if self._closing:
            self._lose(None)
        elif peer._over:
            self._lose(ConnectionResetError("the other end is closed"))


@final
class Listener:
    """Replaces a listening server and its socket."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.sockets = ()

    def close(self) -> None:
        """Listens no longer."""
        self._network.listener = None

    async def wait_closed(self) -> None:
        """Returns at once."""


class NetworkLoop(SimulatedLoop):
    """A loop on which servers listen on the network of the run."""

    network: Network

    async def create_server(  # type: ignore[override]  # uvicorn asks for no more
        self, factory: Factory, *_: object, **__: object
    ) -> Listener:
        """Has new connections served by the protocols of a factory."""
        self.network.listener = factory
        return Listener(self.network)
