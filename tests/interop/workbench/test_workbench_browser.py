"""The workbench in a real browser: entering, the list of sessions, a session, and a report."""

from __future__ import annotations

import pytest
from browser import SharedBrowser, Watched, needs_browser, serious_findings, shares_browser
from duolog.engine.events import ActionResolved, ActionTaken, MessageSent, NoteTaken
from duolog.engine.log.open import open_log
from duolog.engine.records import TRACE, Draft
from duolog.testing.records import RecordWriter
from duolog.testing.sessions import put_records
from playwright.async_api import expect
from workbench import SECRET, working

pytestmark = [pytest.mark.slow, needs_browser, shares_browser]

HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script>"


def session(number: int) -> RecordWriter:
    script = RecordWriter(f"s-{number}")
    group = {"agent": f"a{number % 2}", "user": HOSTILE}
    script.opened(clock="virtual", config={"group": group, "judge": "judge"})
    script.human("hello")
    script.scored(number / 100, snapshot=script.output("a plan"))
    script.human("better")
    script.rated(1, 2)
    return script


async def test_the_list_in_a_browser(browser: SharedBrowser) -> None:
    async with open_log("memory://") as log:
        for number in range(60):
            await put_records(log, session(number).records)
        async with working(log) as (_, port):
            context = await browser.new_context(viewport={"width": 1280, "height": 800})
            watched = Watched(await context.new_page())
            page = watched.page
            base = f"http://127.0.0.1:{port}"

            # A deep link with the token opens the named page, and the token leaves the address.
            await page.goto(f"{base}/sessions?agent=a1&sort=-utility#token={SECRET}")
            await page.wait_for_selector("tr[data-session='s-59'][data-measured] svg.spark")
            assert page.url == f"{base}/sessions?agent=a1&sort=-utility"
            assert await page.locator("#rows tr").count() == 30

            # Rows come and change while one looks.
            await page.wait_for_selector("#connection[data-state=live]")
            await put_records(log, session(61).records)
            await page.wait_for_selector("#rows tr:first-child[data-session='s-61'] svg")
            assert "31 of 61" in await page.inner_text("#count")

            # Rows have one height; selected sessions stay selected while rows change, and are compared.
            heights = "[...document.querySelectorAll('#rows tr')].map((row) => row.offsetHeight)"
            assert set(await page.evaluate(heights)) == {24}
            for chosen in ("s-61", "s-59"):
                await page.locator(f"tr[data-session='{chosen}'] .tick input").check()
            said = MessageSent(text="and now?")
            drafts = [Draft(said, "bot", "agent", 98.0), Draft(said, "ann", "human", 99.0)]
            await log.append("s-61", drafts)
            await page.locator("tr.on[data-session='s-61']").get_by_text("round 3").wait_for()
            assert await page.inner_text("#selected") == "2 selected"
            to = await page.get_attribute("#compare-selected", "href")
            assert to == "/compare?session=s-61%2Cs-59"
            await page.locator("#clear").click()
            assert await page.locator("#selection").is_hidden()

            # Filters, by keyboard alone.
            await page.keyboard.press("/")
            await page.keyboard.type("utility=..0.05")
            await page.keyboard.press("Enter")
            await page.wait_for_url("**/sessions?q=utility%3D..0.05&agent=a1&sort=-utility")
            assert await page.locator("#rows tr").count() == 3
            await page.locator("#rows a").first.focus()
            await page.go_back()
            assert await page.locator("#rows tr").count() == 31

            await page.emulate_media(forced_colors="active")
            assert await serious_findings(page) == []
            assert watched.complaints == []
            assert all(one.startswith(base) for one in watched.requests)

            await page.goto(f"{base}/live")
            await page.wait_for_selector("tr[data-session='s-61'] svg")
            assert watched.complaints == []

            stranger = Watched(await (await browser.new_context()).new_page())
            await stranger.page.goto(f"{base}/sessions?agent=a1")
            await stranger.page.get_by_label("Token").fill("a wrong one")
            await stranger.page.keyboard.press("Enter")
            await stranger.page.get_by_text("Not let in").wait_for()
            await stranger.page.get_by_label("Token").fill(SECRET)
            await stranger.page.keyboard.press("Enter")
            await stranger.page.wait_for_url("**/sessions?agent=a1")


