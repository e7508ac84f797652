"""One process that scores its share of a log as it grows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio

from ...engine.errors import InvalidInput, SessionInterrupted
from ...engine.log.leases import Leasing
from ...engine.session.cast import first_error
from ...scoring.following import FollowingScorer, FollowingStatistics
from ...scoring.scorers.criterion import read_rubric
from ...scoring.scorers.registry import find_scorer
from ..lookup import existing_log
from ..scoring import ScoringRun, reach_judge
from .options import FollowOptions

__all__ = ("follow",)

_EVERY = 1.0  # seconds between reports


async def follow(
    options: FollowOptions,
    report: Callable[[FollowingStatistics], None],
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
    plugins = {name: find_scorer(name) for name in options.scorers}
    asking = [name for name, plugin in plugins.items() if plugin.asks_model]
    async with existing_log(options.log) as log:
        if not isinstance(log, Leasing):
            raise InvalidInput(f"{options.log} offers no leases, so it cannot be followed together")
        known = log.statistics().position
        models, use = None, None
        if options.judge is not None:
            models, use = await reach_judge(
                log,
                options.judge,
                asking,
                api_base=options.api_base,
                cache=options.cache,
                tokens=options.tokens,
                cost=options.cost,
                upto=known,
            )
        run = ScoringRun(
            log,
            plugins,
            rounds=options.rounds,
            models=models,
            use=use,
            criteria=() if options.rubric is None else read_rubric(Path(options.rubric)),
        )
        scorer = FollowingScorer(
            log,
            log.leases(),
            run.scorers,
            key=options.key(),
            concurrency=options.concurrency,
            stopped=lambda: None if models is None else models.stopped,
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
                if models is not None:
                    tasks.start_soon(
                        partial(models.follow_spending, log, after_position=known, by=asking)
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
