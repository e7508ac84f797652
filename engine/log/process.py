"""This process: its forks, which have neither the threads nor the locks of a log, and its processors."""

from __future__ import annotations

import ctypes
import os
from typing import Final, final
from weakref import WeakSet

from ..errors import LogClosed

__all__ = ("CURRENT", "OwnProcess", "cores", "keep_in_forks")

CURRENT: Final = [os.getpid()]
"""The number of this process, renewed in forks: asking the system takes longer than a check may."""


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):  # only some systems have it
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@final
class OwnProcess:
    """The process that made this."""

    __slots__ = ("_pid",)

    def __init__(self) -> None:
        self._pid = CURRENT[0]

    @property
    def forked(self) -> bool:
        """Whether this is a fork of it."""
        return CURRENT[0] != self._pid

    def check(self, url: str) -> None:
        """Refuses to work in a fork of the process.

        Raises:
            LogClosed: this is another process.
        """
        if self.forked:
            raise LogClosed(
                f"{url} was opened in process {self._pid}, and this is process {CURRENT[0]}, which "
                "was forked from it: open the log in each process that uses it, after the fork"
            )


def keep_in_forks(*things: object) -> None:
    """Keeps forks of this process from freeing objects that belong to this process.

    In a fork, an object that waits for a thread when it closes would wait for ever, even if the
    fork never used it. A database connection would act on locks that it does not hold, or wait for
    a thread that was inside it at the fork. The system frees these objects when the fork ends.
    """
    for thing in things:
        _kept.add(thing)


def _after_fork() -> None:
    CURRENT[0] = os.getpid()
    for thing in tuple(_kept):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


# A process has one list of what to do after a fork, from which nothing can be taken again.
_kept: Final[WeakSet[object]] = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
