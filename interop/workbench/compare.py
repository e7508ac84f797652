"""Compare: the agents of one task, of the sessions that a list shows, read, computed and sent to the page."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeVar, final
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
from ...scoring.display.texts import shorten
from ...scoring.index.lines import AT_ONCE
from ...scoring.oversight import Oversight, OversightReport, fold_oversight, summarise
from ...scoring.report import (
    Compared,
    Document,
    compare_agents,
    document_csv,
    document_html,
    document_json,
    document_markdown,
    oversight_document,
)
from ...scoring.report.comparing import MOST_AGENTS, Picked, marks_of
from ...scoring.trajectory.points import Trajectory
from ..http.sse import EventStream
from .access.guard import identity_of
from .access.roles import readers
from .events import message, streaming
from .exporting import as_file
from .frame import page
from .markup.agents import AgentMarks
from .markup.html import Html, Node, tag
from .menu import Export
from .sessions.address import ListAddress, parse_address
from .sessions.searching import searched
from .state import Workbench

__all__ = ("MOST", "compare_routes")

MOST: Final = 2000
"""Sessions in a report at most: the first ones of the list."""

_OFFERED: Final = 20  # agents that can be chosen
_LINK: Final = "/session?id="
_STEP: Final = 25  # sessions between two messages

_FILES: Final[Mapping[str, tuple[str, Callable[[Document], str]]]] = {
    "md": ("text/markdown; charset=utf-8", document_markdown),
    "json": ("application/json", document_json),
    "csv": ("text/csv; charset=utf-8", document_csv),
}
"""The forms of a report as a file: the media type, and what writes it."""

_Made = TypeVar("_Made")


class _Outcome(NamedTuple):
    """A comparison: the sessions, the agents compared, and a note on what was left out."""

    sessions: Sequence[Trajectory]
    made: Compared
    note: str


def compare_routes(workbench: Workbench) -> Sequence[Route]:
    """The routes."""
    routes = _Routes(workbench)
    return (
        Route("/compare", readers(routes.page)),
        Route("/v1/compare/stream", readers(routes.stream)),
        Route("/v1/export/report", readers(routes.export)),
    )


def _exports(request: Request) -> Sequence[Export]:
    given = request.query_params.multi_items()
    return [Export("Report", "/v1/export/report", given, tuple(_FILES))]


@final
class _Routes:
    """The endpoints, with their shared state."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._threads = anyio.CapacityLimiter(1)

    async def page(self, request: Request) -> Response:
        """The page, before the report is there."""
        problem = ""
        try:
            address = parse_address(request.query_params.multi_items()).first_page()
        except InvalidInput as error:
            address, problem = ListAddress(), str(error)
        which = "all sessions" if address.plain else "the sessions in the list"
        contents: list[Node] = [
            tag("h1", "Compare"),
            tag("p", problem, class_="problem", role="alert") if problem else None,
            tag(
                "p",
                f"A report on {which}. ",
                tag("a", "Change the filters", href=str(address)),
                class_="note",
            ),
            tag("div", id="choice"),
            tag("p", "Reading …", id="progress", role="status", class_="quiet"),
            tag("div", id="report", class_="report"),
            tag(
                "details",
                tag("summary", "Oversight: approvals, interruptions, work without the human"),
                tag("div", id="oversight", class_="report"),
                id="overseen",
                hidden=True,
            ),
        ]
        return page(
            self._workbench,
            identity_of(request),
            "Compare",
            *contents,
            script="compare.js",
            at="/compare",
            exports=() if problem else _exports(request),
            status=400 if problem else 200,
        )

    async def stream(self, request: Request) -> EventStream:
        """How far the sessions have been read, and then the report."""
        parameters = request.query_params.multi_items()
        address = parse_address(parameters).first_page()
        wanted = [value for key, value in parameters if key == "agents"]
        return streaming(self._workbench, self._messages(address, wanted))

    async def export(self, request: Request) -> Response:
        """The report as a file: Markdown, or its numbers as JSON or CSV."""
        form = request.query_params.get("format", "md")
        if form not in _FILES:
            raise InvalidInput(f"a report is exported as {', '.join(_FILES)}, not as {form[:40]!r}")
        given = request.query_params.multi_items()
        wanted = [value for key, value in given if key == "agents"]
        address = parse_address((key, one) for key, one in given if key != "format").first_page()
        async for step in self._compare(address, wanted):
            if isinstance(step, _Outcome):
                document = await self._in_thread(partial(self._document, step))
                kind, render = _FILES[form]
                return as_file(render(document).encode(), f"report.{form}", kind)
        raise AssertionError("a comparison ends with its outcome")

    async def _messages(
        self, address: ListAddress, wanted: Sequence[str]
    ) -> AsyncGenerator[ServerSentEvent, None]:
        outcome: _Outcome | None = None
        try:
            async for step in self._compare(address, wanted):
                if isinstance(step, _Outcome):
                    outcome = step
                else:
                    yield message("progress", {"text": step})
        except InvalidInput as error:
            yield message("report", {"html": "", "figures": [], "text": f"{error}."})
            yield message("oversight", {"html": ""})
        if outcome is None:
            return
        document = self._document(outcome)
        marks, tasks = self._marks, self._workbench.sessions.values("task")
        yield message(
            "report",
            {
                "pickers": _pickers(outcome.made.picked, tasks, address, marks).text,
                "html": document_html(document),
                "figures": msgspec.to_builtins(document.figures),
                "text": outcome.note,
            },
        )
        found = await self._oversight(outcome.sessions, outcome.made.picked)
        yield message("oversight", {"html": document_html(oversight_document(found))})

    @property
    def _marks(self) -> AgentMarks:
        return AgentMarks(self._workbench.sessions.values("agent"))

    def _document(self, outcome: _Outcome) -> Document:
        made = outcome.made
        links = {one.session: _LINK + quote(one.session, safe="") for one in made.report.scores}
        weak = self._workbench.options.judge != "auto"
        return made.document(marks=self._marks.places, links=links, weak=weak)

    async def _compare(
        self, address: ListAddress, wanted: Sequence[str]
    ) -> AsyncGenerator[str | _Outcome, None]:
        """Says how far it has come, and at last gives the comparison.

        Raises:
            InvalidInput: no session is of that task or of one of the agents.
        """
        index = self._workbench.sessions
        while not index.loaded:
            yield f"reading the list: {quantity(len(index), 'session')} so far …"
            await index.wait()
        query, _ = await searched(self._workbench, address)
        listed = self._workbench.lists.of(query, address.order)
        await listed.refresh()
        sessions = [*(await listed.page(MOST)).sessions]
        rows: list[Folded] = []
        async for folded in self._rows(sessions):
            if len(rows) % _STEP == 0:
                yield f"{len(rows):,} of {quantity(len(sessions), 'session')} read …"
            rows.append(folded)
        yield "computing the report …"
        whole = [one for one in rows if not one.session.unreadable]
        kept = [trajectory_of(one) for one in self._without_forks(whole)]
        taus = self._workbench.options.taus
        made = await self._in_thread(partial(compare_agents, kept, agents=wanted, taus=taus))
        note = quantity(len(rows), "session")
        if damaged := len(rows) - len(whole):
            note += f"; {damaged:,} of them cannot be read, and are left out"
        if forks := len(whole) - len(kept):
            note += f"; {quantity(forks, 'fork')} left out, because the log holds "
            note += "its origin" if forks == 1 else "their origins"
        if left := len(listed) - len(sessions):
            note += f"; the {left:,} that follow in the list are left out"
        yield _Outcome(kept, made, note)

    async def _oversight(self, sessions: Sequence[Trajectory], picked: Picked) -> OversightReport:
        """The oversight of the agents that are compared."""
        played: dict[str, list[Oversight]] = {agent: [] for agent in picked.agents}
        for one in sessions:
            agent = one.group.get("agent", "")
            if agent in played and picked.task in (None, one.group.get("task", "")):
                records = self._workbench.log.read(one.session)
                played[agent] += (await fold_oversight(records)).values()
        groups = {agent: summarise(some) for agent, some in played.items() if some}
        return OversightReport(by="agent", groups=groups)

    async def _rows(self, sessions: Sequence[SessionSummary]) -> AsyncIterator[Folded]:
        """The rows of sessions, as the lists have them."""
        lines = self._workbench.lists.lines
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
                or self._workbench.sessions.place(one.session.forked_from) is None
            ),
            key=lambda one: one.session.key,
        )

    async def _in_thread(self, make: Callable[[], _Made]) -> _Made:
        """Runs a function outside the event loop, one at a time."""
        return await anyio.to_thread.run_sync(make, limiter=self._threads)


