"""The body of a request: JSON of a limited size, that arrives in time."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

from ....engine.budget import Budget
from ...http.bodies import CLOSE, receive

__all__ = ("read_body",)

_VALUES: Final = 1 << 16


async def read_body(request: Request, most: int) -> bytes:
    """The body of a request.

    Args:
        request: what is posted.
        most: bytes that it may have.

    Raises:
        HTTPException: it is not JSON, too large, or late.
        TooLarge: it has too many values.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, "the body has to be application/json", CLOSE)
    budget = Budget(size=most, objects=_VALUES)
    data = await receive(request, budget)
    budget.check_json(data)
    return data
