"""Programs as they run with only some extras installed: packages of the others cannot be imported."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ("hide_extras",)

# A name that is None in sys.modules would give other errors for its submodules than one that is absent.
_FINDER = """
import sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in {modules!r} else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
"""


def hide_extras(root: Path, installed: Collection[str], where: Path) -> Path:
    """Makes a directory for ``PYTHONPATH`` in which programs miss what no extra here asks for.

    Args:
        root: the checkout.
        installed: the extras that are there.
        where: a directory that is there, to put it into.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    there = _with_all_that_they_need(project["dependencies"])
    missing: set[str] = set()
    for extra, requirements in extras.items():
        if extra in installed:
            there |= _with_all_that_they_need(requirements)
        elif extra not in ("all", "dev", "docs"):
            missing |= _names(requirements)
    modules = [
        module
        for module, distributions in packages_distributions().items()
        if {canonicalize_name(name) for name in distributions} & (missing - there)
    ]
    assert modules, "every extra is there"
    hidden = where / "hidden"
    hidden.mkdir(exist_ok=True)
    text = _FINDER.format(modules=sorted(modules))
    (hidden / "sitecustomize.py").write_text(text, encoding="utf-8")
    return hidden


def _with_all_that_they_need(requirements: Collection[str]) -> set[str]:
    """The distributions that are asked for, and those that these ask for, as they are installed here."""
    found: set[str] = set()
    asked = _names(requirements)
    while asked:
        found |= asked
        further = [
            text
            for name in asked
            for text in _required(name)
            if (marker := Requirement(text).marker) is None or marker.evaluate({"extra": ""})
        ]
        asked = _names(further) - found
    return found


def _required(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:  # it belongs to another platform, or is not installed at all
        return []


def _names(requirements: Collection[str]) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for text in requirements}
