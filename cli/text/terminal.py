"""The terminal: a console of the right width, and whether it is still there."""

from __future__ import annotations

import os
import select
import sys

from rich.console import Console

__all__ = ("is_closed", "screen")

_PIPE_WIDTH = 100


def screen() -> Console:
    """A console on the standard output; without a terminal, of COLUMNS columns or else 100."""
    known = "COLUMNS" in os.environ or sys.stdout.isatty()
    return Console(highlight=False, markup=False, emoji=False, width=None if known else _PIPE_WIDTH)


def is_closed() -> bool:
    """Whether the terminal on the standard input was closed, which a program may get no signal for."""
    if sys.platform == "win32":
        return False  # a program ends with its console there
    poll = select.poll()
    poll.register(sys.__stdin__ or 0, 0)
    return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))
