"""Measures the workbench on a large log: opening, filters, a long session, and many who look on.

    python -P -m duolog.benchmarks.workbench [--log big.db] [--viewers 200] [--rate 1000] [--seconds 20]

``duolog workbench`` runs as a process of its own. Without ``--log`` a log of 100,000 sessions and five
million records is made first, which takes some minutes; with it, one that ``workloads.many_sessions`` made is
taken, and written to. Reports

- *open*: from the start of the process until the list's page has come, and the same of the page alone;
- *filter*: the page of a filtered or sorted list, the first time that it is asked for, once the list was read;
- *session*: index, a part, and the state at a moment, of a session of 20,000 records;
- *live*: so many viewers of the list, and of the session that is written to, while so many events a second
  are appended by another process: from an append until the last viewer was sent it, the server's share of a
  core, and its memory at the beginning and at the end.

With ``--browser`` a browser scrolls through the long session: tasks of more than 50 ms, and memory.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import httpx
from duolog.benchmarks.measuring import resident_memory
from duolog.benchmarks.workloads.many_sessions import LONG, session, write
from duolog.engine.log.open import open_log

_TOKEN = "a token of the benchmark"
_FILTERS = (
    "agent=two-stage",
    "agent=two-stage&state=finished&utility=0.3..&sort=-utility",
    "q=travel-77",
    "rounds=8..&sort=-rounds",
    "sort=session",
)


class Server:
    """The workbench as a process."""

    def __init__(self, log: Path) -> None:
        self.began = time.perf_counter()
        environment = os.environ | {"DUOLOG_TOKEN": _TOKEN.replace(" ", "-")}
        command = [sys.executable, "-P", "-m", "duolog", "workbench", str(log), "--port", "0"]
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, env=environment, text=True, encoding="utf-8"
        )
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        self.base = said.partition(" is at ")[2].partition("/#")[0]

    def processor_time(self) -> float:
        """Seconds that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """Ends it."""
        self.process.terminate()
        self.process.wait(20)


async def timed(work: Callable[[], Awaitable[httpx.Response]]) -> float:
    """Milliseconds until an answer has come."""
    begin = time.perf_counter()
    answer = await work()
    answer.raise_for_status()
    return (time.perf_counter() - begin) * 1000


def say(name: str, *found: str) -> None:
    """Prints a row."""
    print(f"{name:42} {', '.join(found)}", flush=True)


async def loaded(client: httpx.AsyncClient) -> None:
    """Waits until the list was read."""
    while "reading the list" in (await client.get("/sessions?state=open")).text:  # noqa: ASYNC110
        await anyio.sleep(0.1)


async def measure_pages(server: Server, client: httpx.AsyncClient) -> None:
    """Opening, filters, and a long session."""
    first = await timed(lambda: client.get("/sessions"))
    whole = (time.perf_counter() - server.began) * 1000
    say("open: from the start, the page alone", f"{whole:.0f} ms", f"{first:.0f} ms")
    await loaded(client)
    say("the list is read after", f"{time.perf_counter() - server.began:.1f} s")
    for query in _FILTERS:
        taken = await timed(lambda query=query: client.get(f"/sessions?{query}"))  # type: ignore[misc]
        again = await timed(lambda query=query: client.get(f"/sessions?{query}"))  # type: ignore[misc]
        say(f"filter {query[:34]}", f"{taken:.0f} ms", f"again {again:.0f} ms")
    for part in ("index?after=0", "records?from=9000&to=9019", "state?at=9000", "state?at=8990"):
        path = f"/v1/session/{part}&session={LONG}"
        taken = await timed(lambda path=path: client.get(path))  # type: ignore[misc]
        say(f"session: {part}", f"{taken:.0f} ms")


class Viewer:
    """One who looks on: what positions it was sent, and when."""

    def __init__(self) -> None:
        self.position = 0
        self.messages = 0
        self.size = 0
        self.reached = anyio.Event()

    async def look(self, client: httpx.AsyncClient, path: str) -> None:
        """Follows a stream until it is cancelled."""
        async with client.stream("GET", path, timeout=None) as answer:
            async for line in answer.aiter_lines():
                self.size += len(line)
                if line.startswith("id:"):
                    self.position = int(line[3:])
                    self.messages += 1


