"""``duolog score``: measures the sessions of a log afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...engine.errors import InvalidInput
from .. import options
from ..arguments import CONCURRENCY, choices, example
from ..lookup import existing_log, find_session
from ..output import print_json, say
from ..root import app
from ..runtime import run

if TYPE_CHECKING:
    from ...engine.log.contract import EventLog
    from ..scoring import Scored

__all__ = ("score_command",)

_FAILED = 1
_UNFINISHED = 3
_MODEL_JUDGE = "model-judge"
_BY_RUBRIC = frozenset({"rubric", "chat-rubric"})


@app.command(
    "score",
    short_help="Measures the sessions of a log afterwards.",
    epilog=example(
        "duolog score runs.db --scorers retention,rule-judge",
        "duolog score chats.db --scorers resolution",
        "duolog score runs.db --judge-model gpt-4o --budget-cost 5",
        "duolog score runs.db --scorers rubric --rubric rubric.toml --judge-model gpt-4o",
        "duolog score runs.db --scorers my_scorers.py:Brevity --session a,b",
        "duolog score postgresql://ann@db.example/work --scorers rule-judge --follow --workers 4",
        note="New measurements are added; existing ones are never replaced or "
        "made again. If you run the same command again, it continues.",
    ),
)
def score_command(
    log: options.LogToRead,
    scorers: Annotated[
        str | None,
        typer.Option(
            metavar="SCORERS",
            help="Scorers, separated by commas: feedback, retention, resolution, rubric, "
            "chat-rubric, rule-judge, model-judge, labels-judge, travel, one that is installed, "
            "or file.py:Name.",
        ),
    ] = None,
    judge_model: options.JudgeModel = None,
    rubric: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="TOML file with the rubric.", show_default="a general one"
        ),
    ] = None,
    session: options.SessionIds = None,
    rounds: options.CountRounds = "handoff",
    api_base: options.ApiBase = None,
    cache: options.Cache = None,
    concurrency: options.Concurrency = None,
    budget_tokens: options.BudgetTokens = None,
    budget_cost: options.BudgetCost = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep scoring as the log grows, until interrupted.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="With --follow: number of processes that score together.",
            show_default="1",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="With --follow: serve lag and back-pressure to Prometheus, at PORT or HOST:PORT.",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object; with --follow, one per second."),
    ] = False,
) -> None:
    """Measures recorded sessions with scorers, and says what was added.

    With --follow it keeps scoring as the log grows. If you start the same command again, on this machine or
    another, the processes share the sessions, and take over the share of one that dies.

    The exit code is 1 if a scorer failed on a session, and 3 if a model or its budget did not last
    for all of them.
    """
    names = None if session is None else choices(session, "--session")
    if not follow and (workers is not None or metrics is not None):
        raise InvalidInput("--workers and --metrics are for --follow")
    if follow and names is not None:
        raise InvalidInput("--follow scores all sessions; leave --session out")
    from ..scoring import ScoreOptions, ScoringRun

    if scorers is None and judge_model is None:
        scorers = run(lambda: _default_scorer(log))
    options = ScoreOptions(
        log=log,
        scorers=_scorers(scorers, judge_model, rubric),
        judge=judge_model,
        rubric=None if rubric is None else str(rubric),
        rounds=rounds,
        api_base=api_base,
        cache=cache,
        concurrency=concurrency or CONCURRENCY,
        tokens=budget_tokens,
        cost=budget_cost,
    )
    if follow:
        from ..following.run import run_following

        ScoringRun(existing_log(log), options)  # says before the workers start what is wrong
        code = run_following(options, workers=workers or 1, metrics=metrics, as_json=as_json)
        if code:
            raise typer.Exit(code)
        return

    async def main() -> tuple[Scored, str]:
        from ..text.spending import models_line

        async with existing_log(log) as opened:
            scoring = ScoringRun(opened, options)
            await scoring.reach_judge()
            scored = await scoring.score(await _names(opened, names))
            return scored, "" if scoring.models is None else models_line(scoring.models)

    scored, usage = run(main)
    _check_any(scored)
    if as_json:
        print_json(scored)
    else:
        _print(scored)
    if usage:
        say(usage)
    if scored.why is not None:
        from ...engine.text import quantity

        say(
            f"duolog: {scored.unfinished:,} of {quantity(scored.sessions, 'session')} left to be scored: "
            f"{scored.why}; the same command continues from here"
        )
        raise typer.Exit(_UNFINISHED)
    if any(one.failed for one in scored.scorers):
        raise typer.Exit(_FAILED)


def _scorers(given: str | None, judge: str | None, rubric: Path | None) -> tuple[str, ...]:
    """Names of the scorers that the options ask for; a model that is named rates progress unless another asks it.

    Raises:
        InvalidInput: the options do not fit together, or name no scorer.
    """
    from ...scoring.scorers.registry import find_scorer

    names = [] if given is None else choices(given, "--scorers")
    asking = [name for name in names if find_scorer(name).asks_model]
    if judge is not None and not asking:
        names.append(_MODEL_JUDGE)
    if not names:
        raise InvalidInput("say what to score by: --scorers SCORERS, or --judge-model MODEL")
    if judge is None and asking:
        raise InvalidInput(f"--scorers {asking[0]} asks a model: name it with --judge-model")
    if rubric is not None and not _BY_RUBRIC & set(names):
        raise InvalidInput("--rubric is for --scorers rubric or chat-rubric")
    return tuple(dict.fromkeys(names))


async def _default_scorer(where: str) -> str:
    """The scorers for chats without an output: resolution, and feedback if anybody gave any.

    Raises:
        InvalidInput: the log holds an output, so that there is a choice to make.
    """
    names = ["resolution"]
    async with existing_log(where) as log:
        async for record in log.read_all():
            if record.kind == "SnapshotTaken":
                raise InvalidInput(
                    "say what to score by: --scorers SCORERS, or --judge-model MODEL (sessions of this log have "
                    "an output; for chats without one the default is resolution)"
                )
            if record.kind == "FeedbackGiven" and "feedback" not in names:
                names.append("feedback")
    say(
        f"scoring by {' and '.join(names)}, the default for chats: docs/scorers.md gives error rates"
    )
    return ",".join(names)


async def _names(log: EventLog, wanted: list[str] | None) -> list[str]:
    if wanted is not None:
        found = [(await find_session(log, name)).session for name in wanted]
        return list(dict.fromkeys(found))
    return [summary.session async for summary in log.sessions()]


def _check_any(scored: Scored) -> None:
    """Refuses a run in which no scorer could be run on any session.

    Raises:
        InvalidInput: says why.
    """
    if scored.scorers or scored.why is not None:
        return
    for name, reasons in scored.left_out.items():
        raise InvalidInput(f"{name} scored nothing: {next(iter(reasons))}")
    raise InvalidInput("nothing to score: the log is empty")


def _print(scored: Scored) -> None:
    from ...engine.text import quantity
    from ...scoring.display.texts import clean

    for one in scored.scorers:
        parts = [f"{quantity(one.added, 'measurement')} added"]
        parts += [f"{one.known} there already"] if one.known else []
        parts += [f"{one.missing} without a value"] if one.missing else []
        parts += (
            [f"failed in {quantity(one.failed, 'session')} ({one.error})"] if one.failed else []
        )
        line = f"{one.scorer}: {', '.join(parts)}; {quantity(one.sessions, 'session')}"
        if not (one.added or one.known or one.failed):
            line += ". They hold nothing that it measures: docs/scorers.md says what it needs"
        typer.echo(clean(line))
    for line in _left_out(scored):
        say(line)


def _left_out(scored: Scored) -> Iterator[str]:
    from ...engine.text import quantity

    for name, reasons in scored.left_out.items():
        for why, sessions in reasons.items():
            yield f"{name}: {quantity(sessions, 'session')} not scored: {why}"
    if scored.forgotten:
        yield f"{quantity(scored.forgotten, 'session')} erased: nothing to score there"
