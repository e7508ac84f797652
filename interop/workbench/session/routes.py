"""The routes of a session: the page, and the parts that its script asks for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Final, final

import anyio.to_thread
import msgspec
from msgspec.structs import asdict
from sse_starlette import ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....engine.errors import InvalidInput, SessionNotFound
from ....engine.log.contract import SessionSummary
from ....engine.log.exchange.jsonl_export import to_jsonl
from ....engine.log.ranked import Condition
from ....scoring.display.texts import is_virtual
from ...http.responses import as_json
from ...http.sse import EventStream
from ..access.body import decoded_body
from ..access.guard import identity_of
from ..access.identity import Identity
from ..access.roles import Endpoint, operators, readers
from ..events import message, position_of, streaming
from ..frame import page
from ..markup.agents import AgentMarks
from ..markup.html import join
from ..markup.text import plain
from ..menu import Export
from ..state import Workbench
from .forking import Forking, ForkRequest, is_kind
from .page import about_session, command_list, commands, session_contents
from .pair import Side, pair_contents
from .reading import Growth, Readings, SessionReading
from .strip import ForkLine, session_strip
from .transcript import Transcript, difference, document
from .waiting import waiting_cards

__all__ = ("session_routes",)

_FOUND: Final = 1000  # records with a text that is looked for
_NAME: Final = 1000  # characters of a session's id
_ALIKE: Final = 200  # sessions of the same task and instance in which forks are looked for
_TEXT: Final = 400_000  # characters of a raw record


_fork = msgspec.json.Decoder(ForkRequest).decode


def session_routes(workbench: Workbench) -> Sequence[Route]:
    """The routes."""
    routes = _Routes(workbench)
    data: dict[str, Endpoint] = {
        "index": routes.index,
        "records": routes.records,
        "state": routes.state,
        "output": routes.output,
        "about": routes.about,
        "strip": routes.strip,
        "raw": routes.raw,
        "find": routes.find,
        "stream": routes.stream,
    }
    return (
        Route("/session", readers(routes.page)),
        Route("/pair", readers(routes.pair)),
        *(Route(f"/v1/session/{name}", readers(endpoint)) for name, endpoint in data.items()),
        Route("/v1/session/fork", operators(routes.fork), methods=["POST"]),
    )


@final
class _Routes:
    """The endpoints."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._readings = Readings(workbench)

    async def page(self, request: Request) -> Response:
        """The page."""
        workbench, identity = self._workbench, identity_of(request)
        session = request.query_params.get("id", "")[:_NAME]
        try:
            summary = await workbench.log.summary(session)
        except SessionNotFound as error:
            raise HTTPException(404, str(error)) from None
        contents = session_contents(workbench, identity, summary, await self._forking(summary))
        return page(
            workbench,
            identity,
            session,
            *contents,
            script="session.js",
            position=summary.position,
            kind="session-page",
            exports=[
                Export("Session", "/v1/export/session", [("id", session)], ("md", "json", "jsonl"))
            ],
        )

    async def _forking(self, summary: SessionSummary) -> Forking:
        """Whether a fork can be made of a session, and of what there is to choose."""
        same = await self._workbench.sessions.labels_of(summary.task)
        found = {
            name: sorted({value for one in same if is_kind(value := one.get(name, ""))})
            for name in ("agent", "user")
        }
        refused = ""
        if not is_virtual(summary.opened):
            refused = (
                "Only simulated sessions can be forked: people cannot be asked to do it again."
            )
        elif summary.state == "tolerance":
            refused = "A session that was stopped by a tolerance cannot be forked."
        return Forking(agents=found["agent"], users=found["user"], refused=refused)

    async def pair(self, request: Request) -> Response:
        """Two sessions side by side."""
        workbench, identity = self._workbench, identity_of(request)
        names = [request.query_params.get(name, "")[:_NAME] for name in ("left", "right")]
        try:
            left, right = [await self._side(name, identity) for name in names]
        except SessionNotFound as error:
            raise HTTPException(404, str(error)) from None
        contents = pair_contents(left, right, AgentMarks(workbench.sessions.values("agent")))
        return page(
            workbench, identity, " and ".join(names), *contents, script="pair.js", at="/pair"
        )

    async def _side(self, session: str, identity: Identity) -> Side:
        reading = await self._readings.of(session, identity)
        summary = await self._workbench.log.summary(session)
        return Side(summary, reading, await self._workbench.lists.lines.line(summary))

    async def _reading(self, request: Request) -> SessionReading:
        session = request.query_params.get("session", "")[:_NAME]
        return await self._readings.of(session, identity_of(request))

    async def index(self, request: Request) -> Response:
        """Where its records are: all of them, or those after some."""
        reading = await self._reading(request)
        growth = reading.growth(min(_number(request, "after", 0), reading.count))
        more = {
            "virtual": reading.opened is not None and reading.opened.clock == "virtual",
            "actors": [(one.name, one.role) for one in reading.participants],
        }
        return as_json(_grown(growth) | more)

    async def records(self, request: Request) -> Response:
        """Entries of the transcript, as HTML."""
        reading = await self._reading(request)
        first = _number(request, "from", 1)
        last = min(_number(request, "to", first), first + self._workbench.limits.window - 1)
        transcript = Transcript(self._workbench.log, reading, identity_of(request))
        parts = await transcript.part(first, last)
        return as_json({"from": first, "to": min(last, reading.count), "html": join(parts).text})

    async def state(self, request: Request) -> Response:
        """The session after some of its records."""
        reading = await self._reading(request)
        return as_json(await reading.at(_number(request, "at", reading.count)))

    async def output(self, request: Request) -> Response:
        """A version of the output, as a document or as what changed since another."""
        reading = await self._reading(request)
        version, against = _number(request, "version", 0), _number(request, "against", 0)
        transcript = Transcript(self._workbench.log, reading, identity_of(request))
        event = await transcript.snapshot(version)
        if event is None:
            raise HTTPException(404, f"unknown version {version} of the output")
        if request.query_params.get("shape") == "changes":
            before = await transcript.snapshot(against) if against else None
            html = await difference(before, event)
        else:
            html = await anyio.to_thread.run_sync(document, event)
        return as_json({"version": version, "media": event.media_type, "html": html.text})

    async def about(self, request: Request) -> Response:
        """Facts of the session, and the commands for a moment of it."""
        reading = await self._reading(request)
        summary = await self._workbench.log.summary(reading.session)
        at = _number(request, "at", reading.count)
        version = await reading.version_at(at)
        parts = [
            about_session(summary, reading, self._workbench.options),
            command_list(commands(self._workbench, reading.session, version)),
        ]
        return as_json({"html": join(parts).text, "version": version})

    async def strip(self, request: Request) -> Response:
        """The strip of results."""
        reading = await self._reading(request)
        summary = await self._workbench.log.summary(reading.session)
        line = await self._workbench.lists.lines.line(summary)
        moment = await reading.at(reading.count)
        strip = session_strip(summary, reading, line, await self._forks_of(summary))
        shown = join(strip, waiting_cards(reading, moment))
        return as_json({"html": shown.text})

    async def _forks_of(self, summary: SessionSummary) -> list[ForkLine]:
        """The forks of a session: they have its task and its instance."""
        index, lines = self._workbench.sessions, self._workbench.lists.lines
        found: list[ForkLine] = []
        alike = [
            Condition(by=(key,), texts=(getattr(summary, key),)) for key in ("task", "instance")
        ]
        async for one in index.newest(*alike):
            same = (one.task, one.instance) == (summary.task, summary.instance)
            if same and one.session != summary.session:
                found.append(ForkLine(one, await lines.line(one)))
            if len(found) == _ALIKE:
                break
        return [one for one in found if one.line.row.forked_from == summary.session]

    async def raw(self, request: Request) -> Response:
        """A record as the log holds it, as far as it may be seen."""
        reading = await self._reading(request)
        number = _number(request, "at", 0)
        found = await reading.window(number, number)
        if not found:
            raise HTTPException(404, f"unknown record {number}")
        text = msgspec.json.format(to_jsonl(found[0]).rstrip(), indent=1).decode()
        return as_json({"html": plain(text, limit=_TEXT).text})

    async def find(self, request: Request) -> Response:
        """The numbers of the records that hold a text."""
        reading = await self._reading(request)
        text = request.query_params.get("text", "").strip()[:_NAME]
        found = await reading.find(text, _FOUND) if text else []
        return as_json({"found": found, "most": _FOUND})

    async def fork(self, request: Request) -> Response:
        """Begins a fork of it at a moment."""
        asked = await decoded_body(request, _fork, self._workbench.limits.body)
        if self._workbench.forks is None:
            raise HTTPException(404, "this server cannot fork sessions")
        reading = await self._readings.of(asked.session, identity_of(request))
        version = await reading.version_at(asked.at)
        return as_json({"session": await self._workbench.forks(asked, version)})

    async def stream(self, request: Request) -> EventStream:
        """New records, as server-sent events."""
        session = request.query_params.get("session", "")[:_NAME]
        identity, after = identity_of(request), position_of(request)
        await self._readings.of(session, identity)  # raises if it does not exist

        async def messages() -> AsyncGenerator[ServerSentEvent, None]:
            async for growth in self._readings.follow(session, identity, after):
                yield message("grown", _grown(growth), growth.position)

        return streaming(self._workbench, messages())


def _grown(growth: Growth) -> dict[str, object]:
    return asdict(growth) | {"drafts": [draft._asdict() for draft in growth.drafts]}


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None or text == "":
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 16):
        raise InvalidInput(f"{name} is a whole number from 0, not {text[:40]!r}")
    return int(text)
