"""The page of open sessions that moved in the last minutes, those first whose human is about to give up."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Sequence
from time import time
from typing import Final, TypeAlias, final

import anyio
import msgspec
from sse_starlette import ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...engine.log.contract import SessionSummary
from ...engine.text import quantity
from ...scoring.display.texts import day_or_hour, is_virtual, lasted, moment
from ...scoring.index.lines import SessionLine
from ...scoring.index.order import parse_order
from ...scoring.index.query import parse_query
from ..http.sse import EventStream
from .access.guard import identity_of
from .access.roles import readers
from .events import message, position_of, streaming
from .frame import page
from .markup.agents import AgentMarks
from .markup.html import Html, Node, tag
from .sessions.rows import label_of, outcome, session_title, utility_cell
from .state import Workbench

__all__ = ("LiveSessions", "Urgency", "live_messages", "live_routes", "open_row", "urgency")

_MINUTES: Final = 10  # within which a session has to have moved
_MOST: Final = 300  # open sessions on the page: those that were written to last
_AGING: Final = 20.0  # seconds until the page looks which sessions have not moved for too long
_SLOWER: Final = 5  # times the pace of other pages: there is more to be computed
_ROWS: Final = 20  # rows in one message
_OPEN: Final = parse_query(["state=open"])
_LATEST: Final = parse_order("-written")
_TITLES: Final = (
    ("Session", "session"),
    ("Agent", "agent"),
    ("Outcome", "outcome"),
    ("Utility", "utility"),
    ("Unproductive in a row", "count number"),
    ("τ used up", "taus"),
    ("Since utility rose", "count number"),
    ("Rounds", "rounds number"),
    ("Last record", "began"),
)
"""Titles and classes of the columns; the numbers count rounds."""


Urgency: TypeAlias = tuple[int, int, int]
"""Sort key of open sessions, the greatest first: unproductive rounds in a row, waiting approvals,
and rounds since the utility last rose.
"""


def urgency(line: SessionLine) -> Urgency:
    """How near a session's human is to giving up."""
    return (line.stall, line.row.waiting, line.flat)


def live_routes(workbench: Workbench) -> Sequence[Route]:
    """The routes."""
    live = LiveSessions(workbench)

    async def shown(request: Request) -> Response:
        contents = _contents()
        return page(
            workbench, identity_of(request), "Live", *contents, script="live.js", at="/live"
        )

    async def stream(request: Request) -> EventStream:
        return streaming(workbench, live_messages(live, position_of(request)))

    return Route("/live", readers(shown)), Route("/v1/live/stream", readers(stream))


async def live_messages(live: LiveSessions, after: int) -> AsyncGenerator[ServerSentEvent, None]:
    """The open sessions that moved, whatever the client had, and then those that change."""
    index = live.workbench.sessions
    shown: dict[str, int] = {}
    while True:
        position = index.position
        latest = await live.open()
        changed = [one for one in latest if shown.get(one.session) != one.position]
        now = {one.session: one.position for one in latest}
        gone = [session for session in shown if session not in now]
        note = live.note(len(latest))
        for start in range(0, max(len(changed), 1), _ROWS):
            rows = {one.session: await live.row(one) for one in changed[start : start + _ROWS]}
            yield message("live", {"rows": rows, "gone": gone, "note": note})
        yield message("live", {"rows": {}, "gone": [], "note": note}, max(position, after))
        shown = now
        if index.position <= position:
            with anyio.move_on_after(_AGING):
                await index.wait()
        await anyio.sleep(_SLOWER * live.workbench.limits.pace)


@final
class LiveSessions:
    """The open sessions that moved in the last minutes, shared by all viewers.

    A session on a virtual clock has no date. It has moved if this program saw a record of it arrive.

    Args:
        workbench: the shared state of the workbench.
        now: seconds since 1970.
    """

    def __init__(self, workbench: Workbench, now: Callable[[], float] = time) -> None:
        self.workbench = workbench
        self._now = now

    def _moved(self, summary: SessionSummary) -> bool:
        """Whether a session has a record of the last minutes."""
        last = summary.last
        if is_virtual(summary.opened):
            last = self.workbench.sessions.arrived.get(summary.session, -math.inf)
        return self._now() - last < _MINUTES * 60

    async def row(self, summary: SessionSummary) -> str:
        """The row of an open session."""
        line = await self.workbench.lists.lines.line(summary)
        marks = AgentMarks(self.workbench.sessions.values("agent"))
        return open_row(summary, line, self.workbench.options.taus, marks).text

    def note(self, shown: int) -> str:
        """How many sessions moved, and how many are open."""
        index = self.workbench.sessions
        if not index.loaded:
            so_far = quantity(len(index), "session")
            return f"open ones among the latest; reading the list: {so_far} so far …"
        count = index.values("state").get("open", 0)
        note = f"{quantity(shown, 'session')} moved in the last {_MINUTES} minutes"
        return f"{note}; {count:,} of {len(index):,} are open"

    async def open(self) -> Sequence[SessionSummary]:
        """The open sessions that moved, those first that were written to last."""
        if not self.workbench.sessions.loaded:
            latest = await self.workbench.sessions.latest(_MOST)
            found = [summary for summary in latest if summary.state == "open"]
        else:
            shown = self.workbench.lists.of(_OPEN, _LATEST)
            await shown.refresh()
            found = [*(await shown.page(_MOST)).sessions]
        return [summary for summary in found if self._moved(summary)]


def _contents() -> list[Node]:
    """The contents of the page before its script fills it."""
    head = tag(
        "tr",
        [tag("th", title, scope="col", class_=classes) for title, classes in _TITLES],
    )
    table = tag(
        "table",
        tag("caption", "Open sessions", class_="unseen"),
        tag("thead", head),
        tag("tbody", id="rows"),
        class_="dense",
    )
    return [
        tag("h1", "Live"),
        tag(
            "p",
            tag("span", "Reading …", id="count", role="status"),
            tag("a", "All open sessions", href="/sessions?state=open"),
            class_="note",
        ),
        tag("div", table, class_="wide", tabindex=0, role="region", aria_label="Open sessions"),
    ]


def open_row(
    summary: SessionSummary, line: SessionLine, taus: Sequence[int], marks: AgentMarks
) -> Html:
    """The row of an open session.

    Args:
        summary: the summary of the session.
        line: its measurements.
        taus: the tolerances to show.
        marks: the marks of the agents.
    """
    used = [tag("span", f"τ{tau}", class_="tau") for tau in sorted(line.stops(taus))]
    stall, agent = line.stall, label_of(summary, line, "agent")
    virtual = is_virtual(summary.opened)
    when = lasted(summary.opened, summary.last) if virtual else day_or_hour(summary.last)
    contents: list[Node] = [
        session_title(summary),
        marks.named(agent) if agent else "–",
        outcome(summary, line),
        utility_cell(line),
        tag("b", stall) if stall else "0",
        used,
        line.flat,
        line.rounds,
        tag("time", when, title=None if virtual else moment(summary.last)),
    ]
    first, *others = zip(contents, _TITLES, strict=True)
    cells: list[Node] = [tag("th", first[0], scope="row", class_=first[1][1])]
    for cell, (_, classes) in others:
        stalled = f" stall-{min(stall, 3)}" if cell is contents[4] else ""
        cells.append(tag("td", cell, class_=classes + stalled))
    return tag(
        "tr",
        cells,
        data_session=summary.session,
        data_key=msgspec.json.encode((*urgency(line), summary.position)).decode(),
    )
