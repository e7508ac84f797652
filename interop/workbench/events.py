"""Event streams of the workbench: messages as JSON, whose ids are positions of the log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import msgspec
from sse_starlette import ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request

from ...engine.errors import InvalidInput
from ..http.sse import EventStream
from .state import Workbench

__all__ = ("message", "position_of", "streaming")

_encode = msgspec.json.Encoder().encode


def message(name: str, data: object, position: int | None = None) -> ServerSentEvent:
    """A message; after one with a position, a client that comes back resumes there."""
    ident = None if position is None else str(position)
    return ServerSentEvent(_encode(data).decode(), event=name, id=ident, sep="\n")


def position_of(request: Request) -> int:
    """The position after which a stream begins: the one that the client has reached.

    Raises:
        InvalidInput: it is no number.
    """
    text = request.headers.get("last-event-id") or request.query_params.get("since", "0")
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise InvalidInput(f"a position is a whole number, not {text[:40]!r}")
    return int(text)


def streaming(workbench: Workbench, messages: AsyncIterator[ServerSentEvent]) -> EventStream:
    """The response that sends messages until the client leaves or the server stops.

    While nothing happens it sends a ``beat`` now and then: a page that hears none knows that its
    connection is dead, of which a browser says nothing.

    Raises:
        HTTPException: too many streams are open.
    """
    if len(workbench.streams) >= workbench.http.streams:
        raise HTTPException(503, "as many streams as may be are open already", {"Retry-After": "1"})

    @asynccontextmanager
    async def entered() -> AsyncIterator[AsyncIterator[ServerSentEvent]]:
        async with aclosing(messages) as iterator:  # type: ignore[type-var]
            yield iterator

    every = workbench.limits.heartbeat

    def beat() -> ServerSentEvent:
        return message("beat", {"every": every})

    return EventStream(entered(), workbench.stopping, every, workbench.streams, beat)
