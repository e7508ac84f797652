"""Server-sent events with positions of the log as ids, so that a client goes on from there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import final

import anyio
import msgspec
from starlette.types import Message, Receive, Scope, Send

from ...engine.errors import DuologError, LogClosed
from ...engine.log.contract import EventLog
from ...engine.log.jsonl_export import to_jsonl
from ..agui.names import AguiEvent
from ..agui.stream import encode_sse, tell_agui
from ..follow import Follow, Step
from .responses import Problem

__all__ = ("EventStream", "agui_told", "records_told")

_encode = msgspec.json.Encoder().encode


@asynccontextmanager
async def records_told(
    steps: AbstractAsyncContextManager[AsyncIterator[Step]],
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Records, each with its updates; the last message of each has its position."""

    async def told(steps: AsyncIterator[Step]) -> AsyncIterator[bytes]:
        async for record, updates in steps:
            messages = [b"event: record\ndata: " + to_jsonl(record)]
            messages += [b"event: update\ndata: %b\n" % _encode(update) for update in updates]
            messages[-1] = b"id: %d\n" % record.position + messages[-1]
            yield b"\n".join(messages) + b"\n"

    async with steps as entered:
        yield told(entered)


@asynccontextmanager
async def agui_told(
    log: EventLog, session: str, after: int, follow: Follow
) -> AsyncIterator[AsyncIterator[bytes]]:
    """A session as events of AG-UI; the last message of each record has its position."""

    async def told(steps: AsyncIterator[tuple[int, list[AguiEvent]]]) -> AsyncIterator[bytes]:
        async for position, events in steps:
            yield b"".join([*map(encode_sse, events[:-1]), encode_sse(events[-1], position)])

    async with aclosing(tell_agui(log, session, after=after, follow=follow)) as steps:
        yield told(steps)


@final
class EventStream:
    """An answer that goes on until its client leaves or the server stops.

    Positions are the ``id`` of messages: a client that comes back with one as ``Last-Event-ID``
    gets all that it did not get before.

    Args:
        messages: what to tell, each some server-sent events; entered when the answer begins.
        stopping: set when the server stops.
        heartbeat: seconds of silence after which a comment is sent.
        others: the streams that are open; this one is among them while it is.
    """

    def __init__(
        self,
        messages: AbstractAsyncContextManager[AsyncIterator[bytes]],
        stopping: anyio.Event,
        heartbeat: float,
        others: set[EventStream],
    ) -> None:
        self._messages = messages
        self._stopping = stopping
        self._heartbeat = heartbeat
        self._others = others
        self._spoke = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers."""
        self._others.add(self)
        try:
            await self._answer(receive, send)
        finally:
            self._others.discard(self)

    async def _answer(self, receive: Receive, send: Send) -> None:
        async with self._messages as messages:
            start: Message = {
                "type": "http.response.start",
                "status": 200,
                "headers": [
                    (b"content-type", b"text/event-stream; charset=utf-8"),
                    (b"cache-control", b"no-store"),
                    (b"x-accel-buffering", b"no"),
                ],
            }
            await send(start)
            await self._say(send, b"retry: 1000\n\n")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_gone, receive, tasks.cancel_scope)
                tasks.start_soon(self._until_stopping, tasks.cancel_scope)
                tasks.start_soon(self._beat, send)
                await self._tell(messages, send)
                tasks.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _tell(self, messages: AsyncIterator[bytes], send: Send) -> None:
        try:
            async for message in messages:
                await self._say(send, message)
        except LogClosed:
            return  # the client finds out when it comes back
        except DuologError as error:
            told = _encode(Problem(error="stream-failed", message=str(error)))
            await self._say(send, b"event: error\ndata: " + told + b"\n\n")

    async def _say(self, send: Send, text: bytes) -> None:
        self._spoke = True
        await send({"type": "http.response.body", "body": text, "more_body": True})

    async def _beat(self, send: Send) -> None:
        while True:
            await anyio.sleep(self._heartbeat)
            if not self._spoke:
                await self._say(send, b": still here\n\n")
            self._spoke = False

    async def _until_gone(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async def _until_stopping(self, scope: anyio.CancelScope) -> None:
        await self._stopping.wait()
        scope.cancel()
