"""Taking part in a real browser: two people, a server that is killed while one types, approvals."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from browser import SharedBrowser, Watched, needs_browser, serious_findings, shares_browser
from duolog.engine.log.open import open_log
from duolog.experiments.workbench import SessionHost
from duolog.interop.workbench.access.identity import Access, Identity
from duolog.interop.workbench.app import PARTS
from duolog.interop.workbench.participation.host import NewSession
from duolog.interop.workbench.participation.routes import participation
from playwright.async_api import expect
from workbench import SECRET, working

pytestmark = [pytest.mark.slow, needs_browser, shares_browser]

ROOT = Path(__file__).resolve().parents[2]
TASK = f"{ROOT / 'tests' / 'support' / 'participation_task.py'}:ShoppingTask"


async def test_two_people_and_an_agent_in_two_browsers(browser: SharedBrowser) -> None:
    async with (
        open_log("memory://") as log,
        anyio.create_task_group() as tasks,
    ):
        host = SessionHost(log, tasks, task=TASK)
        session = await host.begin(NewSession(task=TASK, agents=("keeper",), people=2))
        async with working(log, parts=(*PARTS, participation(host))) as (_, port):
            pages = []
            for actor in ("user", "user-2"):
                token = Access(SECRET).token(Identity("participant", actor, session))
                context = await browser.new_context(viewport={"width": 1280, "height": 800})
                watched = Watched(await context.new_page())
                await watched.page.goto(f"http://127.0.0.1:{port}/#token={token}")
                await watched.page.wait_for_selector("#connection[data-state=live]")
                pages.append(watched)
            ann, ben = (watched.page for watched in pages)
            assert "birthday cake" in await ann.inner_text("#brief-text")  # always in sight

            # Each sees the others' acts; typed text is not lost when the output changes.
            await ben.fill("#editor", "candles")
            await ben.locator("#autosave").uncheck()
            await ann.fill("#message", "milk")
            await ann.keyboard.press("Enter")
            await ben.get_by_text("Noted: milk").wait_for()
            await ben.wait_for_selector("#merge:not([hidden])")
            await ben.get_by_role("button", name="Merge").click()
            await expect(ben.locator("#editor")).to_have_value(re.compile("milk"))
            assert "candles" in await ben.input_value("#editor")
            await ben.get_by_role("button", name="Save").click()
            await ben.get_by_text("saved as a version").wait_for()
            await expect(ann.locator("#editor")).to_have_value(re.compile("candles"))

            # An approval that waits is there after a reload, for both, and is answered once.
            await ann.fill("#message", "send it")
            await ann.keyboard.press("Enter")
            await ann.get_by_text("Shall I send the list?").wait_for()
            await ann.reload()
            await ann.get_by_role("button", name="Approve").click()
            await ann.get_by_text("Sent.").wait_for()
            await expect(ben.locator(".approval")).to_have_count(0)

            # By keyboard alone, on a narrow page, in the dark; and the end is the end for both.
            for scheme, width in (("light", 320), ("dark", 2560)):
                await ann.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                await ann.set_viewport_size({"width": width, "height": 900})
                assert await ann.evaluate("document.documentElement.scrollWidth") <= width
                assert await serious_findings(ann) == []
            await ann.locator("[data-rating='4']").focus()
            await ann.keyboard.press("Enter")
            await ann.get_by_text("rates round").wait_for()
            await ann.locator("[data-end='abandoned']").focus()
            await ann.keyboard.press("Enter")
            await ann.keyboard.type("too slow")
            await ann.keyboard.press("Enter")
            await ben.get_by_text("gives up").wait_for()
            assert await ben.locator("#message").is_disabled()
            assert [watched.complaints for watched in pages] == [[], []]
        await host.leave_all()
        tasks.cancel_scope.cancel()


HOSTILE = [
    "*" * 600 + "a" + "*" * 600,
    "> " * 2_000 + "quoted",
    "[" * 3_000 + "(" * 3_000,
    "`" * 999 + " " + "~" * 999,
    "- " * 1_500 + "| " * 1_500,
    "<img src=x onerror=alert(1)><script>alert(2)</script>",
    "[here](javascript:alert(3)) ![there](https://example.invalid/seen.png)",
]
"""Texts that once made the page end, or would run or load something."""


async def test_hostile_markdown_neither_ends_the_page_nor_runs(browser: SharedBrowser) -> None:
    dialogs: list[str] = []
    async with (
        open_log("memory://") as log,
        anyio.create_task_group() as tasks,
    ):
        host = SessionHost(log, tasks, task=TASK)
        session = await host.begin(NewSession(task=TASK, agents=("keeper",), people=1))
        async with working(log, parts=(*PARTS, participation(host))) as (_, port):
            token = Access(SECRET).token(Identity("participant", "user", session))
            watched = Watched(await (await browser.new_context()).new_page())
            page = watched.page
            page.on("dialog", lambda dialog: dialogs.append(dialog.message))
            await page.goto(f"http://127.0.0.1:{port}/#token={token}")
            await page.wait_for_selector("#connection[data-state=live]")
            for number, text in enumerate(HOSTILE):
                await page.fill("#message", text)
                await page.keyboard.press("Enter")
                await page.fill("#message", f"milk {number}")
                await page.keyboard.press("Enter")
                await page.get_by_text(f"Noted: milk {number}").wait_for()
            await page.reload()  # replayed from the log
            await page.get_by_text(f"Noted: milk {len(HOSTILE) - 1}").wait_for()
            await page.wait_for_selector("#connection[data-state=live]")
            await page.get_by_text("onerror=alert(1)").first.wait_for()
            assert await page.locator("#entries img, #entries script").count() == 0
            assert await page.locator("a[href^='javascript']").count() == 0
            here = f"http://127.0.0.1:{port}/"
            assert [one for one in watched.requests if not one.startswith(here)] == []
            assert (watched.complaints, dialogs) == ([], [])
        await host.leave_all()
        tasks.cancel_scope.cancel()


def started(log: Path, port: int, *more: str) -> subprocess.Popen[str]:
    """Starts the program, which prints its links."""
    command = [
        "workbench",
        str(log),
        "--port",
        str(port),
        "--token-file",
        str(log.parent / "token"),
        *more,
    ]
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "duolog", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=log.parent,
    )


def killed(server: subprocess.Popen[str]) -> None:
    server.kill()
    server.wait()
    if server.stdout is not None:
        server.stdout.close()


async def test_the_server_is_killed_and_restarted_while_one_types(
    tmp_path: Path, browser: SharedBrowser, port: int
) -> None:
    (tmp_path / "token").write_text("a-token-that-is-long-enough")
    log = tmp_path / "a.db"
    server = started(log, port, "--play", TASK)

    def link_of(found: subprocess.Popen[str]) -> str:
        assert found.stdout is not None
        printed = []
        for line in found.stdout:
            printed.append(line)
            if line.startswith("to take part: "):
                return line.removeprefix("to take part: ").strip()
        raise AssertionError(f"it printed no link: {printed}")

    try:
        link = await anyio.to_thread.run_sync(link_of, server)
        page = await (await browser.new_context()).new_page()
        await page.goto(link)
        await page.wait_for_selector("#connection[data-state=live]")
        await page.fill("#message", "milk")
        await page.keyboard.press("Enter")
        await page.get_by_text("Noted: milk").wait_for()

        await anyio.to_thread.run_sync(killed, server)
        await page.fill("#message", "eggs")
        await page.keyboard.press("Enter")
        await page.locator("#autosave").uncheck()
        await page.locator("#editor").press_sequentially("bread\n")
        await page.fill("#message", "half a sent")
        await page.get_by_text("the server is away").wait_for()

        server = started(log, port, "--play", TASK)
        await page.get_by_text("Noted: eggs").wait_for()
        assert await page.input_value("#message") == "half a sent"
        assert "bread" in await page.input_value("#editor")
        await page.reload()
        await page.get_by_text("Noted: eggs").wait_for()
        assert await page.input_value("#message") == "half a sent"
        said = await page.locator("#entries .mine.MessageSent").all_inner_texts()
        assert [text.split("\n")[-1].strip() for text in said] == ["milk", "eggs"]
    finally:
        await anyio.to_thread.run_sync(killed, server)
