"""``duolog counterfactual``: the drop at a tolerance, against continuations of the same sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .. import options
from ..arguments import CONCURRENCY, choices, example, numbers
from ..lookup import existing_log
from ..output import say
from ..root import app
from ..runtime import collect_rarely, run

if TYPE_CHECKING:
    from ...experiments.counterfactual import CounterfactualRun

__all__ = ("counterfactual_command",)

_UNFINISHED = 3


@app.command(
    "counterfactual",
    short_help="Measures the drop at each tolerance against continuations without the stop.",
    epilog=example(
        "duolog counterfactual demo.db --tau 1,2,3 --continuations 8",
        "duolog counterfactual models.db --tau 2 --continuations 4 --concurrency 16 --json",
        note="If you run the same command again, it continues; further continuations are added "
        "to those that the log holds. duolog report leaves them out.",
    ),
)
def counterfactual_command(
    log: options.LogToRead,
    tau: options.Taus = "1,2,3",
    continuations: Annotated[
        int, typer.Option(metavar="N", min=1, help="Continuations of each session at each stop.")
    ] = 8,
    judge: options.Judge = "auto",
    utility: options.Utility = None,
    concurrency: options.Concurrency = None,
    bootstrap: options.Resamples = 1000,
    seed: options.ResamplingSeed = 0,
    api_base: options.ApiBase = None,
    text_actions: options.TextActions = None,
    dataset: options.Dataset = None,
    task: options.OfTask = None,
    as_json: options.NumbersAsJson = False,
) -> None:
    """Measures the drop at each tolerance against continuations without the stop.

    If τ unproductive rounds in a row would make the human leave, the session is continued
    from the last act of that round, with fresh seeds and without the stop. The utility at the stop
    less the mean final utility of the continuations is the real drop; the table also has the observed
    one, from the one course of events there was. The continuations are forks in the same log.
    """
    from ...scoring.report import counterfactual_document
    from ...scoring.trajectory.options import Options
    from ..reporting import print_document

    taus = numbers(tau, "--tau")
    texts = () if text_actions is None else tuple(choices(text_actions, "--text-actions"))
    scored = Options(taus=taus, judge=judge, utility=utility)
    collect_rarely()

    async def main() -> CounterfactualRun:
        from ...experiments.continuations import Continuations
        from ...experiments.counterfactual import measure
        from ...experiments.sources import check_scorers
        from ..text.run_progress import SessionProgress

        async with existing_log(log) as opened:
            await check_scorers(opened, scored)
            making = Continuations(
                opened, dataset=dataset, api_base=api_base, text_actions=texts, task=task
            )
            return await measure(
                opened,
                making,
                scored,
                continuations=continuations,
                concurrency=concurrency or CONCURRENCY,
                bootstrap=bootstrap,
                seed=seed,
                showing=SessionProgress,
            )

    done = run(main)
    for line in done.left_out:
        say(f"duolog: left out: {line}")
    print_document(counterfactual_document(done.report), "json" if as_json else "text")
    if done.stopped is not None:
        say(
            f"duolog: continuations are left to be run: {done.stopped}; run the same command again to continue"
        )
        raise typer.Exit(_UNFINISHED)
