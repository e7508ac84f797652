"""Prints the drop against continuations, beside the observed one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...engine.display import clean
from ...scoring.metrics.counterfactual import CounterfactualDrop, CounterfactualReport
from ...scoring.metrics.results import Estimate
from ...scoring.report.text.columns import TableCell, TableColumn, TableHeading, TableLine, draw
from ...scoring.report.text.wording import number, span

__all__ = ("print_counterfactual",)

_GAP = 2


def print_counterfactual(console: Console, report: CounterfactualReport) -> None:
    """Prints a row per group and tolerance, and what was left out."""
    drops = report.drops
    console.print(Text("The drop against continuations without the stop\n", style="bold"))
    headings = [
        TableHeading(
            "",
            [
                TableColumn("Group", [TableCell(_name(drop)) for drop in drops], left=True),
                TableColumn("τ", [TableCell(str(drop.tau)) for drop in drops]),
            ],
        ),
        TableHeading(
            "Sessions",
            [
                TableColumn("All", [TableCell(str(drop.sessions)) for drop in drops]),
                TableColumn("Stopped", [TableCell(str(drop.reached)) for drop in drops]),
            ],
        ),
        TableHeading(
            "D@τ",
            [
                _estimates("Real", [drop.real for drop in drops]),
                _estimates("Observed", [drop.observed for drop in drops]),
                _estimates("Difference", [drop.difference for drop in drops]),
            ],
        ),
        TableHeading(
            "Standard deviation",
            [
                TableColumn("Within", [TableCell(_deviation(drop.within)) for drop in drops]),
                TableColumn("Between", [TableCell(_deviation(drop.between)) for drop in drops]),
            ],
        ),
    ]
    lines = [TableLine(row=index) for index in range(len(drops))]
    console.print(draw(headings, lines, _GAP, "─"), soft_wrap=True)
    console.print(Text(_note(drops), style="dim"))


def _name(drop: CounterfactualDrop) -> str:
    return clean(", ".join(v for name, v in drop.group.items() if name != "task")) or "all"


def _estimates(name: str, values: Sequence[Estimate]) -> TableColumn:
    return TableColumn(name, [TableCell(number(one.value), span(one)) for one in values])


def _deviation(variance: float | None) -> str:
    return number(None if variance is None else math.sqrt(variance))


def _note(drops: Sequence[CounterfactualDrop]) -> str:
    texts = [
        (
            "Real: utility at the stop less the mean final utility of continuations from there, with "
            "fresh seeds. Observed: less the final utility of the session itself. A session that is not "
            "stopped counts 0 in both. Within: between continuations of a session; between: between "
            "the sessions that were stopped, beyond that."
        )
    ]
    lost = sum(drop.without_utility for drop in drops)
    if lost:
        texts.append(f"Continuations without a final utility: {lost}.")
    reasons: dict[str, int] = {}
    for drop in drops:
        for reason, count in drop.left_out.items():
            reasons[f"τ = {drop.tau}, {reason}"] = (
                reasons.get(f"τ = {drop.tau}, {reason}", 0) + count
            )
    texts += [f"Sessions left out ({clean(reason)}): {count}." for reason, count in reasons.items()]
    return "\n".join(texts)
