"""A bad network on this machine: a TCP proxy that slows connections down, cuts them, and lets them hang."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

__all__ = ("BadNetwork", "bad_network")

_PIECE = 4096


class BadNetwork:
    """Between a client and a server, both on this machine.

    Attributes:
        port: that clients connect to.
        rate: bytes a second of each connection and direction; None for as many as there are.
        break_after: bytes after which the next answers break off, one for each connection; then no more.
        connections: how many clients have connected.
    """

    def __init__(self, target: int) -> None:
        self.port = 0
        self.rate: float | None = None
        self.break_after: list[int] = []
        self.connections = 0
        self._target = target
        self._flowing = anyio.Event()
        self._flowing.set()
        self._down = False
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Ends all connections, and refuses others."""
        self._down = True
        self.drop()

    def drop(self) -> None:
        """Ends all connections; others can be made."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    def stall(self) -> None:
        """Passes nothing on from now on, and ends nothing: nobody is told."""
        self._flowing = anyio.Event()

    def mend(self) -> None:
        """Repairs the network. Stalled connections resume."""
        self._down = False
        self._flowing.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves a connection."""
        self.connections += 1
        if self._down:
            writer.transport.abort()
            return
        inner, outer = await asyncio.open_connection("127.0.0.1", self._target)
        ends = {writer, outer}
        self._writers |= ends
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pass(reader, outer))
                tasks.create_task(self._pass(inner, writer, breaks=True))
        except* OSError:
            pass  # one of the two has gone
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, breaks: bool = False
    ) -> None:
        left: float = self.break_after.pop(0) if breaks and self.break_after else float("inf")
        while piece := await source.read(_PIECE):
            await self._flowing.wait()
            if self.rate is not None:
                await anyio.sleep(len(piece) / self.rate)
            sink.write(piece[: int(min(left, len(piece)))])
            await sink.drain()
            left -= len(piece)
            if left <= 0:
                raise ConnectionResetError("the connection breaks here")
        raise ConnectionResetError("one side has ended it")


@asynccontextmanager
async def bad_network(target: int) -> AsyncIterator[BadNetwork]:
    """A network before a server that listens on a port of this machine."""
    network = BadNetwork(target)
    server = await asyncio.start_server(network.serve, "127.0.0.1", 0)
    network.port = server.sockets[0].getsockname()[1]
    try:
        yield network
    finally:
        server.close()
        network.mend()
        network.cut()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.wait_closed(), 5)
