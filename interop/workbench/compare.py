"""Compare: the report of the sessions that a list shows, read, computed and sent to the page."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from functools import partial
from html import escape
from typing import Final, TypeVar, final
from urllib.parse import quote

import anyio.to_thread
import msgspec
from sse_starlette import ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...engine.errors import InvalidInput
from ...engine.log.contract import SessionSummary
from ...engine.text import quantity
from ...scoring.columns.rows import Folded, trajectory_of
from ...scoring.comparison.pairs import compare
from ...scoring.index.lines import AT_ONCE
from ...scoring.report import (
    Document,
    comparison_document,
    document_html,
    make_report,
    report_document,
)
from ...scoring.report.document import Note
from ...scoring.trajectory.points import Trajectory
from ..http.sse import EventStream
from .access.guard import identity_of
from .access.roles import readers
from .bench import Bench
from .events import message, streaming
from .frame import page
from .markup.html import Node, tag
from .sessions.address import ListAddress, parse_address

__all__ = ("MOST", "compare_routes", "pairs_document", "shown_document")

MOST: Final = 2000
"""Sessions in a report at most: the first ones of the list."""

_AGENTS: Final = 4  # that are compared in pairs
_LINK: Final = "/session?id="
_STEP: Final = 25  # sessions between two messages

_Made = TypeVar("_Made")


def shown_document(sessions: Sequence[Trajectory], taus: Sequence[int]) -> Document:
    """The report of sessions, as ``duolog report`` makes it; takes a moment, so call it in a thread.

    Raises:
        InvalidInput: a utility is not within 0 and 1.
    """
    report = make_report(sessions, taus=taus)
    links = {one.session: _LINK + quote(one.session, safe="") for one in report.scores}
    return report_document(report, links=links)


def pairs_document(sessions: Sequence[Trajectory], taus: Sequence[int]) -> Document:
    """Agents in pairs; without contents if there are no two. It takes seconds."""
    names = sorted({one.group["agent"] for one in sessions if "agent" in one.group})
    title = "Agents in pairs"
    if len(names) < 2:
        return Document(title=title)
    try:
        found = comparison_document(compare(sessions, names[:_AGENTS], taus=taus))
    except InvalidInput as error:
        return Document(title=title, notes=(Note(text=f"No comparison in pairs: {error}."),))
    if len(names) <= _AGENTS:
        return found
    note = Note(text=f"Of {len(names)} agents the first {_AGENTS}.")
    return msgspec.structs.replace(found, notes=(note, *found.notes))


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
            tag("div", id="report", class_="report"),
            tag("div", id="pairs", class_="report"),
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
        index = self._bench.sessions
        while not index.loaded:
            yield message(
                "progress",
                {"text": f"reading the list: {quantity(len(index), 'session')} so far …"},
            )
            await index.wait()
        listed = self._bench.lists.of(address.query, address.order)
        await listed.refresh()
        sessions = [*listed.page(MOST).sessions]
        rows: list[Folded] = []
        async for folded in self._rows(sessions):
            if len(rows) % _STEP == 0:
                text = f"{len(rows):,} of {quantity(len(sessions), 'session')} read …"
                yield message("progress", {"text": text})
            rows.append(folded)
        yield message("progress", {"text": "computing the report …"})
        whole = [one for one in rows if not one.session.unreadable]
        kept = [trajectory_of(one) for one in self._without_forks(whole)]
        taus = self._bench.options.taus
        made = await self._in_thread(partial(_sent, shown_document, kept, taus))
        note = quantity(len(rows), "session")
        if damaged := len(rows) - len(whole):
            note += f"; {damaged:,} of them cannot be read, and are left out"
        if forks := len(whole) - len(kept):
            note += f"; {quantity(forks, 'fork')} left out, since their origins are in the log"
        if left := len(listed) - len(sessions):
            note += f"; the {left:,} that follow in the list are left out"
        yield message("report", made | {"text": note})
        yield message("pairs", await self._in_thread(partial(_sent, pairs_document, kept, taus)))

    async def _rows(self, sessions: Sequence[SessionSummary]) -> AsyncIterator[Folded]:
        """The rows of sessions, as the lists have them."""
        lines = self._bench.lists.lines
        for start in range(0, len(sessions), AT_ONCE):
            batch = sessions[start : start + AT_ONCE]
            await lines.prefetch(batch)
            for summary in batch:
                yield (await lines.line(summary)).folded
        await lines.keep()

    def _without_forks(self, rows: Sequence[Folded]) -> list[Folded]:
        """The sessions in the order of the log, without forks whose origins it holds."""
        return sorted(
            (
                one
                for one in rows
                if one.session.forked_from is None
                or self._bench.sessions.place(one.session.forked_from) is None
            ),
            key=lambda one: one.session.key,
        )

    async def _in_thread(self, make: Callable[[], _Made]) -> _Made:
        """Makes something beside the event loop, one thing at a time."""
        return await anyio.to_thread.run_sync(make, limiter=self._threads)


def _sent(
    make: Callable[[Sequence[Trajectory], Sequence[int]], Document],
    sessions: Sequence[Trajectory],
    taus: Sequence[int],
) -> dict[str, object]:
    """A document as its page takes it: HTML, and the figures to draw."""
    document = make(sessions, taus)
    if not document.sections and not document.notes:
        return {"html": "", "figures": []}
    title = f"<h2>{escape(document.title)}</h2>" if make is pairs_document else ""
    return {
        "html": title + document_html(document),
        "figures": msgspec.to_builtins(document.figures),
    }
