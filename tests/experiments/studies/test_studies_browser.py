"""Studies in a real browser: consent, questionnaires, judging the agent's edits, withdrawal; many at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from browser import SharedBrowser, Watched, needs_browser, serious_findings, shares_browser
from duolog.engine.events import FeedbackGiven
from duolog.engine.log.contract import Store
from duolog.engine.log.open import open_log
from duolog.experiments.studies.people import People, read_people
from duolog.experiments.studies.plan import read_study, resolved
from duolog.experiments.studies.recruiting import Recruits, places_of
from duolog.experiments.studies.running import Sittings
from duolog.experiments.studies.site import OPEN, study_part
from duolog.experiments.workbench import SessionHost
from duolog.interop.workbench.app import PARTS
from duolog.interop.workbench.participation.routes import participation
from duolog.interop.workbench.state import WorkbenchLimits
from playwright.async_api import Page, expect
from workbench import working

pytestmark = [pytest.mark.slow, needs_browser, shares_browser]

ROOT = Path(__file__).resolve().parents[3]
TASK = f"{ROOT / 'tests' / 'support' / 'participation_task.py'}:ShoppingTask"
PLAN = f"""
name = "lists"
title = "Shopping"
consent = "You may leave at any time."

[recruitment]
participant = "PID"
parameters = ["PID"]

[[condition]]
name = "one"
task = "{TASK}"

[[questionnaire]]
name = "tlx"
kind = "nasa-tlx"

[[questionnaire]]
name = "last"
when = "end"

[[questionnaire.item]]
name = "comment"
text = "What else?"
type = "text"
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "lists.toml"
    path.write_text(PLAN, encoding="utf-8")
    return path


@asynccontextmanager
async def serving(plan: Path, port: int = 0) -> AsyncIterator[tuple[People, Store, str]]:
    """A server of the study; gives the participants, the log of sessions, and the address."""
    places = places_of(plan)
    study = await anyio.to_thread.run_sync(lambda: resolved(read_study(plan)))
    recruits = await anyio.to_thread.run_sync(Recruits.at, places, study.recruitment.parameters)
    async with (
        open_log(f"sqlite:///{places.people}") as people_log,
        open_log(f"sqlite:///{places.sessions}") as log,
        anyio.create_task_group() as tasks,
    ):
        people = await read_people(study, people_log, log)
        host = SessionHost(log, tasks)
        parts = (
            *PARTS,
            participation(host),
            study_part(people, recruits, Sittings(people, host, log)),
        )
        limits = WorkbenchLimits(reads=(1e6, 1e6), writes=(1e6, 1e6))
        async with working(log, port=port, parts=parts, open_at=OPEN, limits=limits) as (_, at):
            yield people, log, f"http://127.0.0.1:{at}"
        tasks.cancel_scope.cancel()


async def agree(page: Page) -> None:
    await page.get_by_role("button", name="I agree").click()
    await page.get_by_role("button", name="Begin").click()
    await page.wait_for_selector("#connection[data-state=live]")


async def say(page: Page, text: str) -> None:
    await page.fill("#message", text)
    await page.keyboard.press("Enter")
    await page.locator("#entries").get_by_text(f"Noted: {text.splitlines()[0]}").wait_for()


async def end(page: Page) -> None:
    await page.get_by_role("button", name="Done, it is good").click()
    await page.get_by_role("button", name="End the session").click()
    await page.get_by_role("link", name="Continue").click()


async def judgements(log: Store) -> list[FeedbackGiven]:
    events = [record.event async for record in log.read_all() if record.body is not None]
    return [one for one in events if isinstance(one, FeedbackGiven)]


async def test_edits_of_the_agent_are_accepted_undone_and_changed(
    plan: Path, browser: SharedBrowser
) -> None:
    async with serving(plan) as (_, log, base):
        watched = Watched(await browser.new_page())
        page = watched.page
        await page.goto(f"{base}/study?PID=ann")
        await agree(page)
        await say(page, "milk")  # the first draft is new as a whole
        await expect(page.locator("#editor")).to_have_value("milk")
        change = page.locator(".change")
        await expect(change).to_have_count(0)

        await say(page, "eggs")
        await change.get_by_text("eggs").wait_for()
        await change.get_by_role("button", name="Accept").click()
        await page.get_by_text("accepted the changes").wait_for()
        await expect(change).to_have_count(0)

        await say(page, "tea")
        await change.get_by_role("button", name="Undo").press("Enter")
        await page.get_by_text("undid a change").wait_for()
        await expect(page.locator("#editor")).to_have_value("milk\neggs")

        await say(page, "jam\nhoney")
        await page.reload()  # what waits is there again
        await change.get_by_role("button", name="Change …").click()
        await page.keyboard.type("jam\nmore honey")  # in place of the lines that it selects
        await page.get_by_role("button", name="Save").click()
        await page.get_by_text("kept 50% of the changes").wait_for()
        await expect(page.locator("#editor")).to_have_value("milk\neggs\njam\nmore honey")
        await expect(change).to_have_count(0)
        assert await serious_findings(page) == []

        given = await judgements(log)
        assert [one.edits_kept for one in given] == [1.0, 0.0, 0.5]
        drafts = [r async for r in log.read_all() if r.kind == "SnapshotTaken"]
        written = [r.version for r in drafts if r.role == "agent"]
        assert [one.of for one in given] == written[1:]
        assert watched.complaints == []


