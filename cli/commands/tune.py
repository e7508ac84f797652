"""``duolog tune``: fits the rules of the adaptive agent to a task, and writes them to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import options
from ..arguments import CONCURRENCY, example, numbers, one_of
from ..output import output_rules
from ..root import app
from ..runtime import collect_rarely, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...experiments.tuning import Best

__all__ = ("tune_command",)

_WEIGHT = 1000.0  # far beyond what is worth trying, and far from an overflow


@app.command(
    "tune",
    short_help="Fits the rules of the adaptive agent to a task, and writes them to a file.",
    epilog=example(
        "duolog tune travel --output trips.toml",
        "duolog tune shop.py:Shop --trials 20 --sessions 4 --seeds 1,2 --users proactive",
        "duolog run travel --agents two-stage,adaptive:trips.toml --seed 21",
        note="The rules say when the agent asks, when it leaves the lead to the human, and when it hands "
        "over. They are fitted on rules, with no model: a trial plays sessions × seeds × personas. The same "
        "command gives the same file. Evaluate the rules on other seeds than those that they were fitted on.",
    ),
)
def tune_command(
    task: Annotated[
        str,
        typer.Argument(metavar="TASK", help="The task, e.g. travel; or yours, as file.py:Name."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write.", show_default="TASK-rules.toml"),
    ] = None,
    trials: Annotated[int, typer.Option(metavar="N", min=1, help="Number of rules to try.")] = 60,
    sessions: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Sessions per cell (seed and persona), from the first instance on.",
        ),
    ] = 6,
    seeds: Annotated[
        str, typer.Option(metavar="NUMBERS", help="Seeds to train on, separated by commas.")
    ] = "1,2,3,4,5",
    users: Annotated[
        str | None,
        typer.Option(
            metavar="USERS",
            help="Personas to train with, separated by commas.",
            show_default="all of the task",
        ),
    ] = None,
    drop: Annotated[
        float,
        typer.Option(metavar="WEIGHT", min=0, max=_WEIGHT, help="Weight of the drop at τ = 2."),
    ] = 0.1,
    price: options.Price = 0.005,
    behind: Annotated[
        float,
        typer.Option(
            metavar="WEIGHT",
            min=0,
            max=_WEIGHT,
            help="Weight of being worse than the one- or the two-stage agent in utility, drop or time.",
        ),
    ] = 0.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed for the optimiser.")] = 0,
    dataset: options.Dataset = None,
    concurrency: options.Concurrency = None,
    force: options.Force = False,
) -> None:
    """Fits the rules of the adaptive agent to a task, and writes them to a file.

    The search maximises overall utility, with a part of the drop at τ = 2 and a price on the human's
    time, against the better of the one- and the two-stage agent on the same instances. A loss with one
    persona counts double. The file says what it was fitted on, and adaptive:FILE plays by it.
    """
    from importlib.util import find_spec

    from ...engine.errors import MissingExtra
    from ...engine.log.exchange.output_file import check_output, output_file
    from ...experiments.parts import named_task

    if find_spec("optuna") is None:
        raise MissingExtra("tune", "tuning")
    found = named_task(task, dataset).task
    personas = one_of(users, "--users", found.users) if users else list(found.users)
    path = output or Path(f"{found.name}-rules.toml")
    rules = output_rules(force=force)
    check_output(path, rules)
    from ...experiments.tuning import Fit, Weights, fit
    from ..text.run_progress import TrialProgress

    wanted = Fit(
        users=tuple(personas),
        seeds=numbers(seeds, "--seeds"),
        sessions=sessions,
        trials=trials,
        seed=seed,
        weights=Weights(drop=drop, price=price, behind=behind),
        concurrency=concurrency or CONCURRENCY,
    )
    collect_rarely()
    with TrialProgress(trials) as progress:
        fitted, best = run(lambda: fit(found, wanted, progress.advance))
    from ...agents.rules_file import rules_text

    with output_file(path, rules) as file:
        file.write(rules_text(fitted).encode())
    for line in _summary(best):
        typer.echo(line)
    typer.echo(
        f"Written: {path}. Next: duolog run {task} --agents two-stage,adaptive:{path} --seed 21"
    )


def _summary(best: Best) -> Iterator[str]:
    """The result, a line for each kind of user."""
    for user, one in best.played.items():
        others = ", ".join(f"{other.utility:.3f}" for other in best.others[user])
        compared = f" (one-stage, two-stage: {others})" if others else ""
        yield f"{user}: overall utility {one.utility:.3f}{compared}"
    yield f"score {best.score:+.4f} on the training sessions"
