"""Prints comparisons of agents, the sensitivity of the drop, and the agreement of judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from ...engine.display import clean
from ...engine.text import quantity
from ...scoring.comparison.agreement import Agreement, Pair
from ...scoring.comparison.pairs import Comparison, Difference
from ...scoring.comparison.sensitivity import Sensitivity, SensitivityRow
from ...scoring.report.text.columns import TableCell, TableColumn, TableHeading, TableLine, draw
from ...scoring.report.text.wording import (
    ABSENT,
    compared_places,
    compared_title,
    number,
    percent,
    span,
)

__all__ = ("print_agreement", "print_comparisons", "print_sensitivity")

_GAP = 2


def print_comparisons(console: Console, comparisons: Sequence[Comparison]) -> None:
    """Prints a table per pair of agents and group."""
    for one in comparisons:
        title = f"{clean(one.second)} against {clean(one.first)}"
        console.print(Text.assemble((title, "bold"), f"  {_labels(one.group)}"))
        console.print(Text(_pairs(one), style="dim"))
        _print(console, _differences(one), len(one.differences))
        reasons = {each.difference.reason for each in one.differences if each.difference.reason}
        for reason in sorted(reasons):
            console.print(Text(f"{ABSENT} {reason}", style="dim"))
        console.print()
    for why in sorted({one.untested for one in comparisons if one.untested}):
        console.print(Text(f"{ABSENT} {why}", style="dim"))
    console.print(
        Text(
            "Difference: the second agent less the first on the same instance, mean and 95 % bootstrap "
            "interval. p: paired permutation test; Holm: adjusted over all that is printed. d: effect "
            "size, mean over standard deviation of the differences. Needed: instances for 80 % power "
            "at this effect.",
            style="dim",
        )
    )


def print_sensitivity(console: Console, found: Sensitivity) -> None:
    """Prints the drop under each choice, a column per τ, and where the order of agents changes."""
    console.print(Text("Drop by what counts as a bad rating\n", style="bold"))
    taus = sorted({row.tau for row in found.rows})
    rows: dict[tuple[str, int, str, str], dict[int, SensitivityRow]] = {}
    for row in found.rows:
        rows.setdefault((row.judge, row.least, row.missing, _labels(row.group)), {})[row.tau] = row
    cells = list(rows.items())
    headings = [
        TableHeading(
            "",
            [
                TableColumn("Judge", [TableCell(clean(key[0])) for key, _ in cells], left=True),
                TableColumn("Bad below", [TableCell(str(key[1])) for key, _ in cells]),
                TableColumn("Missing is", [TableCell(key[2]) for key, _ in cells], left=True),
                TableColumn("Group", [TableCell(key[3]) for key, _ in cells], left=True),
            ],
        ),
        *[
            TableHeading(
                f"Drop τ = {tau}",
                [
                    TableColumn(
                        "abs.",
                        [TableCell(number(by_tau[tau].drop.value)) for _, by_tau in cells],
                    ),
                    TableColumn(
                        "stopped", [TableCell(str(by_tau[tau].stopped)) for _, by_tau in cells]
                    ),
                ],
            )
            for tau in taus
        ],
    ]
    _print(console, headings, len(cells))
    for change in found.changes:
        text = (
            f"The order of {clean(change.first)} and {clean(change.second)} at τ = {change.tau} depends on "
            f"the choice: {clean(change.first)} loses less in {change.above}, more in {change.below} of them."
        )
        console.print(Text(text, style="yellow"))
    if not found.changes:
        console.print(Text("The order of agents is the same under all choices.", style="dim"))


def print_agreement(console: Console, found: Agreement) -> None:
    """Prints how far judges agree, and a confusion table for each two of them."""
    console.print(Text("Agreement of judges\n", style="bold"))
    if not found.pairs:
        console.print(Text("No round was rated by two judges."))
        return
    console.print(
        Text(
            f"Krippendorff's α (interval scale) over {quantity(len(found.judges), 'judge')}: "
            f"{number(found.alpha.value)} {_span(found.alpha.low, found.alpha.high)}, "
            f"{quantity(found.rounds, 'round')} of {quantity(found.sessions, 'session')}\n"
        )
    )
    for pair in found.pairs:
        _print_pair(console, pair)


def _print_pair(console: Console, pair: Pair) -> None:
    said = f"weighted κ {number(pair.kappa.value)} {_span(pair.kappa.low, pair.kappa.high)}"
    if pair.kappa.value is None:
        said = f"no κ: {pair.kappa.reason}"
    names = f"{clean(pair.first)} (rows) and {clean(pair.second)} (columns)"
    console.print(Text.assemble((names, "bold")))
    console.print(
        Text(
            f"{said}; {percent(pair.equal)} equal of {quantity(pair.rounds, 'round')}", style="dim"
        )
    )
    ratings = range(1, 6)
    headings = [
        TableHeading("", [TableColumn("", [TableCell(str(rating)) for rating in ratings])]),
        *[
            TableHeading(
                "",
                [
                    TableColumn(
                        str(rating),
                        [TableCell(str(row[rating - 1])) for row in pair.confusion],
                    )
                ],
            )
            for rating in ratings
        ],
    ]
    _print(console, headings, 5)
    console.print()


def _differences(one: Comparison) -> list[TableHeading]:
    found = one.differences
    return [
        TableHeading(
            "",
            [
                TableColumn(
                    "Quantity", [TableCell(compared_title(d.quantity)) for d in found], left=True
                )
            ],
        ),
        TableHeading("", [TableColumn("Pairs", [TableCell(str(d.pairs)) for d in found])]),
        TableHeading(
            "Mean",
            [
                TableColumn(clean(one.first), [TableCell(_value(d, d.first)) for d in found]),
                TableColumn(clean(one.second), [TableCell(_value(d, d.second)) for d in found]),
            ],
        ),
        TableHeading(
            "",
            [
                TableColumn(
                    "Difference",
                    [
                        TableCell(_signed(d), span(d.difference, compared_places(d.quantity, 2)))
                        for d in found
                    ],
                )
            ],
        ),
        TableHeading("", [TableColumn("p", [TableCell(_p(d.p)) for d in found])]),
        TableHeading("", [TableColumn("Holm", [TableCell(_p(d.adjusted)) for d in found])]),
        TableHeading("", [TableColumn("d", [TableCell(number(d.effect, 2)) for d in found])]),
        TableHeading(
            "",
            [
                TableColumn(
                    "Needed",
                    [TableCell(ABSENT if d.needed is None else f"{d.needed:,}") for d in found],
                )
            ],
        ),
    ]


def _pairs(one: Comparison) -> str:
    text = f"{quantity(one.pairs, 'instance')} played by both"
    left = [f"{number} of {clean(name)}" for name, number in one.unpaired.items() if number]
    return f"{text}; without a counterpart: {', '.join(left)}" if left else text


def _value(difference: Difference, value: float | None) -> str:
    return number(value, compared_places(difference.quantity))


def _signed(difference: Difference) -> str:
    value = difference.difference.value
    text = _value(difference, value)
    return f"+{text}" if value is not None and value > 0 and text.strip("0.") else text


def _p(value: float | None) -> str:
    if value is None:
        return ABSENT
    return "< .001" if value < 0.001 else number(value, 3, zero=False)


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{number(low, 2)}, {number(high, 2)}]"


def _labels(group: Mapping[str, str]) -> str:
    return " · ".join(clean(value) for value in group.values())


def _print(console: Console, headings: Sequence[TableHeading], rows: int) -> None:
    lines = [TableLine(row=index) for index in range(rows)]
    console.print(draw(headings, lines, _GAP, "─"), soft_wrap=True)
