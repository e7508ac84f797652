"""A worker of ``duolog score --follow --workers N``: ``python -m duolog.cli.following.worker OPTIONS``.

It writes how it stands to its standard output, one JSON object a line, and ends, its checkpoints saved,
once its standard input is closed: by who started it, or since that one is gone.
"""

from __future__ import annotations

import os
import sys
from functools import partial

import anyio
import anyio.to_thread
import msgspec

from ...engine.errors import DuologError, error_text
from ...scoring.following import FollowingStatistics
from ..output import say
from ..runtime import collect_rarely, run
from .options import FollowOptions
from .process import follow

__all__ = ("FAILED", "STOPPED")

STOPPED = 3
"""Exit code where a model or its budget did not last."""

FAILED = 2
"""Exit code where the log or an option is wrong: another worker would end likewise."""


async def _main(options: FollowOptions, reports: int) -> str | None:
    until = anyio.Event()

    async def wait_for_the_end() -> None:
        await anyio.to_thread.run_sync(sys.stdin.buffer.read, abandon_on_cancel=True)
        until.set()

    def write(statistics: FollowingStatistics) -> None:
        try:  # unbuffered, so that nothing is left for the interpreter to write at its end
            os.write(reports, msgspec.json.encode(statistics) + b"\n")
        except BrokenPipeError:  # who started it was killed, and nobody reads it
            until.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_the_end)
        why = await follow(options, write, until=until)
        tasks.cancel_scope.cancel()
    return why


def _run() -> int:
    options = msgspec.json.decode(sys.argv[1].encode(), type=FollowOptions)
    reports = os.dup(1)
    os.dup2(2, 1)  # what a scorer prints is for people, and would be read as a report
    collect_rarely()
    try:
        why = run(partial(_main, options, reports))
    except DuologError as error:
        say(f"duolog: {error_text(error)}")
        return FAILED
    if why is not None:
        say(f"duolog: {why}")
    return 0 if why is None else STOPPED


if __name__ == "__main__":
    raise SystemExit(_run())
