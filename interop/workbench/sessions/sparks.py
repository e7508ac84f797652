"""Small curves beside the numbers of a list: a value per round, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..markup.html import Html, tag

__all__ = ("spark_bars", "spark_line")

_WIDTH: Final = 80.0
_HEIGHT: Final = 18.0
_MOST: Final = 80  # values that are drawn; of more, every so many


def spark_line(values: Sequence[float | None], label: str) -> Html:
    """Utility by round, from 0 to 1; nothing before the first score."""
    points = _thinned(values)
    step = _WIDTH / max(len(points) - 1, 1)
    parts: list[str] = []
    for index, value in enumerate(points):
        if value is not None:
            y = (_HEIGHT - 2) * (1 - min(max(value, 0.0), 1.0)) + 1
            parts.append(f"{'L' if parts else 'M'}{index * step:.1f} {y:.1f}")
    if len(parts) == 1:
        parts.append("h1")
    return _svg(label, tag("path", d="".join(parts), class_="line"))


def spark_bars(values: Sequence[float | None], label: str) -> Html:
    """Effort of each round by itself; the greatest is the full height."""
    points = _thinned(values)
    most = max((value for value in points if value is not None), default=0.0) or 1.0
    step = _WIDTH / max(len(points), 1)
    path = "".join(
        f"M{index * step:.1f} {_HEIGHT:g}v{-max(value / most * _HEIGHT, 0.5):.1f}"
        f"h{max(step - 1, 0.5):.1f}V{_HEIGHT:g}z"
        for index, value in enumerate(points)
        if value is not None
    )
    return _svg(label, tag("path", d=path, class_="bars"))


def _svg(label: str, path: Html) -> Html:
    return tag(
        "svg",
        path,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        class_="spark",
        role="img",
        aria_label=label,
        preserveAspectRatio="none",
    )


def _thinned(values: Sequence[float | None]) -> Sequence[float | None]:
    if len(values) <= _MOST:
        return values
    return [values[(index + 1) * len(values) // _MOST - 1] for index in range(_MOST)]
