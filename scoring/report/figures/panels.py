"""Panels: the parts of a figure that are side by side, and the series that are drawn in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, final

from ...metrics import Group, Report
from ..text.wording import rows_of
from .style import COLUMN, FAINT, FONT, PAGE, STYLES, Dashes, colours

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ("Panels", "SeriesStyle", "Sheet", "panel_title")

_CAPTION_LINE, _LEGEND_LINE = 0.115, 0.16
"""Heights of a line of the caption and of a legend, in inches."""

_CAPTION_SIZE, _LEGEND_SIZE = 6.2, 7.0
"""Sizes of their fonts, in points."""


class SeriesStyle(NamedTuple):
    """The name, colour and line style of a series."""

    name: str
    colour: str
    style: Dashes


@final
class Panels:
    """The groups of a report, sorted into panels and series.

    A series is one line, or one kind of dot. The labels that distinguish series are given; by
    default it is the one that names the rows of the report's table. Other labels that vary make
    panels.

    Attributes:
        groups: all groups of collaborating sessions.
        by_panel: the groups of each panel, by the labels of the panel.
        looks: the style of each series, by the values of its labels.
    """

    def __init__(self, report: Report, series: Sequence[str] | None = None) -> None:
        rows = rows_of(report)
        groups = [group for group in rows.groups if not group.baseline]
        self.groups = groups
        self._series = tuple(series) if series else (rows.label,)
        varying = (*rows.sections, rows.label)
        self._panel = [name for name in varying if name not in self._series]
        self.by_panel: dict[tuple[tuple[str, str], ...], list[Group]] = {}
        for group in groups:
            self.by_panel.setdefault(self._values(group.group, self._panel), []).append(group)
        keys = sorted({self.series(group.group) for group in groups})
        hues = colours(key[0] for key in keys)
        styles = sorted({key[1:] for key in keys})
        self.looks: Mapping[tuple[str, ...], SeriesStyle] = {
            key: SeriesStyle(
                " · ".join(part for part in key if part) or "all sessions",
                hues[key[0]],
                STYLES[styles.index(key[1:]) % len(STYLES)],
            )
            for key in keys
        }

    def series(self, labels: Mapping[str, str]) -> tuple[str, ...]:
        """The key of the series that sessions with these labels belong to."""
        return tuple(labels.get(name, "") for name in self._series)

    def look(self, group: Group) -> SeriesStyle:
        """The style of a group's series."""
        return self.looks[self.series(group.group)]

    @staticmethod
    def _values(labels: Mapping[str, str], names: Sequence[str]) -> tuple[tuple[str, str], ...]:
        return tuple((name, labels[name]) for name in names if name in labels)


def panel_title(key: Sequence[tuple[str, str]]) -> str:
    """The title of a panel."""
    return " · ".join(value for _, value in key)


@final
class Sheet:
    """A figure of panels in rows, with a legend above them and a caption below.

    Args:
        count: number of panels.
        legend: entries of the legend, in order: the artist, and its name.
        caption: what the figure shows; it is wrapped to the figure's width.
        height: height of a panel in inches.
        square: panels are as high as they are wide instead.
        below: inches to keep free between the panels and the caption, for axis labels and such.
    """

    def __init__(
        self,
        count: int,
        *,
        legend: Sequence[tuple[Artist, str]],
        caption: str,
        height: float = 2.1,
        square: bool = False,
        below: float = 0.45,
    ) -> None:
        from matplotlib.figure import Figure

        across = min(count, 2 if count in (2, 4) else 3)
        down = -(-count // across)
        width = COLUMN if across == 1 else PAGE
        left, right, gap, rise = 0.5, 0.1, 0.38, 0.62
        each = (width - left - right - gap * (across - 1)) / across
        tall = each if square else height
        rows = _rows(legend, width)
        lines = _wrapped(caption, width - 0.16)
        self._foot = _CAPTION_LINE * len(lines) + 0.1
        bottom = self._foot + below
        self._total = bottom + down * tall + (down - 1) * rise + 0.32 + _LEGEND_LINE * len(rows)
        self.figure: Figure = Figure(figsize=(width, self._total))
        self.axes: list[Axes] = []
        for index in range(count):
            row, column = divmod(index, across)
            x = left + column * (each + gap)
            y = bottom + (down - 1 - row) * (tall + rise)
            place = (x / width, y / self._total, each / width, tall / self._total)
            self.axes.append(self.figure.add_axes(place))
        self.first_column = self.axes[::across]
        for index, row_of in enumerate(rows):
            self._line(row_of, 1 - (0.07 + _LEGEND_LINE * index) / self._total, "upper center")
        self.figure.text(
            0.08 / width,
            (self._foot - 0.02) / self._total,
            "\n".join(lines),
            fontsize=_CAPTION_SIZE,
            color=FAINT,
            va="top",
            linespacing=1.25,
        )

    def lower_legend(self, entries: Sequence[tuple[Artist, str]], title: str) -> None:
        """Draws a second legend, of one line, between the panels and the caption."""
        from matplotlib.lines import Line2D

        heading: tuple[Artist, str] = (Line2D([], [], linestyle=""), title)
        self._line([heading, *entries], (self._foot + 0.06) / self._total, "lower center", 1.2)

    def _line(
        self,
        entries: Sequence[tuple[Artist, str]],
        at: float,
        loc: Literal["upper center", "lower center"],
        length: float = 2.3,
    ) -> None:
        self.figure.legend(
            [artist for artist, _ in entries],
            [name for _, name in entries],
            loc=loc,
            bbox_to_anchor=(0.5, at),
            ncols=len(entries),
            columnspacing=1.3,
            handlelength=length,
            handletextpad=0.4,
            borderaxespad=0,
        )


def _rows(entries: Sequence[tuple[Artist, str]], width: float) -> list[list[tuple[Artist, str]]]:
    """Legend entries, wrapped to the width."""
    rows: list[list[tuple[Artist, str]]] = [[]]
    free = width - 0.1
    for entry in entries:
        need = 0.42 + _width(entry[1], _LEGEND_SIZE)
        if rows[-1] and need > free:
            rows.append([])
            free = width - 0.1
        rows[-1].append(entry)
        free -= need
    return rows


def _wrapped(text: str, width: float) -> list[str]:
    """A text, wrapped to lines of at most this many inches."""
    words = text.split(" ")
    space = _width("n n", _CAPTION_SIZE) - 2 * _width("n", _CAPTION_SIZE)
    lines: list[list[str]] = [[]]
    free = width
    for word in words:
        need = _width(word, _CAPTION_SIZE) + space
        if lines[-1] and need > free:
            lines.append([])
            free = width
        lines[-1].append(word)
        free -= need
    return [" ".join(line) for line in lines]


@lru_cache(maxsize=1024)
def _width(text: str, size: float) -> float:
    """The width of a text in inches. Outlines take long, and captions have many words in common."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    outline = TextPath((0, 0), text, size=size, prop=FontProperties(family=FONT))
    return float(outline.get_extents().width) / 72
