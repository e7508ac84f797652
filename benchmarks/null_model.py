"""A server of models on loopback that answers at once, for programs that can only ask a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, TypeAlias

__all__ = ("Reply", "null_model")

Reply: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Gives the content, and perhaps the tool calls, of the message that answers a request."""


@contextmanager
def null_model(reply: Reply) -> Iterator[str]:
    """The base URL of a server that answers chat completions with what ``reply`` gives, until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            message = {"role": "assistant", "content": None} | reply(asked)
            reason = "tool_calls" if "tool_calls" in message else "stop"
            completion = {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": "null",
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
            body = json.dumps(completion).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