def long_session(count: int) -> RecordWriter:
    script = RecordWriter("long")
    script.opened(clock="virtual", config={"judge": "judge", "utility": "u"})
    for number in range(count):
        script.human(f"{HOSTILE} *word* {number}")
        script.scored(min(number / 20, 1), snapshot=script.output(f"# Plan\n\nline {number}"))
        script.agent("an [answer](https://evil.example) ![x](https://evil.example/x.png)")
        script.rated(number + 1, 1 + number % 5)
    return script


async def test_a_private_note_is_hidden_until_it_is_asked_for(browser: SharedBrowser) -> None:
    script = RecordWriter("noted")
    script.opened(clock="virtual")
    script.human("Plan it.")
    script.agent(NoteTaken(text="they like soup"))
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        async with working(log) as (_, port):
            page = await browser.new_page()
            await page.goto(f"http://127.0.0.1:{port}/session?id=noted#token={SECRET}")
            await page.locator("#transcript").get_by_text("Plan it.").wait_for()
            note = page.get_by_text("they like soup")
            assert await note.count() == 1
            assert not await note.is_visible()
            await page.get_by_label("private notes and profiles").check()
            assert await note.is_visible()


async def test_a_session_in_a_browser(browser: SharedBrowser) -> None:
    script = long_session(60)
    total = len(script.records)
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        async with working(log) as (_, port):
            context = await browser.new_context(viewport={"width": 1280, "height": 800})
            watched = Watched(await context.new_page())
            page = watched.page
            base = f"http://127.0.0.1:{port}"
            eighth = script.records[7].version  # its number, in addresses and on the command line
            await page.goto(f"{base}/session?id=long&at={eighth}#token={SECRET}")
            now = page.locator("article.now")
            await page.locator("article.now[data-i='8']").wait_for()
            # The results come first, then the timeline.
            await page.locator("#strip").get_by_text("by u").wait_for()
            assert "0.000 → 1.000" in await page.inner_text("#strip")
            assert "Open, round 60" in await page.inner_text("#strip")
            versions = page.locator("#timeline .version")
            await versions.nth(59).wait_for(state="attached")  # a script draws them
            assert await versions.count() == 60
            await page.locator("#tab-measures").click()
            await page.wait_for_selector(".curve.utility .dot")
            await page.locator("#transcript").focus()

            # The whole page is as it was after eight records.
            assert await page.locator("article:visible").count() == 8
            assert await page.locator(".curve.utility circle").count() == 2
            await page.keyboard.press("ArrowRight")
            assert await now.get_attribute("data-i") == "9"
            await page.keyboard.press("]")
            assert await now.get_attribute("data-i") == "12"
            await page.keyboard.press("Home")
            assert await page.locator("article:visible").count() == 1
            await (
                page.get_by_text("No rounds yet").or_(page.get_by_text("Round 1")).first.wait_for()
            )

            # Click the timeline, whose axis does not change, and move the slider to a part that is not loaded.
            axis = await page.locator("#timeline text").all_inner_texts()
            box = await page.locator("#timeline").bounding_box()
            assert box is not None
            await page.mouse.click(box["x"] + 200, box["y"] + 60)
            assert await page.locator("#timeline text").all_inner_texts() == axis
            assert int(await now.get_attribute("data-i") or 0) > 1
            await page.locator("#slider").fill("200")
            await page.locator("article.now[data-i='200']").wait_for()
            assert f"at={script.records[199].version}" in (
                await page.evaluate("new Promise(f => setTimeout(() => f(location.search), 400))")
            )
            await page.locator("#transcript").focus()
            await page.keyboard.press("f")
            await page.locator(f"article[data-i='{total}']").wait_for()
            assert "at=" not in (
                await page.evaluate("new Promise(f => setTimeout(() => f(location.search), 400))")
            )
            assert await page.locator("article").count() < total  # only what is near is there

            # A curve leads into the transcript, and new records are shown.
            await page.get_by_text("Numbers").click()
            await page.get_by_role("button", name="30", exact=True).click()
            await page.locator("h2[data-round='30']").wait_for()
            await page.get_by_text("Round 30 (").wait_for()
            await page.locator("#follow").click()
            more = [record for record in long_session(61).records if record.position > total]
            await put_records(log, more)
            await page.locator(f"article[data-i='{total + len(more)}']").wait_for()

            # The output as a document, and what changed since another version; all by keyboard.
            await page.locator("#tab-measures").focus()
            await page.keyboard.press("ArrowLeft")
            await page.get_by_text("line 60").first.wait_for()
            await page.get_by_role("button", name="Changes").press("Enter")
            await page.locator(".draft ins", has_text="line 60").wait_for()

            await page.emulate_media(forced_colors="active")
            assert await serious_findings(page) == []
            assert watched.complaints == []
            assert all(one.startswith(base) for one in watched.requests)


