"""Runs the sessions of an experiment into its log."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial, reduce
from typing import Final, Protocol, final

import anyio
import anyio.to_thread
import msgspec

from ..engine.errors import InvalidInput, first_error
from ..engine.log.contract import EventLog
from ..engine.log.leases import Leases, Leasing
from ..engine.log.open import open_log
from ..engine.models.gateway import Models
from ..engine.models.traffic.budget import Spending
from ..engine.redacting import redaction_of
from ..engine.session.runner import Session, SessionResult
from ..engine.session.sharing import is_session_lease
from ..engine.session.simulation import Outcome, SessionFailure, simulate
from ..engine.task import Task
from ..engine.text import quantity
from .manifest import Manifest, write_manifest
from .plan import Plan, check_design, check_unchanged, make_plans, manifest_of
from .spec import Experiment

__all__ = ("Run", "RunProgress", "SessionErrors", "run", "run_plans")

_MOST = 5


@final
class SessionErrors:
    """Collects the errors of sessions that were run; they are in the log as well."""

    def __init__(self) -> None:
        self._failed: Counter[str] = Counter()
        self._unscored: Counter[str] = Counter()

    def note(self, outcome: Outcome) -> None:
        """Takes the errors of one session."""
        if isinstance(outcome, SessionResult):
            if outcome.error is not None:
                self._failed[outcome.error] += 1
            if outcome.scorer_failed is not None:
                self._unscored[outcome.scorer_failed] += 1

    def lines(self) -> Iterator[str]:
        """The most frequent errors, a line each."""
        for errors, what in ((self._failed, "failed:"), (self._unscored, "not scored by")):
            for error, times in errors.most_common(_MOST):
                yield f"{quantity(times, 'session')} {what} {error}"
            if len(errors) > _MOST:
                yield f"{len(errors) - _MOST} other errors are in the log"


_LOOK: Final = 1.0  # seconds between two looks at who else is at work

_PACE: Final = 0.05
"""Seconds between the first sessions of a run, so that a program started with it finds some left."""

_STARTED: Final = 2.0  # seconds until as many run as may, however many that are


class RunProgress(Protocol):
    """Shows how far a run has come."""

    @property
    def visible(self) -> bool:
        """Whether it is displayed; only then other processes are counted."""
        ...

    def advance(self, outcome: Outcome) -> None:
        """Counts one more session, run here or by another process."""
        ...

    def share(self, processes: int) -> None:
        """Shows how many processes run sessions into the log, this one included."""
        ...


@final
class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has ended.

    Attributes:
        log: path or URL of the log.
        sessions: number of sessions in the grid.
        left: how many of them the log does not hold to their end.
        why: what ended the run early; None if it did not.
        errors: the most frequent errors of agents, users and scorers, a line each.
        failures: sessions that could not be run at all, a line each.
        spent: what this run used of models; None without models.
    """

    log: str
    sessions: int
    left: int = 0
    why: str | None = None
    errors: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    spent: Spending | None = None

    def check(self) -> None:
        """Checks that every session could be run.

        Raises:
            InvalidInput: one could not, and will not if it is tried again.
        """
        if self.failures:
            more = f" (and {len(self.failures) - 1} more)" if len(self.failures) > 1 else ""
            first, _, why = self.failures[0].partition(": ")
            raise InvalidInput(f"{first} could not be run{more}: {why}")


async def run(
    task: str | Task,
    *,
    agents: Sequence[str] | None = None,
    users: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    user_model: str | None = None,
    judge_model: str | None = None,
    sessions: int | None = None,
    instances: Sequence[str] | None = None,
    seed: int | Sequence[int] | None = None,
    repeats: int | None = None,
    log: str | None = None,
    concurrency: int | None = None,
    stop_at: int | None = None,
    patience: int | None = None,
    dataset: str | None = None,
    agent_timeout: float | None = None,
    agent_env: Sequence[str] | None = None,
    redact: str | None = None,
    api_base: str | None = None,
    cache: str | None = None,
    text_actions: Sequence[str] | None = None,
    rounds: int | None = None,
    actions: int | None = None,
    session_tokens: int | None = None,
    session_cost: float | None = None,
    budget_tokens: int | None = None,
    budget_cost: float | None = None,
    pool: bool = False,
    progress: RunProgress | None = None,
) -> Run:
    """Simulates every agent with every user on the same instances, and records each session in a log.

    Sessions that the log already holds are not run again, so the same call continues a run that was
    interrupted. ``duolog run`` calls this function; an argument that is None has the default of
    ``Experiment``, or the value in the file.

    Args:
        task: a task, or its name, or ``file.py:Name``, or the path of a file of experiments.
        agents: kinds of agents, ``file.py:Name`` or addresses; None for the defaults of the task.
        users: kinds of users, personas or ``file.py:Name``; None for the defaults of the task.
        models: behind the agents; ``rules`` for the rules of the task.
        user_model: behind the users; None for rules.
        judge_model: behind the judges; None for none.
        sessions: number of instances for each pair of agent and user.
        instances: which instances instead, e.g. ``0-9``.
        seed: decides the world and all randomness; several pose more problems.
        repeats: how often each problem is played, with other draws each time.
        log: path or URL of the log.
        concurrency: how many sessions run at the same time.
        stop_at: unproductive rounds in a row, as the judge rates them, after which a session is stopped.
        patience: unproductive rounds in a row, as the user rates them, after which the user gives up.
        dataset: file or directory with data in the format of the task.
        agent_timeout: seconds that an external agent has for a turn.
        agent_env: environment variables that the program of an external agent gets too.
        redact: the secrets that are not recorded: ``default``, ``off``, or a file of patterns.
        api_base: address of a model server.
        cache: directory of the response cache.
        text_actions: models that write their actions as text.
        rounds: limit of a session.
        actions: limit of a session.
        session_tokens: limit of a session.
        session_cost: limit of a session, in US dollars.
        budget_tokens: limit of all sessions together.
        budget_cost: limit of all sessions together, in US dollars.
        pool: write to a log that holds sessions of an experiment of another design.
        progress: shows how far the run has come.

    Raises:
        InvalidInput: an argument is not valid, or a session could not be run at all.
        MissingExtra: a model is named, and the extra ``llm`` is not installed.
    """
    plans = await anyio.to_thread.run_sync(
        partial(
            make_plans,
            task,
            agents=agents,
            users=users,
            models=models,
            user_model=user_model,
            judge_model=judge_model,
            sessions=sessions,
            instances=instances,
            seed=seed if seed is None or isinstance(seed, int) else tuple(seed),
            repeats=repeats,
            log=log,
            concurrency=concurrency,
            stop_at=stop_at,
            patience=patience,
            dataset=dataset,
            agent_timeout=agent_timeout,
            agent_env=None if agent_env is None else tuple(agent_env),
            redact=redact,
            api_base=api_base,
            cache=cache,
            text_actions=text_actions,
            limits={
                "rounds": rounds,
                "actions": actions,
                "tokens": session_tokens,
                "cost": session_cost,
            },
            budget={"tokens": budget_tokens, "cost": budget_cost},
            pool=pool,
        )
    )
    done = await run_plans(plans, progress, manifest=manifest_of(plans, task))
    done.check()
    return done


