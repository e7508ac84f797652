"""The response that streams events: its contents, its waiting for slow clients, and its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup
from duolog.engine.errors import LogClosed, LogUnavailable
from duolog.interop.http.sse import EventStream
from sse_starlette import ServerSentEvent
from starlette.types import Message

SCOPE = {"type": "http", "method": "GET", "path": "/", "headers": []}


class Connection:
    """A client that reads as much as it wants to, and leaves when it wants to."""

    def __init__(self, reads: int = 1000) -> None:
        self.reads = reads
        self.sent: list[Message] = []
        self.left = anyio.Event()
        self.full = anyio.Event()

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if len(self.sent) >= self.reads:
            self.full.set()
            await anyio.sleep_forever()
        self.sent.append(message)

    @property
    def text(self) -> str:
        bodies = [m["body"] for m in self.sent if m["type"] == "http.response.body"]
        return b"".join(bodies).decode()

    @property
    def complete(self) -> bool:
        return not self.sent[-1].get("more_body", True)


class Source:
    """Events without end, or up to an error; counts those that were taken."""

    def __init__(self, error: Exception | None = None, count: int = 10**9) -> None:
        self.error = error
        self.count = count
        self.taken = 0
        self.open = False

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[ServerSentEvent]]:
        self.open = True
        async with anyio.create_task_group() as tasks:  # as a subscription may have
            yield self._each(tasks)
            tasks.cancel_scope.cancel()
        self.open = False

    async def _each(self, tasks: TaskGroup) -> AsyncIterator[ServerSentEvent]:
        for number in range(self.count):
            self.taken += 1
            yield ServerSentEvent(f"e{number}", id=str(number), sep="\n")
        if self.error is not None:
            raise self.error
        await anyio.sleep_forever()


def stream(source: Source, stopping: anyio.Event | None = None) -> EventStream:
    return EventStream(source.events(), stopping or anyio.Event(), 60.0, set())


async def test_it_says_when_to_come_back_and_ends_where_the_log_is_closed() -> None:
    client, source = Connection(), Source(LogClosed("closed"), count=2)
    with anyio.fail_after(120):
        await stream(source)(SCOPE, client.receive, client.send)
    assert client.text == "retry: 1000\n\nid: 0\ndata: e0\n\nid: 1\ndata: e1\n\n"
    assert client.complete
    headers = dict(client.sent[0]["headers"])
    assert headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert headers[b"cache-control"] == b"no-store"


async def test_an_error_of_the_log_is_the_last_event() -> None:
    client, source = Connection(), Source(LogUnavailable("no disk"), count=0)
    with anyio.fail_after(120):
        await stream(source)(SCOPE, client.receive, client.send)
    assert 'event: error\ndata: {"error":"stream-failed","message":"no disk"' in client.text
    assert client.complete


async def test_no_more_is_taken_than_the_client_reads() -> None:
    client, source = Connection(reads=5), Source()
    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream(source), SCOPE, client.receive, client.send)
            await client.full.wait()
            await anyio.wait_all_tasks_blocked()
            assert source.taken <= 5
            client.left.set()
    assert not source.open


async def test_it_ends_when_the_client_leaves_in_the_middle_of_an_event() -> None:
    client, source = Connection(reads=3), Source()
    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream(source), SCOPE, client.receive, client.send)
            await client.full.wait()
            client.left.set()
    assert not source.open
    assert len(client.sent) == 3


async def test_it_ends_in_whole_when_the_server_stops() -> None:
    client, source, stopping = Connection(), Source(count=1), anyio.Event()
    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream(source, stopping), SCOPE, client.receive, client.send)
            await anyio.wait_all_tasks_blocked()
            stopping.set()
    assert client.complete
    assert not source.open


async def test_a_request_for_the_head_alone_gets_no_stream() -> None:
    client, source = Connection(), Source()
    with anyio.fail_after(120):
        await stream(source)(SCOPE | {"method": "HEAD"}, client.receive, client.send)
    assert client.text == ""
    assert client.complete
