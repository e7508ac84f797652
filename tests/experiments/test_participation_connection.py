"""Taking part over a connection that hangs, breaks and is away: nothing is lost, nothing is done twice."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from bad_network import bad_network
from browser import SharedBrowser, needs_browser, shares_browser
from duolog.engine.events import MessageSent
from duolog.engine.log.open import open_log
from duolog.experiments.workbench import SessionHost
from duolog.interop.workbench.access.identity import Access, Identity
from duolog.interop.workbench.app import PARTS
from duolog.interop.workbench.participation.host import NewSession
from duolog.interop.workbench.participation.routes import participation
from duolog.interop.workbench.state import WorkbenchLimits
from duolog.testing.tools import collect
from playwright.async_api import Page
from workbench import SECRET, working

pytestmark = [pytest.mark.slow, needs_browser, shares_browser]

ROOT = Path(__file__).resolve().parents[2]
TASK = f"{ROOT / 'tests' / 'support' / 'participation_task.py'}:ShoppingTask"


async def say(page: Page, text: str) -> None:
    await page.fill("#message", text)
    await page.keyboard.press("Enter")


async def test_two_tabs_of_one_person_over_a_bad_connection(browser: SharedBrowser) -> None:
    async with (
        open_log("memory://") as log,
        anyio.create_task_group() as tasks,
    ):
        host = SessionHost(log, tasks, task=TASK)
        session = await host.begin(NewSession(task=TASK, agents=("keeper",)))
        parts = (*PARTS, participation(host))
        token = Access(SECRET).token(Identity("participant", "user", session))
        async with (
            working(log, parts=parts, limits=WorkbenchLimits(heartbeat=0.2)) as (_, port),
            bad_network(port) as network,
        ):
            context = await browser.new_context()

            async def tab() -> Page:
                page = await context.new_page()
                await page.goto(f"http://127.0.0.1:{network.port}/#token={token}")
                await page.wait_for_selector("#connection[data-state=live]")
                return page

            # It hangs while something is sent: it is sent again, and done once.
            one = await tab()
            network.stall()
            await say(one, "milk")
            await one.locator("#autosave").uncheck()
            await one.fill("#editor", "candles")
            await one.wait_for_selector("#connection[data-state=lost]")
            assert "offline" in await one.inner_text("#connection")
            await one.get_by_text("not sent yet").wait_for()
            network.mend()
            await one.get_by_text("Noted: milk").wait_for()

            # The connection breaks: unsent acts are sent by the tab in which they were done, or, if
            # that is gone, by the next one.
            two = await tab()
            network.cut()
            await say(one, "eggs")
            await say(two, "flour")
            for page in (one, two):
                await page.get_by_text("not sent yet").wait_for()
            await one.fill("#message", "half a sent")
            await two.close()
            network.break_after = [300, 10]  # an answer that breaks off is asked for again
            network.mend()
            await one.get_by_text("Noted: eggs").wait_for()
            three = await tab()
            await three.get_by_text("Noted: flour").wait_for()
            assert await one.input_value("#message") == "half a sent"
            assert "candles" in await one.input_value("#editor")
            await three.fill("#message", "the third tab's")
            await one.reload()
            await one.get_by_text("Noted: flour").wait_for()
            assert await one.input_value("#message") == "half a sent"
            shown = await one.locator("#entries article").evaluate_all(
                "all => all.map((one) => one.dataset.version)"
            )
            assert len(set(shown)) == len(shown)
        said = [
            record.event.text
            for record in await collect(log.read(session))
            if isinstance(record.event, MessageSent) and record.actor == "user"
        ]
        assert said == ["milk", "eggs", "flour"]
        await host.leave_all()
        tasks.cancel_scope.cancel()
