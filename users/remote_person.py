"""A real person elsewhere, such as at a page in a browser, whose acts arrive as calls.

``Person`` reads typed lines. Here a program passes on the person's acts, one call at a time, and
learns the result of each.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar, final

import anyio

from ..engine.errors import SessionClosedError, SessionInterrupted
from ..engine.session.context import ActorContext

__all__ = ("RemotePerson",)

T = TypeVar("T")

_LONG: Final = 3600.0
"""Seconds of one wait: a person who thinks is never taken for one who waits."""


class _Call(Generic[T]):
    """Something to do through the context, and where its caller waits."""

    __slots__ = ("future", "work")

    def __init__(
        self, work: Callable[[ActorContext], Awaitable[T]], future: asyncio.Future[T]
    ) -> None:
        self.work = work
        self.future = future

    async def carry_out(self, context: ActorContext) -> None:
        """Does it, and tells the caller; an error is the caller's."""
        if self.future.done():  # its caller has gone
            return
        try:
            found = await self.work(context)
        except BaseException as error:
            ends = not isinstance(error, Exception)  # the session has ended, or is called off
            if not self.future.done():
                self.future.set_exception(SessionClosedError(context.session) if ends else error)
            if ends or isinstance(error, SessionInterrupted):
                raise
        else:
            if not self.future.done():
                self.future.set_result(found)


@final
class RemotePerson:
    """The actor of a person who is elsewhere; its ``live`` is a ``Player``'s actor.

    Attributes:
        trouble: why a model of the other participants cannot be asked; empty if it can. It is asked again
            when the person does something.
    """

    def __init__(self) -> None:
        self.trouble = ""
        self._calls: deque[_Call[Any]] = deque()
        self._waiting: anyio.CancelScope | None = None
        self._again = anyio.Event()
        self._over = False
        self._left = ""
        self._session = ""

    async def live(self, context: ActorContext) -> None:
        """Does what is called for, until the session ends or the person leaves it."""
        self._session = context.session
        try:
            while True:
                context.look()
                if self._left:
                    context.interrupt(self._left)
                if self._calls:
                    await self._calls.popleft().carry_out(context)
                else:
                    with anyio.CancelScope() as self._waiting:
                        await context.news(within=_LONG)
                    self._waiting = None
        finally:
            self.end()

    async def call(self, work: Callable[[ActorContext], Awaitable[T]]) -> T:
        """Has something done through the context, as soon as its actor comes to it.

        Args:
            work: is given the context, which has looked at all that there is.

        Raises:
            SessionClosedError: the session ended first.
        """
        call: _Call[T] = _Call(work, asyncio.get_running_loop().create_future())
        if self._over:
            self._refuse(call)
        else:
            self._calls.append(call)
            if self._waiting is not None:
                self._waiting.cancel()
        found = await call.future
        self._ask_again()
        return found

    def end(self) -> None:
        """Refuses what is called for from now on: the session does not run any more."""
        self._over = True
        while self._calls:
            self._refuse(self._calls.popleft())

    def leave(self, why: str) -> None:
        """Has the person leave the session, which stays open."""
        self._left = why
        if self._waiting is not None:
            self._waiting.cancel()

    async def outage(self, why: str) -> bool:
        """Says that a model of the others cannot be asked, and waits until the person does something.
        See ``Models``.
        """
        self.trouble = why
        await self._again.wait()
        return True

    def _ask_again(self) -> None:
        self.trouble = ""
        self._again.set()
        self._again = anyio.Event()

    def _refuse(self, call: _Call[T]) -> None:
        if not call.future.done():
            call.future.set_exception(SessionClosedError(self._session))
