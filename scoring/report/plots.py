"""Figures as files: PNG, SVG and PDF, drawn by matplotlib from a document's figures (extra ``plots``)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, final

from ...engine.errors import InvalidInput, MissingExtra
from ...engine.log.exchange.output_file import OutputRules, check_output, output_file
from .document import Axis, Dot, Figure, Key, Line, Mark, Panel, Rule
from .drawings import AUTOMATED

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

__all__ = ("FORMATS", "SETTINGS", "draw_figure", "write_figures")

FORMATS = ("png", "svg", "pdf")
"""The formats that figures are written in."""

_NO_DATES: Mapping[str, Mapping[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Metadata to leave out of a file, so that the same report gives the same bytes."""

_COLUMN, _PAGE = 3.5, 7.2  # widths of a column and of a page of two columns, in inches
_INK, _FAINT = "#222222", "#8A8A8A"
_FONT = "DejaVu Sans"  # it comes with matplotlib, so that figures are the same everywhere
_LARGEST = 34.0  # area of the largest dot of a line, in square points
_SMALL: Final = 6.2  # size of captions and notes, in points
_DASHED = (0, (5, 2.5))

SETTINGS: Mapping[str, object] = {
    "font.size": 7.5,
    "font.family": _FONT,
    "axes.titlesize": 8,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 7.5,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.5,
    "text.color": _INK,
    "text.hinting": "none",
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.frameon": False,
    "legend.borderpad": 0,
    "legend.fontsize": 7,
    "legend.handlelength": 1.8,
    "lines.linewidth": 1.3,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 300,
    "svg.fonttype": "path",
    "svg.hashsalt": "duolog",
    "pdf.fonttype": 42,
}
"""Settings of matplotlib for all figures; the salt makes the ids within an SVG repeatable."""


def write_figures(
    figures: Sequence[Figure],
    directory: str | os.PathLike[str],
    formats: Sequence[str] = ("png", "svg"),
    rules: OutputRules = OutputRules(),  # noqa: B008  (immutable)
) -> list[Path]:
    """Draws figures, and writes each in all formats, once all are drawn, with its caption in a text file.

    The same figures give the same files, byte for byte.

    Args:
        figures: the figures; their names are those of the files.
        directory: where to write, made if there is none; files of the same names are replaced, unless they
            are logs.
        formats: of ``FORMATS``.
        rules: what the files may take the place of.

    Returns:
        The files written.

    Raises:
        MissingExtra: matplotlib is not installed.
        InvalidInput: a format is unknown, or the directory cannot be written.
    """
    for name in formats:
        if name not in FORMATS:
            raise InvalidInput(f"unsupported figure format {name!r} ({', '.join(FORMATS)})")
    settings: Any = dict(SETTINGS)  # typed differently from version to version of matplotlib
    try:
        from matplotlib import rc_context
    except ModuleNotFoundError as error:
        raise MissingExtra("plots", "a figure") from error
    folder = Path(directory)
    drawn: dict[Path, bytes] = {}
    with rc_context(settings):
        for figure in figures:
            sheet = draw_figure(figure, caption=False)
            for kind in formats:
                data = BytesIO()
                sheet.savefig(data, format=kind, metadata=dict(_NO_DATES[kind]))
                drawn[folder / f"{figure.name}.{kind}"] = data.getvalue()
            drawn[folder / f"{figure.name}.txt"] = f"{figure.title}. {figure.note}\n".encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "it is a file" if folder.is_file() else error.strerror or error
        raise InvalidInput(f"cannot write figures to {os.fspath(directory)}: {why}") from error
    for path in drawn:
        check_output(path, rules)
    for path, contents in drawn.items():
        with output_file(path, rules) as file:
            file.write(contents)
    return list(drawn)


def draw_figure(figure: Figure, *, caption: bool = True) -> Sheet:
    """Draws a figure: its panels in rows, a legend above them and, if wanted, a caption below."""
    drawing = _Drawing(figure, caption=caption)
    for axes, panel in zip(drawing.axes, figure.panels, strict=True):
        drawing.panel(axes, panel)
    return drawing.sheet


