"""Progress bars over the sessions of a run, and over the trials of a search, on the standard error."""

from __future__ import annotations

import asyncio
import sys
from types import TracebackType
from typing import Self, final

from rich.console import Console

from ...engine.session.runner import SessionResult
from ...engine.session.simulation import Outcome, SessionElsewhere, SessionFailure
from ...engine.text import quantity
from .progress import progress_bar

__all__ = ("SessionProgress", "TrialProgress")


@final
class SessionProgress:
    """Shows the progress of a run; without a terminal, only a line at the end.

    Args:
        total: number of sessions.

    Attributes:
        visible: whether there is a terminal to show it on.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._console = Console(stderr=True)
        self._bar = progress_bar(self._console)
        self.visible = self._console.is_terminal
        self._task = self._bar.add_task("sessions", total=total, note="")
        self._done = 0
        self._held = self._ran = self._resumed = self._failed = self._interrupted = 0
        self._elsewhere = 0
        self._processes = 1
        self._utility = 0.0
        self._measured = 0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def advance(self, outcome: Outcome) -> None:
        """Counts one more session."""
        self._done += 1
        if isinstance(outcome, SessionResult):
            self._ran += 1
            self._resumed += outcome.resumed > 0
            self._failed += outcome.reason == "failed"
            self._measure(outcome.utility)
        elif isinstance(outcome, SessionElsewhere):
            self._elsewhere += 1
            self._measure(outcome.utility)
        elif isinstance(outcome, SessionFailure):
            self._failed += not outcome.resumable
            self._interrupted += outcome.resumable
        else:
            self._held += 1
        self._bar.update(self._task, advance=1, note=self._note())

    def share(self, processes: int) -> None:
        """Shows how many processes run sessions into the log, this one included."""
        self._processes = processes
        self._bar.update(self._task, note=self._note())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()
        done = self._done
        if kind is None:
            sys.stderr.write(f"{quantity(done, 'session')}: {self._summary()}\n")
        elif issubclass(kind, asyncio.CancelledError):  # how the event loop raises an interrupt
            sys.stderr.write(
                f"stopped at {done:,} of {quantity(self._total, 'session')}: {self._summary()}; "
                "the same command continues from here\n"
            )

    def _measure(self, utility: float | None) -> None:
        if utility is not None:
            self._utility += utility
            self._measured += 1

    def _note(self) -> str:
        parts = []
        if self._measured:
            parts.append(f"mean final utility {self._utility / self._measured:.3f}")
        if self._processes > 1:
            parts.append(f"{self._processes} processes")
        return ", ".join(parts)

    def _summary(self) -> str:
        parts = [f"{self._ran} run"]
        if self._resumed:
            parts.append(f"{self._resumed} of them resumed")
        if self._elsewhere:
            parts.append(f"{self._elsewhere} run by other processes")
        if self._held:
            parts.append(f"{self._held} in the log already")
        if self._failed:
            parts.append(f"{self._failed} failed")
        if self._interrupted:
            parts.append(f"{self._interrupted} interrupted")
        return ", ".join(parts)


@final
class TrialProgress:
    """Shows the trials and the best score so far; without a terminal, a line at the end.

    Args:
        total: number of trials.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._console = Console(stderr=True)
        self._bar = progress_bar(self._console)
        self._task = self._bar.add_task("trials", total=total, note="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def advance(self, number: int, best: float | None) -> None:
        """Shows that a trial is done."""
        note = "" if best is None else f"best score {best:+.4f}"
        self._bar.update(self._task, completed=number, note=note)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()
        if kind is None:
            self._console.print(f"{self._total} trials", highlight=False)
