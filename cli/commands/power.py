"""``duolog power``: how many problems a comparison of agents takes."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options
from ..arguments import choices, example, numbers
from ..root import app

__all__ = ("power_command",)


@app.command(
    "power",
    short_help="Says how many problems and repeats a comparison takes.",
    epilog=example(
        "duolog run travel --agents one-stage,two-stage --sessions 20 --repeats 3 --log pilot.db",
        "duolog power pilot.db --effect 0.05",
        "duolog power pilot.db --effect 0.1 --outcome drop@2 --compare one-stage,two-stage",
    ),
)
def power_command(
    sources: options.Sources,
    effect: Annotated[
        float,
        typer.Option(
            metavar="DIFFERENCE", help="The difference to be found, in the unit of the outcome."
        ),
    ],
    compare: options.Compare = None,
    outcome: Annotated[
        str,
        typer.Option(
            metavar="QUANTITY",
            help="Quantity that the comparison tests, such as overall or drop@2.",
        ),
    ] = "overall",
    tau: options.Taus = "1,2,3",
    pair_by: options.PairBy = None,
    utility: options.Utility = None,
    judge: options.Judge = "auto",
    as_json: options.NumbersAsJson = False,
) -> None:
    """Says how many problems and repeats give 80 % power, from the variance in a log.

    It also gives the difference that the log's own problems can detect. Reads only.
    """
    from ...scoring.comparison.power import power
    from ...scoring.report import power_document
    from ...scoring.trajectory.options import Options
    from ..reporting import Asked, print_document, sessions_of

    taus = numbers(tau, "--tau")
    asked = Asked(sources=sources, options=Options(taus=taus, utility=utility, judge=judge))
    found = power(
        sessions_of(asked),
        effect,
        names=() if compare is None else choices(compare, "--compare"),
        outcome=outcome,
        taus=taus,
        pair_by=pair_by or "problem",
    )
    print_document(power_document(found), "json" if as_json else "text")
