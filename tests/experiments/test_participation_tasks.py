"""Each shipped task, taken part in by a person in a real browser: from the brief to the end."""

from __future__ import annotations

import re

import anyio
import pytest
from browser import SharedBrowser, Watched, needs_browser, shares_browser
from duolog.engine.events import ActionTaken, MessageSent
from duolog.engine.log.open import open_log
from duolog.engine.rounds import is_act
from duolog.experiments.workbench import SessionHost
from duolog.interop.workbench.access.identity import Access, Identity
from duolog.interop.workbench.app import PARTS
from duolog.interop.workbench.participation.host import NewSession
from duolog.interop.workbench.participation.routes import participation
from duolog.testing.tools import collect
from playwright.async_api import Page, expect
from workbench import SECRET, working

pytestmark = [pytest.mark.slow, needs_browser, shares_browser]

TASKS = ("data", "finance", "proof", "travel", "tutoring")
WITHOUT_ACTIONS = ("tutoring",)
"""In these tasks the person can only edit the output."""
SIMULATOR = re.compile(r"\b(guess|slip|persona|stamina|latent|seed)\b")
"""Words that describe how a simulated person is made, which a real one is not to read."""


async def fill_form(page: Page) -> None:
    """Gives each field that must be filled a value that its kind of field accepts."""
    for field in await page.locator("#fields :is(input, select, textarea):required").all():
        kind = await field.evaluate("node => node.type")
        if kind == "select-one":
            await field.select_option(index=1)
        else:
            await field.fill({"number": "2", "date": "2022-03-05"}.get(kind, "2 + 3"))


@pytest.mark.parametrize("task", TASKS)
async def test_a_person_plays_a_shipped_task_from_brief_to_end(
    task: str, browser: SharedBrowser
) -> None:
    async with (
        open_log("memory://") as log,
        anyio.create_task_group() as tasks,
    ):
        host = SessionHost(log, tasks, task=task)
        session = await host.begin(NewSession(task=task, agents=("one-stage",)))
        async with working(log, parts=(*PARTS, participation(host))) as (_, port):
            token = Access(SECRET).token(Identity("participant", "user", session))
            watched = Watched(await browser.new_page())
            page = watched.page
            await page.goto(f"http://127.0.0.1:{port}/#token={token}")
            await page.wait_for_selector("#connection[data-state=live]")

            await expect(page.locator("#brief-text")).to_contain_text(re.compile(r"\w{3}"))
            brief = await page.inner_text("#brief-text")
            assert SIMULATOR.search(brief) is None, brief

            await page.fill("#message", "Hello, can you help me with this?")
            await page.keyboard.press("Enter")
            await page.locator("#entries").get_by_text("can you help me with this").wait_for()

            chosen: list[str] = []
            if task in WITHOUT_ACTIONS:
                await page.fill("#editor", "1. 2")
                await page.get_by_role("button", name="Save").click()
                await page.get_by_text("saved as a version").wait_for()
                await expect(page.locator("#actions")).to_be_hidden()
            else:
                await page.locator("#actions summary").click()
                await fill_form(page)
                chosen.append(await page.input_value("#action"))
                await page.get_by_role("button", name="Do it").click()
                entry = page.locator("#entries").get_by_text(chosen[0])
                await entry.first.wait_for(state="attached")  # it may lie in a fold

            with anyio.fail_after(120):  # the agent is at work for this person
                async with log.subscribe(session=session) as arriving:
                    async for record in arriving:
                        if record.role == "agent" and is_act(record):
                            break

            await page.locator("[data-end=finished]").click()
            await page.fill("#why", "good enough")
            await page.get_by_role("button", name="End the session").click()
            await expect(page.locator("#message")).to_be_disabled()
            assert watched.complaints == []
        records = await collect(log.read(session))
        await host.leave_all()
        tasks.cancel_scope.cancel()
    mine = [record.event for record in records if record.actor == "user"]
    said = [one.text for one in mine if isinstance(one, MessageSent)]
    assert said[-1] == "Hello, can you help me with this?"  # after the request, which opens it
    assert len(said) == 2
    assert [one.name for one in mine if isinstance(one, ActionTaken)] == chosen
