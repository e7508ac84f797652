"""HTTP/1.1 on one connection: uvicorn's protocol on the parser httptools, with a bound on heads.

The parser takes heads of any size, so here it is counted how much came since a request last got on.
"""

from __future__ import annotations

from typing import Final, final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

__all__ = ("HttpProtocol",)

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
