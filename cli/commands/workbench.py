"""``duolog workbench``: a log in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...engine.errors import InvalidInput
from ..app import app
from ..arguments import example
from ..listening import SPARE, address_of, bind, given_token, open_files
from ..lookup import existing_log, name_of
from ..output import say
from ..runtime import collect_rarely, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from socket import socket

    from ...interop.http.server import HttpServer
    from ...interop.workbench.sessions.table import SessionTable

__all__ = ("workbench_command",)

_CONNECTIONS = 2048


@app.command(
    "workbench",
    short_help="Shows a log in the browser.",
    epilog=example(
        "duolog workbench demo.db",
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
    log: Annotated[str, typer.Argument(metavar="LOG", help="Path or URL of the log.")],
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST", help="Address to listen on; beyond loopback only with a token given."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free port.")] = 8730,
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A host name by which browsers address it, as of a proxy."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the operator's token; or set DUOLOG_TOKEN.",
            show_default="a new one for each start",
        ),
    ] = None,
    alert: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUERY",
            help="A rule: the live page names the sessions that meet it; see duolog sessions --help.",
        ),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Gets a POST of JSON for each session that begins to meet a rule."
        ),
    ] = None,
    proxy_header: Annotated[
        str | None,
        typer.Option(
            metavar="HEADER",
            help="Header in which a reverse proxy on this machine names who has signed in there: "
            "they are operators. It must not let clients set it.",
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Nobody may do more than look.")
    ] = False,
    open_: Annotated[
        bool, typer.Option("--open", help="Open the page in this machine's browser.")
    ] = False,
) -> None:
    """Shows the sessions of a log in the browser, live, and any of them as it was at any moment.

    The link that is printed holds the token that lets its holder in. A second link lets others look,
    without what is private to a participant.
    """
    if webhook is not None and not alert:
        raise InvalidInput("--webhook takes an --alert to send")
    given = given_token(token_file)
    bound = bind(host, port, guarded=given is not None)
    try:
        most = max(open_files(_CONNECTIONS + SPARE) - SPARE, 16)
        names = [*(name or ()), host]
        run(
            lambda: _serve(
                log,
                bound,
                given,
                names,
                alert or (),
                webhook,
                proxy_header,
                connections=min(most, _CONNECTIONS),
                read_only=read_only,
                opened=open_,
            )
        )
    finally:
        bound.close()


async def _serve(
    where: str,
    bound: socket,
    token: str | None,
    names: Sequence[str],
    rules: Sequence[str],
    hook: str | None,
    proxy_header: str | None,
    *,
    connections: int,
    read_only: bool,
    opened: bool,
) -> None:
    import secrets

    import anyio

    from ...interop.http.limits import HttpLimits
    from ...interop.http.server import HttpServer
    from ...interop.workbench.access.guard import HostNames
    from ...interop.workbench.access.identity import Access, Identity
    from ...interop.workbench.app import make_bench, make_workbench
    from ...interop.workbench.live.alerts import Alerts, parse_rule, webhook
    from ..bench_forks import BenchForks

    alerts = [parse_rule(rule) for rule in rules]
    send = None if hook is None else webhook(hook)
    access = Access(token or secrets.token_urlsafe(24), read_only=read_only)
    stopping = anyio.Event()
    limits = HttpLimits(connections=connections, per_client=connections)
    async with existing_log(where) as log, anyio.create_task_group() as tasks:
        forks = None if read_only else BenchForks(log, tasks)
        bench = make_bench(
            log,
            access,
            name=name_of(log),
            http=limits,
            stopping=stopping,
            forks=forks,
            alerts=alerts,
        )
        hosts = HostNames(names, any_address=names[-1] in ("0.0.0.0", "::"))
        server = HttpServer(
            make_workbench(bench, hosts, proxy_header=proxy_header), stopping, limits
        )
        collect_rarely()
        tasks.start_soon(_follow, bench.table, server)
        if send is not None:
            tasks.start_soon(Alerts(log, alerts, send).run)
        address = address_of(bound)
        viewer = access.token(Identity("viewer"))
        links = [f"{address}/#token={access.token(Identity('operator'))}"]
        if not read_only:
            links.append(f"to look on: {address}/#token={viewer}")
        tasks.start_soon(_announce, server, links, name_of(log), opened)
        await server.run([bound])
        tasks.cancel_scope.cancel()


async def _follow(table: SessionTable, server: HttpServer) -> None:
    """Keeps the list of sessions up to date; where the log can be read no more, all ends."""
    from ...engine.errors import DuologError

    try:
        await table.run()
    except DuologError as error:
        say(f"duolog: the log cannot be read any more: {error}")
        server.stop()


async def _announce(server: HttpServer, links: list[str], log: str, opened: bool) -> None:
    import signal

    import anyio
    import anyio.to_thread

    await server.started()
    say(f"the workbench of {log} is at {links[0]} (end it with Ctrl+C)")
    for link in links[1:]:
        say(link)
    if opened:
        import webbrowser

        await anyio.to_thread.run_sync(webbrowser.open, links[0])
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            server.stop()
