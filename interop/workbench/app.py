"""The workbench as an ASGI app: its parts put together behind the guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import anyio
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ..._version import __version__
from ...engine.errors import DuologError
from ...engine.log.contract import EventLog
from ...scoring.index.contents import ContentSearch
from ...scoring.index.lines import SessionLines
from ...scoring.index.lists import SessionLists
from ...scoring.index.sessions import SessionIndex
from ...scoring.trajectory.options import Options
from ..http.clients import Proxies
from ..http.limits import HttpLimits
from ..http.responses import as_json, on_error, problem
from .access.entering import entering_routes
from .access.guard import AccessGuard, HostNames
from .access.identity import Access
from .access.rates import Rate
from .access.sharing import Links
from .alerts.routes import alert_routes
from .alerts.rules import AlertRule, AlertRules
from .asset_files import asset_route
from .compare import compare_routes
from .exporting import export_routes
from .frame import ENTRANCE, problem_page
from .live import live_routes
from .palette import palette_routes
from .reviewing import review_routes
from .session.forking import Forker
from .session.routes import session_routes
from .sessions.routes import session_list_routes
from .sharing import share_routes
from .state import Workbench, WorkbenchLimits

__all__ = ("PARTS", "Part", "make_workbench", "make_workbench_app")

Part: TypeAlias = Callable[[Workbench], Sequence[BaseRoute]]
"""Makes the routes of a part of the workbench."""

PARTS: tuple[Part, ...] = (
    session_list_routes,
    session_routes,
    live_routes,
    alert_routes,
    compare_routes,
    review_routes,
    share_routes,
    export_routes,
    palette_routes,
)
"""The parts that every workbench has."""


def make_workbench(
    log: EventLog,
    access: Access,
    *,
    name: str,
    options: Options | None = None,
    limits: WorkbenchLimits | None = None,
    http: HttpLimits | None = None,
    stopping: anyio.Event | None = None,
    forks: Forker | None = None,
    alerts: Sequence[AlertRule] = (),
    links_at: Path | None = None,
) -> Workbench:
    """The shared state of a workbench's parts; ``sessions.run()`` is for the caller to run.

    Args:
        log: the log, open.
        access: the rights of users.
        name: the name of the log, for titles and commands.
        options: how sessions are scored.
        limits: what one client may take.
        http: limits of the connections.
        stopping: set when the server stops, so that event streams end.
        forks: begins forks of sessions; None to disable them.
        alerts: the first rules of which the page of alerts shows when they fired.
        links_at: the file that keeps the list of shared links; None to forget it at the end.
    """
    options = options or Options()
    index = SessionIndex(log)
    places = {"/sessions", "/live", "/compare", "/review", "/alerts"}
    return Workbench(
        log=log,
        name=name,
        sessions=index,
        lists=SessionLists(index, SessionLines(log, options)),
        access=access,
        options=options,
        limits=limits or WorkbenchLimits(),
        http=http or HttpLimits(),
        streams=set(),
        stopping=stopping or anyio.Event(),
        places=frozenset(places),
        forks=forks,
        links=Links(access, log, links_at),
        contents=ContentSearch(log),
        alerts=AlertRules(alerts),
    )


def make_workbench_app(
    workbench: Workbench,
    hosts: HostNames | None = None,
    parts: Sequence[Part] = PARTS,
    *,
    proxy_header: str | None = None,
    open_at: tuple[str, ...] = (),
    guest_of: Callable[[Headers], str] = lambda headers: "",
) -> Starlette:
    """The app.

    Args:
        workbench: the shared state of its parts.
        hosts: the names that it may be addressed by, in addition to this machine's own.
        parts: what it consists of.
        proxy_header: by which a reverse proxy names the user who has signed in there.
        open_at: beginnings of paths that need no identity; what is there looks after itself.
        guest_of: names the known guest behind a request there; see ``AccessGuard``.
    """
    limits = workbench.limits
    proxies = Proxies(workbench.http.proxies)

    async def health(request: Request) -> Response:
        await workbench.log.checkpoint("health", "1")  # raises if the log cannot be read
        return as_json({"status": "ok", "version": __version__})

    app = Starlette(
        routes=[
            *entering_routes(
                workbench.access, Rate(*limits.entries), proxies, ENTRANCE, workbench.links
            ),
            Route("/healthz", health),
            asset_route(),
            *(route for part in parts for route in part(workbench)),
        ],
        middleware=[
            Middleware(
                AccessGuard,
                access=workbench.access,
                hosts=hosts or HostNames(),
                reads=Rate(*limits.reads),
                writes=Rate(*limits.writes),
                proxies=proxies,
                proxy_header=proxy_header,
                open_at=open_at,
                guest_of=guest_of,
                links=workbench.links,
            )
        ],
        exception_handlers={HTTPException: _on_http_error, DuologError: on_error},
    )
    app.router.redirect_slashes = False
    return app


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = {404: f"there is nothing at {request.url.path}", 405: f"{request.method} is not for it"}
    usual = error.detail in ("Not Found", "Method Not Allowed")
    message = known.get(error.status_code, error.detail) if usual else error.detail
    if request.url.path.startswith("/v1/") or request.method != "GET":
        return problem(error.status_code, message, error.headers)
    return problem_page(message, error.status_code)
