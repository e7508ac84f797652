"""Runs a command's coroutine, with the garbage collector set for large logs."""

from __future__ import annotations

import gc
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

__all__ = ("collect_rarely", "cores", "run")

_T = TypeVar("_T")


def collect_rarely() -> None:
    """Runs the garbage collector less often: a large log makes millions of objects that stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(main: Callable[[], Awaitable[_T]]) -> _T:
    """Runs a coroutine to its end."""
    import anyio

    return anyio.run(main)