async def test_a_report_in_a_browser(browser: SharedBrowser) -> None:
    async with open_log("memory://") as log:
        for number in range(12):
            script = session(number)
            script.closed("abandoned" if number % 2 else "finished")
            await put_records(log, script.records)
        async with working(log) as (_, port):
            watched = Watched(await browser.new_page())
            page = watched.page
            base = f"http://127.0.0.1:{port}"
            await page.goto(f"{base}/compare?state=finished,abandoned#token={SECRET}")
            await page.wait_for_selector("#tokens .spot.leads")
            assert await page.locator("#curve svg").count() == 1
            async with page.expect_download() as drawing:
                await (
                    page.locator("section:has(> #curve)").get_by_role("button", name="SVG").click()
                )
            text = (await (await drawing.value).path()).read_text(encoding="utf-8")
            assert text.startswith("<svg")
            assert "class=" not in text
            async with page.expect_download() as table:
                await (
                    page.locator("section:has(> #tokens)").get_by_role("button", name="CSV").click()
                )
            rows = (await (await table.value).path()).read_text(encoding="utf-8").splitlines()
            assert rows[0] == "session,series,human_tokens,agent_tokens,performance"
            assert len(rows) == 13
            numbers = page.locator("#tokens .numbers")  # the same as a table, by keyboard
            await numbers.locator("summary").press("Enter")
            await numbers.locator("tbody tr").nth(11).wait_for()
            assert await numbers.locator("tbody tr").count() == 12
            spot = page.locator("#tokens .spot").first
            await spot.dispatch_event("click")
            await page.wait_for_url("**/session?id=s-*")
            assert watched.complaints == []
            csv = await page.evaluate(
                """async () => (await import("/assets/charts.js")).asCsv([{a: "=1+1", b: 'x,"y"'}])"""
            )
            assert csv == 'a,b\r\n\'=1+1,"x,""y"""\r\n'


async def test_a_page_leads_to_what_went_wrong(browser: SharedBrowser) -> None:
    script = RecordWriter("s")
    script.opened(clock="virtual")
    for number, rating in enumerate((4, 1, 2), start=1):
        script.human(f"round {number}")
        taken = script.agent(ActionTaken(name="look"))
        script.add(
            ActionResolved(action=taken.version, outcome="failed", error="no such town"),
            "environment",
            "environment",
        )
        script.output(f"plan {number}")
        script.human("go on")
        script.rated(number, rating)
    async with open_log("memory://") as log:
        await put_records(log, script.records)
        async with working(log) as (_, port):
            watched = Watched(await browser.new_page())
            page = watched.page
            await page.goto(f"http://127.0.0.1:{port}/session?id=s#token={SECRET}")
            failed = [one for one in script.records if one.kind == "ActionResolved"]
            # A key is pressed at once, where a click would wait: so all of the session has to be there.
            there = f"{sum(record.stream == TRACE for record in script.records)} records"
            await page.locator("#records", has_text=there).wait_for()
            previous = page.get_by_role("button", name="Previous failure")
            for record in reversed(failed):
                await expect(previous).to_be_enabled()
                await previous.press("Enter")
                await page.locator("#moment", has_text=f"record {record.version} of").wait_for()
            await expect(previous).to_be_disabled()
            await page.get_by_role("button", name="Next failure").click()
            await page.locator("#moment", has_text=f"record {failed[1].version} of").wait_for()
            await page.get_by_role("button", name="Lowest rating").click()
            await page.locator("#moment", has_text="round 2").wait_for()
            assert watched.complaints == []


