"""An event loop whose time jumps to the next timer as soon as nothing else is to be done."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import ParamSpec, TypeVar

import anyio

P = ParamSpec("P")
T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Waits take no time at all; ``time`` says how long they would have taken."""

    def __init__(self) -> None:
        super().__init__(_JumpingSelector(self))
        self.jumped = 0.0

    def time(self) -> float:
        """Seconds since the loop began, waits only."""
        return self.jumped


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout:
            self._loop.jumped += timeout
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(timeout and 0)
        return ready


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Runs a coroutine in virtual time."""
    return anyio.run(main, backend_options={"loop_factory": VirtualLoop})


def in_virtual_time(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Has a test run in virtual time, in which a busy machine is never late. For tests that use no threads:
    time passes whenever the loop itself has nothing to do."""

    @wraps(test)
    def run_it(*arguments: P.args, **options: P.kwargs) -> None:
        run(partial(test, *arguments, **options))

    return run_it
