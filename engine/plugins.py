"""The boundary around every plug-in call: which errors pass it, and which count as failures.

A plug-in (scorer, policy, task, hook, callback, consumer, importer, client, ...) may raise anything.
An ``Exception`` reaches the caller unchanged. Anything else is handled by its type:

- ``CancelledError`` passes if the task was cancelled during the call. Otherwise it is the plug-in's
  failure: it awaited something that was cancelled elsewhere.
- ``KeyboardInterrupt`` passes: it comes from the user, and Python may raise it at any point.
- ``GeneratorExit`` passes when Python closes the coroutine that waits for the plug-in.
- ``SystemExit`` and all others are failures: a plug-in must not end the program that embeds it. To
  end on a signal, a program cancels its main task (``loop.add_signal_handler``).

A failure that is not an ``Exception`` becomes ``PluginFailed``, which is one.
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
"""anyio recognises cancellations of its scopes by the first words of this message."""

_LIBRARIES = re.compile(r"^<|[/\\\\](site|dist)-packages[/\\\\]")


def is_cancelled() -> bool:
    """Whether the task that runs now is being cancelled; False outside of any event loop."""
    task = _current_task()
    return task is not None and task.cancelling() > 0


def cancellation(instead: BaseException | None = None) -> asyncio.CancelledError:
    """Recreates the cancellation of this task after it was swallowed or replaced by an error.

    It carries the same message, by which the scope that cancelled recognises it. With another
    message it would leave the scope, and end the task silently. If the error does not contain the
    original, for example if tasks of a group raised it on their way out, the message is that of a
    scope, provided that one is cancelled.

    Args:
        instead: the error that was raised in its place.
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
    """The error that a plug-in raised, unwrapped from ``PluginFailed``; else the error itself."""
    return error.raised if isinstance(error, PluginFailed) else error


@final
class PluginCall:
    """A context for one call of a plug-in, in the task that makes it.

    For example::

        with PluginCall("the hook"):
            result = await hook(record)

    A cancel scope or time-out that belongs to the call goes inside, so that it is over when the
    call is judged. Nothing is swallowed: every error raised inside leaves it, as it is or wrapped.

    Args:
        name: the plug-in's name, for the error.

    Raises:
        CancelledError: the task was cancelled during the call, however the plug-in reacted.
        PluginFailed: the plug-in failed with something that is not an ``Exception``.
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
    """An error's text in a form that a log can store, and the place in user code that raised it.

    That is the innermost place that is neither in a library nor in Duolog: ``'jam' (shop.py, line
    12, in decide)``. Without one, the result is only the text.
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
