"""The Share dialog: operators make links for others, see which hold, and revoke them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...engine.errors import InvalidInput
from ...scoring.display.texts import moment
from ..http.responses import as_json
from .access.body import read_body
from .access.roles import operators
from .access.sharing import Link
from .markup.html import Html, Node, tag
from .state import Workbench

__all__ = ("share_dialog", "share_routes")


class _Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A link that is asked for."""

    role: Literal["viewer", "operator"]
    days: float
    name: str = ""


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
        rows = [_row(one).text for one in self._workbench.links.listed()]
        return as_json({"rows": rows})

    async def make(self, request: Request) -> Response:
        """Makes a link; its token is in this answer only."""
        try:
            wanted = _decode_wanted(await read_body(request, self._workbench.limits.body))
        except msgspec.DecodeError as error:
            raise InvalidInput(f"cannot read the request for a link: {error}") from error
        _, token = self._workbench.links.make(wanted.role, wanted.days, wanted.name.strip())
        return as_json({"token": token})

    async def revoke(self, request: Request) -> Response:
        """Revokes a link."""
        try:
            asked = _decode_revoked(await read_body(request, self._workbench.limits.body))
        except msgspec.DecodeError as error:
            raise InvalidInput(f"cannot read which link to revoke: {error}") from error
        await self._workbench.links.revoke(asked.id)
        return as_json({"revoked": asked.id})


def share_dialog() -> Html:
    """The dialog, before its script fills it."""
    roles = [
        tag("option", text, value=value)
        for value, text in (("viewer", "look on"), ("operator", "do everything"))
    ]
    days = [
        tag("option", text, value=value, selected=value == 7)
        for value, text in ((1, "a day"), (7, "a week"), (30, "30 days"), (365, "a year"))
    ]
    fields: list[Node] = [
        tag("label", "Who has the link may", for_="share-role"),
        tag("select", roles, id="share-role", name="role"),
        tag("label", "for", for_="share-days"),
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
        tag("p", "", id="share-problem", class_="problem", role="alert"),
        tag(
            "div",
            tag("button", "Make a link", type="submit"),
            " ",
            tag("button", "Close", type="button", id="share-close"),
        ),
        tag(
            "div",
            tag("label", "The link, shown only now", for_="share-link"),
            tag("input", id="share-link", readonly=True),
            tag("button", "Copy", type="button", id="share-copy"),
            id="share-made",
            hidden=True,
        ),
        id="share-form",
    )
    table = tag(
        "table",
        tag("caption", "Links made since the server started", class_="unseen"),
        head,
        tag("tbody", id="share-rows"),
    )
    return tag("dialog", form, table, id="share", aria_labelledby="share-title")


def _row(link: Link) -> Html:
    revoke = tag("button", "Revoke", type="button", data_revoke=link.id)
    return tag(
        "tr",
        tag("th", tag("bdi", link.name or f"made {moment(link.made)}"), scope="row"),
        tag("td", link.role),
        tag("td", tag("time", moment(link.until))),
        tag("td", "revoked" if link.revoked else revoke),
    )
