"""Prints how far simulated people are from real ones."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...engine.display import clean
from ...engine.text import quantity
from ...scoring.comparison.simulators import Audit, BehaviourGap
from ...scoring.metrics.results import Estimate
from ...scoring.report.text.columns import TableCell, TableColumn, TableHeading, TableLine, draw
from ...scoring.report.text.wording import ABSENT, number, span

__all__ = ("print_audit",)

_NAMES = {
    "turn_length": "turn length, words",
    "question_rate": "turns that ask, share",
    "vagueness": "vague turns, share",
    "edits": "edits, versions",
    "ratings": "ratings, points",
    "survival": "survival, rounds",
}


def print_audit(console: Console, found: Audit) -> None:
    """Prints a table per persona."""
    for one in found.personas:
        beside = f"{quantity(one.sessions, 'session')} beside {found.people:,} of people"
        console.print(Text.assemble((clean(one.simulated), "bold"), f"  {beside}"))
        lines = [TableLine(row=index) for index in range(len(one.measures))]
        console.print(draw(_headings(one.measures), lines, 2, rule="─"), soft_wrap=True)
        for gap in one.measures:
            if gap.reason:
                console.print(Text(f"{ABSENT} {_NAMES[gap.measure]}: {gap.reason}", style="dim"))
        console.print()
    if found.left_out:
        left = quantity(found.left_out, "session")
        console.print(Text(f"Left out of the people: {left} with a simulated human.", style="dim"))
    console.print(
        Text(
            "W1: Wasserstein's distance, in the unit of the row; KS: that of Kolmogorov and Smirnov, 0 to 1. "
            f"Below: {100 * found.level:g} % bootstrap intervals over sessions ({found.resamples:,} "
            f"resamples, seed {found.seed}). Chance: what 95 % of random divisions of the same sessions "
            "stay below; a distance within it cannot be told from 0. * beyond it.",
            style="dim",
        )
    )


def _headings(gaps: Sequence[BehaviourGap]) -> list[TableHeading]:
    def column(name: str, of: Sequence[Estimate], marks: Sequence[str] = ()) -> TableColumn:
        signs = marks or [""] * len(of)
        cells = [
            TableCell(number(one.value, 2) + sign, span(one))
            for one, sign in zip(of, signs, strict=True)
        ]
        return TableColumn(name, cells)

    names = [TableCell(_NAMES[gap.measure]) for gap in gaps]
    return [
        TableHeading("", [TableColumn("", names, left=True)]),
        TableHeading(
            "Mean",
            [
                column("simulated", [gap.simulated for gap in gaps]),
                column("people", [gap.people for gap in gaps]),
                column("difference", [gap.difference for gap in gaps]),
            ],
        ),
        TableHeading(
            "W1",
            [
                column(
                    "distance",
                    [gap.wasserstein for gap in gaps],
                    [_mark(gap.wasserstein, gap.chance_wasserstein) for gap in gaps],
                ),
                _plain("chance", [gap.chance_wasserstein for gap in gaps]),
            ],
        ),
        TableHeading(
            "KS",
            [
                column(
                    "distance",
                    [gap.ks for gap in gaps],
                    [_mark(gap.ks, gap.chance_ks) for gap in gaps],
                ),
                _plain("chance", [gap.chance_ks for gap in gaps]),
            ],
        ),
    ]


def _plain(name: str, values: Sequence[float | None]) -> TableColumn:
    return TableColumn(name, [TableCell(number(value, 2)) for value in values])


def _mark(distance: Estimate, chance: float | None) -> str:
    beyond = distance.value is not None and chance is not None and distance.value > chance
    return "*" if beyond else ""
