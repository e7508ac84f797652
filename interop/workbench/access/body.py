"""The body of a request: JSON of a limited size, that arrives in time."""

from __future__ import annotations

from typing import Final

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

__all__ = ("read_body",)

_PATIENCE: Final = 20.0  # seconds
_CLOSE: Final = {"Connection": "close"}


async def read_body(request: Request, most: int) -> bytes:
    """The body of a request.

    Args:
        request: what is posted.
        most: bytes that it may have.

    Raises:
        HTTPException: it is no JSON, too large, or late.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "the body has to be application/json", _CLOSE)
    parts: list[bytes] = []
    size = 0
    try:
        with anyio.fail_after(_PATIENCE):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise HTTPException(413, f"a body has at most {most:,} bytes", _CLOSE)
                parts.append(part)
    except TimeoutError:
        late = f"the body did not arrive within {_PATIENCE:g} seconds"
        raise HTTPException(408, late, _CLOSE) from None
    except ClientDisconnect:
        raise HTTPException(400, "the client has gone", _CLOSE) from None
    return b"".join(parts)
