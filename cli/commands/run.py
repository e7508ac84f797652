"""``duolog run``: simulates agents and users on a task, and prints the report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ...engine.errors import InvalidInput
from ..app import app
from ..common import choices, collect_rarely, example, log_at, run, say
from ..experiment.spending import told_of_models

if TYPE_CHECKING:
    from ...engine.log.contract import EventLog
    from ...engine.models.gateway import Models
    from ...engine.session.runner import Session
    from ...engine.session.simulation import Outcome
    from ...engine.task import Cell, Task
    from ..experiment.spec import Experiment

__all__ = ("run_command",)

_UNFINISHED = 3


@app.command(
    "run",
    short_help="Simulates agents and users on a task, resumable, and prints the report.",
    epilog=example(
        "duolog run travel --agents auto,one-stage,two-stage --sessions 30 --seed 7 --log demo.db",
        "duolog run travel --models gpt-4o,rules --user-model gpt-4o --sessions 20 --dry-run",
        "duolog run experiment.toml",
        note="The same command run again goes on where it was: what the log holds is not run again, "
        "and no model is asked twice for a reply that it holds. Keys of providers are read from the "
        "environment only, e.g. OPENAI_API_KEY.",
    ),
)
def run_command(
    task: Annotated[
        str, typer.Argument(help="The task, e.g. travel; or a file in TOML that describes it all.")
    ],
    agents: Annotated[
        str | None,
        typer.Option(
            help="Kinds of agents, separated by commas.", show_default="auto,one-stage,two-stage"
        ),
    ] = None,
    users: Annotated[
        str | None,
        typer.Option(help="Kinds of users, separated by commas.", show_default="proactive"),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            help="Models behind the agents, as LiteLLM names them, separated by commas.",
            show_default="rules",
        ),
    ] = None,
    user_model: Annotated[
        str | None, typer.Option(help="Model behind the users.", show_default="rules")
    ] = None,
    judge_model: Annotated[
        str | None, typer.Option(help="Model that rates progress, and reads odd plans.")
    ] = None,
    api_base: Annotated[
        str | None, typer.Option(metavar="URL", help="Where models are reached, if on your server.")
    ] = None,
    text_actions: Annotated[
        str | None,
        typer.Option(metavar="MODELS", help="Models that cannot call tools: they write actions."),
    ] = None,
    cache: Annotated[
        str | None, typer.Option(metavar="DIR", help="Keep replies there, for the same request.")
    ] = None,
    sessions: Annotated[
        int | None,
        typer.Option(
            min=1, help="Sessions per cell: the first so many instances.", show_default="30"
        ),
    ] = None,
    instances: Annotated[
        str | None, typer.Option(help="Which instances instead, e.g. 0-9,17.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="File or directory with data of the task's own kind.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Decides the world and all randomness.", show_default="0")
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="How many sessions run at the same time.", show_default="32"),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(
            help="Path or URL of the log; it is made where there is none.",
            show_default="duolog.db",
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="Rounds after which a session ends.", show_default="30"),
    ] = None,
    actions: Annotated[
        int | None,
        typer.Option(min=1, help="Acts after which a session ends.", show_default="200"),
    ] = None,
    session_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens of models after which a session ends.")
    ] = None,
    session_cost: Annotated[
        float | None, typer.Option(min=0, help="US dollars after which a session ends.")
    ] = None,
    budget_tokens: Annotated[
        int | None, typer.Option(min=0, help="Tokens that all sessions may use up together.")
    ] = None,
    budget_cost: Annotated[
        float | None, typer.Option(min=0, help="US dollars that all may use up together.")
    ] = None,
    stop_at: Annotated[
        int | None,
        typer.Option(min=1, help="Have users leave after so many rounds without progress."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only estimate calls, tokens and cost.")
    ] = False,
) -> None:
    """Simulates agents and users on a task, records every session, and prints the report."""
    from ...engine.task import find_task
    from ..experiment.file import read_experiment
    from ..experiment.spec import Experiment

    if sessions is not None and instances is not None:
        raise InvalidInput("--sessions and --instances both say which instances: give one of them")
    file = task if task.endswith(".toml") else None
    base = Experiment(task=task) if file is None else read_experiment(file)
    experiment = base.with_options(
        agents=_listed(agents, "--agents"),
        users=_listed(users, "--users"),
        models=_listed(models, "--models"),
        text_actions=_listed(text_actions, "--text-actions"),
        instances=_listed(instances, "--instances"),
        user_model=user_model,
        judge_model=judge_model,
        api_base=api_base,
        cache=cache,
        sessions=sessions,
        dataset=dataset,
        seed=seed,
        concurrency=concurrency,
        log=log,
        stop_at=stop_at,
        limits={
            "rounds": rounds,
            "actions": actions,
            "tokens": session_tokens,
            "cost": session_cost,
        },
        budget={"tokens": budget_tokens, "cost": budget_cost},
    )
    with _blaming(file if dataset is None else None):
        found = find_task(experiment.task, experiment.dataset)
    with _blaming(file):
        base.check(found)
        base.setting()
    experiment.check(found)
    with _blaming(file if experiment.instances == base.instances else None):
        cells = list(experiment.cells(found))
    if dry_run:
        from ..experiment.estimate import print_estimate

        print_estimate(experiment, found, cells)
        return
    left = _simulate(experiment, found, cells)
    if left is None or left.sessions < len(cells):  # else there is nothing to report on
        from .report import print_report

        print_report(experiment.log)
    if left is not None:
        told = f"{left.sessions} of {len(cells)} sessions are left to be run: {left.why}"
        say(f"duolog: {told}; the same command goes on from here")
        raise typer.Exit(_UNFINISHED)


class _Left(NamedTuple):
    """How many sessions are left to be run, and why."""

    sessions: int
    why: str


@contextmanager
def _blaming(file: str | None) -> Iterator[None]:
    """Has what is found wrong here be said of a file, if there is one."""
    try:
        yield
    except InvalidInput as error:
        if file is None:
            raise
        raise InvalidInput(f"{file}: {error}") from None


def _listed(text: str | None, what: str) -> tuple[str, ...] | None:
    return None if text is None else tuple(choices(text, what))


def _simulate(experiment: Experiment, task: Task, cells: Sequence[Cell]) -> _Left | None:
    """Runs all cells; None where no session is left to be run.

    Raises:
        InvalidInput: a session could not be run at all.
    """
    collect_rarely()
    if cells:
        # An instance or option that is not valid shows before anything is written.
        task.session(cells[0], experiment.setting(experiment.reach(None)))
    return run(partial(_simulate_all, experiment, task, cells))


async def _simulate_all(experiment: Experiment, task: Task, cells: Sequence[Cell]) -> _Left | None:
    from ...engine.session.simulation import SessionFailure, simulate
    from ..experiment.progress import SessionProgress

    failures: list[SessionFailure] = []
    with SessionProgress(len(cells)) as progress:

        def show(outcome: Outcome) -> None:
            if isinstance(outcome, SessionFailure):
                failures.append(outcome)
            progress.advance(outcome)

        async with log_at(experiment.log, create=True) as log:
            models = await _models(experiment, log)
            setting = experiment.setting(models)
            makers: list[Callable[[], Session]] = [
                partial(task.session, cell, setting) for cell in cells
            ]
            await simulate(
                log,
                makers if models is None else models.while_reachable(makers),
                concurrency=experiment.concurrency,
                on_outcome=show,
            )
            stopped = models.stopped if models is not None else None
            left = await _left(log, makers) if stopped or failures else 0
            told = "" if models is None else told_of_models(models)
    if told:
        say(told)
    lost = [failure for failure in failures if not failure.resumable]
    if lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        raise InvalidInput(f"session {lost[0].session} could not be run{more}: {lost[0].error}")
    return _Left(left, stopped or failures[0].error) if left else None


async def _models(experiment: Experiment, log: EventLog) -> Models | None:
    """What reaches the models, with what earlier runs into this log used up counted."""
    if not experiment.named_models:
        return None
    from ...engine.models.traffic.budget import spending

    # A call that an interrupt cuts off leaves a coroutine of LiteLLM's that nobody awaits.
    warnings.filterwarnings("ignore", r"coroutine '(\w+\.)*acompletion'", RuntimeWarning)
    return experiment.reach(await spending(log))


async def _left(log: EventLog, makers: Sequence[Callable[[], Session]]) -> int:
    """How many sessions the log does not hold to their end."""
    done = {summary.session async for summary in log.sessions() if summary.state != "open"}
    return sum(make().id not in done for make in makers)
