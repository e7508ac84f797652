"""What pages name is there: paths, dotted names, and what their links point at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from documents import code_spans, page_files, prose
from duolog.interop.importers.registry import importer_names

ROOT = Path(__file__).parents[1]
PAGES = page_files(ROOT)
TOPS = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")} - {"build"}

DOTTED = re.compile(r"duolog(?:\.[A-Za-z_]\w*)+(?=$|\()")
PATH = re.compile(r"[\w.-]+/[\w./-]*")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
COMPOSED = ("action", "outcome", "feedback", "rated", "closed", "tasks", "otel")
"""Names that the code puts together: of AG-UI's events, of a group of entry points, of a logger."""
OTHERS = re.compile(r"\"(duolog\.[a-z_.-]+)\"")


def other_names(root: Path) -> set[str]:
    """Duolog's names outside Python: of telemetry, of streams, of entry points."""
    sources = [*(root / "interop").rglob("*.py"), root / "engine" / "task.py"]
    found = {name for path in sources for name in OTHERS.findall(path.read_text(encoding="utf-8"))}
    return found | {f"duolog.{name}" for name in COMPOSED}


def is_there(dotted: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    parts = dotted.split(".")
    for split in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:split]))
        except ModuleNotFoundError as error:
            if error.name is not None and not error.name.startswith("duolog"):
                return True  # our module is there, but its framework is not installed
            continue
        for name in parts[split:]:
            if not hasattr(found, name):
                return name in getattr(found, "__annotations__", {})
            found = getattr(found, name)
        return True
    return False


def wrong_names(text: str, root: Path) -> Iterator[str]:
    others = other_names(root)
    for code in code_spans(text):
        dotted = DOTTED.match(code)
        if dotted:
            if code not in others and not is_there(dotted[0]):
                yield code
        elif PATH.fullmatch(code) and code.split("/")[0] in TOPS and not (root / code).exists():
            yield code


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    found = set()
    for heading in HEADING.findall(prose(page)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_names_is_there(page: Path) -> None:
    assert list(wrong_names(prose(page), ROOT)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    wrong = []
    for link in LINK.findall(prose(page)):
        if "://" in link or link.startswith("mailto:"):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


def test_a_name_that_is_not_there_is_found(root: Path) -> None:
    text = (
        "`duolog.open`, `duolog.engine.events.SessionOpened.clock`, `engine/log/`, `cli/app.py`, "
        "`duolog.Log.session(id)`, `duolog.tasks`, `a/b`; "
        "`duolog.nobody`, `duolog.engine.nowhere.Thing`, `duolog.Log.nothing`, `engine/nothing.py`"
    )
    assert list(wrong_names(text, root)) == [
        "duolog.nobody",
        "duolog.engine.nowhere.Thing",
        "duolog.Log.nothing",
        "engine/nothing.py",
    ]


@pytest.mark.parametrize("part", ["engine", "scoring", "telemetry", "interop", "agents", "users"])
def test_the_map_names_every_folder(root: Path, part: str) -> None:
    named = set(code_spans(prose(root / "docs" / "architecture.md")))
    folders = {path.parent for path in (root / part).glob("**/__init__.py")}
    shown = {f"{folder.relative_to(root).as_posix()}/" for folder in folders}
    assert {name for name in shown if name not in named and name.count("/") < 3} == set()


def test_every_format_has_an_example() -> None:
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    sections = {
        part.partition("\n")[0]: part for part in re.split(r"^##+ ", text, flags=re.MULTILINE)
    }
    named = (ROOT / "docs" / "importing.md").read_text(encoding="utf-8")
    for name in importer_names():
        assert "$ duolog show " in sections[name], name
        assert f"[`{name}`](formats.md#{name})" in named, name
