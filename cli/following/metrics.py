"""Prometheus metrics on how a growing log is scored: their text, and a server for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Final

import anyio
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from ...engine.errors import InvalidInput
from ...engine.scorers.driver import ScorerStatistics

__all__ = ("metrics_text", "parse_address", "serve_metrics")

_METRICS: Final[Mapping[str, tuple[str, str]]] = {
    "position": (
        "gauge",
        "Position of the log up to which all sessions of this worker are measured.",
    ),
    "lag": ("gauge", "Positions that the log is ahead of that."),
    "waiting": ("gauge", "Sessions with records that are not measured yet."),
    "working": ("gauge", "Of those, sessions that are at work now."),
    "measured": ("counter", "Records that scorers have looked at."),
    "quarantined": ("counter", "Failures of scorers in sessions, which they measure no more."),
    "held": ("gauge", "Sessions on which this worker has the lease."),
    "processes": ("gauge", "Processes on all machines that divide the sessions."),
}
_HEAD: Final = 8192  # bytes of a request
_PATIENCE: Final = 5.0  # seconds for it to come
_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def metrics_text(workers: Mapping[int, ScorerStatistics]) -> str:
    """The metrics of workers in Prometheus' text format.

    Args:
        workers: the statistics of each, by number.
    """
    lines = []
    for name, (kind, meaning) in _METRICS.items():
        metric = f"duolog_score_{name}" + ("_total" if kind == "counter" else "")
        lines += [f"# HELP {metric} {meaning}", f"# TYPE {metric} {kind}"]
        lines += [
            f'{metric}{{worker="{number}"}} {getattr(statistics, name)}'
            for number, statistics in sorted(workers.items())
        ]
    return "".join(f"{line}\n" for line in lines)


def parse_address(text: str) -> tuple[str, int]:
    """Host and port in ``HOST:PORT``, ``[HOST]:PORT`` or ``PORT``, which is on this machine only.

    Raises:
        InvalidInput: it is neither.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise InvalidInput(f"--metrics expects PORT or HOST:PORT, got {text!r}")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


async def serve_metrics(
    address: tuple[str, int], text: Callable[[], str], on_bound: Callable[[str], None]
) -> None:
    """Answers GET /metrics until it is cancelled.

    Args:
        address: host and port; port 0 for any that is free.
        text: gives the metrics.
        on_bound: called with the URL once it listens.

    Raises:
        InvalidInput: it cannot listen there.
    """
    host, port = address
    try:
        listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    except OSError as error:
        raise InvalidInput(f"cannot serve metrics on {host}, port {port}: {error}") from error
    async with listener:
        bound = listener.extra_attributes[anyio.abc.SocketAttribute.local_port]()
        on_bound(
            f"http://[{host}]:{bound}/metrics" if ":" in host else f"http://{host}:{bound}/metrics"
        )
        await listener.serve(lambda stream: _answer(stream, text))


async def _answer(stream: SocketStream, text: Callable[[], str]) -> None:
    gone = (anyio.BrokenResourceError, anyio.IncompleteRead, anyio.DelimiterNotFound)
    async with stream:
        with contextlib.suppress(*gone), anyio.move_on_after(_PATIENCE):
            head = await BufferedByteReceiveStream(stream).receive_until(b"\r\n\r\n", _HEAD)
            method, _, rest = head.decode("latin-1").partition(" ")
            path = rest.partition(" ")[0].partition("?")[0]
            if path != "/metrics":
                status, body = "404 Not Found", f"there is nothing at {path}; see /metrics\n"
            elif method not in ("GET", "HEAD"):
                status, body = "405 Method Not Allowed", f"{method} is not for it\n"
            else:
                status, body = "200 OK", text()
            data = body.encode()
            header = f"HTTP/1.1 {status}\r\nContent-Type: {_TYPE}\r\nContent-Length: {len(data)}"
            answer = f"{header}\r\nConnection: close\r\n\r\n".encode()
            await stream.send(answer if method == "HEAD" else answer + data)
