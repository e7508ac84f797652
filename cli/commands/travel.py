"""``duolog travel evaluate``: evaluates travel plans as TravelPlanner's evaluator does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from ...engine.errors import InvalidInput
from ..arguments import example, one_of
from ..output import print_json
from ..root import app

if TYPE_CHECKING:
    from ...examples.travel.evaluation import Summary

__all__ = ("evaluate_command", "travel")

_VARIANTS = ("published", "strict", "cogym")

travel = typer.Typer(help="Commands for the travel planning task.", no_args_is_help=True)
app.add_typer(travel, name="travel")


@travel.command(
    "evaluate",
    epilog=example(
        "duolog travel evaluate --dataset validation.csv --plans plans.jsonl",
        "duolog travel evaluate --dataset data/ --plans - --variant strict --json",
    ),
)
def evaluate_command(
    dataset: Annotated[
        str,
        typer.Option(metavar="PATH", help="File or directory with the data of the task."),
    ],
    plans: Annotated[
        str, typer.Option(metavar="FILE", help="Plans, one JSON object a line; - for the input.")
    ],
    variant: Annotated[
        str,
        typer.Option(metavar="|".join(_VARIANTS), help="Rules of the evaluation."),
    ] = "published",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per plan, in file order.")
    ] = False,
) -> None:
    """Evaluates plans on TravelPlanner's constraints: results per plan, or its leaderboard rates."""
    from ...examples.travel.data.dataset import load_dataset
    from ...examples.travel.evaluation import VARIANTS, score_submissions, summarize

    chosen = one_of(variant, "--variant", VARIANTS)
    data = load_dataset(dataset)
    if not data.instances:
        raise InvalidInput(f"{dataset} holds tables, but no instances that plans could be for")
    with _lines(plans) as lines:
        kind = next(known for known in VARIANTS if known == chosen[0])
        scored = score_submissions(lines, data, kind, source=plans)
        if as_json:
            for one in scored:
                print_json(one.to_json())
        else:
            _print_summary(summarize(scored), kind)


@contextmanager
def _lines(path: str) -> Iterator[IO[str]]:
    if path == "-":
        yield sys.stdin
        return
    try:
        with Path(path).open(encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text: {error.reason}") from error


def _print_summary(summary: Summary, variant: str) -> None:
    from rich.console import Console
    from rich.table import Table

    from ...engine.text import quantity

    if not summary.plans:
        raise InvalidInput("the file contains no plan")
    table = Table(
        title=f"{quantity(summary.plans, 'plan')}, variant {variant}",
        title_justify="left",
        box=None,
    )
    table.add_column("", style="bold")
    table.add_column("%", justify="right")
    for name, share in (*summary.rows(), ("Performance (mean of both rates)", summary.performance)):
        table.add_row(name, f"{100 * share:.2f}")
    console = Console()
    console.print(table)
    errors = summary.commonsense_errors, summary.hard_errors
    if any(errors):
        console.print(
            f"The evaluator could not finish on {quantity(errors[0], 'plan')} for commonsense and on {errors[1]} "
            "for hard constraints; that kind counts as 0 there, with the cause in --json."
        )
