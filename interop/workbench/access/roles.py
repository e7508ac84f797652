"""Which role an endpoint is for; others are refused as if it were not there, or with a reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ...http.sse import EventStream
from .guard import identity_of

__all__ = ("Answer", "Endpoint", "operators", "readers")

Answer: TypeAlias = Response | EventStream
Endpoint: TypeAlias = Callable[[Request], Awaitable[Answer]]


def readers(endpoint: Endpoint) -> Endpoint:
    """An endpoint for those to whom all sessions are open: viewers and operators."""

    async def guarded(request: Request) -> Answer:
        if not identity_of(request).reads_log:
            raise HTTPException(403, "this is not open to participants")
        return await endpoint(request)

    return guarded


def operators(endpoint: Endpoint) -> Endpoint:
    """An endpoint for operators."""

    async def guarded(request: Request) -> Answer:
        if identity_of(request).role != "operator":
            raise HTTPException(403, "this is for operators of the workbench")
        return await endpoint(request)

    return guarded
