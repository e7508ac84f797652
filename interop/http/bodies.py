"""Receives the bodies of requests: each within its limit, and all together within another."""

from __future__ import annotations

from typing import Final, final

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from .limits import HttpLimits

__all__ = ("CLOSE", "RETRY", "RequestBodies")

CLOSE: Final = {"Connection": "close"}
RETRY: Final = {"Retry-After": "1", "Connection": "close"}

_PATIENCE: Final = 8  # times the limit, of a body that is too large, are read and thrown away


@final
class RequestBodies:
    """Receives bodies, and counts the bytes of all that are not released."""

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._buffered = 0

    async def read(self, request: Request, most: int) -> bytes:
        """The body of a request; it is to be released when it has been taken.

        Args:
            request: of the client.
            most: bytes that it may have.

        Raises:
            HTTPException: it is too large, comes too late, or too much is being received at once.
        """
        limits = self._limits
        too_large = HTTPException(413, f"a body has at most {most} bytes", CLOSE)
        length = request.headers.get("content-length", "0")
        if int(length) > _PATIENCE * most:
            raise too_large
        parts: list[bytes] = []
        size = kept = 0
        try:
            with anyio.fail_after(limits.patience):
                async for part in request.stream():
                    size += len(part)
                    if size > _PATIENCE * most:
                        break
                    if size > most:  # read on: who is still sending may not look up
                        continue
                    kept = size
                    self._buffered += len(part)
                    if self._buffered > limits.buffered:
                        raise HTTPException(503, "too much is being received at once", RETRY)
                    parts.append(part)
            if size > most:
                raise too_large
        except BaseException as error:
            self._buffered -= kept
            if isinstance(error, TimeoutError):
                late = f"the body did not arrive within {limits.patience:g} seconds"
                raise HTTPException(408, late, CLOSE) from None
            if isinstance(error, ClientDisconnect):
                raise HTTPException(400, "the client has gone", CLOSE) from None
            raise
        return b"".join(parts)

    def release(self, data: bytes) -> None:
        """A body has been taken."""
        self._buffered -= len(data)