@final
class _Drawing:
    """A sheet with the axes of a figure's panels."""

    def __init__(self, figure: Figure, *, caption: bool) -> None:
        from matplotlib.figure import Figure as Sheet

        self._figure = figure
        count = len(figure.panels)
        across = min(count, 2 if count in (2, 4) else 3)
        down = -(-count // across)
        width = _COLUMN if across == 1 else _PAGE
        left, right, gap, rise = 0.5, 0.1, 0.38, 0.62
        each = (width - left - right - gap * (across - 1)) / across
        tall = each if figure.square else figure.height
        legend = _legend_rows([(self._key(key), key.name) for key in figure.legend], width)
        lines = _wrapped(figure.note, width - 0.16) if caption else []
        foot = 0.115 * len(lines) + 0.1
        bottom = foot + (0.58 if figure.sizes else 0.45)
        total = bottom + down * tall + (down - 1) * rise + 0.32 + 0.16 * len(legend)
        self.sheet = Sheet(figsize=(width, total))
        self.axes: list[Axes] = []
        for index in range(count):
            row, place = divmod(index, across)
            x = left + place * (each + gap)
            y = bottom + (down - 1 - row) * (tall + rise)
            axes = self.sheet.add_axes((x / width, y / total, each / width, tall / total))
            self._frame(axes, figure.panels[index], first=place == 0)
            self.axes.append(axes)
        for index, entries in enumerate(legend):
            self._legend(entries, 1 - (0.07 + 0.16 * index) / total, "upper center")
        if figure.sizes:
            entries = [(self._dot(size=0.0, shown=False), figure.size_title)]
            entries += [
                (self._dot(size=one / figure.sizes[-1]), f"{one:,}") for one in figure.sizes
            ]
            self._legend(entries, (foot + 0.06) / total, "lower center", 1.2)
        self.sheet.text(
            0.08 / width,
            (foot - 0.02) / total,
            "\n".join(lines),
            fontsize=_SMALL,
            color=_FAINT,
            va="top",
            linespacing=1.25,
        )

    def _frame(self, axes: Axes, panel: Panel, *, first: bool) -> None:
        figure = self._figure
        axes.set_title(panel.title)
        axes.set_title(panel.note, loc="right", fontsize=_SMALL, color=_FAINT, fontweight="normal")
        axes.set_xlabel(figure.x.title)
        if first:
            axes.set_ylabel(figure.y.title)
        for axis, spec, ticks in (
            (axes.xaxis, figure.x, panel.ticks or figure.x.ticks),
            (axes.yaxis, figure.y, figure.y.ticks),
        ):
            _scale(axes, spec, across=spec is figure.x)
            axis.set_ticks([place for place, _ in ticks], [name for _, name in ticks])
            axis.set_ticks([], minor=True)

    def panel(self, axes: Axes, panel: Panel) -> None:
        """Draws what a panel holds."""
        for rule in panel.rules:
            self._rule(axes, rule)
        for line in panel.lines:
            self._line(axes, line)
        if dots := [dot for dot in panel.dots if dot.mark == "dot"]:
            self._dots(axes, dots)
        for dot in panel.dots:
            if dot.mark != "dot":
                self._mean(axes, dot)
        for words in panel.words:
            axes.text(
                words.x,
                words.y,
                words.text,
                fontsize=_SMALL,
                color=_INK if words.left else _FAINT,
                ha="left" if words.left else "center",
                va="center",
                zorder=4,
            )

    def _rule(self, axes: Axes, rule: Rule) -> None:
        axes.plot(
            rule.x,
            rule.y,
            color=AUTOMATED if rule.automated else _FAINT,
            linestyle=_DASHED if rule.automated else (0, (3, 2)) if rule.label else "solid",
            linewidth=1 if rule.automated else 0.7,
            scalex=False,
            scaley=False,
            zorder=1,
        )
        if not rule.label:
            return
        (x1, y1), (x2, y2) = axes.transLimits.transform(
            [(axes.transScale.transform((rule.x[end], rule.y[end]))) for end in (0, 1)]
        )
        end = (min(1.0, (1 - y1) / (y2 - y1)) if y2 > 1 else 1.0) - 0.07
        axes.text(
            x1 + end * (x2 - x1),
            y1 + end * (y2 - y1),
            rule.label,
            transform=axes.transAxes,
            rotation=45,
            ha="center",
            va="center",
            fontsize=6,
            color=_FAINT,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            zorder=1.5,
        )

    def _line(self, axes: Axes, line: Line) -> None:
        points = line.points
        xs, ys = [point.x for point in points], [point.y for point in points]
        lows = [point.y if point.low is None else point.low for point in points]
        highs = [point.y if point.high is None else point.high for point in points]
        colour, style = self._look(line.series)
        if line.bars:
            errors = [
                [y - low for y, low in zip(ys, lows, strict=True)],
                [high - y for y, high in zip(ys, highs, strict=True)],
            ]
            axes.errorbar(
                xs, ys, yerr=errors, fmt="none", ecolor=colour, elinewidth=1, capsize=2, zorder=3
            )
        elif lows != highs:
            axes.fill_between(
                xs,
                lows,
                highs,
                step="post" if line.steps else None,
                color=colour,
                alpha=0.14,
                linewidth=0,
            )
        axes.plot(
            xs,
            ys,
            drawstyle="steps-post" if line.steps else "default",
            color=colour,
            linestyle=(0, (3, 4)) if line.covered else style,
            zorder=2,
        )
        if sized := [point for point in points if point.size is not None]:
            axes.scatter(
                [point.x for point in sized],
                [point.y for point in sized],
                s=[_area(point.size or 0.0) for point in sized],
                color=colour,
                edgecolors="white",
                linewidths=0.5,
                zorder=3,
                clip_on=False,
            )
        if crossed := [point for point in points if point.crossed]:
            axes.plot(
                [point.x for point in crossed],
                [point.y for point in crossed],
                linestyle="",
                marker="+",
                markersize=5,
                color=colour,
            )

    def _dots(self, axes: Axes, dots: Sequence[Dot]) -> None:
        # Many dots are smaller, so that they do not cover each other.
        area = 8 * min(1.0, (400 / max(1, len(dots))) ** 0.5)
        axes.scatter(
            [dot.x for dot in dots],
            [dot.y for dot in dots],
            s=area,
            c=[self._look(dot.series)[0] for dot in dots],
            alpha=0.5,
            linewidths=0,
            zorder=1.8,
        )

    def _mean(self, axes: Axes, dot: Dot) -> None:
        colour, _ = self._look(dot.series)
        boxed = dot.mark in ("square", "hollow")
        axes.plot(
            [dot.x],
            [dot.y],
            linestyle="",
            marker="s" if boxed else "o",
            markersize=4 if boxed else 5.8,
            markerfacecolor="white" if dot.mark == "hollow" else colour,
            markeredgecolor=colour if boxed else "black",
            markeredgewidth=0.9,
            zorder=4,
        )

    def _look(self, series: int | None) -> tuple[str, Any]:
        """The colour and the line style of a series, as matplotlib takes it."""
        if series is None:
            return _INK, "solid"
        found = self._figure.series[series]
        return found.colour, (0, tuple(found.dashes)) if found.dashes else "solid"

    def _key(self, key: Key) -> Artist:
        from matplotlib.lines import Line2D

        colour, style = self._look(key.series)
        marks: Mapping[Mark, dict[str, Any]] = {
            "line": {"linestyle": style, "marker": "o", "markersize": 3.6},
            "dashed": {"linestyle": _DASHED, "linewidth": 1, "color": AUTOMATED},
            "dot": {"linestyle": "", "marker": "o", "markersize": 4},
            "mean": {"linestyle": "", "marker": "o", "markersize": 5.8},
            "square": {"linestyle": "", "marker": "s", "markersize": 4},
            "hollow": {
                "linestyle": "",
                "marker": "s",
                "markersize": 4,
                "markerfacecolor": "white",
            },
        }
        return Line2D([], [], **{"color": colour, **marks[key.mark]})

    @staticmethod
    def _dot(size: float, *, shown: bool = True) -> Artist:
        from matplotlib.lines import Line2D

        return Line2D(
            [],
            [],
            linestyle="",
            marker="o" if shown else "",
            color=_FAINT,
            markersize=_area(size) ** 0.5,
        )

    def _legend(
        self,
        entries: Sequence[tuple[Artist, str]],
        at: float,
        loc: Literal["upper center", "lower center"],
        length: float = 2.3,
    ) -> None:
        self.sheet.legend(
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


def _scale(axes: Axes, axis: Axis, *, across: bool) -> None:
    if across:
        axes.set_xscale("log" if axis.log else "linear")
        axes.set_xlim(axis.low, axis.high)
    else:
        axes.set_yscale("log" if axis.log else "linear")
        axes.set_ylim(axis.low, axis.high)


def _area(share: float) -> float:
    """The area of a dot of a line, in square points."""
    return 3 + (_LARGEST - 3) * share


def _legend_rows(
    entries: Sequence[tuple[Artist, str]], width: float
) -> list[list[tuple[Artist, str]]]:
    """Legend entries, wrapped to the width."""
    rows: list[list[tuple[Artist, str]]] = [[]]
    free = width - 0.1
    for entry in entries:
        need = 0.42 + _width(entry[1], 7.0)
        if rows[-1] and need > free:
            rows.append([])
            free = width - 0.1
        rows[-1].append(entry)
        free -= need
    return rows


def _wrapped(text: str, width: float) -> list[str]:
    """A text, wrapped to lines of at most this many inches."""
    space = _width("n n", _SMALL) - 2 * _width("n", _SMALL)
    lines: list[list[str]] = [[]]
    free = width
    for word in text.split(" "):
        need = _width(word, _SMALL) + space
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

    outline = TextPath((0, 0), text, size=size, prop=FontProperties(family=_FONT))
    return float(outline.get_extents().width) / 72
