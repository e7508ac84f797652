"""One document of a report: sections of tables, notes and figures, as data.

A document is built once from results (``summary``, ``analyses``, ``explanation``). Each renderer draws the
same document: ``terminal``, ``markdown`` and ``html`` for people, ``export`` as JSON and CSV for programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from ..metrics.results import Estimate

__all__ = (
    "ABSENT",
    "COUNT",
    "MEAN",
    "NUMBER",
    "P_VALUE",
    "SHARE",
    "SIGNED",
    "Axis",
    "Cell",
    "Column",
    "Document",
    "Dot",
    "Figure",
    "Format",
    "Heading",
    "Key",
    "Line",
    "Mark",
    "Note",
    "Panel",
    "Point",
    "Rule",
    "Section",
    "Series",
    "Table",
    "Words",
    "column",
    "counts",
    "estimate",
    "estimates",
    "heading",
    "noted",
    "number",
    "numbers",
    "percent",
    "table_of",
    "texts",
)

ABSENT = "–"
"""Shown for an absent number."""

Value = str | int | float | None


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """How a number and its interval become text.

    Attributes:
        places: decimals of the number and of its interval; a number without decimals has separators between thousands.
        percent: the number is a share; it and its interval are shown as percentages.
        signed: a positive number has a plus sign.
        p: a p-value, which is shown as ``< 0.001`` if it is smaller.
    """

    places: int = 3
    percent: bool = False
    signed: bool = False
    p: bool = False

    def text(self, value: float | None, *, narrow: bool = False) -> str:
        """The number; ``narrow``: a percentage without decimals."""
        if value is None:
            return ABSENT
        if self.p:
            return "< 0.001" if value < 0.001 else number(value)
        if self.percent:
            return percent(value, 0 if narrow else 1)
        shown = number(value, self.places)
        return f"+{shown}" if self.signed and value > 0 and shown.strip("0.") else shown

    def span(self, low: float | None, high: float | None) -> str:
        """An interval, e.g. ``0.610 to 0.684`` or ``3.1 to 12.0%``; empty if there is none, or if its width is 0."""
        if low is None or high is None or low == high:
            return ""
        if self.percent:
            return f"{number(100 * low, 1)} to {number(100 * high, 1)}%"
        return f"{number(low, self.places)} to {number(high, self.places)}"


NUMBER = Format()
SIGNED = Format(signed=True)
MEAN = Format(places=2)
COUNT = Format(places=0)
SHARE = Format(percent=True)
P_VALUE = Format(p=True)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell of a table.

    Attributes:
        value: what it holds; None if it is absent.
        low: lower end of its interval; None if there is none.
        high: upper end of its interval.
        reason: why the value is absent.
        format: how a number is shown.
        shown: a text to show in place of the formatted value.
        marked: the number is marked with an asterisk.
        link: the place within the page to which the cell leads; empty for none.
        below: a text under the cell, such as a command; only pages show it.
    """

    value: Value = None
    low: float | None = None
    high: float | None = None
    reason: str | None = None
    format: Format = NUMBER
    shown: str | None = None
    marked: bool = False
    link: str = ""
    below: str = ""

    def text(self, *, narrow: bool = False) -> str:
        """The cell as text, without its interval; ``narrow``: percentages without decimals."""
        if self.shown is not None:
            return self.shown
        if isinstance(self.value, str):
            return self.value
        return self.format.text(self.value, narrow=narrow) + "*" * self.marked

    def span(self) -> str:
        """The interval as text; empty if there is none."""
        return self.format.span(self.low, self.high)


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a table.

    Attributes:
        title: its title under the heading.
        name: its full name, for tables without headings; the title if empty.
        cells: its cells, in the order of the rows.
        left: whether texts are aligned left.
        joined: whether it belongs to the column before it: a relative number next to the absolute
            one. If there is little room, its interval is left out.
    """

    title: str
    cells: Sequence[Cell]
    name: str = ""
    left: bool = False
    joined: bool = False


class Heading(msgspec.Struct, frozen=True, kw_only=True):
    """Neighbouring columns under one title, which may be empty.

    Attributes:
        title: the title.
        columns: the columns.
        splits: a table that is too wide is divided before this heading first.
    """

    title: str = ""
    columns: Sequence[Column]
    splits: bool = False


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table: columns under headings, with rows in sections.

    Attributes:
        labels: columns that name the rows: the last one each row, those before it sections of rows.
        headings: all other columns.
        repeated: the first so many headings are repeated in each part of a table that is divided.
        series: the place of each row's series in the figures; None if it has none.
        title: the content of the table, unless the section states it.
        anchors: ids of the rows within a page.
        folded: a page shows the table only on demand, under its title.
        anchor: id of the table within a page.
    """

    labels: Sequence[Column]
    headings: Sequence[Heading]
    repeated: int = 0
    series: Sequence[int | None] = ()
    title: str = ""
    anchors: Sequence[str] = ()
    folded: bool = False
    anchor: str = ""

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return max((len(one.cells) for one in self.columns), default=0)

    @property
    def columns(self) -> list[Column]:
        """All columns, labels first."""
        return [*self.labels, *(one for heading in self.headings for one in heading.columns)]

    def section(self, row: int) -> str:
        """The section of a row; empty without sections."""
        named = [(one.title.lower(), one.cells[row].text()) for one in self.labels[:-1]]
        return " · ".join(f"{name} {value}" if value else f"no {name}" for name, value in named)


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence about numbers; ``warning``: one to read before believing a comparison."""

    text: str
    warning: bool = False


Mark = Literal["line", "dashed", "dot", "mean", "square", "hollow"]
"""How something is drawn, and shown in a legend."""


class Series(msgspec.Struct, frozen=True):
    """A kind of line or dot, with its own colour, dashes and shape.

    Attributes:
        name: its name.
        colour: its colour; on a page also the name of a colour of the style sheet.
        dashes: lengths of dashes and gaps.
        shape: the shape of its dots on a page: 0 circle, 1 square, 2 triangle, 3 diamond, 4
            inverted triangle.
    """

    name: str
    colour: str
    dashes: Sequence[float] = ()
    shape: int = 0


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """An axis: its title, its limits, and its ticks with their labels; ``log``: logarithmic."""

    title: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]] = ()
    log: bool = False


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A point of a line.

    Attributes:
        x: where it lies across.
        y: where it lies upwards.
        low: lower end of its band or bar.
        high: upper end of it.
        size: the area of its dot, as a share of the largest; None for no dot.
        crossed: marked with a cross: sessions end here without an event.
        values: the numbers behind it, by name.
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    size: float | None = None
    crossed: bool = False
    values: Mapping[str, float | None] = {}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line through points.

    Attributes:
        points: the points.
        series: the place of its series; None for what belongs to no series, drawn in ink.
        steps: drawn as steps that begin at each point.
        bars: intervals are bars at the points, not a band.
        covered: it lies on another line for a stretch and is drawn with gaps.
    """

    points: Sequence[Point]
    series: int | None = None
    steps: bool = False
    bars: bool = False
    covered: bool = False


