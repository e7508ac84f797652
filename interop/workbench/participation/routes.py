"""The routes of participants. Everything they are shown went through ``Disclosure``."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar, final

import anyio.to_thread
import msgspec
from sse_starlette import ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....engine.errors import CodecError, SessionClosedError, StaleBase
from ....engine.events import EffortObserved, SessionOpened, SnapshotTaken
from ....engine.files import output_text
from ....engine.records import Draft, Record
from ....engine.session.context import ActorContext
from ....engine.session.decisions import Act, Approve, Rate, Say, Submit, Verb
from ...http.responses import as_json, problem
from ..access.body import decoded_body
from ..access.disclosure import Disclosure
from ..access.guard import identity_of
from ..access.identity import Identity
from ..access.roles import Answer, operators
from ..app import Part
from ..events import message, position_of, streaming
from ..frame import page
from ..sharing import people_in
from ..state import Workbench
from .entries import shown_entry
from .host import Host, NewSession
from .merging import merge, stretches
from .outputs import Outputs
from .page import Sitting, new_contents, take_contents
from .requests import (
    Answered,
    Did,
    Judged,
    Rated,
    Said,
    Stopped,
    Submitted,
    Took,
    decode_accepted,
    decode_act,
    decode_effort,
    decode_merging,
)

__all__ = ("EFFORT", "participation")

EFFORT: Final = "workbench@1"
"""The measurement stream of what pages observe of people's effort."""

T = TypeVar("T")

_NAME: Final = 1000
_DIGITS: Final = 16
_decode_new = msgspec.json.Decoder(NewSession).decode


def participation(host: Host) -> Part:
    """The part of the workbench in which people take part in sessions that a host runs."""

    def routes(workbench: Workbench) -> Sequence[Route]:
        own = _Routes(workbench, host)
        posts = {
            "act": own.act,
            "changes": own.changes,
            "merge": own.merge,
            "join": own.join,
            "effort": own.effort,
        }
        return (
            Route("/new", operators(own.new_page)),
            Route("/v1/participate/begin", operators(own.begin), methods=["POST"]),
            Route("/participate", own.page),
            Route("/v1/participate/stream", own.stream),
            Route("/v1/participate/output", own.output),
            Route("/v1/participate/state", own.state),
            *(
                Route(f"/v1/participate/{name}", call, methods=["POST"])
                for name, call in posts.items()
            ),
        )

    return routes


class _Who(NamedTuple):
    """A participant's identity in a session."""

    session: str
    actor: str


