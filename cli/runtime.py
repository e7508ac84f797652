"""Runs a command's coroutine, with the garbage collector set for large logs."""

from __future__ import annotations

import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from signal import Signals

__all__ = ("collect_rarely", "requests_to_end", "run")

_T = TypeVar("_T")


def collect_rarely() -> None:
    """Runs the garbage collector less often: a large log makes millions of objects that stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@contextmanager
def requests_to_end(*, hang_up: bool = False) -> Iterator[AsyncIterator[Signals]]:
    """Receives the signals that ask the program to end, while the block runs.

    On Windows none arrives: Ctrl-C interrupts the program itself there.

    Args:
        hang_up: also the one that says that the terminal was closed.
    """
    if sys.platform == "win32":
        yield _no_signals()
    else:
        import signal

        import anyio

        more = (signal.SIGHUP,) if hang_up else ()
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, *more) as signals:
            yield signals


async def _no_signals() -> AsyncIterator[Signals]:
    import anyio

    await anyio.sleep_forever()
    yield  # type: ignore[misc]  # never reached: it makes this function a generator


def run(main: Callable[[], Awaitable[_T]]) -> _T:
    """Runs a coroutine to its end."""
    import anyio

    return anyio.run(main)
