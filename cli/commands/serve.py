"""``duolog serve``: a log over HTTP, for products in other languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...engine.errors import InvalidInput
from .. import options
from ..arguments import example, one_of, seconds_in
from ..listening import SPARE, address_of, bind, given_token, open_files
from ..lookup import log_at, name_of
from ..output import say
from ..root import app
from ..runtime import collect_rarely, requests_to_end, run

if TYPE_CHECKING:
    from socket import socket

    from ...engine.records import Redact
    from ...engine.scorers.protocol import Scorer
    from ...interop.http.server import HttpServer

__all__ = ("serve_command",)

_SCORERS = ("rule-judge", "retention", "feedback")


@app.command(
    "serve",
    short_help="Serves a log over HTTP, for other languages.",
    epilog=example(
        "duolog serve --log telemetry.db --port 8720",
        "duolog serve --log telemetry.db --scorers rule-judge,retention",
        "duolog serve --log telemetry.db --forget-after 90d",
        "duolog serve --log telemetry.db --host 0.0.0.0 --token-file token.txt",
        note="GET /openapi.json describes the interface. Needs the extra duolog[web]. Any OpenTelemetry "
        "exporter of OTLP/HTTP can send spans of models, tools and agents to /v1/traces "
        "(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:8720/v1/traces): they become sessions. "
        "Protobuf needs the extra duolog[otel], JSON does not.",
    ),
)
def serve_command(
    log: options.LogToWrite,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8720,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the token that clients have to send; or set DUOLOG_TOKEN.",
        ),
    ] = None,
    scorers: Annotated[
        str | None,
        typer.Option(
            metavar="SCORERS",
            help=f"Scorers, separated by commas, of {', '.join(_SCORERS)}.",
            show_default="none",
        ),
    ] = None,
    connections: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Maximum number of connections, as far as open files allow."
        ),
    ] = 4096,
    per_client: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Maximum number of connections from one address."),
    ] = 256,
    trusted_proxy: options.TrustedProxy = None,
    redact: options.Redact = None,
    streams: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of event streams.")
    ] = 512,
    forget_after: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Erase sessions whose last record is older; looks once an hour: 12h, 90d or 2w.",
        ),
    ] = None,
) -> None:
    """Serves a log over HTTP until it is interrupted; then completes open requests and ends."""
    from ...engine.redacting import DEFAULT, redaction_of

    chosen = [] if scorers is None else one_of(scorers, "--scorers", _SCORERS)
    token = given_token(token_file)
    keep = None if forget_after is None else seconds_in(forget_after, "--forget-after")
    bound = bind(host, port, guarded=token is not None)
    try:
        most = open_files(connections + SPARE) - SPARE
        if most < 1:
            raise InvalidInput(
                "the limit of open files (ulimit -n) is too low to serve a log; raise it"
            )
        caps = {
            "connections": min(connections, most),
            "per_client": per_client,
            "streams": streams,
            "proxies": tuple(trusted_proxy or ()),
        }
        hook = redaction_of(redact or DEFAULT)
        run(lambda: _serve(log, bound, token, chosen, caps, hook, keep))
    finally:
        bound.close()


async def _serve(
    where: str,
    bound: socket,
    token: str | None,
    scorers: Sequence[str],
    caps: Mapping[str, object],
    redact: Redact | None,
    retention: float | None,
) -> None:
    import anyio
    import msgspec

    from ...engine.scorers.driver import ScorerPool
    from ...interop.http.app import make_app
    from ...interop.http.limits import HttpLimits
    from ...interop.http.server import HttpServer
    from ...interop.importers.traces.live import LiveTraces
    from ...scoring.index.erasure import Retention, keep_to
    from ...scoring.live import follow_updates

    limits = msgspec.structs.replace(HttpLimits(), **caps)
    stopping = anyio.Event()
    async with log_at(where, create=True, redact=redact) as log, anyio.create_task_group() as tasks:
        measurer = ScorerPool(log, [_scorer(name) for name in scorers])
        tasks.start_soon(measurer.run)
        traces = LiveTraces(log)
        tasks.start_soon(traces.run)
        if retention is not None:
            tasks.start_soon(keep_to, log, Retention(age=retention))
        web = make_app(
            log,
            token=token,
            limits=limits,
            updates=follow_updates,
            stopping=stopping,
            traces=traces,
        )
        server = HttpServer(web, stopping, limits)
        collect_rarely()
        tasks.start_soon(_stop_on_signal, server, address_of(bound), name_of(log))
        await server.run([bound])
        await traces.record(anyio.current_time(), everything=True)
        tasks.cancel_scope.cancel()


async def _stop_on_signal(server: HttpServer, address: str, log: str) -> None:
    await server.started()
    say(f"serving {log} at {address} (end it with Ctrl+C)")
    with requests_to_end() as requests:
        async for _ in requests:
            server.stop()


def _scorer(name: str) -> Scorer:
    from ...scoring.scorers.feedback import FeedbackUtility
    from ...scoring.scorers.progress import rule_judge
    from ...scoring.scorers.retention import RetentionUtility

    found: dict[str, Scorer] = {
        "rule-judge": rule_judge(),
        "retention": RetentionUtility(),
        "feedback": FeedbackUtility(),
    }
    return found[name]
