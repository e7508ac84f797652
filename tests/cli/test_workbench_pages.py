"""Every page of the workbench in a real browser: at all widths, in all looks, by keyboard, and for whom."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from browser import SharedBrowser, Watched, needs_browser, serious_findings, shares_browser
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.experiments.workbench import SessionHost
from duolog.interop.workbench.app import PARTS
from duolog.interop.workbench.participation.host import NewSession
from duolog.interop.workbench.participation.routes import participation
from duolog.testing.sessions import put_records
from playwright.async_api import Page
from starlette.routing import Route
from workbench import SECRET, story, visiting, working

TASK = f"{Path(__file__).resolve().parents[1] / 'support' / 'participation_task.py'}:ShoppingTask"
PAGES = {
    "/sessions": "tr[data-measured] svg",
    "/session?id=s2&at=5": "#panel-output .draft > *",
    "/compare": "#tokens .spot.leads",
    "/live": "#rows tr",
    "/alerts": "#rows tr",
    "/new": "#agents input",
    "/pair?left=s1&right=s2": "article",
    "/review": "#reviewer",
}
"""The pages of an operator, and an element that each has once it is loaded."""

WIDTHS = {320: "light", 768: "forced", 1280: "dark", 2560: "light"}
REACHABLE = """() => {
  let count = 0;
  const all = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
  for (const node of document.querySelectorAll(all)) {
    if (!node.disabled && node.tabIndex >= 0 && node.checkVisibility()) node.dataset.reach = count++;
  }
  return count;
}"""
MARKED = "document.querySelectorAll('[data-reach]').length"
FOCUSED = """() => {
  const node = document.activeElement;
  return [node.dataset.reach ?? null, getComputedStyle(node).outlineStyle !== "none" || node === document.body];
}"""


async def check(page: Page, name: str) -> None:
    """The page has room at each width, and axe-core finds nothing serious, in light and in dark."""
    for width, look in WIDTHS.items():
        await page.emulate_media(
            color_scheme="dark" if look == "dark" else "light",
            forced_colors="active" if look == "forced" else "none",
        )
        await page.set_viewport_size({"width": width, "height": 900})
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
        if width in (320, 1280):
            assert await serious_findings(page) == [], (name, look, width)


async def walk(page: Page, name: str) -> None:
    """The Tab key reaches every control, and the focus is visible."""
    for _ in range(5):
        await page.evaluate("document.activeElement.blur()")
        count = await page.evaluate(REACHABLE)
        reached = set()
        for _ in range(count + 3):
            await page.keyboard.press("Tab")
            one, visible = await page.evaluate(FOCUSED)
            reached.add(one)
            assert visible, name
        if await page.evaluate(MARKED) == count:
            break  # else the page redrew something meanwhile, without a mark
    assert len(reached - {None}) == count, name


async def fill(log: EventLog) -> None:
    for number in range(6):
        script = story(f"s{number}", [1, 2, 1][: number or 3])
        if number % 2:
            script.closed("abandoned")
        await put_records(log, script.records)


@pytest.mark.slow
@needs_browser
@shares_browser
async def test_every_page_is_for_everybody(browser: SharedBrowser) -> None:
    async with (
        open_log("memory://") as log,
        anyio.create_task_group() as tasks,
    ):
        await fill(log)
        host = SessionHost(log, tasks, task=TASK)
        session = await host.begin(NewSession(task=TASK, agents=("keeper",)))
        parts = (*PARTS, participation(host))
        async with working(log, parts=parts, alerts=("tau=2",)) as (_, port):
            base = f"http://127.0.0.1:{port}"
            watched = Watched(await browser.new_page())
            page = watched.page
            await page.goto(f"{base}/")
            await page.wait_for_selector("#entrance:not([hidden])")
            await check(page, "the entrance")
            watched.complaints.clear()  # the browser reports the refusal without a token
            await page.goto(f"{base}/sessions#token={SECRET}")
            await page.wait_for_url(f"{base}/sessions")
            for path, there in PAGES.items():
                await page.goto(base + path)
                await page.wait_for_selector(there)
                await check(page, path)
                await walk(page, path)
                if path.startswith("/session?"):
                    await page.locator("#tab-measures").click()
                    await page.wait_for_selector("#panel-measures .numbers")
                    await check(page, "the measures of a session")
                    await walk(page, "the measures of a session")
            await page.get_by_role("button", name="Share").click()
            dialog = page.get_by_role("dialog", name="Share")
            await dialog.get_by_label("With this link").select_option("participant")
            await dialog.get_by_label("Session and person").wait_for()
            await dialog.get_by_role("button", name="Make a link").press("Enter")
            await dialog.get_by_role("button", name="Revoke").wait_for()
            await check(page, "the dialog Share")
            link = await dialog.get_by_label("The link (shown only once)").input_value()
            assert watched.complaints == []
            await page.goto(f"{base}/session?id=unknown")
            await check(page, "an error")
            watched.complaints.clear()  # the browser reports the status
            await page.goto(link)
            await page.wait_for_url(f"**/participate?id={session}")
            await page.wait_for_selector("#connection[data-state=live]")
            await page.wait_for_selector("#brief-text section")
            await check(page, "taking part")
            await walk(page, "taking part")
            assert watched.complaints == []
            assert all(one.startswith(base) for one in watched.requests)

            # By keyboard alone: from a figure to the session of a dot.
            await page.goto(f"{base}/#token={SECRET}")
            await page.wait_for_url(f"{base}/sessions")
            await page.goto(f"{base}/compare")
            await page.wait_for_selector("#tokens svg[tabindex]")
            await page.locator("#tokens svg[tabindex]").first.focus()
            await page.keyboard.press("ArrowRight")
            await page.locator("#tip", has_text="s").wait_for()
            await page.keyboard.press("Enter")
            await page.wait_for_url("**/session?id=s*")
        await host.leave_all()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("role", ["viewer", "participant"])
async def test_every_route_is_closed_to_whom_it_is_not_for(role: str) -> None:
    async with open_log("memory://") as log, anyio.create_task_group() as tasks:
        await fill(log)
        parts = (*PARTS, participation(SessionHost(log, tasks)))
        async with visiting(log, role, parts=parts) as visitor:
            routes = [route for part in parts for route in part(visitor.workbench)]
            for route in routes:
                assert isinstance(route, Route)
                posts = route.methods is not None and "POST" in route.methods
                if role == "viewer" and not posts and "participate" not in route.path:
                    continue  # a viewer reads all sessions, without their private parts
                if posts:
                    status = (await visitor.post(route.path, {})).status_code
                else:
                    status = (await visitor.get(route.path, session="s1", id="s1")).status_code
                # A body that says nothing is refused before anybody asks whose session it is.
                assert status in ((400, 403) if posts else (403,)), (route.path, status)
                if posts and "participate" not in route.path:
                    assert status == 403, route.path
        tasks.cancel_scope.cancel()
