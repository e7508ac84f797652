"""A forest plot of agents compared in pairs: the effect on each quantity, with its interval."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ....engine.log.exchange.output_file import OutputRules
from ...comparison.pairs import Comparison, Difference
from ..text.wording import compared_title
from .panels import Sheet
from .saving import write_figures
from .style import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ("draw_forest", "save_forest")

UTILITIES = ("overall", "first", "final", "gain")
"""Quantities on the scale of utility; the drops, whose names begin with ``drop@``, are too."""

_SIGNIFICANT = 0.05


def draw_forest(comparisons: Sequence[Comparison]) -> Figure | None:
    """Draws the differences in utility, a panel per pair of agents; None if there is none."""
    from matplotlib.lines import Line2D

    drawn = [one for one in comparisons if _shown(one)]
    if not drawn:
        return None
    filled = Line2D([], [], linestyle="", marker="s", color=INK, markersize=4)
    hollow = Line2D(
        [], [], linestyle="", marker="s", color=INK, markerfacecolor="white", markersize=4
    )
    legend: list[tuple[Artist, str]] = [
        (filled, "p < .05 after Holm"),
        (hollow, "not significant"),
    ]
    caption = (
        "Difference on the same instance, the second agent less the first: mean and 95 % bootstrap "
        "interval; to the right of 0, the second is better. n: instances with a value on both sides."
    )
    most = max(len(_shown(one)) for one in drawn)
    sheet = Sheet(len(drawn), legend=legend, caption=caption, height=0.3 + 0.3 * most)
    widest = max(abs(edge) for one in drawn for each in _shown(one) for edge in _edges(each))
    for axes, one in zip(sheet.axes, drawn, strict=True):
        _panel(axes, one, widest * 1.15 or 0.1)
        title = f"{one.second} – {one.first}"
        others = [value for name, value in one.group.items() if _varies(drawn, name)]
        axes.set_title(" · ".join([title, *others]))
        axes.set_xlabel("Difference")
    return sheet.figure


def save_forest(
    comparisons: Sequence[Comparison],
    directory: str | os.PathLike[str],
    formats: Sequence[str] = ("png", "svg"),
    *,
    rules: OutputRules = OutputRules(),  # noqa: B008  (immutable)
) -> list[Path]:
    """Draws the forest plot and writes it as ``compare``; nothing if there is nothing to draw.

    Raises:
        MissingExtra: matplotlib is not installed.
        InvalidInput: a format is unknown, or the directory cannot be written.
    """

    def draw() -> list[tuple[str, Figure]]:
        figure = draw_forest(comparisons)
        return [] if figure is None else [("compare", figure)]

    return write_figures(draw, directory, formats, rules)


def _shown(comparison: Comparison) -> list[Difference]:
    """The differences on the scale of utility that have a value."""
    return [
        each
        for each in comparison.differences
        if each.difference.value is not None
        and (each.quantity in UTILITIES or each.quantity.startswith("drop@"))
    ]


def _edges(difference: Difference) -> list[float]:
    found = difference.difference
    return [edge for edge in (found.low, found.value, found.high) if edge is not None]


def _varies(comparisons: Sequence[Comparison], name: str) -> bool:
    return len({one.group.get(name) for one in comparisons}) > 1


def _panel(axes: Axes, comparison: Comparison, reach: float) -> None:
    shown = _shown(comparison)
    axes.axvline(0, color=FAINT, linewidth=0.8, zorder=1)
    for place, each in enumerate(shown):
        low, *_, high = _edges(each)
        value = each.difference.value
        significant = each.adjusted is not None and each.adjusted < _SIGNIFICANT
        label = f"{_label(each)}  (n = {each.pairs})"
        axes.text(
            -0.98 * reach, place - 0.22, label, fontsize=6.2, color=INK, va="bottom", zorder=4
        )
        axes.plot([low, high], [place, place], color=INK, linewidth=1, zorder=2)
        axes.plot(
            [value] if value is not None else [],
            [place],
            linestyle="",
            marker="s",
            markersize=4,
            color=INK,
            markerfacecolor=INK if significant else "white",
            zorder=3,
        )
    axes.set_yticks([])
    axes.set_ylim(len(shown) - 0.5, -0.8)
    axes.set_xlim(-reach, reach)
    axes.grid(visible=False, axis="y")


def _label(difference: Difference) -> str:
    return compared_title(difference.quantity)
