"""Which simulated process code belongs to: several share one event loop, as their machines share a disk.

A task and whatever it begins belong to the process of who began it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Final

from ....engine.log import process

__all__ = ("as_process", "current_process", "forked", "simulated_forks")

_process: ContextVar[int] = ContextVar("duolog_simulated_process", default=0)
_OWN: Final = 1
_FORK: Final = 2

_pid = [_OWN]


def current_process() -> int:
    """The number of the process that code runs in."""
    return _process.get()


@contextmanager
def as_process(number: int) -> Iterator[None]:
    """What is done in the block is done by a process."""
    before = _process.set(number)
    try:
        yield
    finally:
        _process.reset(before)


@contextmanager
def forked() -> Iterator[None]:
    """What is done in the block is done in a fork of the process. It must not wait for anything."""
    _pid[0] = _FORK
    try:
        yield
    finally:
        _pid[0] = _OWN


@contextmanager
def simulated_forks() -> Iterator[None]:
    """Has logs that are opened meanwhile ask here which process they are in."""
    before = vars(process)["os"]
    vars(process)["os"] = SimpleNamespace(getpid=lambda: _pid[0])
    try:
        yield
    finally:
        vars(process)["os"] = before