@final
class _Routes:
    """The endpoints, with their shared state."""

    def __init__(self, workbench: Workbench, host: Host) -> None:
        self._workbench = workbench
        self._host = host
        self._outputs = Outputs(workbench.log)

    # --- pages ------------------------------------------------------------------------------------

    async def new_page(self, request: Request) -> Response:
        """The page on which a session is begun."""
        contents = new_contents(await self._host.offers())
        return page(
            self._workbench,
            identity_of(request),
            "New session",
            *contents,
            script="new.js",
            at="/new",
            kind="new-page",
        )

    async def page(self, request: Request) -> Response:
        """The page of a participant."""
        who = await self._who(
            request, request.query_params.get("id", ""), request.query_params.get("as", "")
        )
        return page(
            self._workbench,
            identity_of(request),
            "Working together",
            *take_contents(who.session, who.actor, _sitting(await self._opening(who.session))),
            script="participate.js",
            kind="participate-page",
        )

    async def _who(self, request: Request, session: str, actor: str) -> _Who:
        """The participant behind a request, in a session.

        Raises:
            HTTPException: they do not take part in it.
        """
        identity = identity_of(request)
        session = session[:_NAME]
        if identity.role == "participant":
            session, actor = session or identity.session, actor or identity.actor
            if (session, actor) != (identity.session, identity.actor):
                raise HTTPException(403, "this session is not yours")
        elif identity.role != "operator":
            raise HTTPException(403, "viewers cannot take part")
        people = await self._people(session)
        if not actor and people:
            actor = people[0]
        if actor not in people:
            raise HTTPException(404, f"no participant of that name in session {session!r}")
        return _Who(session, actor)

    async def _people(self, session: str) -> list[str]:
        """The real people in a session."""
        await self._opening(session)
        return await people_in(self._workbench.log, session)

    async def _opening(self, session: str) -> Record:
        """The record that opened a session."""
        async for record in self._workbench.log.read(session):
            if record.kind == "SessionOpened":
                return record
            break
        raise HTTPException(404, f"unknown session {session!r}")

    async def _asked(self, request: Request) -> _Who:
        given = request.query_params
        return await self._who(request, given.get("session", ""), given.get("actor", ""))

    # --- reading ----------------------------------------------------------------------------------

    async def stream(self, request: Request) -> Answer:
        """All that they may see, as it happens."""
        who, since = await self._asked(request), position_of(request)
        return streaming(self._workbench, self._entries(who, since))

    async def _entries(self, who: _Who, since: int) -> AsyncGenerator[ServerSentEvent]:
        disclosure = Disclosure(Identity("participant", who.actor, who.session))
        async with self._workbench.log.subscribe(session=who.session) as records:
            async for record in records:
                try:
                    seen = disclosure.see(record)
                except CodecError:  # it is damaged: its audience is unknown
                    continue
                if seen is None or record.position <= since:
                    continue
                entry = shown_entry(seen, who.actor)
                if entry is not None:
                    yield message("entry", entry, record.position)

    async def output(self, request: Request) -> Response:
        """A version of the output, as text; the latest if none is named."""
        who = await self._asked(request)
        wanted = request.query_params.get("version", "")
        if wanted.isascii() and wanted.isdigit() and len(wanted) <= _DIGITS:
            record = await self._outputs.version(who.session, int(wanted))
        else:
            record = await self._outputs.latest(who.session)
        if record is None:
            return as_json({"version": None, "text": "", "actor": ""})
        event = record.event
        text = output_text(event) if isinstance(event, SnapshotTaken) else ""
        number = await self._outputs.number(who.session, record.version)
        told = {"version": record.version, "number": number, "text": text, "actor": record.actor}
        return as_json(told)

    async def state(self, request: Request) -> Response:
        """Whether a model of the others is away."""
        who = await self._asked(request)
        summary = await self._workbench.log.summary(who.session)
        trouble = self._host.trouble(who.session)
        return as_json({"state": summary.state, "trouble": trouble})

    # --- doing ------------------------------------------------------------------------------------

    async def begin(self, request: Request) -> Response:
        """Begins a session; gives it, and a link for each of its people."""
        wanted = await decoded_body(request, _decode_new, self._workbench.limits.body)
        session = await self._host.begin(wanted)
        access = self._workbench.access
        links = {
            actor: f"/#token={access.token(Identity('participant', actor, session))}"
            for actor in await self._people(session)
        }
        return as_json({"session": session, "links": links})

    async def join(self, request: Request) -> Response:
        """Takes a seat, and resumes an open session. Returns the possible actions."""
        body = await decoded_body(request, _decode_seat, self._workbench.limits.body)
        who = await self._who(request, body.session, body.actor)
        summary = await self._workbench.log.summary(who.session)
        if summary.state != "open":
            return as_json({"state": summary.state, "trouble": "", "actions": []})
        seat = await self._host.seat(who.session, who.actor)

        async def offered(context: ActorContext) -> list[dict[str, object]]:
            return [
                {"name": one.name, "description": one.description, "parameters": one.parameters}
                for one in context.view.actions_available.values()
            ]

        actions = await seat.call(offered)
        return as_json(
            {"state": "open", "trouble": self._host.trouble(who.session), "actions": actions}
        )

    async def act(self, request: Request) -> Response:
        """Does one action, once: a request that repeats its id does nothing."""
        did = await decoded_body(request, decode_act, self._workbench.limits.body)
        who = await self._who(request, did.session, did.actor)
        seat = await self._host.seat(who.session, who.actor)
        try:
            version = await seat.call(_carrying_out(did))
        except StaleBase as error:
            return problem(409, str(error))
        except SessionClosedError:
            if isinstance(did, Stopped):
                return as_json({"version": None})
            raise
        return as_json({"version": version})

    async def merge(self, request: Request) -> Response:
        """Their text merged with the current output."""
        asked = await decoded_body(request, decode_merging, self._workbench.limits.body)
        who = await self._who(request, asked.session, asked.actor)
        base = await self._outputs.version(who.session, asked.base or 0)
        latest = await self._outputs.latest(who.session)
        merged = await anyio.to_thread.run_sync(merge, _text(base), asked.mine, _text(latest))
        return as_json(
            {
                "text": merged.text,
                "conflicts": merged.conflicts,
                "version": None if latest is None else latest.version,
            }
        )

    async def changes(self, request: Request) -> Response:
        """In which places the output differs from the text that they have accepted."""
        asked = await decoded_body(request, decode_accepted, self._workbench.limits.body)
        who = await self._who(request, asked.session, asked.actor)
        latest = await self._outputs.latest(who.session)
        found = await anyio.to_thread.run_sync(stretches, asked.text, _text(latest))
        version = None if latest is None else latest.version
        return as_json({"version": version, "stretches": msgspec.to_builtins(found)})

    async def effort(self, request: Request) -> Response:
        """Records what their page observed of their effort."""
        seen = await decoded_body(request, decode_effort, self._workbench.limits.body)
        who = await self._who(request, seen.session, seen.actor)
        summary = await self._workbench.log.summary(who.session)
        event = EffortObserved(
            actor=who.actor,
            until=summary.version,
            reading=seen.reading,
            typing=seen.typing,
            idle=seen.idle,
            inserted=seen.inserted,
            deleted=seen.deleted,
        )
        draft = Draft(event, "workbench", "scorer", summary.last)
        await self._workbench.log.append(who.session, [draft], stream=EFFORT)
        return as_json({})


