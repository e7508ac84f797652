"""Progress bars, on the standard error if that is a terminal: one over the records of a log."""

from __future__ import annotations

from types import TracebackType
from typing import Self, final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

__all__ = ("RecordProgress", "progress_bar")


def progress_bar(console: Console) -> Progress:
    """A bar with a count, a ``note`` that each of its tasks has to have, and the time that is left.

    Args:
        console: where to show it; nothing is shown unless it is a terminal.
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("[dim]{task.fields[note]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@final
class RecordProgress:
    """Shows how many records are done; call it with their number.

    Args:
        what: the activity, e.g. ``exporting``.
        total: number of records; None if it is not known.
    """

    def __init__(self, what: str, total: int | None) -> None:
        self._bar = progress_bar(Console(stderr=True))
        self._task = self._bar.add_task(what, total=total, note="")

    def __call__(self, done: int) -> None:
        """Shows that this number of records is done."""
        self._bar.update(self._task, completed=done)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()
