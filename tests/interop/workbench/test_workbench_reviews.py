"""Reviews in the workbench: the panel, several sessions at once, the queue, and the roles."""

from __future__ import annotations

import pytest
from browser import SharedBrowser, Watched, needs_browser, serious_findings, shares_browser
from duolog.engine.log.contract import EventLog
from duolog.engine.log.open import open_log
from duolog.scoring.reviews import read_reviews
from duolog.testing.sessions import put_records
from workbench import SECRET, story, visiting, working

HOSTILE = "<img src=x onerror=alert(1)>"


async def put(log: EventLog, *names: str) -> None:
    for name in names:
        script = story(name, [1])
        script.closed()
        await put_records(log, script.records)


def asked(*sessions: str, by: str = "anna", **review: object) -> dict[str, object]:
    return {"sessions": sessions, "by": by, "review": review}


async def test_an_operator_reviews_and_everyone_who_reads_the_log_sees_it() -> None:
    async with open_log("memory://") as log:
        await put(log, "s", "t")
        async with visiting(log) as operator:
            review = asked("s", tags=["slow"], rating=2, comment=HOSTILE)
            assert (await operator.post("/v1/reviews/add", review)).json() == {
                "added": 1,
                "failed": {},
            }
            several = await operator.post("/v1/reviews/add", asked("s", "t", "gone", tags=["odd"]))
            assert several.json()["added"] == 2
            assert "gone" in several.json()["failed"]["gone"]
        async with visiting(log, "viewer") as viewer:
            html = (await viewer.data("/v1/reviews", session="s"))["html"]
            assert "slow" in html
            assert "2/5" in html
            assert HOSTILE not in html
            row = (await viewer.data("/v1/sessions/rows", of="s"))["rows"]["s"]
            assert "tag=slow" in row
        assert (await read_reviews(log, "t")).names == ("odd",)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (asked("s"), "needs a tag"),
        (asked("s", rating=9), "1 to 5"),
        (asked("s", by=" ", rating=1), "name"),
        (asked(rating=1), "1 to 500 sessions, not 0"),
        (asked("gone", rating=1), "gone"),
        ({}, "cannot read"),
    ],
)
async def test_a_wrong_review_is_refused_in_words(body: object, says: str) -> None:
    async with open_log("memory://") as log:
        await put(log, "s")
        async with visiting(log) as operator:
            answer = await operator.post("/v1/reviews/add", body)
            assert 400 <= answer.status_code < 500
            assert says in answer.text


async def test_only_operators_review() -> None:
    async with open_log("memory://") as log:
        await put(log, "s")
        body = asked("s", rating=1)
        for role in ("viewer", "participant"):
            async with visiting(log, role) as visitor:
                assert (await visitor.post("/v1/reviews/add", body)).status_code == 403
                assert (await visitor.get("/review")).status_code == 403
                assert (await visitor.get("/v1/reviews/queue", by="anna")).status_code == 403
                page = await visitor.get("/session", id="s")
                assert "review-form" not in page.text
        async with visiting(log, "participant") as visitor:
            assert (await visitor.get("/v1/reviews", session="s")).status_code == 403
        async with visiting(log, read_only=True) as visitor:
            assert (await visitor.post("/v1/reviews/add", body)).status_code == 403
        assert not await read_reviews(log, "s")


async def test_the_queue_holds_what_a_reviewer_has_not_reviewed() -> None:
    async with open_log("memory://") as log:
        await put(log, "a", "b", "c")
        async with visiting(log) as operator:

            async def following(by: str, **where: str) -> tuple[str | None, int]:
                found = await operator.data("/v1/reviews/next", by=by, **where)
                return found["session"], found["left"]

            assert await following("anna") == ("a", 3)
            assert await following("anna", here="a") == ("b", 2)
            assert await following("anna", here="c") == ("a", 2)
            assert await following("anna", session="b,c") == ("b", 2)
            await operator.post("/v1/reviews/add", asked("b", rating=1))
            while await following("anna", session="b"):
                if (await following("anna", session="b")) == (None, 0):
                    break
                await operator.workbench.sessions.wait()
            assert await following("anna", here="a") == ("c", 1)
            assert await following("ben", here="a") == ("b", 2)


@pytest.mark.slow
@needs_browser
@shares_browser
async def test_reviewing_in_a_browser(browser: SharedBrowser) -> None:
    async with open_log("memory://") as log:
        await put(log, "a", "b", "c")
        async with working(log) as (_, port):
            watched = Watched(await browser.new_page())
            page = watched.page
            await page.goto(f"http://127.0.0.1:{port}/sessions#token={SECRET}")
            await page.wait_for_selector("#rows tr[data-measured]")
            for name in ("a", "b"):
                await page.locator(f"tr[data-session='{name}'] .tick input").check()
            await page.locator("#tag-selected").click()
            await page.fill("#tag-by", "anna")
            await page.fill("#tag-tags", "odd")
            await page.locator("#tag-form button[type=submit]").click()
            await page.wait_for_selector("tr[data-session='b'] a.label:text('odd')")
            assert await serious_findings(page) == []

            await page.goto(f"http://127.0.0.1:{port}/review")
            await page.wait_for_selector("#queue a")
            assert await serious_findings(page) == []
            await page.locator("#queue-form button").click()
            await page.wait_for_selector("#review-form")
            assert "id=c" in page.url
            await page.locator("input[name=rating][value='4']").check()
            await page.fill("#review-comment", HOSTILE)
            await page.locator("#review-form button[type=submit]").click()
            await page.wait_for_selector("#reviews .comment")
            await page.get_by_text("The queue is empty").wait_for()
            assert await serious_findings(page) == []
            assert watched.complaints == []
        reviews = await read_reviews(log, "c")
        assert (reviews.rating, reviews.comments[0].text) == (4, HOSTILE)
