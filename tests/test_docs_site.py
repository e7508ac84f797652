"""The documentation site: it builds without a warning, and its pages load nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("site")
    strictly = ("--fail-on-warning", "--keep-going", "--quiet")
    builder = ("-b", "html", "-d", str(where / "doctrees"))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "sphinx", *strictly, *builder, "docs", str(where / "html")],
        check=False,
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return where / "html"


def test_every_page_is_there(root: Path, site: Path) -> None:
    sources = {path.relative_to(root / "docs") for path in (root / "docs").rglob("*.md")}
    built = {path.relative_to(site) for path in site.rglob("*.html")}
    assert {path.with_suffix(".html") for path in sources} <= built


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(
        r"<(?:script|img|iframe)[^>]+src=\"(?:https?:)?//|<link[^>]+href=\"(?:https?:)?//"
    )
    imports = re.compile(r"@import\s|url\([\"']?(?:https?:)?//")
    for page in site.rglob("*.html"):
        assert loads.findall(page.read_text(encoding="utf-8")) == [], page.name
    for style in site.rglob("*.css"):
        assert imports.findall(style.read_text(encoding="utf-8")) == [], style.name