async def measure_live(
    server: Server, client: httpx.AsyncClient, log: Path, viewers: int, rate: int, seconds: float
) -> None:
    """Many who look on while the log grows."""
    head = await client.get("/sessions")
    since = int(head.text.partition('data-position="')[2].partition('"')[0])
    watched = [Viewer() for _ in range(viewers)]
    lags: list[float] = []
    async with open_log(str(log), create=False) as opened, anyio.create_task_group() as tasks:
        for number, viewer in enumerate(watched):
            path = f"/v1/sessions/stream?since={since}"
            if number % 4 == 0:
                path = f"/v1/session/stream?session={LONG}&since={since}"
            tasks.start_soon(viewer.look, client, path)
        await anyio.sleep(2)
        memory, used, begin = (
            resident_memory(str(server.process.pid)),
            server.processor_time(),
            time.perf_counter(),
        )
        sent = 0
        events = [one for number in range(50) for one in session(number, 200, closed=False)]
        lists = [viewer for number, viewer in enumerate(watched) if number % 4]
        while (passed := time.perf_counter() - begin) < seconds:
            position = 0
            for _ in range(max(rate // 20, 1)):
                stream, draft = events[sent % len(events)]
                name = LONG if sent % 10 == 0 else f"grown-{sent % 97}"
                records = await opened.append(name, [draft], stream=stream)
                position, sent = records[-1].position, sent + 1
            appended = time.perf_counter()
            if sent % (rate // 20 * 10) == 0:
                tasks.start_soon(_lag, lists, position, appended, lags)
            await anyio.sleep(max(0.0, sent / rate - (time.perf_counter() - begin)))
        await anyio.sleep(3)
        passed = time.perf_counter() - begin
        share = (server.processor_time() - used) / passed
        after = resident_memory(str(server.process.pid))
        tasks.cancel_scope.cancel()
    say("live: viewers, events a second", str(viewers), f"{sent / seconds:,.0f}")
    if lags:
        lags.sort()
        say(
            "until the last viewer was sent it",
            f"{statistics.median(lags):.0f} ms (median)",
            f"{lags[-1]:.0f} ms (longest)",
        )
    say("the server's share of a core", f"{share:.0%}")
    say("its memory, before and after", f"{memory:.0f} MB", f"{after:.0f} MB")
    say(
        "sent to a viewer",
        f"{statistics.mean(one.size for one in watched) / seconds / 1024:.1f} KB/s",
        f"{statistics.mean(one.messages for one in watched) / seconds:.1f} messages/s",
    )


async def _lag(viewers: list[Viewer], position: int, appended: float, lags: list[float]) -> None:
    with anyio.move_on_after(30):
        while any(viewer.position < position for viewer in viewers):  # noqa: ASYNC110
            await anyio.sleep(0.01)
    lags.append((time.perf_counter() - appended) * 1000)


_SCROLL = """async (speed) => {
  const root = document.getElementById('transcript'), end = performance.now() + 8000;
  let way = -1;
  while (performance.now() < end) {
    root.scrollTop += way * speed;
    if (root.scrollTop <= 0) way = 1;
    await new Promise((next) => requestAnimationFrame(next));
  }
  return [window.tasks.length, Math.max(0, ...window.tasks), performance.memory.usedJSHeapSize];
}"""


async def measure_browser(server: Server) -> None:
    """A browser scrolls through the long session."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--enable-precise-memory-info"],
        )
        page = await browser.new_page()
        await page.add_init_script(
            "window.tasks = []; new PerformanceObserver((list) => list.getEntries().forEach("
            "(one) => tasks.push(one.duration))).observe({type: 'longtask'})"
        )
        await page.goto(f"{server.base}/session?id={LONG}#token={_TOKEN.replace(' ', '-')}")
        await page.wait_for_selector(".curve.utility")
        await anyio.sleep(2)
        for speed in (60, 400):
            await page.evaluate("window.tasks.length = 0")
            count, longest, heap = await page.evaluate(_SCROLL, speed)
            say(
                f"scrolling by {speed} pixels a frame",
                f"{count} tasks over 50 ms",
                f"longest {longest:.0f} ms",
                f"heap {heap / 2**20:.0f} MB",
            )
        await browser.close()


async def main(asked: argparse.Namespace) -> None:
    """Runs what is asked for."""
    with tempfile.TemporaryDirectory() as scratch:
        log = asked.log or Path(scratch, "big.db")
        if not log.exists():
            say("making the log", str(log))
            await write(log, sessions=100_000, records=50, long=20_000)
        server = await asyncio.to_thread(Server, log)
        try:
            async with httpx.AsyncClient(
                base_url=server.base,
                timeout=120,
                limits=httpx.Limits(max_connections=asked.viewers + 10),
            ) as client:
                entered = await client.post(
                    "/enter",
                    json={"token": _TOKEN.replace(" ", "-")},
                    headers={"Origin": server.base},
                )
                entered.raise_for_status()
                await measure_pages(server, client)
                if asked.viewers:
                    await measure_live(
                        server, client, log, asked.viewers, asked.rate, asked.seconds
                    )
                if asked.browser:
                    await measure_browser(server)
        finally:
            server.end()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--browser", action="store_true")
    asyncio.run(main(parser.parse_args()))
