"""Which simulated process code belongs to: several share one event loop, as their machines share a disk.

A task and all that it begins belong to the process of the code that started the task.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from ....engine.log.process import CURRENT

__all__ = ("as_process", "current_process", "forked")

_process: ContextVar[int] = ContextVar("duolog_simulated_process", default=0)
_FORK: Final = -1  # no process has this number


def current_process() -> int:
    """The number of the process that code runs in."""
    return _process.get()


@contextmanager
def as_process(number: int) -> Iterator[None]:
    """Runs the block as a process."""
    before = _process.set(number)
    try:
        yield
    finally:
        _process.reset(before)


@contextmanager
def forked() -> Iterator[None]:
    """Runs the block in a fork of the process. The block must not wait for anything."""
    before, CURRENT[0] = CURRENT[0], _FORK
    try:
        yield
    finally:
        CURRENT[0] = before
