"""What belongs into a distribution, read from the tree."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

__all__ = ("copy_of_the_tree", "packages", "sources")

_NO_PACKAGES = {"tests", "benchmarks", "build", "dist", "docs"}


def packages(root: Path) -> Iterator[Path]:
    """All package directories of the tree, relative to it; the root, which is one, included."""
    yield Path()
    for marker in sorted(root.glob("*/**/__init__.py")):
        package = marker.parent.relative_to(root)
        if package.parts[0] not in _NO_PACKAGES and not package.parts[0].startswith("."):
            yield package


def sources(root: Path) -> Iterator[str]:
    """All files that belong into the wheel: code, and whatever else lies in a package."""
    for path in root.glob("*.py"):
        yield path.name
    yield "py.typed"
    for top in {package.parts[0] for package in packages(root) if package.parts}:
        for path in (root / top).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(root).as_posix()


def copy_of_the_tree(root: Path, to: Path, *, compiled: bool = False) -> Path:
    """Copies the current tree to another place, so that old builds cannot leak into a new one.

    Args:
        root: the tree.
        to: where it is copied to.
        compiled: whether modules that have been compiled are copied as such too.
    """
    unwanted = [".git", ".venv", ".*_cache", "build", "dist", "*.egg-info", "*.db*"]
    if not compiled:
        unwanted.append("__pycache__")
    shutil.copytree(root, to, ignore=shutil.ignore_patterns(*unwanted))
    return to
