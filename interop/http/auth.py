"""Checks token, host and encoding of each request before anything else reads it."""

from __future__ import annotations

import hmac
from hashlib import sha256
from ipaddress import ip_address
from typing import Final, final
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .responses import problem

__all__ = ("OPEN", "RequestGuard", "is_loopback")

OPEN: Final = frozenset({"/healthz", "/openapi.json"})
"""Paths that work without a token."""


def is_loopback(host: str) -> bool:
    """Whether a host's name or address always means this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@final
class RequestGuard:
    """Lets requests through to an app, or refuses them.

    Without a token, only requests that are addressed to this machine by a local name come in.
    Otherwise a web page elsewhere could point its host name here and pass for a local client.

    Args:
        app: handles the requests that are let through.
        token: required from clients; None if there is none.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._digest = None if token is None else sha256(token.encode()).digest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request."""
        if scope["type"] == "http" and (refusal := self._refusal(scope)) is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        for part in (scope.get("raw_path") or b"", scope.get("query_string") or b""):
            if (b"%" in part or not part.isascii()) and not _is_utf8(part):
                return problem(400, "the address is not UTF-8 (percent-encoded)")
        hosts = headers.getlist("host")
        if len(hosts) > 1 or not (hosts or scope["http_version"] == "1.0"):
            return problem(400, "a request has one header 'Host'", {"Connection": "close"})
        if self._digest is None:
            host = hosts[0] if hosts else "localhost"
            name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
            if not is_loopback(name):
                return problem(
                    421, f"without a token, this server answers to localhost only, not to {name!r}"
                )
        elif scope["path"] not in OPEN and not self._knows(headers.get("authorization", "")):
            return problem(
                401,
                "this needs a header 'Authorization: Bearer TOKEN', with the server's token",
                {"WWW-Authenticate": "Bearer", "Connection": "close"},
            )
        return None

    def _knows(self, authorization: str) -> bool:
        scheme, _, token = authorization.partition(" ")
        given = sha256(token.strip().encode()).digest()
        # Both are digests, so that the time it takes reveals neither the token nor its length.
        return scheme.lower() == "bearer" and hmac.compare_digest(given, self._digest or b"")


def _is_utf8(part: bytes) -> bool:
    """Whether a part of an address is UTF-8, once it is decoded."""
    try:
        unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return False
    return True
