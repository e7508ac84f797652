"""The rows of lists of sessions as HTML, with small curves: a value per round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ....engine.log.contract import SessionSummary
from ....scoring.display.texts import duration, is_virtual, lasted, moment, number, shorten
from ....scoring.index.lines import SessionLine
from ....scoring.index.lists import Key
from ..links import session_link
from ..markup.html import Html, Node, tag
from .address import ListAddress

__all__ = ("COLUMNS", "effort_text", "session_row", "utility_cell")

COLUMNS: Final = (
    ("session", "Session"),
    ("", "Labels"),
    ("state", "State"),
    ("rounds", "Rounds"),
    ("utility", "Utility"),
    ("", "Effort"),
    ("", "τ used up"),
    ("lasted", "Lasted"),
    ("opened", "Began"),
)
"""What a list can be sorted by, and the titles of its columns."""

_NAME: Final = 60
_LABEL: Final = 40
_WAITING: Final = "…"
_WIDTH: Final = 80.0
_HEIGHT: Final = 18.0
_MOST: Final = 80  # values that are drawn; of more, every so many


def session_row(
    summary: SessionSummary,
    address: ListAddress,
    key: Key | None,
    line: SessionLine | None,
    taus: Sequence[int],
) -> Html:
    """A session's row.

    Args:
        summary: of the session.
        address: of the list.
        key: where it stands in the list; None if that is not known.
        line: what was measured of its rounds; None while that is not known.
        taus: the tolerances to show.
    """
    name = session_link(summary.session, shorten(summary.session, _NAME))
    about = " · ".join(part for part in (summary.task, summary.instance) if part)
    cells: list[Node] = [
        tag("th", name, tag("small", shorten(about, _NAME), dir="auto"), scope="row"),
        tag("td", [_label(key, value, address) for key, value in summary.group.items()]),
        tag("td", tag("span", summary.state, class_=f"state {summary.state}")),
        tag("td", _WAITING if line is None else line.rounds, class_="number"),
        tag("td", _utility(line), class_="number"),
        tag("td", _effort(line, address.effort), class_="number"),
        tag("td", _stops(line, taus), class_="number"),
        tag("td", lasted(summary.opened, summary.last), class_="number"),
        tag("td", _began(summary)),
    ]
    return tag(
        "tr",
        cells,
        data_session=summary.session,
        data_key=None if key is None else msgspec.json.encode(key).decode(),
        data_position=summary.position,
        data_measured=line is not None,
    )


def _label(key: str, value: str, address: ListAddress) -> Html:
    conditions = tuple(one for one in address.conditions if one[0] != key)
    to = msgspec.structs.replace(address.first_page(), conditions=(*conditions, (key, value)))
    text = shorten(value, _LABEL)
    return tag("a", text, href=str(to), class_="label", title=f"{key}: {value[:200]}", dir="auto")


def _utility(line: SessionLine | None) -> Node:
    if line is None:
        return tag("span", _WAITING, class_="spark")
    if line.row.problem:
        return tag("abbr", "–", title=line.row.problem[:200])
    return utility_cell(line)


def utility_cell(line: SessionLine) -> list[Node]:
    """The utility after the last round, and its curve."""
    value = number(line.utility)
    return [value, _spark_line(line.utilities, f"utility by round, at last {value}")]


def _effort(line: SessionLine | None, measure: str) -> Node:
    if line is None:
        return _WAITING
    efforts = line.efforts(measure)
    known = [value for value in efforts if value is not None]
    if not known:
        return "–"
    text = effort_text(sum(known), measure)
    return [text, _spark_bars(efforts, f"{measure} by round, in all {text}")]


def _stops(line: SessionLine | None, taus: Sequence[int]) -> Node:
    if line is None:
        return _WAITING
    return [
        tag("span", f"τ{tau}", class_="tau", title=f"tolerance {tau} used up after round {number_}")
        for tau, number_ in sorted(line.stops(taus).items())
    ]


def effort_text(value: float, measure: str) -> str:
    """An effort as it is shown: a duration, or a number."""
    if measure == "seconds":
        return duration(value)
    return f"{value:,.2f}" if measure == "token_ratio" else f"{value:,.0f}"


def _began(summary: SessionSummary) -> Html:
    if not summary.version:
        return tag("span", "–")
    if is_virtual(summary.opened):
        return tag("span", f"{duration(summary.opened)} (virtual)")
    return tag("time", moment(summary.opened))


# --- curves --------------------------------------------------------------------------------------


def _spark_line(values: Sequence[float | None], label: str) -> Html:
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


def _spark_bars(values: Sequence[float | None], label: str) -> Html:
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
