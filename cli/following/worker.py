"""One process that scores its share of a log as it grows; started as a worker too.

As ``python -m duolog.cli.following.worker OPTIONS`` it is a worker of ``duolog score --follow --workers N``.
It writes how far it has come to its standard output, one JSON object a line. It ends, its checkpoints
saved, once its standard input is closed: by the process that started it, or since that one is gone.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from functools import partial

import anyio
import anyio.to_thread
import msgspec

from ...engine.errors import DuologError, InvalidInput, SessionInterrupted, error_text, first_error
from ...engine.log.leases import Leasing
from ...engine.scorers.driver import Pace, ScorerDriver, ScorerStatistics
from ..lookup import existing_log
from ..output import say
from ..runtime import collect_rarely, run
from ..scoring import ScoreOptions, ScoringRun

__all__ = ("FAILED", "STOPPED", "follow")

_EVERY = 1.0  # seconds between reports
_KEPT = 2048  # open sessions whose scorers are kept in memory

STOPPED = 3
"""Exit code if a model failed for good or its budget ran out."""

FAILED = 2
"""Exit code if the log or an option is wrong: another worker would fail the same way."""


async def follow(
    options: ScoreOptions,
    report: Callable[[ScorerStatistics], None],
    *,
    until: anyio.Event,
) -> str | None:
    """Scores a log as it grows, until an event is set; why it ended earlier, if it did.

    Args:
        options: what is scored, and how.
        report: called every second, and at the end.
        until: ends it.

    Raises:
        InvalidInput: the log cannot be shared.
        LogError: the log failed.
    """
    async with existing_log(options.log) as log:
        if not isinstance(log, Leasing):
            raise InvalidInput(f"{options.log} offers no leases, so it cannot be followed together")
        known = log.statistics().position
        scoring = ScoringRun(log, options)
        await scoring.reach_judge(upto=known)
        scorer = ScorerDriver(
            log,
            scoring.scorers,
            options.key(),
            pace=Pace(within=math.inf, at_once=options.concurrency, keep=_KEPT),
            leases=log.leases(),
            stopped=lambda: scoring.stopped,
        )

        async def report_often() -> None:
            while True:
                report(scorer.statistics())
                await anyio.sleep(_EVERY)

        async def end() -> None:
            await until.wait()
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(report_often)
                tasks.start_soon(end)
                if scoring.models is not None:
                    follow_spending = scoring.models.follow_spending
                    tasks.start_soon(
                        partial(follow_spending, log, after_position=known, by=scoring.asking)
                    )
                await scorer.run()
        except BaseExceptionGroup as group:
            error = first_error(group)
            if isinstance(error, SessionInterrupted):
                return str(error)
            raise error from None
        finally:
            report(scorer.statistics())
    return None


async def _main(options: ScoreOptions, reports: int) -> str | None:
    until = anyio.Event()

    async def wait_for_the_end() -> None:
        await anyio.to_thread.run_sync(sys.stdin.buffer.read, abandon_on_cancel=True)
        until.set()

    def write(statistics: ScorerStatistics) -> None:
        try:  # unbuffered, so that nothing is left for the interpreter to write at its end
            os.write(reports, msgspec.json.encode(statistics) + b"\n")
        except BrokenPipeError:  # the parent was killed, so no reader is left
            until.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_the_end)
        why = await follow(options, write, until=until)
        tasks.cancel_scope.cancel()
    return why


def _run() -> int:
    options = msgspec.json.decode(sys.argv[1].encode(), type=ScoreOptions)
    reports = os.dup(1)
    os.dup2(2, 1)  # a scorer's prints are for people; do not mix them with reports
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