async def test_consent_questionnaires_and_withdrawal(plan: Path, browser: SharedBrowser) -> None:
    async with serving(plan) as (people, log, base):
        watched = Watched(await browser.new_page(viewport={"width": 390, "height": 800}))
        page = watched.page
        await page.goto(f"{base}/study?PID=ann")
        assert await serious_findings(page) == []
        await page.get_by_role("button", name="I do not want").click()
        await page.get_by_role("button", name="I have changed my mind").click()
        await page.get_by_role("button", name="Begin").click()
        await page.wait_for_selector("#connection[data-state=live]")

        # On a phone, brief, conversation and output are tabs.
        for tab, shown in (("Brief", ".brief"), ("Output", ".output"), ("Conversation", ".talk")):
            await page.get_by_role("button", name=tab, exact=True).click()
            await page.locator(f"#together > {shown}").wait_for()
            assert await page.locator("#together > :visible").count() == 1
            assert await serious_findings(page) == []
        await end(page)

        # Answers survive a reload; the scales have 21 places and none is chosen beforehand.
        await expect(page.locator("[data-item=mental] input")).to_have_count(21)
        assert await page.locator(":checked").count() == 0
        await page.locator("[data-item=mental] input[value='35']").check()
        await page.reload()
        await page.get_by_text("1 of 6 answered").wait_for()
        assert await serious_findings(page) == []
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_label("What else?").fill("Nothing.")
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_role("heading", name="Thank you").wait_for()
        [person] = people.all()
        assert person.answers["tlx", 1].event.answers == {"mental": 35}
        assert person.answers["last", None].event.answers == {"comment": "Nothing."}

        await page.goto(f"{base}/study/leave")
        assert await serious_findings(page) == []
        await page.get_by_role("button", name="Leave and delete my data").click()
        await page.get_by_role("heading", name="You have left the study").wait_for()
        assert people.counts().withdrawn == 1
        assert all([record.body is None async for record in log.read_all()])
        assert watched.complaints == []


async def take_part_as(browser: SharedBrowser, base: str, number: int) -> None:
    """One of five courses: finishes; leaves; comes back elsewhere; withdraws; reloads at each step."""
    address = f"{base}/study?PID=p{number}"
    page = await (await browser.new_context()).new_page()
    await page.goto(address)
    course = number % 5
    if course == 1:
        await page.get_by_role("button", name="I agree").click()
        await page.get_by_role("button", name="Begin").wait_for()
        await page.context.close()
        return
    await agree(page)
    await say(page, "milk")
    if course == 2:
        await page.context.close()
        page = await (await browser.new_context()).new_page()
        await page.goto(address)
        await page.get_by_role("link", name="Continue").click()
        await page.locator("#entries").get_by_text("Noted: milk").wait_for()
    if course == 3:
        await page.get_by_role("link", name="Leave the study").click()
        await page.get_by_role("button", name="Leave and delete my data").click()
        await page.get_by_role("heading", name="You have left the study").wait_for()
        await page.context.close()
        return
    if course == 4:
        await page.reload()
    await end(page)
    for value, item in enumerate(await page.locator("[data-item]").all()):
        await item.locator(f"input[value='{value * 5}']").check()
    if course == 4:
        await page.reload()
    await page.get_by_role("button", name="Continue").click()
    await page.get_by_label("What else?").fill("Nothing.")
    await page.get_by_role("button", name="Continue").click()
    await page.get_by_role("heading", name="Thank you").wait_for()
    await page.context.close()


@pytest.mark.parametrize("count", [5, pytest.param(50, marks=pytest.mark.soak)])
async def test_browsers_finish_leave_come_back_and_withdraw(
    plan: Path, count: int, browser: SharedBrowser
) -> None:
    several = anyio.Semaphore(5)
    async with serving(plan) as (people, _, base):

        async def participant(number: int) -> None:
            async with several:
                await take_part_as(browser, base, number)

        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(participant, number)
        found = people.counts()
        fifth = count // 5
        assert (found.finished, found.working, found.withdrawn) == (3 * fifth, fifth, fifth)
        scores = {
            tuple(one.answers["tlx", 1].event.answers.values())
            for one in people.all()
            if ("tlx", 1) in one.answers
        }
        assert scores == {(0, 5, 10, 15, 20, 25)}


async def test_a_server_that_stops_while_somebody_works_loses_nothing(
    plan: Path, browser: SharedBrowser, port: int
) -> None:
    page = await browser.new_page()
    async with serving(plan, port) as (_, _, base):
        await page.goto(f"{base}/study?PID=ann")
        await agree(page)
        await say(page, "milk")
    await page.wait_for_selector("#connection[data-state=lost]")
    await page.fill("#message", "eggs")
    await page.keyboard.press("Enter")
    await page.get_by_text("not sent yet").wait_for()
    async with serving(plan, port) as (people, _, _):
        await page.locator("#entries").get_by_text("Noted: eggs").wait_for()
        await expect(page.locator("#editor")).to_have_value("milk\neggs")
        await end(page)
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_label("What else?").wait_for()
        [person] = people.all()
        assert ("tlx", 1) in person.answers
