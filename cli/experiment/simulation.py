"""Runs the sessions of an experiment into its log, and shows their progress."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple

import anyio

from ...engine.errors import InvalidInput
from ...engine.log.contract import EventLog
from ...engine.log.leases import Leases, Leasing
from ...engine.models.gateway import Models
from ...engine.session.cast import first_error
from ...engine.session.runner import Session
from ...engine.session.sharing import is_session_lease
from ...engine.session.simulation import Outcome, SessionFailure, simulate
from ..lookup import log_at
from ..output import say
from ..runtime import collect_rarely, run
from .errors import SessionErrors
from .plan import Plan
from .progress import SessionProgress
from .spec import Experiment
from .spending import models_line
from .unchanged import check_unchanged

__all__ = ("Unfinished", "run_sessions")

_LOOK: Final = 1.0  # seconds between two looks at who else is at work

_PACE: Final = 0.05
"""Seconds between the first sessions of a run, so that a program started with it finds some left."""

_STARTED: Final = 2.0  # seconds until as many run as may, however many that are


class Unfinished(NamedTuple):
    """A run that ended early.

    Attributes:
        sessions: how many sessions the log does not hold to their end.
        why: what ended it.
    """

    sessions: int
    why: str


def run_sessions(plan: Plan) -> Unfinished | None:
    """Runs all cells that the log does not hold yet; None if all are complete.

    Raises:
        InvalidInput: a session could not be run at all.
    """
    collect_rarely()
    # An instance or option that is not valid shows before anything is written.
    setting = plan.setting(plan.experiment.reach(None))
    for cell in plan.experiment.sample(plan.task):
        plan.session(cell, setting)
    return run(partial(_run_sessions, plan))


async def _run_sessions(plan: Plan) -> Unfinished | None:
    experiment = plan.experiment
    failures: list[SessionFailure] = []
    errors = SessionErrors()
    with SessionProgress(len(plan.cells)) as progress:

        def show(outcome: Outcome) -> None:
            if isinstance(outcome, SessionFailure):
                failures.append(outcome)
            errors.note(outcome)
            progress.advance(outcome)

        async with log_at(experiment.log, create=True) as log:
            known = log.statistics().position
            models = await _models(experiment, log, known)
            setting = plan.setting(models)
            makers: list[Callable[[], Session]] = [
                partial(plan.session, cell, setting) for cell in plan.cells
            ]
            await check_unchanged(log, plan.task.name, plan.parts)
            async with _watching_others(log, known, models, progress):
                await simulate(
                    log,
                    makers if models is None else models.while_reachable(makers),
                    concurrency=experiment.concurrency,
                    on_outcome=show,
                    pace=min(_PACE, _STARTED / experiment.concurrency),
                )
            stopped = None if models is None else models.stopped
            left = await _count_incomplete(log, makers) if stopped or failures else 0
            usage = "" if models is None else models_line(models)
    for line in errors.lines():
        say(f"duolog: {line}")
    if usage:
        say(usage)
    lost = [failure for failure in failures if not failure.resumable]
    if lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        raise InvalidInput(f"session {lost[0].session} could not be run{more}: {lost[0].error}")
    return Unfinished(left, stopped or failures[0].error) if left else None


async def _models(experiment: Experiment, log: EventLog, known: int) -> Models | None:
    """Access to the models; what the log holds of calls up to a position counts towards the budget."""
    if not experiment.named_models:
        return None
    from ...engine.models.traffic.budget import spending

    # A call that an interrupt cuts off leaves a coroutine of LiteLLM's that nobody awaits.
    warnings.filterwarnings("ignore", r"coroutine '(\w+\.)*acompletion'", RuntimeWarning)
    return experiment.reach(await spending(log, upto=known))


@asynccontextmanager
async def _watching_others(
    log: EventLog, known: int, models: Models | None, progress: SessionProgress
) -> AsyncIterator[None]:
    """While the block runs, what other processes spend counts here too, and the display counts them."""
    try:
        async with anyio.create_task_group() as tasks:
            if models is not None:
                tasks.start_soon(partial(models.follow_spending, log, after_position=known))
            if progress.visible and isinstance(log, Leasing):
                tasks.start_soon(_count_processes, log.leases(), progress)
            yield
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise first_error(group) from None


async def _count_processes(leases: Leases, progress: SessionProgress) -> None:
    while True:
        held = await leases.holders()
        progress.share(len({who for name, who in held.items() if is_session_lease(name)}))
        await anyio.sleep(_LOOK)


async def _count_incomplete(log: EventLog, makers: Sequence[Callable[[], Session]]) -> int:
    """How many sessions the log does not hold to their end."""
    done = {summary.session async for summary in log.sessions() if summary.state != "open"}
    return sum(make().id not in done for make in makers)
