"""Ends a process whose run does not end, and shows the line at which it hangs.

The loop counts its steps, and notices when nothing can run. The remaining case is code that never
returns to the loop. Only another thread can see that.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, final

__all__ = ("PATIENCE", "Watch", "watchdog")

PATIENCE: Final = 120.0
"""Seconds for which a run may last; it takes a twentieth of one, a hundred times that on a machine that
is busy."""

_EXIT: Final = 70


@final
class Watch:
    """The state of the current run."""

    def __init__(self) -> None:
        self._run: tuple[Callable[[], str], float] | None = None

    @contextmanager
    def over(self, repeat: Callable[[], str]) -> Iterator[None]:
        """Watches over a run.

        Args:
            repeat: gives the command that repeats it.
        """
        self._run = repeat, time.monotonic()
        try:
            yield
        finally:
            self._run = None

    def overdue(self, patience: float) -> str:
        """The command that repeats the run, if that has lasted too long; else nothing."""
        run = self._run
        return run[0]() if run is not None and time.monotonic() - run[1] > patience else ""


@contextmanager
def watchdog(
    patience: float = PATIENCE, end: Callable[[int], object] = os._exit
) -> Iterator[Watch]:
    """Watches over the runs of this thread.

    Args:
        patience: seconds for which a run may last.
        end: ends the process; the run itself cannot be interrupted.
    """
    watch, over, thread = Watch(), threading.Event(), threading.get_ident()

    def look() -> None:
        while not over.wait(min(1.0, patience)):
            if repeat := watch.overdue(patience):
                where = "".join(traceback.format_stack(sys._current_frames()[thread]))
                print(  # noqa: T201 (the last words of a process)
                    f"a run did not end within {patience:.0f} s\nrepeat it: {repeat}\n{where}",
                    file=sys.stderr,
                    flush=True,
                )
                end(_EXIT)
                return

    looking = threading.Thread(target=look, name="watchdog", daemon=True)
    looking.start()
    try:
        yield watch
    finally:
        over.set()
        looking.join()
