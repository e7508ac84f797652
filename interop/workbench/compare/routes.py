"""The routes of the report of what a list shows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import TypeVar, final

import anyio.to_thread
from sse_starlette import ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....engine.errors import InvalidInput
from ....engine.text import quantity
from ...http.sse import EventStream
from ..access.guard import identity_of
from ..access.roles import readers
from ..bench import Bench
from ..events import message, streaming
from ..frame import page
from ..markup.html import Node, tag
from ..sessions.address import ListAddress, parse_address
from .report import make_pairs, make_report
from .trajectories import MOST, Trajectories

__all__ = ("compare_routes",)

_Made = TypeVar("_Made")


def compare_routes(bench: Bench) -> Sequence[Route]:
    """The routes."""
    routes = _Routes(bench)
    return (
        Route("/compare", readers(routes.page)),
        Route("/v1/compare/stream", readers(routes.stream)),
    )


@final
class _Routes:
    """The endpoints, and what they share."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._trajectories = Trajectories(bench)
        self._threads = anyio.CapacityLimiter(1)

    async def page(self, request: Request) -> Response:
        """The page, before the report is there."""
        problem = ""
        try:
            address = parse_address(request.query_params.multi_items()).first_page()
        except InvalidInput as error:
            address, problem = ListAddress(), str(error)
        which = "all sessions" if address.plain else "the sessions that the list shows"
        contents: list[Node] = [
            tag("h1", "Compare"),
            tag("p", problem, class_="problem", role="alert") if problem else None,
            tag(
                "p",
                f"The report of {which}. ",
                tag("a", "Change the filters", href=str(address)),
                class_="note",
            ),
            tag("p", "Reading …", id="progress", role="status", class_="quiet"),
            tag("div", id="report", class_="compare"),
            tag("div", id="pairs", class_="compare"),
            tag("div", id="tip", role="status"),
        ]
        return page(
            self._bench,
            identity_of(request),
            "Compare",
            *contents,
            script="compare.js",
            at="/compare",
            status=400 if problem else 200,
        )

    async def stream(self, request: Request) -> EventStream:
        """How far the sessions have been read, and then the report."""
        address = parse_address(request.query_params.multi_items()).first_page()
        return streaming(self._bench, self._messages(address))

    async def _messages(self, address: ListAddress) -> AsyncGenerator[ServerSentEvent, None]:
        table = self._bench.table
        while not table.loaded:
            yield message(
                "progress",
                {"text": f"reading the list: {quantity(len(table), 'session')} so far …"},
            )
            await table.wait()
        listing = self._bench.listings.of(address)
        await listing.refresh()
        sessions = [line.summary for line in listing.page(MOST).sessions]
        left = len(listing) - len(sessions)
        async for reading in self._trajectories.of(sessions):
            text = f"{reading.read:,} of {quantity(reading.total, 'session')} read …"
            if reading.trajectories is not None:
                text = "computing the report …"
            yield message("progress", {"text": text})
            if reading.trajectories is None:
                continue
            found, taus = reading.trajectories, self._bench.options.taus
            made = await self._in_thread(partial(make_report, found, taus))
            note = quantity(reading.total, "session")
            if damaged := reading.total - len(found):
                note += f"; {damaged:,} of them cannot be read, and are left out"
            if left:
                note += f"; the {left:,} that follow in the list are left out"
            yield message("report", made | {"text": note})
            pairs = await self._in_thread(partial(make_pairs, found, taus))
            yield message("pairs", {"html": pairs})

    async def _in_thread(self, make: Callable[[], _Made]) -> _Made:
        """Makes something beside the event loop, one thing at a time."""
        return await anyio.to_thread.run_sync(make, limiter=self._threads)
