"""Server-sent events whose ids are positions of the log, so that a client can resume after any of them.

The response itself, with its keep-alive comments, is that of the library ``sse-starlette``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Final, final

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectSendStream
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from ...engine.errors import DuologError, LogClosed
from ...engine.log.contract import EventLog
from ...engine.log.exchange.jsonl_export import to_jsonl
from ...engine.plugins import PluginCall
from ..agui.stream import follow_agui
from ..follow import Follow, Step
from .responses import HttpProblem

__all__ = ("EventStream", "agui_events", "record_events")

_RETRY: Final = 1000  # milliseconds after which a client connects again
_SEPARATOR: Final = "\n"
_encode = msgspec.json.Encoder().encode


def _keep_alive() -> ServerSentEvent:
    return ServerSentEvent(comment="keep-alive", sep=_SEPARATOR)


@asynccontextmanager
async def record_events(
    steps: AbstractAsyncContextManager[AsyncIterator[Step]],
) -> AsyncIterator[AsyncIterator[ServerSentEvent]]:
    """Records, each followed by its updates; the last event of each has its position as id."""

    async def encoded(steps: AsyncIterator[Step]) -> AsyncIterator[ServerSentEvent]:
        async for record, updates in steps:
            last = len(updates)
            for number, part in enumerate((record, *updates)):
                position = record.position if number == last else None
                if number:
                    yield _event(_encode(part), "update", position)
                else:
                    yield _event(to_jsonl(record).rstrip(), "record", position)

    async with steps as entered:
        yield encoded(entered)


@asynccontextmanager
async def agui_events(
    log: EventLog, session: str, after: int, follow: Follow
) -> AsyncIterator[AsyncIterator[ServerSentEvent]]:
    """A session as events of AG-UI; the last event of each record has its position as id."""
    async with aclosing(follow_agui(log, session, after=after, follow=follow)) as steps:
        yield (
            event async for position, events in steps for event in _with_position(events, position)
        )


@final
class EventStream:
    """A response that continues until its client leaves or the server stops.

    A slow client holds up its own stream only: an event is taken from ``events`` when the one before
    it was sent.

    Args:
        events: the events to send; entered when the response begins.
        stopping: set when the server stops.
        heartbeat: seconds between messages that keep the connection alive.
        others: the streams that are open; this one is among them while it is.
        beat: makes such a message: a comment, which clients do not notice, unless it is another.
    """

    def __init__(
        self,
        events: AbstractAsyncContextManager[AsyncIterator[ServerSentEvent]],
        stopping: anyio.Event,
        heartbeat: float,
        others: set[EventStream],
        beat: Callable[[], ServerSentEvent] = _keep_alive,
    ) -> None:
        self._events = events
        self._stopping = stopping
        self._heartbeat = heartbeat
        self._others = others
        self._beat = beat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Responds."""
        self._others.add(self)
        try:
            await self._respond(scope, receive, send)
        finally:
            self._others.discard(self)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending, sent = anyio.create_memory_object_stream[ServerSentEvent]()
        response = EventSourceResponse(
            sent, ping=self._heartbeat, ping_message_factory=self._beat, sep=_SEPARATOR
        )

        async def respond() -> None:
            await response(scope, receive, send)
            tasks.cancel_scope.cancel()

        async with self._events as events, sent, sending, anyio.create_task_group() as tasks:
            tasks.start_soon(respond)
            tasks.start_soon(self._until_stopping, tasks.cancel_scope)
            await _send_all(events, sending)
        if response.active:  # it was cancelled, and the client has not left
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _until_stopping(self, scope: anyio.CancelScope) -> None:
        await self._stopping.wait()
        scope.cancel()


async def _send_all(
    events: AsyncIterator[ServerSentEvent], sending: MemoryObjectSendStream[ServerSentEvent]
) -> None:
    """Sends all events, and ends the stream; errors of the log are sent as events too."""
    async with sending:
        await sending.send(ServerSentEvent(retry=_RETRY, sep=_SEPARATOR))
        try:
            with PluginCall("the source of a stream"):
                async for event in events:
                    await sending.send(event)
        except anyio.BrokenResourceError:
            return  # the client left while an event was being sent
        except LogClosed:
            return  # the client learns of it when it connects again
        except DuologError as error:
            problem = HttpProblem(error="stream-failed", message=str(error))
            await sending.send(_event(_encode(problem), "error"))


def _with_position(
    events: Sequence[Mapping[str, object]], position: int
) -> Iterator[ServerSentEvent]:
    for event in events[:-1]:
        yield _event(_encode(event))
    yield _event(_encode(events[-1]), position=position)


def _event(data: bytes, name: str | None = None, position: int | None = None) -> ServerSentEvent:
    ident = None if position is None else str(position)
    return ServerSentEvent(data.decode(), event=name, id=ident, sep=_SEPARATOR)
