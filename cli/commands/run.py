"""``duolog run``: simulates agents and users on a task, and prints the report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import typer

from ...engine.errors import InvalidInput
from .. import options
from ..arguments import choices, example
from ..output import print_json, say
from ..root import app
from ..runtime import collect_rarely, run

if TYPE_CHECKING:
    from ...experiments.plan import Plan
    from ...experiments.running import Run

__all__ = ("run_command",)

_OFF = "off"  # as ``Experiment.patience`` has it, which is too heavy to load for the help

_UNFINISHED = 3


@app.command(
    "run",
    short_help="Simulates agents and users on a task, resumable, and prints the report.",
    epilog=example(
        "duolog run travel --agents auto,one-stage,two-stage --sessions 30 --seed 7 --log demo.db",
        "duolog run travel --models gpt-4o,rules --user-model gpt-4o --sessions 20 --dry-run",
        "duolog run travel --users bounded,bounded+memory=3+misreads=0,tired.toml",
        "duolog run travel --sessions 20 --repeats 3",
        "duolog run experiment.toml",
        "duolog run experiment.py",
        "duolog run shop.py:Shop --sessions 20",
        "duolog run travel --sessions 250 --log postgresql://ann@db.example/work",
        note="Agents: auto, one-stage, two-stage, careful, adaptive; weak: looper, polisher, flatterer. Users: proactive, feedback, lazy, bounded. "
        "A task may have others.\n\nIf you run the same command again, it continues: sessions and model replies "
        "that the log holds are not produced again. Run at the same time, on one machine or several, it joins in: "
        "they share the work, and each ends once all of it is done. API keys of providers are read from the "
        "environment only, e.g. OPENAI_API_KEY.",
    ),
)
def run_command(
    task: options.TaskOrFile,
    agents: options.Agents = None,
    users: options.Users = None,
    models: options.Models = None,
    user_model: options.UserModel = None,
    judge_model: options.JudgeModel = None,
    api_base: options.ApiBase = None,
    text_actions: options.TextActions = None,
    agent_timeout: options.AgentTimeout = None,
    agent_env: options.AgentEnv = None,
    redact: options.Redact = None,
    cache: options.Cache = None,
    sessions: options.Sessions = None,
    instances: options.Instances = None,
    dataset: options.Dataset = None,
    seed: options.Seed = None,
    repeats: options.Repeats = None,
    concurrency: options.Concurrency = None,
    log: options.Log = None,
    max_rounds: options.MaxRounds = None,
    max_acts: options.MaxActs = None,
    session_tokens: options.SessionTokens = None,
    session_cost: options.SessionCost = None,
    budget_tokens: options.BudgetTokens = None,
    budget_cost: options.BudgetCost = None,
    stop_at: options.StopAt = None,
    patience: options.Patience = None,
    pool: options.Pool = False,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Simulates agents and users on a task, records every session, and prints the report."""
    from ...experiments.plan import make_plans

    if as_json and dry_run:
        raise InvalidInput("--dry-run cannot print JSON; leave --json out")
    if sessions is not None and instances is not None:
        raise InvalidInput(
            "--sessions and --instances both say which instances to play; give one of them"
        )
    plans = make_plans(
        task,
        agents=_listed(agents, "--agents"),
        users=_listed(users, "--users"),
        models=_listed(models, "--models"),
        text_actions=_listed(text_actions, "--text-actions"),
        agent_timeout=agent_timeout,
        agent_env=agent_env,
        redact=redact,
        instances=_listed(instances, "--instances"),
        user_model=user_model,
        judge_model=judge_model,
        api_base=api_base,
        cache=cache,
        sessions=sessions,
        dataset=dataset,
        seed=seed,
        repeats=repeats,
        concurrency=concurrency,
        log=log,
        stop_at=stop_at,
        patience=_patience(patience),
        limits={
            "rounds": max_rounds,
            "actions": max_acts,
            "tokens": session_tokens,
            "cost": session_cost,
        },
        budget={"tokens": budget_tokens, "cost": budget_cost},
        pool=pool,
    )
    if dry_run:
        from ...experiments.estimate import estimate
        from ..text.spending import print_estimate

        for plan in plans:
            print_estimate(run(partial(estimate, plan)))
        return
    done = _run(plans, task)
    if as_json:
        _print_outcome(done)
    elif done.left < done.sessions:  # else there is nothing to report on
        from .report import print_report

        print_report(done.log)
    if done.left:
        from ...engine.text import quantity

        say(
            f"duolog: {done.left:,} of {quantity(done.sessions, 'session')} left to be run: "
            f"{done.why}; the same command continues from here"
        )
        raise typer.Exit(_UNFINISHED)


def _run(plans: Sequence[Plan], task: str) -> Run:
    """Runs plans, and shows how far it is, what failed and what models used."""
    import warnings

    from ...experiments.plan import manifest_of
    from ...experiments.running import run_plans
    from ..text.run_progress import SessionProgress
    from ..text.spending import spent_text

    # A call that an interrupt cuts off leaves a coroutine of LiteLLM that is never awaited.
    warnings.filterwarnings("ignore", r"coroutine '(\w+\.)*acompletion'", RuntimeWarning)
    collect_rarely()

    async def main() -> Run:
        with SessionProgress(sum(len(plan.cells) for plan in plans)) as progress:
            return await run_plans(plans, progress, manifest=manifest_of(plans, task))

    done = run(main)
    for line in done.errors:
        say(f"duolog: {line}")
    if done.spent is not None and done.spent.calls:
        say(f"models: {spent_text(done.spent)}")
    done.check()
    return done


def _print_outcome(done: Run) -> None:
    """Prints what came of a run, with the report on its log as ``duolog report --json`` prints it."""
    from msgspec import Raw

    from .report import report_json

    report = None if done.left == done.sessions else Raw(report_json(done.log).encode())
    print_json(
        {
            "log": done.log,
            "sessions": done.sessions,
            "left": done.left,
            "why": done.why,
            "report": report,
        }
    )


def _patience(text: str | None) -> int | str | None:
    """The patience that the option sets; None if it was not given.

    Raises:
        InvalidInput: it is neither a number of rounds nor ``off``.
    """
    if text is None or text == _OFF:
        return text
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise InvalidInput(f"--patience expects a number of rounds, 1 or more, or {_OFF}, got {text!r}")


def _listed(text: str | None, option: str) -> tuple[str, ...] | None:
    """The names in a comma-separated option; None if it was not given."""
    return None if text is None else tuple(choices(text, option))
