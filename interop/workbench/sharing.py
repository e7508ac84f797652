"""The Share dialog: operators make links for others, see which hold, and revoke them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...engine.errors import InvalidInput
from ...engine.events import SessionOpened
from ...engine.log.contract import EventLog
from ...scoring.display.texts import moment, shorten
from ..http.responses import as_json
from .access.body import decoded_body
from .access.identity import Identity, WorkbenchRole
from .access.roles import operators
from .access.sharing import Link
from .markup.html import Html, Node, tag
from .sessions.rows import title_of
from .state import Workbench

__all__ = ("people_in", "share_dialog", "share_routes")

_LATEST: Final = 100  # sessions in which people are looked for
_SHORT: Final = 30


async def people_in(log: EventLog, session: str) -> list[str]:
    """The names of the real people in a session; empty if the log does not have it."""
    async for record in log.read(session):
        event = record.event
        if isinstance(event, SessionOpened):
            return [
                one.name for one in event.participants if one.role == "human" and one.policy is None
            ]
        break
    return []


class _Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A link that is asked for."""

    role: WorkbenchRole
    days: float
    name: str = ""
    session: str = ""
    actor: str = ""


class _Revoked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The id of a link that is to be revoked."""

    id: str


_decode_wanted = msgspec.json.Decoder(_Wanted).decode
_decode_revoked = msgspec.json.Decoder(_Revoked).decode


def share_routes(workbench: Workbench) -> Sequence[Route]:
    """The routes."""
    routes = _Routes(workbench)
    return (
        Route("/v1/links", operators(routes.links)),
        Route("/v1/links/make", operators(routes.make), methods=["POST"]),
        Route("/v1/links/revoke", operators(routes.revoke), methods=["POST"]),
    )


@final
class _Routes:
    """The endpoints."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    async def links(self, request: Request) -> Response:
        """The links, as rows of a table."""
        rows = [_row(one).text for one in await self._workbench.links.listed()]
        return as_json({"rows": rows, "seats": await self._seats()})

    async def _seats(self) -> list[dict[str, str]]:
        """The people in the latest open sessions."""
        latest = await self._workbench.sessions.latest(_LATEST)
        found: list[dict[str, str]] = []
        for one in latest:
            if one.state == "open":
                title = f"{title_of(one)}, begun {moment(one.opened)}"
                people = await people_in(self._workbench.log, one.session)
                found += [{"session": one.session, "actor": who, "title": title} for who in people]
        return found

    async def make(self, request: Request) -> Response:
        """Makes a link; its token is in this answer only."""
        wanted = await decoded_body(request, _decode_wanted, self._workbench.limits.body)
        if wanted.role != "participant":
            identity = Identity(wanted.role)
        elif wanted.actor in await people_in(self._workbench.log, wanted.session):
            identity = Identity("participant", wanted.actor, wanted.session)
        else:
            raise InvalidInput(f"no person {wanted.actor!r} takes part in {wanted.session!r}")
        _, token = await self._workbench.links.make(identity, wanted.days, wanted.name.strip())
        return as_json({"token": token})

    async def revoke(self, request: Request) -> Response:
        """Revokes a link."""
        asked = await decoded_body(request, _decode_revoked, self._workbench.limits.body)
        await self._workbench.links.revoke(asked.id)
        return as_json({"revoked": asked.id})


def share_dialog() -> Html:
    """The dialog, before its script fills it."""
    roles = [
        tag("option", text, value=value)
        for value, text in (
            ("viewer", "look at all sessions"),
            ("participant", "take part in one session"),
            ("operator", "do everything"),
        )
    ]
    days = [
        tag("option", text, value=value, selected=value == 7)
        for value, text in ((1, "a day"), (7, "a week"), (30, "30 days"), (365, "a year"))
    ]
    fields: list[Node] = [
        tag("label", "With this link, people can", for_="share-role"),
        tag("select", roles, id="share-role", name="role"),
        tag("label", "Session and person", for_="share-seat", hidden=True),
        tag("select", id="share-seat", name="seat", hidden=True),
        tag(
            "p",
            "No session is waiting for a person. ",
            tag("a", "Begin a new session", href="/new"),
            " first.",
            id="share-none",
            hidden=True,
        ),
        tag("label", "Valid for", for_="share-days"),
        tag("select", days, id="share-days", name="days"),
        tag("label", "Name (optional)", for_="share-name"),
        tag("input", id="share-name", name="name", maxlength=60, autocomplete="off"),
    ]
    head = tag(
        "thead",
        tag("tr", [tag("th", title, scope="col") for title in ("Link", "Role", "Until", "")]),
    )
    form = tag(
        "form",
        tag("h2", "Share", id="share-title"),
        fields,
        tag("p", "", id="share-problem", class_="problem", role="alert", hidden=True),
        tag(
            "div",
            tag("button", "Make a link", type="submit", class_="primary", id="share-make"),
            " ",
            tag("button", "Close", type="button", id="share-close"),
        ),
        tag(
            "div",
            tag("label", "The link (shown only once)", for_="share-link"),
            tag("input", id="share-link", readonly=True),
            tag("button", "Copy", type="button", id="share-copy"),
            id="share-made",
            hidden=True,
        ),
        id="share-form",
    )
    table = tag(
        "table",
        tag("caption", "Links that have not expired", class_="unseen"),
        head,
        tag("tbody", id="share-rows"),
    )
    return tag("dialog", form, table, id="share", aria_labelledby="share-title")


def _role(link: Link) -> Node:
    who = link.identity
    if who.role != "participant":
        return who.role
    return ["takes part in ", tag("bdi", shorten(who.session, _SHORT), title=who.session)]


def _row(link: Link) -> Html:
    revoke = tag("button", "Revoke", type="button", data_revoke=link.id)
    return tag(
        "tr",
        tag("th", tag("bdi", link.name or f"made {moment(link.made)}"), scope="row"),
        tag("td", _role(link)),
        tag("td", tag("time", moment(link.until))),
        tag("td", "revoked" if link.revoked else revoke),
    )
