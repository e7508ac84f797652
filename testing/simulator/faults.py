"""The errors that end a process or come from a plug-in, and the text that reports a failure."""

from __future__ import annotations

from pathlib import Path

__all__ = ("Ended", "WildError", "failure_text")


class Ended(BaseException):
    """The process of a run has ended: it was killed, or the power was lost."""


class WildError(BaseException):
    """What no plug-in ought to raise, and some do."""


def failure_text(error: BaseException) -> str:
    """An error, and the last lines that it passed."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    lines: list[str] = []
    at = error.__traceback__
    while at is not None:
        name = at.tb_frame.f_code.co_filename
        lines.append(f"{Path(name).name}:{at.tb_lineno}")
        at = at.tb_next
    return f"{type(error).__name__}: {error} ({' > '.join(lines[-4:])})"
