"""Many viewers while a log grows: how far behind they are, and the cost to the server."""

from __future__ import annotations

import asyncio
import random
import re
import statistics
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
import httpx
from duolog.benchmarks.workbench.pages import FILTERS
from duolog.benchmarks.workbench.server import Server, say
from duolog.benchmarks.workloads.many_sessions import LONG

__all__ = ("Sample", "Sender", "lags", "measure_live", "measure_memory", "sending")

_IDENT = re.compile(rb"\nid: (\d+)\n")
_SETTLE = 3.0  # seconds after the last event in which all viewers should have it
_EVERY = 20  # samples of the sender for one of the lag: a second


class Sample(NamedTuple):
    """A position, and when it was reached, in seconds since 1970."""

    position: int
    time: float


class Sender:
    """A process that appends to the log.

    Attributes:
        samples: which position was durable when.
        rate: events a second that it appended, once it has ended.
    """

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.rate = 0.0
        self.ended = anyio.Event()

    async def run(self, log: Path, rate: float, seconds: float, share: float) -> None:
        """Runs it to its end."""
        command = [
            *(sys.executable, "-P", "-m", "duolog.benchmarks.workloads.growing_log", str(log)),
            *("--rate", str(rate), "--seconds", str(seconds), "--share", str(share)),
        ]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                first, second, *rest = line.split()
                if rest:
                    self.rate = int(second) / float(rest[0])
                elif int(first):
                    self.samples.append(Sample(int(first), float(second)))
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            self.ended.set()


@asynccontextmanager
async def sending(
    log: Path, rate: float, seconds: float, share: float = 0.1
) -> AsyncIterator[Sender]:
    """Appends meanwhile."""
    sender = Sender()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sender.run, log, rate, seconds, share)
        yield sender
        tasks.cancel_scope.cancel()


def lags(sent: Sequence[Sample], seen: Sequence[Sample]) -> list[float]:
    """For each second of sending, the milliseconds until a viewer had seen its event."""
    positions = [one.position for one in seen]
    found = []
    for sample in sent[::_EVERY]:
        place = bisect_left(positions, sample.position)
        found.append(
            float("inf") if place == len(seen) else (seen[place].time - sample.time) * 1000
        )
    return found


class Viewer:
    """A viewer: the positions that it was sent, and when."""

    def __init__(self) -> None:
        self.seen: list[Sample] = []
        self.messages = 0
        self.size = 0

    async def look(self, server: Server, cookie: str, path: str) -> None:
        """Follows a stream until it is cancelled."""
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        try:
            request = (
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {cookie}\r\n\r\n"
            )
            writer.write(request.encode())
            rest = b""
            while data := await reader.read(1 << 16):
                self.size += len(data)
                found = _IDENT.findall(rest + data)
                rest = data[-30:] if not data.endswith(b"\n") else b"\n"
                if found:
                    self.messages += len(found)
                    self.seen.append(Sample(int(found[-1]), time.time()))
        finally:
            writer.transport.abort()


async def measure_live(
    server: Server, client: httpx.AsyncClient, log: Path, viewers: int, rate: int, seconds: float
) -> None:
    """Viewers of the list, every fourth of a session, while another process appends."""
    head = await client.get("/sessions")
    since = int(head.text.partition('data-position="')[2].partition('"')[0])
    watched = [Viewer() for _ in range(viewers)]
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    async with anyio.create_task_group() as tasks:
        for number, viewer in enumerate(watched):
            of_session = f"/v1/session/stream?session={LONG}&since={since}"
            path = of_session if number % 4 == 0 else f"/v1/sessions/stream?since={since}"
            tasks.start_soon(viewer.look, server, cookie, path)
        await anyio.sleep(2)
        memory, used, begin = server.memory(), server.processor_time(), time.perf_counter()
        async with sending(log, rate, seconds) as sender:
            await sender.ended.wait()
            await anyio.sleep(_SETTLE)
        share = (server.processor_time() - used) / (time.perf_counter() - begin)
        after = server.memory()
        tasks.cancel_scope.cancel()
    lists = [viewer for number, viewer in enumerate(watched) if number % 4]
    each = [lags(sender.samples, viewer.seen) for viewer in lists]
    last = [max(of_all) for of_all in zip(*each, strict=True)]
    say("live: viewers, events a second", str(viewers), f"{sender.rate:,.0f}")
    say(
        "until the last viewer was sent it",
        f"{statistics.median(last):.0f} ms (median)",
        f"{max(last):.0f} ms (longest)",
        f"{max(last[-3:]):.0f} ms (at the end)",
    )
    say("the server's share of a core", f"{share:.0%}")
    say("its memory, before and after", f"{memory:.0f} MB", f"{after:.0f} MB")
    say(
        "sent to a viewer",
        f"{statistics.mean(one.size for one in watched) / seconds / 1024:.1f} KB/s",
        f"{statistics.mean(one.messages for one in watched) / seconds:.1f} messages/s",
    )


async def measure_memory(
    server: Server, client: httpx.AsyncClient, log: Path, viewers: int, rate: int, seconds: float
) -> None:
    """Viewers who come and go, page after page, while another process appends."""
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    visits = 0
    held: list[float] = []

    async def visit(number: int) -> None:
        nonlocal visits
        chance = random.Random(number)
        while True:
            session = chance.choice((LONG, f"grown-{chance.randrange(97)}", "session-7"))
            page, stream = chance.choice(
                (
                    (f"/sessions?{chance.choice(FILTERS)}", "/v1/sessions/stream?state=open"),
                    (
                        f"/v1/session/state?session={session}",
                        f"/v1/session/stream?session={session}",
                    ),
                    ("/live", "/v1/live/stream"),
                )
            )
            (await client.get(page)).raise_for_status()
            with anyio.move_on_after(chance.uniform(0.5, 5.0)):
                await Viewer().look(server, cookie, stream)
            visits += 1

    async with anyio.create_task_group() as tasks:
        for number in range(viewers):
            tasks.start_soon(visit, number)
        async with sending(log, rate, seconds, share=0.02) as sender:
            while not sender.ended.is_set():
                held.append(server.memory())
                await anyio.sleep(2)
        tasks.cancel_scope.cancel()
    quarter = len(held) // 4
    parts = [statistics.median(held[start * quarter : (start + 1) * quarter]) for start in range(4)]
    say("memory: visits, events", f"{visits:,}", f"{sender.rate * seconds:,.0f} in {seconds:.0f} s")
    say("the server's, by quarters of the time", *(f"{one:.0f} MB" for one in parts))
    say("its growth from half to the end", f"{parts[3] / parts[1] - 1:+.1%}")
