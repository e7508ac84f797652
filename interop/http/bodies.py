"""Receives the bodies of requests: each within its limit, and all together within another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from ...engine.budget import Budget

__all__ = ("CLOSE", "RETRY", "RequestBodies", "receive")

CLOSE: Final = {"Connection": "close"}
RETRY: Final = {"Retry-After": "1", "Connection": "close"}

_PATIENCE: Final = 8  # times the limit, of a body that is too large, are read and thrown away


@final
class RequestBodies:
    """Receives bodies, and counts the bytes of all that are not released.

    Args:
        most: bytes of all bodies that are held at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._buffered = 0

    async def read(self, request: Request, budget: Budget) -> bytes:
        """The body of a request; it is to be released when it has been taken.

        Args:
            request: the request of the client.
            budget: what it may take.

        Raises:
            HTTPException: it is too large, comes too late, or too much is being received at once.
        """
        kept = 0

        def count(size: int) -> None:
            nonlocal kept
            kept += size
            self._buffered += size
            if self._buffered > self._most:
                raise HTTPException(503, "too much is being received at once", RETRY)

        try:
            return await receive(request, budget, count)
        except BaseException:
            self._buffered -= kept
            raise

    def release(self, data: bytes) -> None:
        """A body has been taken."""
        self._buffered -= len(data)


async def receive(
    request: Request, budget: Budget, count: Callable[[int], None] = lambda size: None
) -> bytes:
    """The body of a request.

    Args:
        request: the request of the client.
        budget: what it may take.
        count: called with the size of each part that is kept.

    Raises:
        HTTPException: it is too large, or comes too late.
    """
    most = budget.size
    too_large = HTTPException(413, f"a body has at most {most:,} bytes", CLOSE)
    length = request.headers.get("content-length", "0")
    if int(length) > _PATIENCE * most:
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        with anyio.fail_after(budget.seconds):
            async for part in request.stream():
                size += len(part)
                if size > _PATIENCE * most:
                    break
                if size > most:  # read on: a client that still sends may read no answer
                    continue
                count(len(part))
                parts.append(part)
    except TimeoutError:
        late = f"the body did not arrive within {budget.seconds:g} seconds"
        raise HTTPException(408, late, CLOSE) from None
    except ClientDisconnect:
        raise HTTPException(400, "the client has gone", CLOSE) from None
    if size > most:
        raise too_large
    return b"".join(parts)
