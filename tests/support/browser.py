"""A real browser for tests of pages: Chromium, driven by Playwright.

Tests that use the fixture ``browser`` share one, and with it the event loop in which its driver runs: each
start takes a second of CPU. Without a browser, tests are skipped with the reason; with
``DUOLOG_TEST_PROGRAMS=required``, as in ``.ci/run``, they fail.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from duolog.benchmarks.browsers import BROWSER, NO_BROWSER
from playwright.async_api import (
    Browser,
    BrowserContext,
    Page,
    ViewportSize,
    async_playwright,
    expect,
)

__all__ = (
    "SharedBrowser",
    "Watched",
    "browsing",
    "needs_browser",
    "serious_findings",
    "shares_browser",
)

needs_browser = pytest.mark.skipif(
    BROWSER is None and os.environ.get("DUOLOG_TEST_PROGRAMS") != "required", reason=NO_BROWSER
)

shares_browser = pytest.mark.asyncio(loop_scope="session")
"""For tests that use the fixture ``browser``."""

_HANGS = 600_000.0
"""Milliseconds after which what is waited for will not come. A machine may be busy."""

expect.set_options(timeout=_HANGS)


class SharedBrowser:
    """A browser that several tests use one after the other. What one opens, the next does not see.

    Args:
        browser: the browser.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    async def new_context(self, viewport: ViewportSize | None = None) -> BrowserContext:
        """A browser of one person, with separate cookies and storage."""
        context = await self._browser.new_context(viewport=viewport)
        context.set_default_timeout(_HANGS)
        return context

    async def new_page(self, viewport: ViewportSize | None = None) -> Page:
        """A page in a new context."""
        return await (await self.new_context(viewport)).new_page()

    async def close_all(self) -> None:
        """Closes what was opened."""
        for context in self._browser.contexts:
            await context.close()


class Watched:
    """A page, and its problems: errors of scripts, refused requests, violated policies.

    Attributes:
        page: the page.
        complaints: what the browser complained of.
        requests: the addresses that were asked for.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )
        page.on("request", lambda request: self.requests.append(request.url))


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """A browser."""
    assert BROWSER is not None, f"DUOLOG_TEST_PROGRAMS=required, and {NO_BROWSER}"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"]
        )
        try:
            yield browser
        finally:
            await browser.close()


async def serious_findings(page: Page) -> list[str]:
    """The problems of a page that axe-core calls serious or critical."""
    found_at = find_spec("axe_playwright_python")
    assert found_at is not None
    assert found_at.origin is not None
    script = Path(found_at.origin).with_name("axe.min.js")
    session = await page.context.new_cdp_session(page)  # which no policy of the page keeps out
    await session.send("Runtime.evaluate", {"expression": script.read_text(encoding="utf-8")})
    found: dict[str, Any] = await page.evaluate("axe.run({resultTypes: ['violations']})")
    return [
        f"{finding['id']}: {node['html'][:120]}"
        for finding in found["violations"]
        if finding["impact"] in ("serious", "critical")
        for node in finding["nodes"]
    ]
