"""The generated pages of the reference are those of this program, and configuration is complete."""

from __future__ import annotations

import re
from pathlib import Path

from duolog.benchmarks.reference import pages


def test_the_pages_are_up_to_date(root: Path) -> None:
    made = pages()
    assert len(made) >= 4
    for name, text in made.items():
        written = (root / "docs" / "reference" / name).read_text(encoding="utf-8")
        assert written == text, f"{name}: run: python -m duolog.benchmarks.reference"


def test_every_variable_of_the_environment_is_on_its_page(root: Path) -> None:
    page = (root / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    apart = {"benchmarks", "build", "tests", "testing", "docs"}
    parts = [part for part in root.iterdir() if part.name not in apart and part.name[0] != "."]
    files = [*root.glob("*.py"), *(file for part in parts for file in part.rglob("*.py"))]
    named = {
        name
        for file in files
        if not apart & set(file.relative_to(root).parts)
        for name in re.findall(r'"(DUOLOG_[A-Z_]+)"', file.read_text(encoding="utf-8"))
    }
    assert len(named) >= 4
    assert {name for name in named if f"`{name}`" not in page} == set()
