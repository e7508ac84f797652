"""Pages of the workbench in a real browser: how they scroll, and whether they keep up with a log that grows."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from duolog.benchmarks.browsers import BROWSER
from duolog.benchmarks.workbench.live import Sample, lags, sending
from duolog.benchmarks.workbench.server import TOKEN, Server, say
from duolog.benchmarks.workloads.many_sessions import LONG

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

__all__ = ("measure_browser",)

_WATCHED = """
window.tasks = [];
new PerformanceObserver((list) => list.getEntries().forEach((one) => tasks.push(one.duration)))
  .observe({type: 'longtask'});
window.seen = [];
const look = () => {
  const position = Number(document.getElementById('connection')?.dataset.position ?? 0);
  if (position && position !== window.seen.at(-1)?.[0]) seen.push([position, Date.now() / 1000]);
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
_SCROLL = """async (speed) => {
  const root = document.getElementById('transcript'), end = performance.now() + 8000;
  let way = -1, shown = 0, frames = 0;
  while (performance.now() < end) {
    root.scrollTop += way * speed;
    if (root.scrollTop <= 0) way = 1;
    await new Promise((next) => requestAnimationFrame(next));
    frames += 1;
    const box = root.getBoundingClientRect();
    shown += Boolean(document.elementFromPoint(box.left + 200, box.top + 200)?.closest('article, h2'));
  }
  return [window.tasks.length, Math.max(0, ...window.tasks), shown / frames, frames / 8];
}"""
_TRACED = ("toplevel", "devtools.timeline")
_MEMORY = "performance.memory.usedJSHeapSize / 2 ** 20"


async def _page(browser: Browser, server: Server, path: str, ready: str) -> Page:
    page = await browser.new_page()
    await page.add_init_script(_WATCHED)
    await page.goto(f"{server.base}{path}#token={TOKEN}")
    await page.wait_for_selector(ready, timeout=120_000)
    await anyio.sleep(2)
    return page


async def measure_browser(server: Server, log: Path, rate: int, seconds: float) -> None:
    """Scrolls through the long session, and follows the log on three pages."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=BROWSER,
            args=["--no-sandbox", "--enable-precise-memory-info"],
        )
        await _scroll(browser, server)
        for path, ready, share in (
            ("/sessions", "#rows tr[data-measured]", 0.1),
            ("/live", "#rows tr", 0.1),
            (f"/session?id={LONG}", ".curve.utility", 1.0),
        ):
            await _follow(browser, server, log, path, ready, rate, seconds, share)
        await browser.close()


async def _scroll(browser: Browser, server: Server) -> None:
    page = await _page(browser, server, f"/session?id={LONG}", ".curve.utility")
    for speed in (60, 400):
        await page.evaluate("window.tasks.length = 0")
        await browser.start_tracing(page=page, categories=list(_TRACED))
        count, longest, shown, frames = await page.evaluate(_SCROLL, speed)
        used = _processor_times(await browser.stop_tracing())
        say(
            f"scrolling by {speed} pixels a frame",
            f"{sum(one > 50 for one in used)} tasks over 50 ms of the processor",
            f"longest {max(used):.0f} ms",
            f"by the clock {count}, longest {longest:.0f} ms",
            f"{frames:.0f} frames a second",
            f"text in sight in {shown:.0%} of them",
        )
    say(
        "the tab's memory after that",
        f"{await _held(browser):.0f} MB of its process alone",
        f"{await _held(browser):.0f} MB",
    )
    await page.close()


async def _held(browser: Browser) -> float:
    """MB that the process of the only page holds, and shares with no other."""
    control = await browser.new_browser_cdp_session()
    found = (await control.send("SystemInfo.getProcessInfo"))["processInfo"]
    await control.detach()
    renderers = [one for one in found if one["type"] == "renderer"]
    used = max(renderers, key=lambda one: float(one["cpuTime"]))
    return _private(int(used["id"]))


def _private(process: int) -> float:
    sizes = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii")
    own = [line.split()[1] for line in sizes.splitlines() if line.startswith("Private_")]
    return sum(map(int, own)) / 1024


def _processor_times(trace: bytes) -> list[float]:
    """Milliseconds of the processor that each task of the page took: of a busy machine, the clock says little."""
    events = json.loads(trace)["traceEvents"]
    calls = Counter((one["pid"], one["tid"]) for one in events if one["name"] == "FunctionCall")
    [(thread, _)] = calls.most_common(1)  # the one in which scripts run
    return [
        one["tdur"] / 1000
        for one in events
        if (one["pid"], one["tid"]) == thread and one["name"].endswith("RunTask") and "tdur" in one
    ]


async def _follow(
    browser: Browser,
    server: Server,
    log: Path,
    path: str,
    ready: str,
    rate: int,
    seconds: float,
    share: float,
) -> None:
    page = await _page(browser, server, path, ready)
    await page.evaluate("window.tasks.length = 0")
    async with sending(log, rate, seconds, share) as sender:
        await sender.ended.wait()
        await anyio.sleep(3)
    seen = [Sample(int(position), time) for position, time in await page.evaluate("window.seen")]
    found = lags(sender.samples, seen)
    tasks = await page.evaluate("window.tasks")
    say(
        f"{path[:24]} at {sender.rate:,.0f} events/s",
        f"behind by {statistics.median(found):.0f} ms (median)",
        f"{max(found):.0f} ms (longest)",
        f"{max(found[-3:]):.0f} ms (at the end)",
        f"{len(tasks)} tasks over 50 ms",
        f"longest {max(tasks, default=0):.0f} ms",
        f"{await _held(browser):.0f} MB",
    )
    await page.close()
