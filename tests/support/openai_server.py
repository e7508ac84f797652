"""A real HTTP server on loopback that speaks the chat-completions protocol of OpenAI.

It answers as a function says, streaming or not, with tool calls and usage, and misbehaves when it
is told to. It runs in a thread with a separate loop, so that a test, and programs that a test
starts, can all talk to it. Run as a program it answers at once, until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Body: TypeAlias = Mapping[str, Any]
Fault: TypeAlias = Literal[
    "429",  # too many requests, with Retry-After
    "500",  # the server failed
    "400",  # a request that is not valid
    "401",  # a wrong key
    "context",  # a request that is too long
    "timeout",  # no answer at all
    "truncated",  # the connection breaks in the middle of the body
    "malformed",  # a body that is not JSON
    "empty",  # JSON that is not a completion, or an empty stream
    "slow",  # the first byte takes a while, and then all is well
]
FAULTS: tuple[Fault, ...] = ("429", "500", "timeout", "truncated", "malformed", "slow")
"""Those that may go away when the call is made again."""

_ERRORS: Mapping[str, tuple[int, str, str]] = {
    "429": (429, "rate_limit_exceeded", "Rate limit reached, please slow down"),
    "500": (500, "server_error", "The server had an error"),
    "400": (400, "invalid_value", "Invalid value for 'messages'"),
    "401": (401, "invalid_api_key", "Incorrect API key provided: {key}"),
    "context": (
        400,
        "context_length_exceeded",
        "This model's maximum context length is 8 tokens. Please reduce the length",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The model's answer: text, tool calls as (name, arguments), and token counts."""

    text: str = ""
    tool_calls: Sequence[tuple[str, str]] = ()
    finish: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0
    reasoning_tokens: int = 0


def echo(body: Body) -> Answer:
    """Repeats the last message."""
    return Answer(text=f"You said: {body['messages'][-1]['content']}")