class Dot(msgspec.Struct, frozen=True, kw_only=True):
    """A dot: a session, or a mean.

    Attributes:
        x: where it lies across.
        y: where it lies upwards.
        series: the place of its series; None for ink.
        mark: how it is drawn.
        session: id of its session; empty if it is not one.
        place: the place of the session in the list of the page.
        values: the numbers behind it, by name.
    """

    x: float
    y: float
    series: int | None = None
    mark: Mark = "dot"
    session: str = ""
    place: int | None = None
    values: Mapping[str, float | None] = {}


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A straight line for orientation, from one place to another, with a label near its end."""

    x: tuple[float, float]
    y: tuple[float, float]
    label: str = ""
    automated: bool = False


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """A short text within a panel; ``left``: it begins at its place, and is centred there if not."""

    x: float
    y: float
    text: str
    left: bool = False


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """One of the parts of a figure that are side by side; ``ticks``: across, if they are its own."""

    title: str
    note: str = ""
    ticks: Sequence[tuple[float, str]] = ()
    lines: Sequence[Line] = ()
    dots: Sequence[Dot] = ()
    rules: Sequence[Rule] = ()
    words: Sequence[Words] = ()


class Key(msgspec.Struct, frozen=True):
    """An entry of a legend; ``series``: the place of its series, None for ink."""

    name: str
    mark: Mark
    series: int | None = None


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure.

    Attributes:
        name: the name of its file, and of its place in a page.
        title: its title.
        note: what it shows.
        x: the axis across, shared by all panels.
        y: the axis upwards, shared by all panels.
        series: all series.
        panels: the panels.
        legend: what is told apart by how it is drawn; series come first.
        sizes: counts whose dots a legend shows; the last is the largest.
        size_title: what these counts are.
        square: panels are as high as they are wide.
        height: height of a panel in inches, if it is not square.
    """

    name: str
    title: str
    note: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    panels: Sequence[Panel]
    legend: Sequence[Key] = ()
    sizes: Sequence[int] = ()
    size_title: str = ""
    square: bool = False
    height: float = 2.1


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a document.

    Attributes:
        title: its title; pages show it always.
        about: what is added to the title: labels, counts.
        named: whether the terminal and Markdown show the title, too: tables often say enough.
        tables: its tables.
        notes: sentences about them.
        figures: its figures.
        only_page: only a page shows it: lists of sessions.
    """

    title: str = ""
    about: str = ""
    named: bool = False
    tables: Sequence[Table] = ()
    notes: Sequence[Note] = ()
    figures: Sequence[Figure] = ()
    only_page: bool = False

    @property
    def worded(self) -> bool:
        """Whether it is told in words under its own title: its notes are shown there, and not below all tables."""
        return self.named and not self.tables


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A report, or another analysis, ready to be rendered.

    Attributes:
        title: its title.
        about: what is added to it: what all rows share.
        size: how much it rests on, for a page.
        verdict: its answer in one sentence, for a page.
        sections: its parts.
        notes: sentences about all of it: what is missing, where numbers come from, warnings.
        data: the results that it was built from, in the shape of the JSON.
        rows: a flat row for each thing that was measured, for CSV and data frames.
    """

    title: str
    about: str = ""
    size: str = ""
    verdict: str = ""
    sections: Sequence[Section] = ()
    notes: Sequence[Note] = ()
    data: object = None
    rows: Sequence[Mapping[str, Value]] = ()

    @property
    def figures(self) -> list[Figure]:
        """All figures, in order."""
        return [figure for section in self.sections for figure in section.figures]


