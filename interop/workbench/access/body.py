"""The body of a request: JSON of a limited size, that arrives in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from ....engine.budget import Budget
from ....engine.errors import InvalidInput
from ...http.bodies import CLOSE, receive

__all__ = ("decoded_body", "read_body")

T = TypeVar("T")

_VALUES: Final = 1 << 16


def _budget(most: int) -> Budget:
    return Budget(size=most, objects=_VALUES)


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
        raise HTTPException(415, "the body must be application/json", CLOSE)
    budget = _budget(most)
    data = await receive(request, budget)
    budget.check_json(data)
    return data


async def decoded_body(request: Request, decode: Callable[[bytes], T], most: int) -> T:
    """The body of a request, decoded; see ``read_body``.

    Raises:
        InvalidInput: it is not what the decoder takes.
    """
    data = await read_body(request, most)
    try:
        return _budget(most).decoded(data, decode)
    except InvalidInput as error:
        raise type(error)(f"cannot read the request: {error}") from None