@dataclass
class OpenAIServer:
    """The server; see ``running``.

    Attributes:
        answer: what to say to a request.
        counts: whether the answers say how many tokens they took.
        fault: how to misbehave at the n-th request (from 0), if at all.
        retry_after: seconds that a 429 asks to wait.
        slow: seconds until the first byte of a slow answer.
        opened: no answer is given before it is set, by `fault` for example, which runs in the server's loop.
        requests: all bodies received, in order.
        headers: their headers, with lower-case names.
        faults: the faults committed, in order.
        busiest: how many requests were under way at once, at most.
        connections: how many clients are connected.
    """

    answer: Callable[[Body], Answer] = echo
    fault: Callable[[int, Body], Fault | None] = lambda number, body: None
    counts: bool = True
    retry_after: float = 0.01
    slow: float = 0.05
    opened: asyncio.Event | None = None
    requests: list[Body] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    busiest: int = 0
    connections: int = 0
    port: int = 0
    _busy: int = 0

    @property
    def url(self) -> str:
        """Base address, as ``api_base`` wants it."""
        return f"http://127.0.0.1:{self.port}/v1"

    @contextmanager
    def running(self) -> Iterator[OpenAIServer]:
        """Serves in a thread, until the end of the block."""
        loop = asyncio.new_event_loop()
        started = threading.Event()
        stop: asyncio.Future[None] = loop.create_future()

        def run() -> None:
            loop.run_until_complete(self._serve(started.set, stop))
            loop.close()

        thread = threading.Thread(target=run, name="openai-server")
        thread.start()
        try:
            started.wait(300)
            yield self
        finally:
            loop.call_soon_threadsafe(stop.set_result, None)
            thread.join()

    def until_left(self) -> None:
        """Waits until no client is connected. Then all that clients have sent is in ``requests``, though they
        may have been killed: what they sent last is read after their end."""
        with socket.create_connection(("127.0.0.1", self.port)) as behind_them:
            behind_them.shutdown(socket.SHUT_WR)
            behind_them.recv(1)
        while self.connections:
            time.sleep(0.001)

    async def serve(self, on_start: Callable[[], None]) -> None:
        """Serves until it is cancelled."""
        await self._serve(on_start, asyncio.get_running_loop().create_future())

    async def _serve(self, on_start: Callable[[], None], stop: asyncio.Future[None]) -> None:
        tasks: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            self.connections += 1
            try:
                await self._converse(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass  # the client has left
            except asyncio.CancelledError:
                pass  # the server stops
            finally:
                tasks.discard(task)
                self.connections -= 1
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()  # else the loop may end before it is

        server = await asyncio.start_server(connected, "127.0.0.1", self.port, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        on_start()
        try:
            await stop
        finally:
            server.close()
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the requests of one connection."""
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head[1:] if line)
            }
            body = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))))
            number = len(self.requests)
            self.requests.append(body)
            self.headers.append(headers)
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
            try:
                fault = self.fault(number, body)
                if fault is not None:
                    self.faults.append(fault)
                async for piece in self._reply(number, body, headers, fault):
                    writer.write(piece)
                    await writer.drain()
            finally:
                self._busy -= 1
            if fault == "truncated":
                return

    async def _reply(
        self, number: int, body: Body, headers: Mapping[str, str], fault: Fault | None
    ) -> AsyncIterator[bytes]:
        if fault is not None and fault in _ERRORS:
            status, code, message = _ERRORS[fault]
            key = headers.get("authorization", "").removeprefix("Bearer ")
            error = {"message": message.format(key=key), "type": code, "param": None, "code": code}
            extra = f"Retry-After: {self.retry_after}\r\n" if fault == "429" else ""
            yield _response(json.dumps({"error": error}).encode(), status, extra)
            return
        if fault == "timeout":
            await asyncio.sleep(3600)
        if fault == "slow":
            await asyncio.sleep(self.slow)
        if self.opened is not None:
            await self.opened.wait()
        answer = self.answer(body)
        if body.get("stream"):
            async for piece in self._stream(number, body, answer, fault):
                yield piece
            return
        completion = _completion(number, body, answer)
        if not self.counts:
            del completion["usage"]
        content = json.dumps(completion).encode()
        if fault == "malformed":
            content = content[: len(content) // 2]
        if fault == "empty":
            content = b"{}"
        response = _response(content)
        yield response[: -len(content) // 2] if fault == "truncated" else response

    async def _stream(
        self, number: int, body: Body, answer: Answer, fault: Fault | None
    ) -> AsyncIterator[bytes]:
        """Server-sent events, as a chunked body."""
        yield (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        pieces = [] if fault == "empty" else list(_chunks(number, body, answer))
        if not self.counts:
            pieces = [piece for piece in pieces if "usage" not in piece]
        for index, piece in enumerate(pieces):
            if index == len(pieces) // 2 and fault == "truncated":
                return
            text = json.dumps(piece)
            if index == len(pieces) // 2 and fault == "malformed":
                text = text[: len(text) // 2]
            yield _chunk(f"data: {text}\n\n".encode())
        yield _chunk(b"data: [DONE]\n\n")
        yield _chunk(b"")


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _response(content: bytes, status: int = 200, extra: str = "") -> bytes:
    head = (
        f"HTTP/1.1 {status} {'OK' if status == 200 else 'Error'}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n{extra}\r\n"
    )
    return head.encode() + content


def usage(body: Body, answer: Answer) -> tuple[int, int]:
    """Tokens of a prompt and its completion, from the answer if it has them, else a token per word."""
    prompt, completion = answer.prompt_tokens, answer.completion_tokens
    if prompt is None:
        prompt = sum(len((message.get("content") or "").split()) for message in body["messages"])
    if completion is None:
        written = [answer.text, *(arguments for _, arguments in answer.tool_calls)]
        completion = sum(len(text.split()) for text in written)
    return prompt, completion


def _usage(body: Body, answer: Answer) -> dict[str, Any]:
    prompt, completion = usage(body, answer)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens},
    }


def _calls(number: int, answer: Answer) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{number}_{index}",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for index, (name, arguments) in enumerate(answer.tool_calls)
    ]


def _finish(answer: Answer) -> str:
    return answer.finish or ("tool_calls" if answer.tool_calls else "stop")


def _completion(number: int, body: Body, answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.tool_calls:
        message["tool_calls"] = _calls(number, answer)
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": _finish(answer),
            }
        ],
        "usage": _usage(body, answer),
    }


def _chunks(number: int, body: Body, answer: Answer) -> Iterator[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**head, "choices": [choice]}

    head = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": body["model"],
    }
    yield chunk({"role": "assistant", "content": ""})
    for start in range(0, len(answer.text), 7):
        yield chunk({"content": answer.text[start : start + 7]})
    for index, call in enumerate(_calls(number, answer)):
        arguments = call["function"]["arguments"]
        first = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        yield chunk({"tool_calls": [first]})
        for start in range(0, len(arguments), 7):
            part = {"index": index, "function": {"arguments": arguments[start : start + 7]}}
            yield chunk({"tool_calls": [part]})
    yield chunk({}, _finish(answer))
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": _usage(body, answer)}


if __name__ == "__main__":
    at_once = OpenAIServer()
    asyncio.run(at_once.serve(lambda: print(at_once.url, flush=True)))  # noqa: T201
