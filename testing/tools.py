"""Small tools for the checks of a log: assertions, expected errors, collected items."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable
from typing import TypeVar

from ..engine.events import MessageSent
from ..engine.log.contract import EventLog
from ..engine.records import Draft, Record

__all__ = ("appended", "collect", "message", "raises", "require")

T = TypeVar("T")
E = TypeVar("E", bound=Exception)


def require(condition: bool, promise: str) -> None:
    """Asserts a condition, also under ``python -O``; ``promise`` names the broken promise."""
    if not condition:
        raise AssertionError(promise)


async def raises(error: type[E], call: Awaitable[object]) -> E:
    """Asserts that a call raises an error, and returns the error."""
    try:
        result = await call
    except error as raised:
        return raised
    raise AssertionError(f"{error.__name__} must be raised, and {result!r} was returned")


async def collect(items: AsyncIterable[T]) -> list[T]:
    """All items of an asynchronous iterator."""
    return [item async for item in items]


def message(text: str, caller_id: str | None = None) -> Draft:
    """A draft of a message from a person."""
    return Draft(MessageSent(text=text), "ann", "human", 1.0, caller_id)


async def appended(
    log: EventLog, session: str, count: int, *, expected_version: int | None = None
) -> list[Record]:
    """Appends a number of messages to a session's trace at once."""
    drafts = [message(f"{session} {number}") for number in range(count)]
    return await log.append(session, drafts, expected_version=expected_version)
