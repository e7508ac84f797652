"""Effort of both sides: tokens of the agent against tokens of the human, session by session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...metrics import Group, Report, SessionScore
from .geometry import dot_area, left_out_note, log_ticks, ratio_lines, token_limits, token_sessions
from .panels import Panels, Sheet, panel_title
from .style import FAINT

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ("draw_scatter",)


def draw_scatter(panels: Panels, report: Report) -> Figure | None:
    """Draws a dot per session on logarithmic axes, with lines of equal ratio.

    None if no session has tokens of both sides. Sessions in which a side generated no token
    have no place on a logarithmic axis; the caption counts them.
    """
    from matplotlib.lines import Line2D

    shown, left_out = token_sessions(report)
    if not shown:
        return None
    across, up = token_limits(shown)
    caption = (
        "Tokens that the agent and the (simulated) human generated, a dot per session; ringed: the "
        "mean of an agent. Dashed: equal ratios of agent to human tokens."
    )
    if left_out:
        caption += f" {left_out_note(left_out)}"
    legend: list[tuple[Artist, str]] = []
    for look in panels.looks.values():
        dot = Line2D([], [], linestyle="", marker="o", markersize=4, color=look.colour)
        legend.append((dot, look.name))
    sheet = Sheet(len(panels.by_panel), legend=legend, caption=caption, square=True, below=0.4)
    for axes, (key, groups) in zip(sheet.axes, panels.by_panel.items(), strict=True):
        _frame(axes, across, up)
        members = _mixed([s for s in shown if any(s.group == group.group for group in groups)])
        axes.scatter(
            [score.human_tokens or 0 for score in members],
            [score.agent_tokens or 0 for score in members],
            s=dot_area(len(members), 9),
            c=[panels.looks[panels.series(score.group)].colour for score in members],
            alpha=0.55,
            linewidths=0,
            zorder=2,
        )
        for group in groups:
            _mean(axes, group, panels.look(group).colour)
        axes.set_title(panel_title(key))
        count = f"N = {len(members):,}"
        axes.set_title(count, loc="right", fontsize=6.2, color=FAINT, fontweight="normal")
        axes.set_xlabel("Human tokens")
    for axes in sheet.first_column:
        axes.set_ylabel("Agent tokens")
    return sheet.figure


def _mixed(scores: Sequence[SessionScore]) -> list[SessionScore]:
    """Shuffles the drawing order, so that no agent covers another."""
    ranks: dict[str, int] = {}
    keyed = []
    for score in scores:
        kind = str(sorted(score.group.items()))
        ranks[kind] = ranks.get(kind, 0) + 1
        keyed.append((ranks[kind], kind, score))
    return [score for _, _, score in sorted(keyed, key=lambda item: item[:2])]


def _frame(axes: Axes, across: tuple[float, float], up: tuple[float, float]) -> None:
    """Sets up logarithmic axes, and draws lines of equal ratio, labelled near their ends."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*[10**edge for edge in across])
    axes.set_ylim(*[10**edge for edge in up])
    for axis, limits in ((axes.xaxis, across), (axes.yaxis, up)):
        ticks = log_ticks(limits)
        axis.set_major_locator(FixedLocator([10**power for power, _ in ticks]))
        axis.set_major_formatter(FixedFormatter([name for _, name in ticks]))
        axis.set_minor_formatter(NullFormatter())
    length = across[1] - across[0]
    for ratio, name in ratio_lines(across, up):
        rise = (ratio + across[0] - up[0]) / length  # where it starts, in panel heights
        axes.plot(
            [10**edge for edge in across],
            [10 ** (ratio + edge) for edge in across],
            color=FAINT,
            linestyle=(0, (3, 2)),
            linewidth=0.7,
            zorder=1,
            scalex=False,
            scaley=False,
        )
        at = min(1.0, 1.0 - rise) - 0.07
        axes.text(
            at,
            at + rise,
            name,
            transform=axes.transAxes,
            rotation=45,
            ha="center",
            va="center",
            fontsize=6,
            color=FAINT,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            zorder=1.5,
        )


def _mean(axes: Axes, group: Group, colour: str) -> None:
    agent, human = group.effort.agent_tokens.value, group.effort.human_tokens.value
    if agent and human:
        axes.scatter(
            [human], [agent], s=34, color=colour, edgecolors="black", linewidths=0.9, zorder=4
        )
