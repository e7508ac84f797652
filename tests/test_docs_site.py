"""The documentation site: it builds without a warning, loads nothing from elsewhere, and is accessible."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final, Literal

import anyio
import pytest
from browser import CHROMIUM, browsing, serious_findings
from playwright.async_api import Browser

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(600)]

LOOKS: Final[tuple[tuple[Literal["light", "dark"], int], ...]] = (("light", 1440), ("dark", 390))
"""The looks and widths in which pages are checked: colours depend on the one, scrolled regions on the other."""

SPHINX = (
    "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
)
"""What ``python -m sphinx`` does, without looking for garbage, of which there is little."""


async def test_it_builds_every_page_accessible_and_whole(root: Path, tmp_path: Path) -> None:
    # In one test, since it takes long to build, and tests of one file run in several processes.
    strictly = ("--fail-on-warning", "--keep-going", "--quiet")
    builder = ("-b", "html", "-d", str(tmp_path / "doctrees"))
    site = tmp_path / "html"
    command = [sys.executable, "-P", "-c", SPHINX, *strictly, *builder, "docs", str(site)]
    done = await anyio.run_process(command, check=False, cwd=root)
    assert done.returncode == 0, done.stderr.decode()
    sources = {path.relative_to(root / "docs") for path in (root / "docs").rglob("*.md")}
    built = {path.relative_to(site) for path in site.rglob("*.html")}
    assert {path.with_suffix(".html") for path in sources} <= built

    loads = re.compile(
        r"<(?:script|img|iframe)[^>]+src=\"(?:https?:)?//|<link[^>]+href=\"(?:https?:)?//"
    )
    imports = re.compile(r"@import\s|url\([\"']?(?:https?:)?//")
    for page in site.rglob("*.html"):
        assert loads.findall(page.read_text(encoding="utf-8")) == [], page.name
    for style in site.rglob("*.css"):
        assert imports.findall(style.read_text(encoding="utf-8")) == [], style.name

    if CHROMIUM is not None or os.environ.get("DUOLOG_TEST_PROGRAMS") == "required":
        found: list[str] = []
        async with browsing() as browser, anyio.create_task_group() as group:
            for part in range(_AT_ONCE):
                pages = sorted(built)[part::_AT_ONCE]
                group.start_soon(_look, browser, [site / page for page in pages], found)
        assert found == []


_AT_ONCE: Final = 4


async def _look(browser: Browser, files: list[Path], found: list[str]) -> None:
    """Adds what is wrong with some pages: serious findings, and pages wider than the window."""
    for look, width in LOOKS:
        context = await browser.new_context(
            color_scheme=look, viewport={"width": width, "height": 900}
        )
        page = await context.new_page()
        for file in files:
            await page.goto(file.as_uri())
            found += [f"{file.name}, {look}: {one}" for one in await serious_findings(page)]
            if await page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{file.name}: wider than {width} pixels")
        await context.close()
