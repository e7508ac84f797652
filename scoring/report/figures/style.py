"""Style of the figures: colours for every colour vision, sizes for a page, thin lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from zlib import crc32

__all__ = (
    "AUTOMATED",
    "COLUMN",
    "FAINT",
    "FONT",
    "INK",
    "PAGE",
    "SETTINGS",
    "STYLES",
    "Dashes",
    "colours",
)

COLUMN, PAGE = 3.5, 7.2
"""Widths of a column and of a page of two columns, in inches."""

INK, FAINT, AUTOMATED = "#222222", "#8A8A8A", "#4D4D4D"
"""Colours of text, of the background, and of automated runs."""

_KNOWN: Mapping[str, str] = {"one-stage": "#0072B2", "two-stage": "#D55E00", "auto": AUTOMATED}
_OTHERS = ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255")
"""The rest of the colours of Okabe and Ito, with a dark red in place of yellow and black."""

Dashes = tuple[float, tuple[float, ...]]
"""A line style: an offset, and the lengths of dashes and gaps; none for a solid line."""

STYLES: tuple[Dashes, ...] = ((0, ()), (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1, 1, 1)))
"""Line styles that distinguish series of one colour."""

FONT = "DejaVu Sans"
"""The font; it comes with matplotlib, so that figures are the same everywhere."""

SETTINGS: Mapping[str, object] = {
    "font.size": 7.5,
    "font.family": FONT,
    "axes.titlesize": 8,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 7.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.5,
    "text.color": INK,
    "text.hinting": "none",
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
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


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name, the same in every figure as far as the others leave it free.

    The agents that Duolog ships have fixed colours. The colour of any other name depends on the
    name alone, unless another name in the figure has that colour: then it is the next free one.
    """
    wanted = sorted(set(names))
    chosen = {name: _KNOWN[name] for name in wanted if name in _KNOWN}
    for name in wanted:
        if name in chosen:
            continue
        start = crc32(name.encode()) % len(_OTHERS)
        turned = (*_OTHERS[start:], *_OTHERS[:start], *_KNOWN.values())
        free = [colour for colour in turned if colour not in chosen.values()]
        chosen[name] = (free or turned)[0]
    return chosen
