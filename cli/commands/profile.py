"""``duolog profile``: what kind of collaborator a model is, and what scaffold it needs."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import options
from ..arguments import choices, example, for_model, only_one
from ..output import output_rules, say
from ..root import app
from ..runtime import collect_rarely, run

if TYPE_CHECKING:
    from ...experiments.profile.playing import Profile, ProfilePlan
    from ...experiments.running import Run
    from ...scoring.comparison.simulators import Audit
    from ...scoring.metrics import Numbers
    from ...scoring.report import Document

__all__ = ("profile_command",)

_UNFINISHED = 3
_AUDITED = 200  # resamples of the distances from real people


@app.command(
    "profile",
    short_help="Says what kind of collaborator a model is, and what scaffold it needs.",
    epilog=example(
        "duolog profile gpt-4o --user-model gpt-4o-mini --budget-cost 20 --html profile.html",
        "duolog profile gpt-4o --tasks travel,data --dry-run",
        "duolog profile looper",
        "duolog profile exec:./my_agent.py --tasks tutoring",
        "duolog profile rules --secret 'only we know this'",
        note="A model is played in each scaffold (one-stage, two-stage, adaptive) and alone; an address or an agent as "
        "it is. Run the same command again to continue.",
    ),
)
def profile_command(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|ADDRESS|AGENT",
            help="A model as LiteLLM names it, rules, an agent such as looper, file.py:Name, or an address.",
        ),
    ],
    tasks: Annotated[
        str | None,
        typer.Option(metavar="TASKS", help="Tasks of the suite.", show_default="all"),
    ] = None,
    suite: Annotated[str, typer.Option(metavar="NAME", help="The suite.")] = "suite-1",
    secret: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="DUOLOG_SUITE_SECRET",
            help="Adds a half of the suite that is generated from this text; keep it to yourself.",
        ),
    ] = None,
    budget_cost: options.BudgetCost = None,
    user_model: options.UserModel = None,
    judge_model: options.JudgeModel = None,
    api_base: options.ApiBase = None,
    text_actions: options.TextActions = None,
    agent_timeout: options.AgentTimeout = None,
    agent_env: options.AgentEnv = None,
    cache: options.Cache = None,
    concurrency: options.Concurrency = None,
    log: Annotated[
        str | None,
        typer.Option(
            metavar="LOG",
            help="Path or URL of the log; created if it does not exist.",
            show_default="profile-SUBJECT.db",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="HUMAN_LOG",
            help="Path or URL of a log with real people, to compare the simulated ones with.",
        ),
    ] = None,
    price: options.Price = 0.005,
    bootstrap: options.Resamples = 1000,
    dry_run: options.DryRun = False,
    as_json: options.NumbersAsJson = False,
    as_csv: options.RowsAsCsv = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables in Markdown.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page with tables, figures and transcripts."),
    ] = None,
    force: options.Force = False,
) -> None:
    """Plays a frozen suite with a model, an address or an agent, and says what kind of collaborator it is.

    The page names the kind (plateau, loop, early polish, work shifted to the human, opaque, flood or sustained) with
    its evidence and sessions to look at, and recommends a scaffold, automation, or the human alone.
    """
    from ...engine.log.exchange.output_file import check_output
    from ...experiments.profile.playing import plan_profile
    from ..reporting import Form, print_document

    forms: dict[Form, bool] = {"json": as_json, "csv": as_csv, "markdown": as_markdown}
    form = only_one(forms) or "text"
    rules = output_rules(force=force)
    if against is not None:
        run(lambda: _look_into(against))
    if html is not None:
        check_output(html, rules)
    plan = plan_profile(
        subject,
        tasks=None if tasks is None or tasks == "all" else choices(tasks, "--tasks"),
        suite=suite,
        secret=secret,
        budget=budget_cost,
        log=log,
        concurrency=concurrency,
        user_model=user_model,
        judge_model=judge_model,
        api_base=api_base,
        cache=cache,
        agent_timeout=agent_timeout,
        agent_env=agent_env,
        text_actions=for_model(text_actions, subject),
    )
    if dry_run:
        _estimate(plan)
        return
    found, done = _play(plan, price, bootstrap)
    numbers = _numbers(plan, found, bootstrap)
    fidelity = None if against is None else _audit(plan, against)
    print_document(_document(plan, found, numbers, fidelity), form)
    if html is not None:
        from ...engine.log.exchange.output_file import output_file

        with output_file(html, rules) as file:
            file.write(_page(plan, found, numbers, fidelity).encode())
    if done.left:
        from ...engine.text import quantity

        say(
            f"duolog: {done.left:,} of {quantity(done.sessions, 'session')} left to be run: "
            f"{done.why}; the same command continues from here"
        )
        raise typer.Exit(_UNFINISHED)


def _estimate(plan: ProfilePlan) -> None:
    from ...engine.errors import InvalidInput
    from ...engine.models.traffic.budget import Spending
    from ...experiments.estimate import UsageEstimate, estimate, plus
    from ..text.spending import print_estimate

    asked = [one for one in plan.plans if one.experiment.named_models]
    if not asked:
        raise InvalidInput("there is nothing to estimate: no model is named")
    found = [run(partial(estimate, one)) for one in asked]
    shares = dict.fromkeys(share for one in found for share in one.total)
    total = {share: Spending() for share in shares}
    for one in found:
        for share, spent in one.total.items():
            total[share] = plus(total[share], spent)
    print_estimate(
        UsageEstimate(
            total,
            sum(one.sessions for one in found),
            sum(one.sampled for one in found),
            frozenset(name for one in found for name in one.unpriced),
        )
    )


def _play(plan: ProfilePlan, price: float, bootstrap: int) -> tuple[Profile, Run]:
    """Plays the suite, and shows how far it is, what failed and what models used."""
    import warnings

    from ...experiments.profile.playing import profile
    from ..text.run_progress import SessionProgress
    from ..text.spending import spent_text

    # A call that an interrupt cuts off leaves a coroutine of LiteLLM that is never awaited.
    warnings.filterwarnings("ignore", r"coroutine '(\w+\.)*acompletion'", RuntimeWarning)
    collect_rarely()

    async def main() -> tuple[Profile, Run]:
        with SessionProgress(plan.sessions) as progress:
            return await profile(plan, price=price, bootstrap=bootstrap, progress=progress)

    found, done = run(main)
    for line in done.errors:
        say(f"duolog: {line}")
    if done.spent is not None and done.spent.calls:
        say(f"models: {spent_text(done.spent)}")
    done.check()
    return found, done


def _numbers(plan: ProfilePlan, found: Profile, bootstrap: int) -> Numbers | None:
    from ...experiments.profile.playing import columns_of_profile
    from ...scoring.report import make_report

    if not found.played:
        return None
    return make_report(
        columns_of_profile(plan), group_by=("agent",), bootstrap=bootstrap, scores=False
    )


async def _look_into(where: str) -> None:
    """Opens a log that is read later, so that a wrong name is refused before anything is played."""
    from ..lookup import existing_log

    async with existing_log(where):
        pass


def _audit(plan: ProfilePlan, against: str) -> Audit:
    """How far the users of the profile, with an agent, are from real people."""
    from ...engine.errors import InvalidInput
    from ...experiments.profile.playing import session_ids
    from ...scoring.comparison.behaviour import Behaviour, read_behaviours
    from ...scoring.comparison.simulators import audit
    from ..lookup import existing_log

    async def read(where: str) -> list[Behaviour]:
        async with existing_log(where) as opened:
            return await read_behaviours(opened)

    mine = session_ids(plan, plan.scaffolds)
    simulated = [one for one in run(lambda: read(plan.log)) if one.session in mine]
    real = run(lambda: read(against))
    try:
        return audit(simulated, real, resamples=_AUDITED, seed=0)
    except InvalidInput as error:
        raise InvalidInput(f"{plan.log} against {against}: {error}") from None


def _document(
    plan: ProfilePlan,
    found: Profile,
    numbers: Numbers | None,
    fidelity: Audit | None,
    *,
    links: bool = False,
) -> Document:
    from ...experiments.profile.page import looked_at, profile_document

    sessions = looked_at(found)
    return profile_document(
        found,
        numbers,
        fidelity=fidelity,
        links={name: f"#t{place}" for place, name in enumerate(sessions)} if links else {},
        commands={name: shlex.join(["duolog", "show", plan.log, name]) for name in sessions},
    )


def _page(
    plan: ProfilePlan, found: Profile, numbers: Numbers | None, fidelity: Audit | None
) -> str:
    """The page, with the transcripts of the sessions to look at."""
    from ...experiments.profile.page import looked_at
    from ...scoring.report import document_page
    from ...scoring.trajectory.options import Options
    from ..lookup import existing_log
    from ..reporting import transcript_text

    sessions = looked_at(found)

    async def read() -> dict[str, tuple[str, str]]:
        async with existing_log(plan.log) as log:
            return {
                f"t{place}": (name, await transcript_text(log, name, Options()))
                for place, name in enumerate(sessions)
            }

    return document_page(
        _document(plan, found, numbers, fidelity, links=True), transcripts=run(read)
    )
