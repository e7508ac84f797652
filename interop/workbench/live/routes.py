"""The routes of what goes on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Final, final

import anyio
from sse_starlette import ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....engine.log.contract import SessionSummary
from ....engine.text import quantity
from ...http.sse import EventStream
from ..access.guard import identity_of
from ..access.roles import readers
from ..bench import Bench
from ..events import message, position_of, streaming
from ..frame import page
from ..sessions.address import ListAddress
from .open_sessions import OpenSessions
from .page import live_contents, open_row

__all__ = ("LiveSessions", "live_messages", "live_routes")

_MOST: Final = 300  # open sessions on the page: those that were written to last
_SLOWER: Final = 5  # times the pace of other pages: there is more to be computed
_ROWS: Final = 20  # rows in one message


def live_routes(bench: Bench) -> Sequence[Route]:
    """The routes."""
    live = LiveSessions(bench)

    async def shown(request: Request) -> Response:
        contents = live_contents()
        return page(bench, identity_of(request), "Live", *contents, script="live.js", at="/live")

    async def stream(request: Request) -> EventStream:
        return streaming(bench, live_messages(live, position_of(request)))

    return Route("/live", readers(shown)), Route("/v1/live/stream", readers(stream))


async def live_messages(live: LiveSessions, after: int) -> AsyncGenerator[ServerSentEvent, None]:
    """All open sessions, whatever the client had, and then those that change."""
    table = live.bench.table
    shown: dict[str, int] = {}
    while True:
        position = table.position
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
        if table.position <= position:
            await table.wait()
        await anyio.sleep(_SLOWER * live.bench.limits.pace)


@final
class LiveSessions:
    """The open sessions, shared by all who look at them.

    Args:
        bench: what the parts of the workbench share.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._sessions = OpenSessions(bench.log, bench.options)

    async def row(self, summary: SessionSummary) -> str:
        """The row of an open session."""
        return open_row(await self._sessions.of(summary)).text

    def note(self, shown: int) -> str:
        """How many sessions are open."""
        table = self.bench.table
        count = table.values("state").get("open", 0)
        if not table.loaded:
            so_far = quantity(len(table), "session")
            return f"open ones among the latest; reading the list: {so_far} so far …"
        note = f"{quantity(count, 'open session')} of {len(table):,}"
        if count > shown:
            note += f"; the {shown} that were written to last are shown"
        return note

    async def open(self) -> list[SessionSummary]:
        """The open sessions that were written to last."""
        table = self.bench.table
        if not table.loaded:
            found = await table.latest(_MOST)
            return [summary for summary in found if summary.state == "open"]
        listing = self.bench.listings.of(ListAddress(conditions=(("state", "open"),)))
        await listing.refresh()
        return [line.summary for line in listing.page(_MOST).sessions]
