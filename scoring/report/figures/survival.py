"""Survival of sessions: the share whose human is still there after each round (Kaplan-Meier)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...metrics.survival import SurvivalPoint
from .panels import Panels, Sheet, panel_title

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .style import Dashes

__all__ = ("draw_survival",)


def draw_survival(panels: Panels) -> Figure | None:
    """Draws survival by round as steps with intervals; None where no human left any session."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    groups = panels.groups
    if not any(point.left for group in groups for point in group.completion.survival):
        return None
    legend: list[tuple[Artist, str]] = []
    for look in panels.looks.values():
        line = Line2D([], [], color=look.colour, linestyle=look.style)
        legend.append((line, look.name))
    caption = (
        "Share of sessions whose human is still there after each round (Kaplan-Meier), with 95 % "
        "intervals. Leaving is being abandoned or stopped by tolerance; all other ends are censored (+)."
    )
    sheet = Sheet(len(panels.by_panel), legend=legend, caption=caption)
    longest = max(point.round for group in groups for point in group.completion.survival)
    for axes, (key, members) in zip(sheet.axes, panels.by_panel.items(), strict=True):
        for group in members:
            look = panels.look(group)
            _steps(axes, group.completion.survival, look.colour, look.style)
        axes.set_title(panel_title(key))
        axes.set_xlabel("Rounds")
        axes.set_xlim(0, longest + 0.5)
        axes.set_ylim(-0.03, 1.05)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
        axes.grid(visible=False, axis="x")
    for axes in sheet.first_column:
        axes.set_ylabel("Share still there")
    return sheet.figure


def _steps(axes: Axes, points: Sequence[SurvivalPoint], colour: str, style: Dashes) -> None:
    xs = [0, *(point.round for point in points)]
    survival = [1.0, *(point.survival for point in points)]
    low = [1.0, *(point.survival if point.low is None else point.low for point in points)]
    high = [1.0, *(point.survival if point.high is None else point.high for point in points)]
    axes.fill_between(xs, low, high, step="post", color=colour, alpha=0.14, linewidth=0)
    axes.step(xs, survival, where="post", color=colour, linestyle=style)
    censored = [point for point in points if point.censored]
    axes.plot(
        [point.round for point in censored],
        [point.survival for point in censored],
        linestyle="",
        marker="+",
        markersize=5,
        color=colour,
    )
