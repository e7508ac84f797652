"""The page of what goes on: rows of open sessions."""

from __future__ import annotations

from typing import Final

import msgspec

from ....engine.display import number, shorten
from ....scoring.listing.rows import utilities
from ..links import session_link
from ..markup.html import Html, Node, tag
from ..sessions.sparks import spark_line
from .open_sessions import OpenSession

__all__ = ("live_contents", "open_row")

_NAME: Final = 60
_TITLES: Final = (
    "Session",
    "Labels",
    "Rounds without progress",
    "τ used up",
    "Waiting for approval",
    "Rounds since utility rose",
    "Utility",
    "Rounds",
    "Records",
)


def live_contents() -> list[Node]:
    """What the page holds before its script fills it."""
    head = tag(
        "tr",
        [tag("th", title, scope="col") for title in _TITLES[:2]],
        [tag("th", title, scope="col", class_="number") for title in _TITLES[2:]],
    )
    table = tag(
        "table",
        tag("caption", "Open sessions", class_="unseen"),
        tag("thead", head),
        tag("tbody", id="rows"),
        class_="sessions",
    )
    return [
        tag("h1", "Live"),
        tag("p", "Reading …", id="count", role="status", class_="note"),
        tag("div", table, class_="wide", tabindex=0, role="region", aria_label="Open sessions"),
    ]


def open_row(one: OpenSession) -> Html:
    """The row of an open session."""
    summary = one.summary
    about = " · ".join(part for part in (summary.task, summary.instance) if part)
    values = utilities(one.points)
    last = values[-1] if values else None
    value = number(last)
    taus = [tag("span", f"τ{tau}", class_="tau") for tau in sorted(one.stops)]
    cells: list[Node] = [
        tag(
            "th",
            session_link(summary.session, shorten(summary.session, _NAME)),
            tag("small", shorten(about, _NAME), dir="auto"),
            scope="row",
        ),
        tag(
            "td",
            [tag("span", shorten(one_, 40), class_="label") for one_ in summary.group.values()],
        ),
        tag(
            "td",
            tag("b", one.stall) if one.stall else "0",
            class_=f"number stall-{min(one.stall, 3)}",
        ),
        tag("td", taus, class_="number"),
        tag("td", one.approvals or "", class_="number"),
        tag("td", one.flat, class_="number"),
        tag("td", value, spark_line(values, f"utility by round, at last {value}"), class_="number"),
        tag("td", summary.rounds, class_="number"),
        tag("td", f"{summary.events:,}", class_="number"),
    ]
    return tag(
        "tr",
        cells,
        data_session=summary.session,
        data_key=msgspec.json.encode((*one.urgency, summary.position)).decode(),
    )
