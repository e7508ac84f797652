"""The rows of the list of sessions as HTML."""

from __future__ import annotations

from typing import Final

import msgspec

from ....engine.display import duration, is_virtual, lasted, moment, number, shorten
from ....engine.log.contract import SessionSummary
from ....scoring.listing.rows import SessionRow
from ..links import session_link
from ..markup.html import Html, Node, tag
from .address import ListAddress
from .listing import Key
from .sparks import spark_bars, spark_line

__all__ = ("COLUMNS", "effort_text", "session_row")

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


def session_row(
    summary: SessionSummary,
    address: ListAddress,
    key: Key | None,
    row: SessionRow | None = None,
) -> Html:
    """A session's row.

    Args:
        summary: of the session.
        address: of the list.
        key: where it stands in the list; None where that is not known.
        row: what was measured of its rounds; None while that is not known.
    """
    name = session_link(summary.session, shorten(summary.session, _NAME))
    about = " · ".join(part for part in (summary.task, summary.instance) if part)
    cells: list[Node] = [
        tag("th", name, tag("small", shorten(about, _NAME), dir="auto"), scope="row"),
        tag("td", [_label(key, value, address) for key, value in summary.group.items()]),
        tag("td", tag("span", summary.state, class_=f"state {summary.state}")),
        tag("td", summary.rounds, class_="number"),
        tag("td", _utility(summary, row), class_="number"),
        tag("td", _effort(row, address.effort), class_="number"),
        tag("td", _stops(row), class_="number"),
        tag("td", lasted(summary.opened, summary.last), class_="number"),
        tag("td", _began(summary)),
    ]
    return tag(
        "tr",
        cells,
        data_session=summary.session,
        data_key=None if key is None else msgspec.json.encode(key).decode(),
        data_position=summary.position,
        data_measured=row is not None,
    )


def _label(key: str, value: str, address: ListAddress) -> Html:
    conditions = tuple(one for one in address.conditions if one[0] != key)
    to = msgspec.structs.replace(address.first_page(), conditions=(*conditions, (key, value)))
    text = shorten(value, _LABEL)
    return tag("a", text, href=str(to), class_="label", title=f"{key}: {value[:200]}", dir="auto")


def _utility(summary: SessionSummary, row: SessionRow | None) -> Node:
    if row is None:
        return [number(summary.utility), tag("span", _WAITING, class_="spark")]
    if row.problem:
        return tag("abbr", "–", title=row.problem[:200])
    value = number(row.utility)
    return [value, spark_line(row.utilities, f"utility by round, at last {value}")]


def _effort(row: SessionRow | None, measure: str) -> Node:
    if row is None:
        return _WAITING
    known = [value for value in row.efforts if value is not None]
    if not known:
        return "–"
    text = effort_text(sum(known), measure)
    return [text, spark_bars(row.efforts, f"{measure} by round, in all {text}")]


def _stops(row: SessionRow | None) -> Node:
    if row is None:
        return _WAITING
    return [
        tag("span", f"τ{tau}", class_="tau", title=f"tolerance {tau} used up after round {number_}")
        for tau, number_ in sorted(row.stops.items())
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