def number(value: float | None, places: int = 3) -> str:
    """A number with ``places`` decimals. Never -0.000."""
    if value is None:
        return ABSENT
    text = f"{value:,.{places}f}" if places == 0 else f"{value:.{places}f}"
    return text if text.strip("-0.") else text.removeprefix("-")


def percent(value: float | None, places: int = 1) -> str:
    """A share as a percentage with ``places`` decimals."""
    return ABSENT if value is None else f"{number(100 * value, places)}%"


def heading(title: str, *columns: Column, splits: bool = False) -> Heading:
    """Columns under a title."""
    return Heading(title=title, columns=columns, splits=splits)


def table_of(label: Column, *parts: Column | Heading, repeated: int = 0) -> Table:
    """A table whose rows are named by one column; columns outside a heading get an empty one."""
    headings = [one if isinstance(one, Heading) else heading("", one) for one in parts]
    return Table(labels=[label], headings=headings, repeated=repeated)


def noted(*texts: str, warning: bool = False) -> list[Note]:
    """Sentences as notes."""
    return [Note(text=text, warning=warning) for text in texts]


def estimate(found: Estimate, form: Format = NUMBER, *, marked: bool = False) -> Cell:
    """A cell of an estimate with its interval."""
    return Cell(
        value=found.value,
        low=found.low,
        high=found.high,
        reason=found.reason,
        format=form,
        marked=marked,
    )


def column(
    title: str, cells: Iterable[Cell], *, name: str = "", left: bool = False, joined: bool = False
) -> Column:
    """A column of cells."""
    return Column(title=title, cells=tuple(cells), name=name, left=left, joined=joined)


def texts(title: str, values: Iterable[str], *, left: bool = True) -> Column:
    """A column of texts."""
    return column(title, [Cell(value=value) for value in values], left=left)


def counts(title: str, values: Iterable[int | None]) -> Column:
    """A column of whole numbers."""
    return numbers(title, values, COUNT)


def numbers(title: str, values: Iterable[float | None], form: Format = NUMBER) -> Column:
    """A column of numbers without intervals."""
    return column(title, [Cell(value=value, format=form) for value in values])


def estimates(
    title: str, found: Iterable[Estimate], form: Format = NUMBER, *, name: str = ""
) -> Column:
    """A column of estimates."""
    return column(title, [estimate(one, form) for one in found], name=name)
