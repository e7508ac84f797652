"""The paper's table in the terminal, laid out for the width of the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from ...metrics import Drop, Estimate, Group, Report
from .columns import TableCell, TableColumn, TableHeading, TableLine, draw, width_of
from .completion import COMPLETION_NOTE, HAZARD_NOTE, completion_tables, has_hazard
from .effort import EFFORT_TITLES, effort_texts, has_tokens
from .process import PROCESS_NOTE, has_process, process_tables
from .wording import (
    Rows,
    absences,
    completeness,
    has_intervals,
    number,
    percent,
    provenance,
    rows_of,
    span,
)

__all__ = ("ReportTable",)


@final
class ReportTable:
    """A report as a rich renderable: ``Console().print(ReportTable(report))``.

    Each number has its bootstrap interval below it. Utility, gain and drop are side by side as in
    the paper if the width allows, else below each other.

    Args:
        report: the report.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._rows = rows_of(report)
        # Where nobody rated anything there is no drop, whatever the tolerance.
        self._dropped = any(
            drop.abs.value is not None for group in report.groups for drop in group.drops
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draws the table for the width of the console."""
        for text in self._parts(options.max_width):
            if options.ascii_only:
                text = _plain(text)
            yield text

    def _parts(self, width: int) -> list[Text]:
        report, rows = self._report, self._rows
        if not rows.groups:
            notes = ["There are no sessions to report on.", *completeness(report)]
            return [Text(note) for note in notes]
        lines = _lines(rows)
        parts = [self._title()]
        parts += [draw(*block, rule="─") for block in self._blocks(width, lines)]
        if has_tokens(rows.groups):
            parts.append(draw(self._effort(), lines, 2, rule="─"))
        notes = [*absences(report.groups, rows), self._about()]
        if has_process(rows.groups):
            parts += process_tables(rows, self._names(), lines, width)
            notes.append(f"{PROCESS_NOTE}.")
        if any(group.completion.outcomes for group in rows.groups):
            parts += completion_tables(rows, self._names(), lines)
            notes.append(f"{COMPLETION_NOTE}.")
            if has_hazard(rows.groups):
                notes.append(f"{HAZARD_NOTE}.")
        notes += [*completeness(report), *provenance(report)]
        parts += [Text(note, style="dim") for note in notes]
        return parts

    def _title(self) -> Text:
        shared = " · ".join(f"{name} {value}" for name, value in self._rows.shared.items())
        text = Text("Collaborative effort scaling", style="bold")
        text.append(f"  {shared}\n" if shared else "\n", "not bold")
        return text

    def _about(self) -> str:
        report = self._report
        about = f"Convention {report.convention}"
        if has_intervals(report):
            share = f"{100 * report.level:g} %"
            about += (
                f"; below each number its {share} bootstrap interval over sessions "
                f"({report.resamples:,} resamples, seed {report.seed})"
            )
        about += ". Gain: the best utility less that at the first update"
        if report.taus and self._dropped:
            about += (
                ". Drop at τ: what is lost where the human leaves after τ rounds without "
                "progress in a row"
            )
        return about + "."

    def _blocks(
        self, width: int, lines: Sequence[TableLine]
    ) -> list[tuple[list[TableHeading], Sequence[TableLine], int]]:
        """The tables to draw, one below the other; as few as the width allows."""
        drops = list(range(len(self._report.taus))) if self._dropped else []
        for gap, zero in ((2, True), (1, True), (1, False)):
            whole = [*self._utility(zero), *self._drops(drops, zero)]
            if width_of(whole, gap) <= width:
                return [(whole, lines, gap)]
        blocks = [(self._utility(zero=True), lines, 2)]
        while drops:
            for size in range(len(drops), 0, -1):
                block = [self._names(), *self._drops(drops[:size], zero=True)]
                if size == 1 or width_of(block, 2) <= width:
                    blocks.append((block, lines, 2))
                    drops = drops[size:]
                    break
        return blocks

    def _names(self) -> TableHeading:
        rows = self._rows
        indent = "  " if rows.sections else ""
        names = [TableCell(indent + rows.name(group)) for group in rows.groups]
        return TableHeading("", [TableColumn(rows.label.capitalize(), names, left=True)])

    def _column(self, name: str, cell: Callable[[Group], TableCell]) -> TableColumn:
        return TableColumn(name, [cell(group) for group in self._rows.groups])

    def _utility(self, zero: bool) -> list[TableHeading]:
        def value(estimate: Estimate) -> TableCell:
            return TableCell(number(estimate.value, zero=zero), span(estimate))

        groups = self._rows.groups
        left = [self._column("N", lambda group: TableCell(f"{group.sessions:,}"))]
        if any(group.baseline or group.reference.value is not None for group in groups):
            left.append(
                self._column("Baseline", lambda g: value(g.final if g.baseline else g.reference))
            )
        utility = [
            self._column("First", lambda group: value(group.first)),
            self._column("Final", lambda g: value(Estimate() if g.baseline else g.final)),
            self._column("Overall", lambda group: value(group.overall)),
        ]
        gain = [
            _pair(
                [(group.gain_abs, group.gain_rel) for group in groups],
                zero=zero,
            )
        ]
        headings = [self._names(), TableHeading("", left), TableHeading("Utility", utility)]
        return [*headings, TableHeading("Gain", gain)]

    def _drops(self, which: Sequence[int], zero: bool) -> list[TableHeading]:
        def drop(group: Group, index: int) -> Drop:
            return group.drops[index]

        taus = self._report.taus
        return [
            TableHeading(
                f"Drop τ = {taus[index]}",
                [
                    _pair(
                        [
                            (drop(group, index).abs, drop(group, index).rel)
                            for group in self._rows.groups
                        ],
                        zero=zero,
                    )
                ],
            )
            for index in which
        ]

    def _effort(self) -> list[TableHeading]:
        def faults(group: Group) -> TableCell:
            found = sum(group.counts.faults.values())
            where = f" in {group.counts.faulty_sessions:,} of {group.sessions:,}"
            return TableCell(f"{found:,}{where if found else ''}")

        texts = [[TableCell(*text) for text in effort_texts(group)] for group in self._rows.groups]
        effort = [
            TableColumn(title, [row[index] for row in texts])
            for index, title in enumerate(EFFORT_TITLES)
        ]
        headings = [self._names(), TableHeading("Effort per session", effort)]
        if any(group.counts.faulty_sessions for group in self._rows.groups):
            headings.append(TableHeading("Simulated user", [self._column("Faults", faults)]))
        return headings


def _lines(rows: Rows) -> list[TableLine]:
    lines: list[TableLine] = []
    section = None
    for index, group in enumerate(rows.groups):
        if rows.sections and rows.section(group) != section:
            section = rows.section(group)
            lines.append(TableLine(section=section))
        lines.append(TableLine(row=index))
    return lines


def _pair(estimates: Sequence[tuple[Estimate, Estimate]], *, zero: bool) -> TableColumn:
    """An absolute number and a relative one in one column, with the interval of the absolute."""
    left = [number(one.value, zero=zero) for one, _ in estimates]
    right = [percent(two.value) for _, two in estimates]
    wide = max(4, *(len(text) for text in left))
    long = max(4, *(len(text) for text in right))
    cells = [
        TableCell(f"{a:>{wide}} {b:>{long}}", span(one))
        for a, b, (one, _) in zip(left, right, estimates, strict=True)
    ]
    return TableColumn(f"{'abs.':>{wide}} {'rel.':>{long}}", cells)


def _plain(text: Text) -> Text:
    """The same in ASCII, for terminals without Unicode."""
    plain = text.copy()
    changed = text.plain.translate(str.maketrans("─–·τ", "--|T"))
    plain.plain = changed.encode("ascii", "replace").decode()
    return plain
