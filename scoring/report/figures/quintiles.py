"""Final performance by quintile of the ratio of agent tokens to human tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...metrics import Buckets, Report
from .geometry import bucket_members, dot_area, jitter, varying_labels
from .panels import Panels, Sheet, panel_title
from .style import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ("draw_quintiles",)


def draw_quintiles(panels: Panels, report: Report) -> Figure | None:
    """Draws, per quintile, a dot for each session and the mean; None if there are none."""
    from matplotlib.lines import Line2D

    drawn = [buckets for buckets in report.buckets if buckets.stats]
    if not drawn:
        return None
    caption = (
        "Final performance by quintile of the ratio of agent to human tokens, a dot per session; "
        "n: sessions. Black: mean ±1\u00a0SEM. Agents are pooled."
    )
    legend: list[tuple[Artist, str]] = []
    for look in panels.looks.values():
        dot = Line2D([], [], linestyle="", marker="o", markersize=3.5, color=look.colour)
        legend.append((dot, look.name))
    mean = Line2D([], [], color=INK, marker="o", markersize=4, linewidth=1.1)
    legend.append((mean, "mean ±1 SEM"))
    sheet = Sheet(len(drawn), legend=legend, caption=caption, below=0.45)
    for axes, buckets in zip(sheet.axes, drawn, strict=True):
        _panel(axes, buckets, panels, report)
        axes.set_title(panel_title(varying_labels(buckets, drawn)))
        axes.set_xlabel("Agent tokens per human token", labelpad=3)
    for axes in sheet.first_column:
        axes.set_ylabel("Final performance")
    return sheet.figure


def _panel(axes: Axes, buckets: Buckets, panels: Panels, report: Report) -> None:
    stats = buckets.stats or ()
    xs, ys, hues = [], [], []
    for index, scores in enumerate(bucket_members(report, buckets)):
        for place, score in enumerate(scores):
            xs.append(index + jitter(place))
            ys.append(score.performance or 0.0)
            hues.append(panels.looks[panels.series(score.group)].colour)
    axes.scatter(xs, ys, s=dot_area(len(xs), 6), c=hues, alpha=0.5, linewidths=0, zorder=2)
    found = [
        (i, b.mean.value, b.sem or 0.0) for i, b in enumerate(stats) if b.mean.value is not None
    ]
    axes.errorbar(
        [index for index, _, _ in found],
        [value for _, value, _ in found],
        yerr=[error for _, _, error in found],
        color=INK,
        marker="o",
        markersize=4,
        linewidth=1.1,
        elinewidth=1.1,
        capsize=2.2,
        zorder=4,
    )
    edges = [*[bucket.low for bucket in stats], None]
    axes.set_xticks(
        [index - 0.5 for index in range(len(edges))],
        ["∞" if edge is None else f"{edge:g}" for edge in edges],
    )
    for index, bucket in enumerate(stats):
        axes.text(
            index,
            1.06,
            f"n = {bucket.mean.sessions}",
            fontsize=6.2,
            color=FAINT,
            ha="center",
            va="bottom",
        )
    axes.set_xlim(-0.5, len(stats) - 0.5)
    axes.set_ylim(-0.04, 1.13)
    axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])
