"""The routes of the list of sessions: the page, its rows, and what changes in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Final, final

from sse_starlette import ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....engine.errors import InvalidInput, SessionNotFound
from ....engine.log.contract import SessionSummary
from ...http.responses import as_json
from ...http.sse import EventStream
from ..access.guard import identity_of
from ..access.roles import readers
from ..bench import Bench
from ..events import message, position_of, streaming
from ..frame import page
from ..markup.html import Html
from .address import ListAddress, parse_address
from .measured import MeasuredRows
from .page import list_contents, paged, searching_note
from .rows import session_row

__all__ = ("session_list_routes",)

_ROWS: Final = 100  # rows in one request


def session_list_routes(bench: Bench) -> Sequence[Route]:
    """The routes."""
    routes = _Routes(bench)
    return (
        Route("/sessions", readers(routes.page)),
        Route("/v1/sessions/rows", readers(routes.rows)),
        Route("/v1/sessions/stream", readers(routes.stream)),
    )


@final
class _Routes:
    """The endpoints, and what they share."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._measured = MeasuredRows(bench.log, bench.options)

    async def page(self, request: Request) -> Response:
        """The page."""
        bench, table = self._bench, self._bench.table
        problem = ""
        try:
            address = parse_address(request.query_params.multi_items())
        except InvalidInput as error:
            address, problem = ListAddress(), str(error)
        position = table.position
        before = after = None
        if address.plain and not table.loaded:
            rows = [
                session_row(one, address, None) for one in await table.latest(bench.limits.page)
            ]
            note = searching_note(0, len(table), 0, loaded=False, complete=False)
        else:
            listing = self._bench.listings.of(address)
            await listing.soon()
            shown = listing.page(bench.limits.page, after=address.after, before=address.before)
            rows = [self._row(line.summary, address) for line in shown.sessions]
            if shown.before and shown.first:
                before = paged(address, before=shown.first)
            if shown.after and shown.last:
                after = paged(address, after=shown.last)
            note = searching_note(
                len(listing),
                len(table),
                listing.looked,
                loaded=table.loaded,
                complete=listing.complete,
            )
        contents = list_contents(
            table, address, rows, note=note, before=before, after=after, problem=problem
        )
        return page(
            bench,
            identity_of(request),
            "Sessions",
            *contents,
            script="sessions.js",
            at="/sessions",
            position=position,
            status=400 if problem else 200,
        )

    def _row(self, summary: SessionSummary, address: ListAddress) -> Html:
        listing, place = self._bench.listings.of(address), self._bench.table.place(summary.session)
        return session_row(summary, address, None if place is None else listing.key(place))

    async def rows(self, request: Request) -> Response:
        """Rows with what was measured, of the sessions that are named."""
        parameters = request.query_params.multi_items()
        sessions = [value for key, value in parameters if key == "of"]
        address = parse_address(parameters)
        if len(sessions) > _ROWS:
            raise InvalidInput(f"at most {_ROWS} rows can be asked for at once")
        listing = self._bench.listings.of(address)
        await listing.soon()
        rows: dict[str, str] = {}
        for session in sessions:
            try:
                summary = await self._bench.log.summary(session)
            except SessionNotFound:
                continue
            row = await self._measured.row(summary, address.effort)
            place = self._bench.table.place(session)
            key = None if place is None else listing.key(place)
            rows[session] = session_row(summary, address, key, row).text
        return as_json({"rows": rows})

    async def stream(self, request: Request) -> EventStream:
        """What changes in the list, as server-sent events."""
        address = parse_address(request.query_params.multi_items()).first_page()
        after = position_of(request)
        return streaming(self._bench, self._messages(address, after))

    async def _messages(
        self, address: ListAddress, after: int
    ) -> AsyncGenerator[ServerSentEvent, None]:
        follow = self._bench.listings.follow(address, after, self._bench.limits.pace)
        async for change in follow:
            note = searching_note(
                change.found,
                change.total,
                change.looked,
                loaded=change.loaded,
                complete=change.complete,
            )
            data = {"rows": change.rows, "gone": change.gone, "reload": change.reload, "note": note}
            yield message("list", data, change.position)
