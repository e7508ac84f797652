"""Tables of numbers in plain columns, with headings that span several and a second line per cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

__all__ = ("TableCell", "TableColumn", "TableHeading", "TableLine", "draw", "width_of")


class TableCell(NamedTuple):
    """A cell of a column: a text, and a fainter one below it."""

    main: str
    below: str = ""


class TableColumn(NamedTuple):
    """A column: its name, its cells in the order of rows, and whether it is aligned left."""

    name: str
    cells: Sequence[TableCell]
    left: bool = False

    @property
    def width(self) -> int:
        """Characters that its name and its cells need."""
        texts = [self.name, *(cell.main for cell in self.cells), *(c.below for c in self.cells)]
        return max(len(text) for text in texts)


class TableHeading(NamedTuple):
    """Neighbouring columns under one title, which may be empty."""

    title: str
    columns: Sequence[TableColumn]


class TableLine(NamedTuple):
    """A line of the table: the index of a row, or the title of the section that begins there."""

    row: int | None = None
    section: str = ""


def width_of(headings: Sequence[TableHeading], gap: int) -> int:
    """Width of a table in characters, with ``gap`` between its columns."""
    return sum(_spread(heading, gap) for heading in headings) + gap * (len(headings) - 1)


def draw(headings: Sequence[TableHeading], lines: Sequence[TableLine], gap: int, rule: str) -> Text:
    """Draws a table.

    Args:
        headings: all columns, under their headings; every column has the same rows.
        lines: the lines below the head, in order.
        gap: characters between columns.
        rule: the character that rules are drawn with.
    """
    text = Text(no_wrap=True)
    between = " " * gap
    if any(heading.title for heading in headings):
        spreads = [_spread(heading, gap) for heading in headings]
        titles = [h.title.center(width) for h, width in zip(headings, spreads, strict=True)]
        rules = [
            (rule if heading.title else " ") * width
            for heading, width in zip(headings, spreads, strict=True)
        ]
        text.append(between.join(titles).rstrip() + "\n", "bold")
        text.append(between.join(rules).rstrip() + "\n", "dim")
    columns = [(_spread_columns(heading, gap)) for heading in headings]
    flat = [pair for group in columns for pair in group]
    names = [_set(column, column.name, width) for column, width in flat]
    text.append(between.join(names).rstrip() + "\n", "bold")
    text.append(rule * width_of(headings, gap) + "\n", "dim")
    for line in lines:
        if line.row is None:
            text.append(f"{line.section}\n", "bold")
            continue
        cells = [(column, column.cells[line.row], width) for column, width in flat]
        text.append(between.join(_set(c, cell.main, w) for c, cell, w in cells).rstrip() + "\n")
        if any(cell.below for _, cell, _ in cells):
            below = between.join(_set(c, cell.below, w) for c, cell, w in cells)
            text.append(below.rstrip() + "\n", "dim")
    return text


def _spread(heading: TableHeading, gap: int) -> int:
    plain = sum(column.width for column in heading.columns) + gap * (len(heading.columns) - 1)
    return max(plain, len(heading.title))


def _spread_columns(heading: TableHeading, gap: int) -> list[tuple[TableColumn, int]]:
    """Columns with their widths; the first is widened if the title is wider than the columns."""
    widths = [column.width for column in heading.columns]
    widths[0] += _spread(heading, gap) - sum(widths) - gap * (len(widths) - 1)
    return list(zip(heading.columns, widths, strict=True))


def _set(column: TableColumn, text: str, width: int) -> str:
    return text.ljust(width) if column.left else text.rjust(width)
