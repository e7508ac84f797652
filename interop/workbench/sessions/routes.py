"""The routes of the list of sessions: the page, its rows, and what changes in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import Final, final

import anyio
from sse_starlette import ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....engine.errors import InvalidInput, SessionNotFound
from ....engine.log.contract import SessionSummary
from ....engine.text import quantity
from ....scoring.index.lines import SessionLine
from ....scoring.index.query import SessionQuery, join_query, split_query
from ...http.responses import as_json
from ...http.sse import EventStream
from ..access.guard import identity_of
from ..access.roles import readers
from ..events import message, position_of, streaming
from ..frame import page
from ..markup.agents import AgentMarks
from ..markup.html import Html
from ..state import Workbench
from .address import ListAddress, parse_address
from .page import list_contents, list_exports, paged, searching_note
from .rows import columns_of, session_row
from .searching import searched, snippets_of

__all__ = ("session_list_routes",)

_ROWS: Final = 100  # rows in one request
_PATIENCE: Final = 0.2  # seconds that a page waits for what the log keeps of its rows


def session_list_routes(workbench: Workbench) -> Sequence[Route]:
    """The routes."""
    routes = _Routes(workbench)
    return (
        Route("/sessions", readers(routes.page)),
        Route("/v1/sessions/rows", readers(routes.rows)),
        Route("/v1/sessions/stream", readers(routes.stream)),
    )


@final
class _Routes:
    """The endpoints."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._index = workbench.sessions
        self._lists = workbench.lists

    async def page(self, request: Request) -> Response:
        """The page."""
        workbench, index = self._workbench, self._index
        address, problem, typed = self._asked(request.query_params.multi_items())
        position = index.position
        before = after = None
        complete = False
        if address.plain and not index.loaded:
            latest = await index.latest(workbench.limits.page)
            rows = await self._drawn(latest, address, address.query)
            note = searching_note(0, len(index), 0, loaded=False, complete=False)
        else:
            query, left = await searched(workbench, address)
            found = self._lists.of(query, address.order)
            await found.soon()
            complete = found.complete
            size = workbench.limits.page
            shown = await found.page(size, after=address.after, before=address.before)
            rows = await self._drawn(shown.sessions, address, query)
            if shown.before and shown.first:
                before = paged(address, before=shown.first)
            if shown.after and shown.last:
                after = paged(address, after=shown.last)
            note = searching_note(
                len(found),
                len(index),
                found.looked,
                loaded=index.loaded,
                complete=found.complete,
            )
            if left:
                note += f"; {quantity(left, 'session')} not searched yet: reload the page"
        contents = list_contents(
            index,
            address,
            rows,
            note=note,
            before=before,
            after=after,
            problem=problem,
            typed=typed,
            complete=complete,
            reviews=identity_of(request).role == "operator" and not workbench.access.read_only,
        )
        return page(
            workbench,
            identity_of(request),
            "Sessions",
            *contents,
            script="waiting.js" if index.loaded and not len(index) else "sessions.js",
            at="/sessions",
            position=position,
            status=400 if problem else 200,
            kind="list-page",
            exports=list_exports(address),
        )

    def _asked(self, given: Sequence[tuple[str, str]]) -> tuple[ListAddress, str, str]:
        """The list that an address asks for; without its last term if the whole is wrong; and why."""
        try:
            return self._checked(given), "", ""
        except InvalidInput as error:
            problem = str(error)
        texts = [value for key, value in given if key == "q"]
        *typed, last = split_query(" ".join(texts)) or [""]
        others = [(key, value) for key, value in given if key != "q"]
        try:
            address = self._checked([("q", join_query(typed)), *others])
        except InvalidInput:
            return ListAddress(), problem, " ".join(texts)
        return address, problem, last

    def _checked(self, given: Sequence[tuple[str, str]]) -> ListAddress:
        """The list of an address. Raises InvalidInput if it names what there is not."""
        address = parse_address(given)
        columns_of(address)
        if self._index.loaded and len(self._index):
            address.query.check_labels(self._index.labels)
            address.order.check_label(self._index.labels)
        return address

    async def _drawn(
        self, summaries: Sequence[SessionSummary], address: ListAddress, query: SessionQuery
    ) -> list[Html]:
        """Rows from the measurements that the log keeps; the page asks for the others itself."""
        lines = self._lists.lines
        with anyio.move_on_after(_PATIENCE):
            await lines.prefetch(summaries)
        shown = await snippets_of(self._workbench, query, summaries)
        return [self._row(one, address, query, lines.at_hand(one), shown) for one in summaries]

    def _row(
        self,
        summary: SessionSummary,
        address: ListAddress,
        query: SessionQuery,
        line: SessionLine | None,
        snippets: Mapping[str, str],
    ) -> Html:
        place = self._index.place(summary.session)
        found = self._lists.of(query, address.order)
        key = None if place is None else found.key(place)
        marks = AgentMarks(self._index.values("agent"))
        taus = self._workbench.options.taus
        snippet = snippets.get(summary.session, "")
        return session_row(summary, address, key, line, taus, marks, snippet)

    async def rows(self, request: Request) -> Response:
        """Rows of the named sessions, with their measurements."""
        parameters = request.query_params.multi_items()
        sessions = [value for key, value in parameters if key == "of"]
        address = parse_address(parameters)
        if len(sessions) > _ROWS:
            raise InvalidInput(f"at most {_ROWS} rows can be asked for at once")
        query, _ = await searched(self._workbench, address)
        await self._lists.of(query, address.order).soon()
        found: list[SessionSummary] = []
        for session in sessions:
            with suppress(SessionNotFound):
                found.append(await self._workbench.log.summary(session))
        lines = self._lists.lines
        await lines.prefetch(found)
        shown = await snippets_of(self._workbench, query, found)
        rows = {
            one.session: self._row(one, address, query, await lines.line(one), shown).text
            for one in found
        }
        return as_json({"rows": rows})

    async def stream(self, request: Request) -> EventStream:
        """The changes in the list, as server-sent events."""
        address = parse_address(request.query_params.multi_items()).first_page()
        after = position_of(request)
        return streaming(self._workbench, self._messages(address, after))

    async def _messages(
        self, address: ListAddress, after: int
    ) -> AsyncGenerator[ServerSentEvent, None]:
        pace = self._workbench.limits.pace
        query, _ = await searched(self._workbench, address)
        follow = self._lists.follow(query, address.order, after, pace)
        async for change in follow:
            note = searching_note(
                change.found,
                change.total,
                change.looked,
                loaded=change.loaded,
                complete=change.complete,
            )
            data = {
                "rows": change.rows,
                "gone": change.gone,
                "reload": change.reload,
                "complete": change.complete,
                "note": note,
            }
            yield message("list", data, change.position)
