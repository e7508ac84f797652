"""The workbench without a browser: visitors in each role, over ASGI or on a free port."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import anyio
import httpx
from duolog.engine.log.contract import EventLog
from duolog.interop.http.limits import HttpLimits
from duolog.interop.http.server import HttpServer
from duolog.interop.workbench.access.guard import HostNames
from duolog.interop.workbench.access.identity import Access, Identity
from duolog.interop.workbench.alerts.rules import parse_rule
from duolog.interop.workbench.app import PARTS, Part, make_workbench, make_workbench_app
from duolog.interop.workbench.session.forking import Forker
from duolog.interop.workbench.state import Workbench, WorkbenchLimits
from duolog.testing.records import RecordWriter

__all__ = ("SECRET", "Visitor", "identity", "story", "visiting", "working")

SECRET = "the secret of the tests"
BASE = "http://127.0.0.1:8730"


def identity(role: str, actor: str = "ann", session: str = "s") -> Identity:
    """A visitor in a role; a participant is ``ann`` in session ``s``."""
    if role == "participant":
        return Identity("participant", actor, session)
    return Identity("operator" if role == "operator" else "viewer")


def story(session: str, ratings: list[int]) -> RecordWriter:
    """A session of as many rounds as there are ratings, and one more."""
    script = RecordWriter(session)
    script.opened(clock="virtual", config={"judge": "judge", "utility": "u"})
    script.human("a plan")
    for number, rating in enumerate(ratings, start=1):
        script.scored(0.5, snapshot=script.output(f"plan {number}"))
        script.human("hm")
        script.rated(number, rating)
    return script


class Visitor:
    """A client that asks the workbench for pages and data."""

    def __init__(self, client: httpx.AsyncClient, workbench: Workbench) -> None:
        self.client = client
        self.workbench = workbench

    async def get(self, path: str, **parameters: str | int) -> httpx.Response:
        """Reads something."""
        return await self.client.get(path, params=parameters or None)

    async def data(self, path: str, **parameters: str | int) -> dict[str, Any]:
        """Reads data, which have to be there."""
        answer = await self.get(path, **parameters)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = json.loads(answer.text)
        return found

    async def post(self, path: str, body: object, **headers: str) -> httpx.Response:
        """Sends something as a page of the workbench does."""
        return await self.client.post(path, json=body, headers={"Origin": BASE} | headers)


@asynccontextmanager
async def visiting(
    log: EventLog,
    role: str | None = "operator",
    *,
    who: Identity | None = None,
    read_only: bool = False,
    hosts: HostNames | None = None,
    limits: WorkbenchLimits | None = None,
    parts: tuple[Part, ...] = PARTS,
    forks: Forker | None = None,
    proxy_header: str | None = None,
    proxies: tuple[str, ...] = (),
    alerts: tuple[str, ...] = (),
) -> AsyncIterator[Visitor]:
    """A workbench of the log, whose sessions have been read, and a visitor.

    Args:
        log: the log.
        role: the role of the visitor; None for one without a cookie.
        who: the visitor, instead of a role.
        read_only: whether the workbench is.
        hosts: the names that it answers to.
        limits: on each client.
        parts: the parts of the workbench.
        forks: begins forks.
        proxy_header: the header by which a reverse proxy names a user.
        proxies: that say where requests come from.
        alerts: its rules.
    """
    access = Access(SECRET, read_only=read_only)
    rules = [parse_rule(text) for text in alerts]
    http = HttpLimits(proxies=proxies)
    workbench = make_workbench(
        log, access, name="log.db", limits=limits, http=http, forks=forks, alerts=rules
    )
    app = make_workbench_app(workbench, hosts, parts, proxy_header=proxy_header)
    cookies = {}
    if who is not None or role is not None:
        cookies[access.cookie_name] = access.cookie(who or identity(role or ""))
    transport = httpx.ASGITransport(app, raise_app_exceptions=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(workbench.sessions.run)
        while not workbench.sessions.loaded:
            await workbench.sessions.wait()
        async with httpx.AsyncClient(transport=transport, base_url=BASE, cookies=cookies) as client:
            yield Visitor(client, workbench)
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def working(
    log: EventLog,
    *,
    port: int = 0,
    read_only: bool = False,
    limits: WorkbenchLimits | None = None,
    parts: tuple[Part, ...] = PARTS,
    alerts: tuple[str, ...] = (),
    open_at: tuple[str, ...] = (),
) -> AsyncIterator[tuple[Workbench, int]]:
    """A workbench of the log that listens on a port; paths that begin with ``open_at`` do not need a token."""
    stopping = anyio.Event()
    http = HttpLimits()
    access = Access(SECRET, read_only=read_only)
    rules = [parse_rule(text) for text in alerts]
    workbench = make_workbench(
        log, access, name="log.db", limits=limits, http=http, stopping=stopping, alerts=rules
    )
    app = make_workbench_app(workbench, None, parts, open_at=open_at)
    server = HttpServer(app, stopping, http)
    bound = socket.create_server(("127.0.0.1", port))
    with closing(bound):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(workbench.sessions.run)
            async with anyio.create_task_group() as serving:
                serving.start_soon(server.run, [bound])
                await server.started()
                try:
                    yield workbench, bound.getsockname()[1]
                finally:
                    server.stop()
            tasks.cancel_scope.cancel()