def _pickers(
    picked: Picked, tasks: Mapping[str, int], address: ListAddress, marks: AgentMarks
) -> Html:
    """The choice of task, of those in the log, and of agents: a form whose address is the page's."""
    places = marks_of(picked.agents, marks.places)
    coloured = AgentMarks.at(places)
    kept = [(key, value) for key, value in address.parameters() if key != "task"]
    fields: list[Node] = [tag("input", type="hidden", name=key, value=value) for key, value in kept]
    if len(tasks) > 1:
        options = [
            tag(
                "option",
                f"{shorten(name, 40)} ({count:,})",
                value=name,
                selected=name == picked.task,
            )
            for name, count in sorted(tasks.items())
            if name
        ]
        fields.append(tag("label", "Task ", tag("select", options, name="task")))
    elif picked.task:
        fields.append(tag("input", type="hidden", name="task", value=picked.task))
    for name, count in [*picked.others.items()][:_OFFERED]:
        box = tag(
            "input", type="checkbox", name="agents", value=name, checked=name in picked.agents
        )
        fields.append(
            tag("label", box, coloured.named(name), tag("small", f" {count:,}"), class_="chip")
        )
    if (more := len(picked.others) - _OFFERED) > 0:
        fields.append(tag("small", f"and {quantity(more, 'agent')} more"))
    if len(picked.others) > MOST_AGENTS:
        fields.append(tag("small", f"Up to {MOST_AGENTS} agents are compared."))
    return tag("form", fields, class_="pickers", id="pickers", action="/compare")