class _Seat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    session: str
    actor: str = ""


_decode_seat = msgspec.json.Decoder(_Seat).decode


def _sitting(opened: Record) -> Sitting:
    """A session's time limit, and whether it belongs to a study."""
    config = opened.event.config if isinstance(opened.event, SessionOpened) else {}
    seconds = config.get("seconds")
    until = opened.time + seconds if isinstance(seconds, int | float) else None
    study = config.get("study")
    title = study.get("title") if isinstance(study, Mapping) else None
    shown = title if isinstance(title, str) and title else Sitting().title
    return Sitting(until, in_study="study" in config, title=shown)


def _text(record: Record | None) -> str:
    event = None if record is None else record.event
    return output_text(event) if isinstance(event, SnapshotTaken) else ""


def _carrying_out(did: Did) -> Callable[[ActorContext], Awaitable[int | None]]:
    """The action, carried out through the context; returns the event's trace version, None if there is none."""

    async def carry_out(context: ActorContext) -> int | None:
        if did.id in context.view.sent:
            return context.view.sent[did.id]
        if isinstance(did, Stopped):
            await context.finish(did.detail, did.reason)
            return None
        if isinstance(did, Judged):
            return (await context.feedback(did.of, did.kept, id=did.id)).version
        if isinstance(did, Submitted):
            verb = Submit(did.content)
            [*_, record] = await context.emit(verb, base=did.base, id=did.id)
            if record.kind != "SnapshotTaken":
                raise StaleBase(
                    did.base, context.view.snapshot.version if context.view.snapshot else None
                )
            return record.version
        records = await context.emit(_verb(did), id=did.id)
        return records[0].version

    return carry_out


def _verb(did: Said | Answered | Rated | Took) -> Verb:
    match did:
        case Said():
            return Say(did.text)
        case Answered():
            return Approve(did.asked, did.approved, did.comment, "person")
        case Rated():
            return Rate(did.rating, did.explanation)
        case Took():
            return Act(did.name, did.arguments)
