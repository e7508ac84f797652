"""Entering the workbench: a token, from the fragment of a link, is exchanged for a cookie."""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from ...http.clients import Proxies
from ...http.responses import as_json, problem
from .body import read_body
from .identity import Access, Identity
from .rates import Rate
from .sharing import Links

__all__ = ("entering_routes", "let_in")

_BODY: Final = 4096


class _Entry(msgspec.Struct):
    """A request to enter: the token; none if the cookie is to be tried."""

    token: str | None = None


_decode = msgspec.json.Decoder(_Entry).decode


def entering_routes(
    access: Access, attempts: Rate, proxies: Proxies, entrance: str, links: Links
) -> tuple[Route, Route]:
    """The page that holds nothing, and where its script brings the token.

    Args:
        access: knows whose token it is.
        attempts: how often a client may try a wrong token.
        proxies: that say where requests come from.
        entrance: the page.
        links: the shared links, some of which are revoked.
    """

    async def shell(request: Request) -> Response:
        return HTMLResponse(entrance)

    async def enter(request: Request) -> Response:
        data = await read_body(request, _BODY)
        try:
            token = _decode(data).token
        except msgspec.DecodeError:
            return problem(400, 'the body is an object with a text "token"')
        link = access.link_of(token=token or "", cookie=request.cookies.get(access.cookie_name, ""))
        await links.learn(link)
        if links.is_revoked(link):
            return problem(401, "this link was revoked: ask for another one")
        if token is None:
            known = access.by_cookie(request.cookies.get(access.cookie_name, ""))
            return problem(401, "there is no cookie") if known is None else _entered(known)
        identity = access.by_token(token)
        if identity is None:  # only these are counted: guesses never lock out users with a token
            if not attempts.take(proxies.client_of(request.scope)):
                return problem(429, "too many attempts; wait a little", {"Retry-After": "5"})
            return problem(401, "this token is not, or no longer, one of this server's")
        response = _entered(identity)
        let_in(request, response, access, identity, token)
        return response

    return Route("/", shell), Route("/enter", enter, methods=["POST"])


def let_in(
    request: Request, response: Response, access: Access, identity: Identity, token: str
) -> None:
    """Sets the cookie by which a browser is known from now on."""
    response.set_cookie(
        access.cookie_name,
        access.cookie(identity, token),
        max_age=int(access.life),
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def _entered(identity: Identity) -> Response:
    return as_json({"role": identity.role, "session": identity.session})
