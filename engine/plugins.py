"""The boundary around every call of a plug-in: what may pass it, and what is the plug-in's failure.

A plug-in (scorer, policy, task, hook, callback, consumer, importer, client, ...) may raise anything. What
is an ``Exception`` reaches the caller as it is. Of the rest:

- ``CancelledError`` passes where the task was cancelled meanwhile. Otherwise nobody cancelled it: the
  plug-in awaited something that was gone, and that is its failure.
- ``KeyboardInterrupt`` passes: it is a person's, and Python raises it wherever the program is.
- ``GeneratorExit`` passes where Python closes the coroutine that waits for the plug-in.
- ``SystemExit`` and all others are failures: no plug-in ends the program that embeds it. A program that
  wants to end on a signal cancels its main task (``loop.add_signal_handler``).

A failure that is no ``Exception`` becomes ``PluginFailed``, which is one.
"""

from __future__ import annotations

import asyncio
import math
import re
import sys
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import final

import anyio

from .errors import PluginFailed, error_text

__all__ = ("PluginCall", "cancellation", "error_with_place", "failure_of", "is_cancelled")

_OF_A_SCOPE = "Cancelled via cancel scope in place of an error"
"""By its first words anyio tells cancellations of its scopes from those of others."""

_LIBRARIES = re.compile(r"^<|[/\\\\](site|dist)-packages[/\\\\]")


def is_cancelled() -> bool:
    """Whether the task that runs now is being cancelled; False outside of any event loop."""
    task = _current_task()
    return task is not None and task.cancelling() > 0


def cancellation(instead: BaseException | None = None) -> asyncio.CancelledError:
    """The cancellation of this task once more, for where it was swallowed or replaced by an error.

    It is the same request, by which the scope that made it recognises it: else it would leave the scope, and end
    the task in silence. Where the error does not know of the request, as one that the tasks of a group
    raised on their way out, it is that of a scope, if one is cancelled.

    Args:
        instead: what was raised in its place.
    """
    earlier = instead
    seen: set[int] = set()
    while earlier is not None and id(earlier) not in seen:
        if isinstance(earlier, asyncio.CancelledError):
            return asyncio.CancelledError(*earlier.args)
        seen.add(id(earlier))
        earlier = earlier.__context__
    scoped = anyio.current_effective_deadline() == -math.inf
    return asyncio.CancelledError(_OF_A_SCOPE) if scoped else asyncio.CancelledError()


def failure_of(error: BaseException) -> BaseException:
    """What a plug-in raised, where that was wrapped; else the error itself."""
    return error.raised if isinstance(error, PluginFailed) else error


@final
class PluginCall:
    """A context for one call of a plug-in, in the task that makes it.

    For example::

        with PluginCall("the hook"):
            result = await hook(record)

    A cancel scope or time-out that belongs to the call goes inside, so that it is over when the
    call is judged. Nothing is swallowed: what is raised inside leaves it, as it is or wrapped.

    Args:
        name: who is called, for the error.

    Raises:
        CancelledError: the task was cancelled during the call, whatever the plug-in made of that.
        PluginFailed: the plug-in raised what is no ``Exception``, and is its own.
    """

    __slots__ = ("_before", "_name", "_pending", "_task")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        task = self._task = _current_task()
        # Requests from before count as delivered: a library may have left them uncounted. One
        # that is still to be delivered is raised inside the call.
        self._before = 0 if task is None else task.cancelling()
        self._pending = task is not None and bool(getattr(task, "_must_cancel", False))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, KeyboardInterrupt):
            return
        closed = self._task is not None and _current_task() is not self._task
        if isinstance(error, GeneratorExit) and closed:
            return
        if self._cancelled():
            if isinstance(error, asyncio.CancelledError):
                return
            raise cancellation(error) from error
        if isinstance(error, Exception):
            return
        if isinstance(error, BaseExceptionGroup) and error.subgroup(KeyboardInterrupt):
            return
        raise PluginFailed(self._name, error) from error

    def _cancelled(self) -> bool:
        """Whether a cancellation of the task was delivered during the call."""
        task = self._task
        return task is not None and (self._pending or task.cancelling() > self._before)


def _current_task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        return None


def error_with_place(error: BaseException) -> str:
    """What an error says, as a log can hold it, and where in somebody's own file it was raised.

    That is the innermost place that is neither in a library nor in Duolog: ``'jam' (shop.py, line 12,
    in decide)``. Without one it is the text alone.
    """
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        code = frame.f_code
        top = str(frame.f_globals.get("__name__")).partition(".")[0]
        known = top in sys.stdlib_module_names and top != "__main__"
        ours = top == __name__.partition(".")[0]
        if not (known or ours or _LIBRARIES.search(code.co_filename)):
            where = f"{Path(code.co_filename).name}, line {line}, in {code.co_name}"
            return f"{error_text(error)} ({where})".lstrip()
    return error_text(error)