async def run_plans(
    plans: Sequence[Plan],
    progress: RunProgress | None = None,
    *,
    manifest: Manifest | None = None,
) -> Run:
    """Runs some plans, which write to one log, one after another.

    Args:
        plans: at least one.
        progress: shows how far the run has come.
        manifest: written next to the log before the first session; None for none.

    Raises:
        InvalidInput: a cell cannot be set up.
    """
    from .estimate import plus

    for plan in plans:  # errors in the last plan show before the first is run
        await anyio.to_thread.run_sync(list, plan.sample())
    if manifest is not None:
        await anyio.to_thread.run_sync(write_manifest, plans[0].experiment.log, manifest)
    done = [await _run_plan(plan, progress) for plan in plans]
    spent = [one.spent for one in done if one.spent is not None]
    return Run(
        log=done[0].log,
        sessions=sum(one.sessions for one in done),
        left=sum(one.left for one in done),
        why=next((one.why for one in done if one.why is not None), None),
        errors=tuple(error for one in done for error in one.errors),
        failures=tuple(failure for one in done for failure in one.failures),
        spent=reduce(plus, spent) if spent else None,
    )


async def _run_plan(plan: Plan, progress: RunProgress | None = None) -> Run:
    """Runs all cells of a plan, checked before, that the log does not hold yet.

    Args:
        plan: what to run.
        progress: shows how far the run has come.
    """
    experiment = plan.experiment
    failures: list[SessionFailure] = []
    errors = SessionErrors()

    def note(outcome: Outcome) -> None:
        if isinstance(outcome, SessionFailure):
            failures.append(outcome)
        errors.note(outcome)
        if progress is not None:
            progress.advance(outcome)

    async with open_log(experiment.log, redact=redaction_of(experiment.redact)) as log:
        known = log.statistics().position
        models = await _models(experiment, log, known)
        setting = plan.setting(models)
        makers: list[Callable[[], Session]] = [
            partial(plan.session, cell, setting) for cell in plan.cells
        ]
        await check_unchanged(log, plan.task.name, plan.parts)
        await check_design(log, plan)
        async with _watching_others(log, known, models, progress):
            await simulate(
                log,
                makers if models is None else models.while_reachable(makers),
                concurrency=experiment.concurrency,
                on_outcome=note,
                pace=min(_PACE, _STARTED / experiment.concurrency),
            )
        stopped = None if models is None else models.stopped
        left = await _count_incomplete(log, makers) if stopped or failures else 0
    return Run(
        log=experiment.log,
        sessions=len(makers),
        left=left,
        why=(stopped or failures[0].error) if left else None,
        errors=tuple(errors.lines()),
        failures=tuple(f"session {f.session}: {f.error}" for f in failures if not f.resumable),
        spent=None if models is None else models.statistics().spent,
    )


async def _models(experiment: Experiment, log: EventLog, known: int) -> Models | None:
    """Access to the models; calls in the log up to a position count towards the budget."""
    if not experiment.named_models:
        return None
    from ..engine.models.traffic.budget import spending

    return experiment.reach(await spending(log, upto=known))


@asynccontextmanager
async def _watching_others(
    log: EventLog, known: int, models: Models | None, progress: RunProgress | None
) -> AsyncIterator[None]:
    """While the block runs, the spending of other processes counts here too, and is displayed."""
    try:
        async with anyio.create_task_group() as tasks:
            if models is not None:
                tasks.start_soon(partial(models.follow_spending, log, after_position=known))
            if progress is not None and progress.visible and isinstance(log, Leasing):
                tasks.start_soon(_count_processes, log.leases(), progress)
            yield
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise first_error(group) from None


async def _count_processes(leases: Leases, progress: RunProgress) -> None:
    while True:
        held = await leases.holders()
        progress.share(len({who for name, who in held.items() if is_session_lease(name)}))
        await anyio.sleep(_LOOK)


async def _count_incomplete(log: EventLog, makers: Sequence[Callable[[], Session]]) -> int:
    """How many sessions the log does not hold to their end."""
    done = {summary.session async for summary in log.sessions() if summary.state != "open"}
    return sum(make().id not in done for make in makers)
