"""``duolog workbench``: a log in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ...engine.errors import InvalidInput
from .. import options
from ..arguments import example
from ..listening import SPARE, address_of, bind, follow_sessions, given_token, open_files
from ..lookup import existing_log, log_at, name_of
from ..output import say
from ..root import app
from ..runtime import collect_rarely, requests_to_end, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from socket import socket

    from ...engine.errors import DuologError
    from ...engine.log.contract import Store
    from ...interop.http.limits import HttpLimits
    from ...interop.http.server import HttpServer

__all__ = ("workbench_command",)

_CONNECTIONS = 2048
_DAY = 86400.0
_CHATS = "chats.db"


@app.command(
    "workbench",
    short_help="Shows a log in the browser.",
    epilog=example(
        "duolog workbench demo.db",
        "duolog workbench --play travel --agent adaptive",
        "duolog workbench telemetry.db --port 8730 --open",
        "duolog workbench telemetry.db --read-only --token-file token.txt",
        "duolog workbench telemetry.db --host 0.0.0.0 --name bench.example.org "
        "--token-file token.txt",
        "duolog workbench telemetry.db --alert 'tau=2 agent=two-stage' --webhook http://localhost:9000",
        note="Another process may be writing the log. No request leaves the machine, but for "
        "a webhook that is given. Needs the extra "
        "duolog[web].",
    ),
)
def workbench_command(
    log: Annotated[
        str | None,
        typer.Argument(
            metavar="LOG", help="Path or URL of the log.", show_default="chats.db with --play"
        ),
    ] = None,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8730,
    name: options.HostNames = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the operator's token; or set DUOLOG_TOKEN.",
            show_default="a new one for each start",
        ),
    ] = None,
    utility: options.Utility = None,
    alert: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUERY",
            help="A rule: the page of alerts shows when it fired, and for which sessions; see duolog sessions --help.",
        ),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="URL to POST to when a rule fires; the log records each delivery.",
        ),
    ] = None,
    proxy_header: Annotated[
        str | None,
        typer.Option(
            metavar="HEADER",
            help="Header in which a trusted proxy, or one on this machine, names the user who has signed "
            "in there as an operator. The proxy must not let clients set it.",
        ),
    ] = None,
    trusted_proxy: options.TrustedProxy = None,
    link_days: Annotated[
        float,
        typer.Option(
            metavar="DAYS",
            min=0.01,
            help="Days for which links of participants are valid. Another token revokes all links at once.",
        ),
    ] = 30.0,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Limit every role to viewing.")
    ] = False,
    play: Annotated[
        str | None,
        typer.Option(
            metavar="TASK", help="Begin a session on this task, or file.py:Name, with you in it."
        ),
    ] = None,
    agent: options.Agent = None,
    model: options.Model = None,
    dataset: options.Dataset = None,
    api_base: options.ApiBase = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Open the page in this machine's browser.")
    ] = False,
) -> None:
    """Shows the sessions of a log in the browser, live, and any of them as it was at any moment.

    The link that is printed holds the token that lets its holder in. The dialog "Share" makes links for
    others. With --play, a missing log is created, and a second link leads to the new session; the page
    "New session" begins others.
    """
    if log is None and play is None:
        raise InvalidInput("name a log to show, or a task to begin with: --play TASK")
    if play is not None and read_only:
        raise InvalidInput("--play and --read-only cannot be combined")
    if play is not None:
        from ...experiments.parts import named_task

        named_task(play, dataset)  # before a log is made for it
    begin = None if play is None else _Beginning(play, agent, model)
    given = given_token(token_file)
    bound = bind(host, port, guarded=given is not None)
    try:
        from ...interop.http.limits import HttpLimits

        most = max(open_files(_CONNECTIONS + SPARE) - SPARE, 16)
        names = [*(name or ()), host]
        connections = min(most, _CONNECTIONS)
        limits = HttpLimits(
            connections=connections, per_client=connections, proxies=tuple(trusted_proxy or ())
        )
        run(
            lambda: _serve(
                log_at(log or _CHATS, create=True) if begin else existing_log(log or ""),
                bound,
                given,
                names,
                alert or (),
                webhook,
                proxy_header,
                link_days,
                utility=utility,
                limits=limits,
                read_only=read_only,
                opened=open_,
                begin=begin,
                reach=_Reach(play, agent, dataset, api_base),
            )
        )
    finally:
        bound.close()


class _Beginning(NamedTuple):
    """The session that is begun at once."""

    task: str
    agent: str | None
    model: str | None


class _Reach(NamedTuple):
    """What sessions are run with."""

    task: str | None
    agent: str | None
    dataset: str | None
    api_base: str | None


async def _serve(
    store: Store,
    bound: socket,
    token: str | None,
    names: Sequence[str],
    rules: Sequence[str],
    hook: str | None,
    proxy_header: str | None,
    link_days: float,
    *,
    utility: str | None,
    limits: HttpLimits,
    read_only: bool,
    opened: bool,
    begin: _Beginning | None,
    reach: _Reach,
) -> None:
    import secrets

    import anyio

    from ...experiments.workbench import LogForks, SessionHost
    from ...interop.http.server import HttpServer
    from ...interop.workbench.access.guard import HostNames
    from ...interop.workbench.access.identity import Access, Identity
    from ...interop.workbench.alerts.rules import parse_rule
    from ...interop.workbench.alerts.sending import send_alerts, webhook
    from ...interop.workbench.app import PARTS, make_workbench, make_workbench_app
    from ...interop.workbench.participation.host import NewSession
    from ...interop.workbench.participation.routes import participation
    from ...scoring.trajectory.options import Options

    alerts = [parse_rule(rule) for rule in rules]
    send = None if hook is None else webhook(hook)
    access = Access(token or secrets.token_urlsafe(24), read_only=read_only, life=link_days * _DAY)
    stopping = anyio.Event()
    failures: list[DuologError] = []
    options = Options(utility=utility)
    async with store as log, anyio.create_task_group() as tasks:
        if utility is not None:
            from ...experiments.sources import check_scorers

            await check_scorers(log, options)
        forks = None if read_only else LogForks(log, tasks)
        workbench = make_workbench(
            log,
            access,
            name=name_of(log),
            options=options,
            http=limits,
            stopping=stopping,
            forks=forks,
            alerts=alerts,
            links_at=None if token is None or read_only else _links_file(log.url),
        )
        parts = PARTS
        host = SessionHost(
            log,
            tasks,
            task=reach.task,
            agent=reach.agent,
            dataset=reach.dataset,
            api_base=reach.api_base,
        )
        if not read_only:
            parts = (*PARTS, participation(host))
            workbench = workbench._replace(places=workbench.places | {"/new"})
        hosts = HostNames(names, any_address=names[-1] in ("0.0.0.0", "::"))
        app = make_workbench_app(workbench, hosts, parts, proxy_header=proxy_header)
        server = HttpServer(app, stopping, limits)
        collect_rarely()
        tasks.start_soon(follow_sessions, workbench.sessions, server, failures)
        if send is not None:
            tasks.start_soon(send_alerts, log, workbench.alerts, send, options)
        address = address_of(bound)
        links = [f"{address}/#token={access.token(Identity('operator'))}"]
        if begin is not None:
            wanted = NewSession(
                task=begin.task,
                agents=(begin.agent or await host.usual_agent(begin.task),),
                model=begin.model or "",
            )
            session = await host.begin(wanted)
            [actor] = host.actors(session)
            token = access.token(Identity("participant", actor, session))
            links.append(f"to take part: {address}/#token={token}")
        tasks.start_soon(_announce, server, links, name_of(log), opened)
        await server.run([bound])
        await host.leave_all()
        tasks.cancel_scope.cancel()
    if failures:  # those who take part have left in order
        raise failures[0]


def _links_file(url: str) -> Path | None:
    """The file next to a log that lists its shared links; None if the log is not a file."""
    path = url.removeprefix("sqlite:///").partition("?")[0]
    return Path(f"{path}.links") if url.startswith("sqlite:///") else None


async def _announce(server: HttpServer, links: list[str], log: str, opened: bool) -> None:
    import anyio.to_thread

    await server.started()
    say(f"the workbench of {log} is at {links[0]} (end it with Ctrl+C)")
    for link in links[1:]:
        say(link)
    if opened:
        import webbrowser

        await anyio.to_thread.run_sync(webbrowser.open, links[0])
    with requests_to_end() as requests:
        async for _ in requests:
            server.stop()
