"""The pages show what really happens: every block of code is run, in order, page by page.

``test_docs_experiments.py`` runs the page on models, which needs a server of models.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import Snippet, check, page_files, prose, run_page, snippets

ROOT = Path(__file__).parents[1]
LONG = ("README", "your-own")
PAGES = [page for page in page_files(ROOT) if page.name != "experiments.md"]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.long] if page.stem in LONG else ())
        for page in PAGES
        if page.name != "litellm.md" and next(snippets(page.read_text(encoding="utf-8")), None)
    ],
)
@pytest.mark.slow
def test_every_block_runs(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


@pytest.mark.slow
def test_every_block_on_litellm_runs(tmp_path: Path, litellm_at_work: None) -> None:
    run_page(ROOT / "docs" / "litellm.md", tmp_path)


def test_the_readme_shows_each_kind(root: Path) -> None:
    found = list(snippets((root / "README.md").read_text(encoding="utf-8")))
    assert [snippet for snippet in found if snippet.not_run is not None] == []
    programs = [s for s in found if s.language == "python"]
    assert len(programs) == 1
    assert len(programs[0].text.splitlines()) <= 12
    assert sum(s.text.count("$ duolog") for s in found if s.language == "console") >= 4


def test_the_readme_is_read_in_a_minute(root: Path) -> None:
    page = (root / "README.md").read_text(encoding="utf-8")
    assert page.count("\n") <= 130


def test_the_readme_gives_numbers_of_its_table_only(root: Path) -> None:
    page = (root / "README.md").read_text(encoding="utf-8")
    table = next(s.text for s in snippets(page) if s.text.startswith("Collaborative effort"))
    said = re.findall(r"\b0(\.\d{3})\b", prose(root / "README.md"))
    assert len(said) >= 3
    assert set(said) <= set(re.findall(r"\.\d{3}\b", table))


def test_make_demo_says_how_to_go_on_as_the_readme_does(root: Path) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    said = re.findall(r'@echo "    (.+)"$', makefile.replace("$(VENV)", ".venv"), re.MULTILINE)
    page = (root / "README.md").read_text(encoding="utf-8")
    lines = [line for s in snippets(page) for line in s.text.splitlines()]
    shown = [line.partition("  #")[0].rstrip() for line in lines if line[:2] == "$ "]
    assert len(said) >= 2
    assert {f"$ {command}" for command in said} <= {*shown}
    assert said[0] == ". .venv/bin/activate"


@pytest.mark.slow
def test_a_block_that_fails_fails_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for text, wrong in (
        ("```python\nraise SystemExit(3)\n```\n", "page.md, line 1"),
        ("```python\npass\n```\n", "shows nothing"),
        ("```python\nprint(1)\n```\n\n<!-- output -->\n```text\n2\n```\n", "nothing printed"),
        ("```console\n$ rm -r /\n```\n", "who runs rm"),
        ("```cobol\nDISPLAY 1\n```\n", "who runs cobol"),
        ("<!-- not run: just so -->\n```python\nfrom duolog import nobody\n```\n", "nobody"),
    ):
        page.write_text(text, encoding="utf-8")
        with pytest.raises((AssertionError, ImportError), match=wrong):
            run_page(page, tmp_path)


def test_what_is_not_run_says_why() -> None:
    with pytest.raises(AssertionError, match="why"):
        check(Snippet(1, "python", "pass\n", ""), "here")


def test_what_imports_litellm_downloads_nothing() -> None:
    texts = [s.text for page in PAGES for s in snippets(page.read_text(encoding="utf-8"))]
    texts += [path.read_text(encoding="utf-8") for path in (ROOT / "examples").glob("*.py")]
    importing = [text for text in texts if "\nimport litellm" in text]
    assert len(importing) >= 2
    for text in importing:
        assert "LITELLM_LOCAL_MODEL_COST_MAP" in text[: text.index("\nimport litellm")]
