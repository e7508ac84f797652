"""Awaits a call of LiteLLM so that cancelling it leaves nothing behind.

LiteLLM prepares each call in a thread, whose result is the coroutine that makes the call. If the
caller is cancelled meanwhile, that coroutine is never awaited, and Python warns on the terminal.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Generator
from typing import Generic, TypeVar, cast, final

__all__ = ("Cancellable",)

T = TypeVar("T")

_LITELLM = "litellm.main"


@final
class Cancellable(Generic[T]):
    """A call to be awaited in place of LiteLLM's coroutine; it runs in the same task.

    If it is cancelled while LiteLLM prepares it in a thread, the thread runs to its end, and the
    resulting coroutine is closed.

    Args:
        call: the coroutine of ``litellm.acompletion``.
    """

    def __init__(self, call: Coroutine[object, object, T]) -> None:
        self._call = call

    def __await__(self) -> Generator[object, object, T]:
        """Runs the call step by step, and intercepts its waits for results from threads."""
        raised: BaseException | None = None
        while True:
            try:
                wait = self._call.send(None) if raised is None else self._call.throw(raised)
            except StopIteration as ended:
                return cast(T, ended.value)
            raised = None
            try:
                if isinstance(wait, asyncio.Future) and _prepares_in_thread(self._call):
                    yield from _abandonable(wait)
                else:
                    yield wait
            except BaseException as error:  # noqa: BLE001  (raised in the call, as Python would)
                raised = error


def _abandonable(prepared: asyncio.Future[object]) -> Generator[object, object, None]:
    """Waits for a future; a cancellation does not reach it, but closes the resulting coroutine."""
    prepared._asyncio_future_blocking = False  # it is not this future that the task waits for
    try:
        yield from asyncio.shield(prepared).__await__()
    except asyncio.CancelledError:
        if prepared.cancelled():  # from elsewhere: the call's own coroutine raises that
            return
        prepared.add_done_callback(_close)
        raise
    except Exception:  # noqa: BLE001  (the call takes it from the future itself)
        return


def _close(prepared: asyncio.Future[object]) -> None:
    if not prepared.cancelled() and prepared.exception() is None:
        result = prepared.result()
        if inspect.iscoroutine(result):
            result.close()


def _prepares_in_thread(call: Coroutine[object, object, object]) -> bool:
    """Whether LiteLLM's entry point itself waits: the only thing it awaits directly is its thread."""
    innermost: object = call
    while True:
        further = getattr(innermost, "cr_await", None)
        if not inspect.iscoroutine(further):
            break
        innermost = further
    frame = getattr(innermost, "cr_frame", None)
    return frame is not None and frame.f_globals.get("__name__") == _LITELLM
