"""The scaling curve: mean utility against rounds, or against another measure of effort."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...metrics import CurvePoint
from .geometry import size_note, utility_limits
from .panels import Panels, Sheet, panel_title
from .style import AUTOMATED, FAINT, Dashes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ("draw_curves",)

_BASELINE: Dashes = (0, (5, 2.5))

_OVER: Dashes = (0, (3, 4))

_LARGEST = 34.0
"""Area of the marker of a group's largest count, in square points."""


def draw_curves(
    panels: Panels, curves: Mapping[int, Sequence[CurvePoint]], axis: str, *, whole: bool = True
) -> Figure:
    """Draws scaling curves, a panel for each.

    Args:
        panels: the groups by panel.
        curves: the curve of each group, by the group's ``id``.
        axis: label of the horizontal axis.
        whole: the axis has whole numbers only.
    """
    from matplotlib.lines import Line2D

    everyone = [point for curve in curves.values() for point in curve]
    most = max((point.reached for point in everyone), default=1)
    legend: list[tuple[Artist, str]] = []
    drawn_looks = [panels.look(group) for group in panels.groups if curves[id(group)]]
    for look in panels.looks.values():
        if look not in drawn_looks:
            continue
        line = Line2D([], [], color=look.colour, linestyle=look.style, marker="o", markersize=3.6)
        legend.append((line, look.name))
    if any(group.reference.value is not None for group in panels.groups):
        line = Line2D([], [], color=AUTOMATED, linestyle=_BASELINE, linewidth=1)
        legend.append((line, "automated baseline"))
    caption = (
        f"Mean utility against {axis[0].lower()}{axis[1:]}; shorter sessions carried forward. "
        "Shaded: ±1\u00a0SEM over N sessions. Dot area: sessions that reached that point."
    )
    sheet = Sheet(len(panels.by_panel), legend=legend, caption=caption, below=0.58)
    low, high = utility_limits(panels.groups, everyone)
    for axes, (key, groups) in zip(sheet.axes, panels.by_panel.items(), strict=True):
        drawn: list[set[tuple[float, float]]] = []
        for group in groups:
            look = panels.look(group)
            course = {(point.x, point.mean) for point in curves[id(group)]}
            # A curve that lies on another for a stretch is drawn with gaps, so that both are seen.
            hides = any(len(course & other) > 1 for other in drawn)
            style = _OVER if hides else look.style
            # A dot that lies on another is smaller, so that both are seen.
            under = [
                sum((point.x, point.mean) in other for other in drawn)
                for point in curves[id(group)]
            ]
            drawn.append(course)
            _series(axes, curves[id(group)], look.colour, style, most, under)
            if group.reference.value is not None:
                axes.axhline(
                    group.reference.value,
                    color=AUTOMATED,
                    linestyle=_BASELINE,
                    linewidth=1,
                    zorder=1,
                )
        axes.set_title(panel_title(key))
        axes.set_title(
            size_note(groups), loc="right", fontsize=6.2, color=FAINT, fontweight="normal"
        )
        axes.set_ylim(low, high)
        axes.set_xlabel(axis)
        _ticks(axes, everyone, whole)
    for axes in sheet.first_column:
        axes.set_ylabel("Mean utility")
    dots: list[tuple[Artist, str]] = []
    for n in _example_counts(most):
        size = math.sqrt(_area(n, most))
        dot = Line2D([], [], linestyle="", marker="o", color=FAINT, markersize=size)
        dots.append((dot, f"{n:,}"))
    sheet.lower_legend(dots, "Sessions that reached that round:")
    return sheet.figure


def _series(
    axes: Axes,
    curve: Sequence[CurvePoint],
    colour: str,
    style: Dashes,
    most: int,
    under: Sequence[int],
) -> None:
    """Draws a curve; ``under``: how many dots lie under each of its own."""
    if not curve:
        return
    xs = [point.x for point in curve]
    means = [point.mean for point in curve]
    errors = [point.sem or 0.0 for point in curve]
    axes.fill_between(
        xs,
        [mean - error for mean, error in zip(means, errors, strict=True)],
        [mean + error for mean, error in zip(means, errors, strict=True)],
        color=colour,
        alpha=0.14,
        linewidth=0,
    )
    axes.plot(xs, means, color=colour, linestyle=style)
    if len(curve) == 1:  # a band has no width there
        axes.errorbar(xs, means, yerr=errors, color=colour, elinewidth=1, capsize=2)
    sizes = [
        _area(point.reached, most) * 0.36**below for point, below in zip(curve, under, strict=True)
    ]
    axes.scatter(
        xs,
        means,
        s=sizes,
        color=colour,
        edgecolors="white",
        linewidths=0.5,
        zorder=3,
        clip_on=False,
    )


def _area(count: int, most: int) -> float:
    return 3 + (_LARGEST - 3) * count / most


def _example_counts(most: int) -> list[int]:
    """Two or three counts for a legend of dot sizes, the greatest among them."""
    if most < 4:
        return list(range(1, most + 1))
    step = 10 ** max(0, len(str(most)) - 2)
    small = max(1, round(most / 10 / step) * step)
    middle = max(small + 1, round(most / 2 / step) * step)
    return [small, middle, most]


def _ticks(axes: Axes, points: Sequence[CurvePoint], whole: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    xs = [point.x for point in points] or [0.0, 1.0]
    margin = 0.04 * (max(xs) - min(xs)) or 0.5
    axes.set_xlim(min(xs) - margin, max(xs) + margin)
    if whole and max(xs) - min(xs) <= 10:
        axes.set_xticks(range(math.ceil(min(xs)), int(max(xs)) + 1))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=whole))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axes.grid(visible=False, axis="x")
