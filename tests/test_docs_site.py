"""The documentation site: it builds without a warning, and its pages load nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.slow]

SPHINX = (
    "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
)
"""What ``python -m sphinx`` does, without looking for garbage, of which there is little."""


def test_it_builds_every_page_and_none_loads_anything_from_elsewhere(
    root: Path, tmp_path: Path
) -> None:
    # In one test, since it takes long to build, and tests of one file run in several processes.
    strictly = ("--fail-on-warning", "--keep-going", "--quiet")
    builder = ("-b", "html", "-d", str(tmp_path / "doctrees"))
    site = tmp_path / "html"
    done = subprocess.run(
        [sys.executable, "-P", "-c", SPHINX, *strictly, *builder, "docs", str(site)],
        check=False,
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
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
