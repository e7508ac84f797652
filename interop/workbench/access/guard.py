"""Lets requests through to the workbench, or refuses them, before anything else reads them.

A page elsewhere may point its host name here, or send requests with the cookie of a user who visits
both. So the guard checks the host name and the origin of each request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final, final
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...http.auth import is_loopback
from ...http.clients import Proxies
from ...http.responses import problem
from .identity import Access, Identity
from .rates import Rate
from .sharing import Links

__all__ = ("AccessGuard", "HostNames", "identity_of")

_POLICIES: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' blob:",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types duolog",
)
POLICY: Final = "; ".join(_POLICIES)
"""The content policy of pages: they load and run only files from this server."""

_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_OPEN: Final = ("/", "/enter", "/healthz")
_ENTRANCE: Final = ("/", "/enter")
_ASSETS: Final = "/assets/"
_DATA: Final = "/v1/"
_READING: Final = frozenset({"GET", "HEAD"})
_STATE: Final = "workbench_identity"


@final
class HostNames:
    """The names by which the workbench may be addressed.

    Args:
        names: in addition to this machine's own, e.g. that of a reverse proxy.
        any_address: whether any IP address is accepted (but no other name): for a server that
            listens on all of its addresses.
    """

    def __init__(self, names: Collection[str] = (), *, any_address: bool = False) -> None:
        self._names = frozenset(name.lower() for name in names)
        self._any_address = any_address

    def admit(self, host: str) -> bool:
        """Whether a request to this ``host``, with or without a port, is for the workbench."""
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if is_loopback(name) or name.lower() in self._names:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return self._any_address


def identity_of(request: Request) -> Identity:
    """The identity behind a request that the guard has let through."""
    identity = request.scope["state"][_STATE]
    assert isinstance(identity, Identity)
    return identity


@final
class AccessGuard:
    """Checks the host, origin, identity and rate of each request.

    Args:
        app: handles the requests that are let through.
        access: identifies users by their cookies.
        hosts: the names that requests may be addressed to.
        reads: how often a client may read.
        writes: how often a client may change something.
        proxies: trusted to name the origin of requests.
        proxy_header: the header in which a trusted proxy, or one on this machine, names the user who
            has signed in there and is an operator; None if there is no such proxy.
        open_at: beginnings of paths that need no identity; what is there looks after itself.
        guest_of: names the known guest behind a request there, whose requests are counted apart from
            those of strangers; empty for a stranger.
        links: the shared links, some of which are revoked; None if there are none.
    """

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        hosts: HostNames,
        reads: Rate,
        writes: Rate,
        proxies: Proxies,
        proxy_header: str | None = None,
        open_at: tuple[str, ...] = (),
        guest_of: Callable[[Headers], str] = lambda headers: "",
        links: Links | None = None,
    ) -> None:
        self._guest_of = guest_of
        self._links = links
        self._app = app
        self._access = access
        self._hosts = hosts
        self._reads = reads
        self._writes = writes
        self._proxies = proxies
        self._proxy_header = proxy_header
        self._open_at = (_ASSETS, *open_at)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = str(scope["path"])
        links, link = self._links, self._link(Headers(scope=scope))
        if links is not None:
            await links.learn(link)
        ended = False

        async def guarded(message: Message) -> None:
            nonlocal ended
            if ended:
                return
            sending = message["type"] == "http.response.body"
            if sending and known and links is not None:
                await links.learn(link)
                ended = links.is_revoked(link)
            if ended:  # revoked while a stream was open: nothing more is sent
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        known = links is not None and not links.is_revoked(link)
        refusal = self._refusal(scope, path)
        await (refusal or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope, path: str) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._hosts.admit(hosts[0]):
            named = repr(hosts[0]) if len(hosts) == 1 else "several names or none"
            return _refused(path, 421, f"the workbench does not answer to {named}")
        reading = scope["method"] in _READING
        if (why := _foreign(headers, hosts[0], reading=reading)) is not None:
            return _refused(path, 403, why)
        identity = self._identity(headers) or self._by_proxy(headers, scope)
        rate = self._reads if reading else self._writes
        free = path in _ENTRANCE or path.startswith(_ASSETS)
        guest = "" if identity else self._guest_of(headers)
        if not free and not rate.take(_counted(identity, guest, self._proxies.client_of(scope))):
            return _refused(path, 429, "too many requests; wait a little", {"Retry-After": "1"})
        if identity is None:
            free = path in _OPEN or path.startswith(self._open_at)
            return None if free else _stranger(scope, path)
        if not reading and path != "/enter" and self._access.read_only:
            return _refused(path, 403, "this workbench is read-only")
        scope.setdefault("state", {})[_STATE] = identity
        return None

    def _by_proxy(self, headers: Headers, scope: Scope) -> Identity | None:
        name = self._proxy_header
        peer = str((scope.get("client") or ("",))[0])
        if name is None or not headers.get(name, "").strip():
            return None
        if not (is_loopback(peer) or self._proxies.trusts(peer)):
            return None
        return Identity("viewer" if self._access.read_only else "operator")

    def _identity(self, headers: Headers) -> Identity | None:
        if self._links is not None and self._links.is_revoked(self._link(headers)):
            return None
        return self._access.by_cookie(self._cookie(headers))

    def _cookie(self, headers: Headers) -> str:
        cookies = cookie_parser(headers.get("cookie", ""))
        return cookies.get(self._access.cookie_name, "")

    def _link(self, headers: Headers) -> str:
        """The id of the shared link that a cookie comes from; empty if from none."""
        cookie = self._cookie(headers)
        return self._access.link_of(cookie=cookie) if cookie else ""


def _counted(identity: Identity | None, guest: str, address: str) -> str:
    """The client whose requests are counted together.

    A stranger is an address. So strangers cannot use up the limit of a user at the same address.
    """
    if identity is None:
        return f"guest\n{guest}\n{address}" if guest else address
    return f"{identity.role}\n{identity.session}\n{identity.actor}\n{address}"


def _foreign(headers: Headers, host: str, *, reading: bool) -> str | None:
    """Why a request comes from elsewhere; None if it does not."""
    origin = headers.get("origin")
    if origin is None:
        if not reading:
            return "a request that changes something has to say where it comes from"
    elif origin.partition("://")[2].lower() != host.lower():
        return "the request comes from a page of another server"
    site = headers.get("sec-fetch-site", "none")
    navigates = headers.get("sec-fetch-mode") == "navigate" and reading
    if site not in ("same-origin", "none") and not navigates:
        return "the request comes from a page of another server"
    return None


def _stranger(scope: Scope, path: str) -> Response:
    """The answer to an unknown user: pages lead to the entrance, data are refused."""
    if path.startswith(_DATA) or scope["method"] not in _READING:
        return problem(401, "open the workbench by its link, which holds its token")
    query = scope.get("query_string") or b""
    to = path + (f"?{query.decode('latin-1')}" if query else "")
    return RedirectResponse(f"/?to={quote(to, safe='')}", 303)


def _refused(
    path: str, status: int, message: str, headers: dict[str, str] | None = None
) -> Response:
    if path.startswith(_DATA):
        return problem(status, message, headers)
    phrase = HTTPStatus(status).phrase
    return PlainTextResponse(f"{phrase}: {message}\n", status, headers)
