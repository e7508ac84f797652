"""The documentation site: it builds without a warning, and its pages load nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final, Literal

import anyio
import pytest
from browser import browsing, serious_findings
from playwright.async_api import ViewportSize

pytestmark = [pytest.mark.long, pytest.mark.slow]

LOOKS: Final[tuple[tuple[Literal["light", "dark"], int], ...]] = (("light", 1440), ("dark", 390))
"""The looks and widths in which pages are checked: colours depend on the one, scrolled regions on the other."""

SPHINX = (
    "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
)
"""What ``python -m sphinx`` does, without looking for garbage, of which there is little."""


def build(root: Path, directory: Path, *settings: str) -> Path:
    """Builds the site into a directory, with further settings, and returns the directory of its pages."""
    strictly = ("--fail-on-warning", "--keep-going", "--quiet")
    builder = ("-b", "html", "-d", str(directory / "doctrees"))
    site = directory / "html"
    done = subprocess.run(
        [sys.executable, "-P", "-c", SPHINX, *strictly, *builder, *settings, "docs", str(site)],
        check=False,
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return site


def test_it_builds_every_page_and_none_loads_anything_from_elsewhere(
    root: Path, tmp_path: Path
) -> None:
    # In one test, since it takes long to build, and tests of one file run in several processes.
    site = build(root, tmp_path, "-D", "smartquotes=0")  # to look for quotes takes seconds
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


GUIDES: Final = {
    "tolerance": "concepts",
    "import logs": "importing",
    "judge": "scorers",
    "redact": "erase",
    "postgres": "postgresql",
    "fork": "measures",
    "pytest": "testing",
    "workbench": "workbench",
    "install": "start",
    "persona": "people",
}
"""Queries, and a guide that is among the first results of each."""

SYMBOLS: Final = ("open_sync", "RetentionUtility", "duolog.Options")


@pytest.mark.soak
async def test_a_search_finds_guides_before_symbols(root: Path, tmp_path: Path) -> None:
    site = await anyio.to_thread.run_sync(build, root, tmp_path)
    async with browsing() as browser:
        page = await browser.new_page()

        async def results(query: str) -> list[str]:
            await page.goto(f"{(site / 'search.html').as_uri()}?q={query}")
            await page.wait_for_selector("#search-results li")
            found: list[str] = await page.eval_on_selector_all(
                "#search-results li > a", "links => links.map(link => link.getAttribute('href'))"
            )
            return found

        for query, guide in GUIDES.items():
            first = (await results(query))[:10]
            assert any(link.startswith(f"{guide}.html") for link in first), (query, first)
            assert not any(link.startswith("reference/") for link in first[:3]), (query, first)
        for symbol in SYMBOLS:
            assert (await results(symbol))[0].startswith("reference/")


@pytest.mark.soak
async def test_every_page_is_for_everybody(root: Path, tmp_path: Path) -> None:
    """axe-core finds nothing serious, and no page is wider than its window.

    It takes minutes: the pages of the reference are large.
    """
    files = sorted((await anyio.to_thread.run_sync(build, root, tmp_path)).rglob("*.html"))
    found: list[str] = []
    async with browsing() as browser:
        for look, width in LOOKS:
            viewport: ViewportSize = {"width": width, "height": 900}
            context = await browser.new_context(color_scheme=look, viewport=viewport)
            page = await context.new_page()
            page.set_default_timeout(0)  # axe-core holds the page for long
            for file in files:
                await page.goto(file.as_uri())
                found += [f"{file.name}, {look}: {one}" for one in await serious_findings(page)]
                if await page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                    found.append(f"{file.name}: wider than {width} pixels")
    assert found == []
