"""What a plug-in raises, kept apart from what the engine itself asked for.

A scorer, hook or callback may raise anything, ``CancelledError`` included. Only a cancellation of
the engine's own, or the end of the process, may pass its boundary.
"""

from __future__ import annotations

import asyncio

__all__ = ("is_cancelled", "raise_if_own")


def is_cancelled() -> bool:
    """Whether the task that runs now is being cancelled; False outside of any event loop."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        return False
    return task is not None and task.cancelling() > 0


def raise_if_own(error: BaseException) -> None:
    """Returns where an error is the plug-in's own; raises what is not.

    Call it first in ``except BaseException as error`` around a call of a plug-in. What a plug-in
    raises on its way out of a cancelled task is no failure of the plug-in.

    Args:
        error: what came out of the plug-in.

    Raises:
        CancelledError: the task is being cancelled.
        KeyboardInterrupt, SystemExit, GeneratorExit: as they are.
    """
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        raise error
    if is_cancelled():
        if isinstance(error, asyncio.CancelledError):
            raise error
        raise asyncio.CancelledError from error