async def test_a_page_outlives_the_server(browser: SharedBrowser, port: int) -> None:
    async with open_log("memory://") as log:
        await put_records(log, session(1).records)
        watched = Watched(await browser.new_page())
        page = watched.page
        async with working(log, port=port):
            await page.goto(f"http://127.0.0.1:{port}/sessions#token={SECRET}")
            await page.wait_for_selector("#connection[data-state=live]")
            await page.fill("#f-q", "what is typed stays")
        await page.wait_for_selector("#connection[data-state=lost]")
        await put_records(log, session(2).records)  # while nobody serves
        async with working(log, port=port):
            await page.wait_for_selector("#connection[data-state=live]")
            await page.wait_for_selector("tr[data-session='s-2']")
            assert await page.input_value("#f-q") == "what is typed stays"


async def test_modules_in_a_browser(browser: SharedBrowser) -> None:
    async with open_log("memory://") as log, working(log) as (_, port):
        page = await browser.new_page()
        await page.goto(f"http://127.0.0.1:{port}/")

        async def order(descending: bool) -> object:
            return await page.evaluate(
                """async (descending) => {
                  const { compareKeys } = await import("/assets/order.js");
                  const keys = [[0.5, 3], [null, 1], [0.7, 2], [0.5, 1], [null, 0]];
                  return keys.sort((a, b) => compareKeys(a, b, descending)).map((k) => k.join());
                }""",
                descending,
            )

        assert await order(False) == ["0.5,1", "0.5,3", "0.7,2", ",0", ",1"]
        assert await order(True) == ["0.7,2", "0.5,3", "0.5,1", ",0", ",1"]
        leads = await page.evaluate(
            """async () => {
              const { destination } = await import("/assets/enter.js");
              const to = ["/sessions?a=b", "//evil.example", "https://evil.example", "/\\\\evil", "/"];
              return to.map((one) => destination(`?to=${encodeURIComponent(one)}`, ""));
            }"""
        )
        assert leads == ["/sessions?a=b", *["/sessions"] * 4]
        assert (
            await page.evaluate(
                "try { document.body.innerHTML = '<b>x</b>'; 'set' } catch (e) { e.name }"
            )
            == "TypeError"
        )


async def test_files_and_commands_in_a_browser(browser: SharedBrowser) -> None:
    async with open_log("memory://") as log:
        for number in range(12):
            await put_records(log, session(number).records)
        async with working(log) as (_, port):
            watched = Watched(await browser.new_page())
            page = watched.page
            base = f"http://127.0.0.1:{port}"

            async def saved(name: str) -> tuple[str, bytes]:
                async with page.expect_download() as coming:
                    await page.locator("#exports").get_by_label(name, exact=True).click()
                file = await coming.value
                return file.suggested_filename, (await file.path()).read_bytes()

            await page.goto(f"{base}/#token={SECRET}")
            await page.wait_for_url(f"{base}/sessions")
            await page.wait_for_selector("#rows svg")
            await page.locator("#export summary").press("Enter")
            await page.get_by_label("Sessions, with what was measured as CSV").wait_for()
            assert await serious_findings(page) == []
            _, listed = await saved("All sessions of the list as JSON")
            assert listed.count(b'"session"') == 12
            _, table = await saved("Sessions, with what was measured as CSV")
            assert table.splitlines()[0].startswith(b"Session,Agent,")
            assert len(table.splitlines()) == 13
            await page.keyboard.press("Escape")
            assert await page.locator("#exports").is_hidden()

            # From the keyboard alone: a session by the beginning of its id.
            await page.keyboard.press("Control+k")
            await page.get_by_role("option", name="Compare page").wait_for()
            await page.keyboard.type("s-7")
            await page.get_by_role("option").get_by_text("session").wait_for()
            assert await serious_findings(page) == []
            await page.keyboard.press("Enter")
            await page.wait_for_url("**/session?id=s-7")
            await page.wait_for_selector("#timeline svg")
            await page.locator("#export summary").click()
            name, drawing = await saved("Timeline as SVG")
            assert (name, drawing[:4]) == ("timeline.svg", b"<svg")
            name, picture = await saved("Timeline as PNG")
            assert (name, picture[:8]) == ("timeline.png", b"\x89PNG\r\n\x1a\n")
            name, text = await saved("Session as Markdown")
            assert name == "session.md"
            assert b"## Round 1" in text

            # An action of the page.
            await page.keyboard.press("Escape")
            await page.keyboard.press("Control+k")
            await page.keyboard.type("measures")
            await page.keyboard.press("Enter")
            await page.wait_for_selector("#tab-measures[aria-selected=true]")
            assert watched.complaints == []
            assert all(one.startswith((base, "blob:")) for one in watched.requests)
