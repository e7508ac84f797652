"""Prints the comparison of forks with their origins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from ...scoring.metrics.forks import Fork, ForkGroup, ForkReport
from ...scoring.report.text.columns import TableCell, TableColumn, TableHeading, TableLine, draw
from ...scoring.report.text.wording import number, span
from .terminal import clean
from .wording import count

__all__ = ("print_forks",)

_GAP = 2
_NOBODY = "?"


def print_forks(console: Console, report: ForkReport) -> None:
    """Prints the mean results by who took over from whom, and then each fork."""
    if not report.forks:
        console.print(Text("There are no forks."))
        return
    console.print(Text("Forks, and what really happened\n", style="bold"))
    if report.groups:
        _print(console, _groups(report.groups), len(report.groups))
    _print(console, _each(report.forks), len(report.forks))
    if lost := [fork for fork in report.forks if fork.reason is not None]:
        reasons = sorted({fork.reason for fork in lost if fork.reason})
        note = f"{count(len(lost), 'fork')} without a difference: {'; '.join(reasons)}."
        console.print(Text(note, style="dim"))


def _print(console: Console, headings: Sequence[TableHeading], rows: int) -> None:
    lines = [TableLine(row=index) for index in range(rows)]
    console.print(draw(headings, lines, _GAP, "─"), soft_wrap=True)


def _groups(groups: Sequence[ForkGroup]) -> list[TableHeading]:
    who = [TableCell(_change(group.played_then, group.played_now)) for group in groups]
    return [
        TableHeading("", [TableColumn("Who took over", who, left=True)]),
        TableHeading("", [TableColumn("Forks", [TableCell(str(group.forks)) for group in groups])]),
        TableHeading(
            "Final utility",
            [
                TableColumn(
                    "Then", [TableCell(number(g.then.value), span(g.then)) for g in groups]
                ),
                TableColumn("Now", [TableCell(number(g.now.value), span(g.now)) for g in groups]),
                TableColumn(
                    "Change",
                    [TableCell(_signed(g.difference.value), span(g.difference)) for g in groups],
                ),
            ],
        ),
        TableHeading(
            "", [TableColumn("Rounds", [TableCell(_signed(g.rounds.value, 1)) for g in groups])]
        ),
    ]


def _each(forks: Sequence[Fork]) -> list[TableHeading]:
    at = ["–" if fork.round is None else str(fork.round) for fork in forks]
    return [
        TableHeading(
            "", [TableColumn("Fork", [TableCell(clean(fork.session)) for fork in forks], left=True)]
        ),
        TableHeading("", [TableColumn("At round", [TableCell(text) for text in at])]),
        TableHeading(
            "Final utility",
            [
                TableColumn("Before", [TableCell(number(fork.before)) for fork in forks]),
                TableColumn("Then", [TableCell(number(fork.then)) for fork in forks]),
                TableColumn("Now", [TableCell(number(fork.now)) for fork in forks]),
                TableColumn("Change", [TableCell(_signed(fork.difference)) for fork in forks]),
            ],
        ),
    ]


def _change(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Who took over from whom: the labels that changed, or all labels if none did."""
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    if not names:
        return clean(f"the same ({', '.join(now.values())})")
    return clean(
        ", ".join(f"{then.get(name, _NOBODY)} → {now.get(name, _NOBODY)}" for name in names)
    )


def _signed(value: float | None, places: int = 3) -> str:
    text = number(value, places)
    return f"+{text}" if value is not None and value > 0 and text.strip("0.") else text
